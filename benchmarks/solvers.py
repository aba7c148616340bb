"""Ours and the peers: each takes a problem and returns X."""

from __future__ import annotations

import numpy as np

import cvxnmf


def ours(problem: cvxnmf.Problem, tol: float) -> cvxnmf.Solution:
    """Solve with the default method."""
    return cvxnmf.solve(problem, tol=tol)


def cvxpy_psd(A: np.ndarray, solver: str, **options: float) -> np.ndarray:
    """KL on the PSD cone, modelled in cvxpy; building and compiling the model is part of the work."""
    import cvxpy as cp

    n = len(A)
    X = cp.Variable((n, n), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(X)) - cp.sum(cp.multiply(A, X))))
    problem.solve(solver=solver, **options)
    return X.value
