"""Ours and the peers: each takes a problem and returns X."""

from __future__ import annotations

import warnings

import numpy as np

import cvxnmf


def ours(problem: cvxnmf.Problem, tol: float) -> cvxnmf.Solution:
    """Solve with the default method."""
    return cvxnmf.solve(problem, tol=tol)


def sklearn_restarts(A: np.ndarray, k: int, runs: int) -> list[np.ndarray]:
    """scikit-learn's NMF from several random starts, its own settings."""
    from sklearn.decomposition import NMF
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [NMF(k, init="random", random_state=seed).fit_transform(A) for seed in range(runs)]


def cvxpy_psd(A: np.ndarray, solver: str, **options: float) -> np.ndarray:
    """KL on the PSD cone, modelled in cvxpy; building and compiling the model is part of the work."""
    import cvxpy as cp

    n = len(A)
    X = cp.Variable((n, n), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(X)) - cp.sum(cp.multiply(A, X))))
    problem.solve(solver=solver, **options)
    return X.value
