"""Weights of several stages together: least squares over ``c >= 0`` that stays below the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from cvxnmf.linalg.arrays import FloatArray

#: The most violated entries join the constraints, this many at a time, for this many rounds.
VIOLATED_AT_ONCE = 20
ROUNDS = 100


def refit_stages(A: FloatArray, stages: list[FloatArray], counted: NDArray[np.bool_]) -> FloatArray:
    """Return weights ``c >= 0`` that minimise ``||A - sum c_k E_k||^2`` under ``sum c_k E_k <= A`` on the counted entries.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Nonnegative.
    stages : list of ndarray of shape (n, k)
        Factors, ``E_k = U_k U_k'``.
    counted : ndarray of bool, shape (n, n)
        Entries that count.
    """
    columns = np.column_stack([(U @ U.T)[counted] for U in stages])
    data = A[counted]
    chosen = np.zeros(0, dtype=np.intp)
    c = np.zeros(len(stages))
    for _ in range(ROUNDS):
        c = _least_squares_below(columns, data, chosen)
        excess = columns @ c - data
        worst = np.argsort(-excess, kind="stable")[:VIOLATED_AT_ONCE]
        worst = np.setdiff1d(worst[excess[worst] > 1e-9 * data.max()], chosen)
        if not len(worst):
            break
        chosen = np.concatenate([chosen, worst])
    return c


def _least_squares_below(columns: FloatArray, data: FloatArray, chosen: NDArray[np.intp]) -> FloatArray:
    """Minimise ``|columns c - data|`` over c >= 0 with ``columns c <= data`` at the chosen rows.

    In coordinates where the objective is a distance this is a least-distance problem, whose dual is a nonnegative
    least-squares problem (Lawson and Hanson).
    """
    size = np.linalg.norm(columns, axis=0)
    scaled = columns / size
    R = np.asarray(np.linalg.qr(scaled, mode="r"))
    ridge = np.sqrt(float(np.finfo(np.float64).eps)) * np.eye(len(size))
    R = np.asarray(np.linalg.qr(np.vstack([R, ridge]), mode="r"))  # stages may repeat each other
    free = np.linalg.solve(R, np.linalg.solve(R.T, scaled.T @ data))
    limits = np.vstack([np.eye(len(size)), -scaled[chosen]])  # limits @ c >= edges
    edges = np.concatenate([np.zeros(len(size)), -data[chosen]]) - limits @ free
    G = np.linalg.solve(R.T, limits.T).T
    unit = max(float(np.abs(edges).max()), np.finfo(np.float64).tiny)
    u, _ = nnls(np.vstack([G.T, edges / unit]), np.append(np.zeros(len(size)), 1.0), maxiter=50 * len(edges))
    residual = np.vstack([G.T, edges / unit]) @ u - np.append(np.zeros(len(size)), 1.0)
    if -residual[-1] < 1e-12:  # no room at all: nothing may be taken
        return np.zeros(len(size))
    z = residual[:-1] / -residual[-1] * unit
    return np.asarray(np.maximum(0.0, free + np.linalg.solve(R, z)) / size)
