"""Nonnegative least squares by block principal pivoting (Kim & Park 2011), row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.optimize as so
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compiled

#: Entries with the wrong sign within this share of the largest are zero.
ZERO = 1e-13
#: Most exchanges.
PIVOTS = 200
#: Full exchanges without progress before single ones.
PATIENCE = 3


def nnls_rows(
    Q: FloatArray, P: FloatArray, positive: NDArray[np.bool_], regularise: bool = False, pivots: int = PIVOTS
) -> FloatArray:
    """Nonnegative least squares: the ``x >= 0`` that minimise ``x'Qx - 2 p'x``, one per row of P, shape (rows, k).

    Entries are zero or solve a linear system; all with the wrong sign change sides at once, or only the last one where that
    does not help. Rows that cycle by rounding are left to an active-set method.

    Q is positive definite, of shape (rows, k, k), or (1, k, k): one for all rows. `positive` is a first guess of the positive
    entries. `regularise` adds a tiny multiple of the identity to each system, for a Q that may be singular. There are at most so
    many `pivots`, exchanges.
    """
    count, k = P.shape
    ridge = max(1e-14 * float(np.trace(Q[0])) / k if regularise else 0.0, np.finfo(np.float64).tiny)
    X, cycles = np.empty((count, k)), np.zeros(count, dtype=bool)
    Q, P = (np.ascontiguousarray(array, dtype=np.float64) for array in (Q, P))
    _pivot_rows(Q, P, np.ascontiguousarray(positive), ridge, pivots, X, cycles)
    for row in np.flatnonzero(cycles):
        R = sl.cholesky(Q[0 if len(Q) == 1 else row] + max(ridge, ZERO) * np.eye(k))
        X[row], _ = so.nnls(R, sl.solve_triangular(R, P[row], trans="T"))
    return X


@compiled
def _pivot_rows(Q: Any, P: Any, positive: Any, ridge: float, pivots: int, X: Any, cycles: Any) -> None:
    """Block principal pivoting of :func:`nnls_rows`, row by row into X, but for rows that cycle, which are marked.

    The Cholesky factor of a matrix that all rows share serves as long as the positive entries are the same.
    """
    m, k = P.shape
    L, free, x, inside = np.empty((k, k)), np.empty(k, np.int64), np.empty(k), np.empty(k, np.bool_)
    known, f = np.zeros(k, np.bool_), -1
    for i in range(m):
        q = Q[i if len(Q) > 1 else 0]
        P_size, scale = 0.0, 0.0
        for r in range(k):
            P_size, scale, inside[r] = max(P_size, abs(P[i, r])), max(scale, q[r, r]), positive[i, r]
        fewest, patience, wrong = k + 1, PATIENCE, 1
        for _ in range(pivots):
            same = f >= 0 and len(Q) == 1
            for r in range(k):
                same = same and inside[r] == known[r]
                known[r] = inside[r]
            if not same:
                f = _factor(q, inside, ridge, L, free)
            size = _solve(L, free, f, P[i], x)
            wrong, last = 0, -1
            for r in range(k):
                if _has_wrong_sign(q[r], P[i, r], x, r, inside[r], size, max(P_size, size * scale)):
                    wrong, last = wrong + 1, r
            if wrong == 0:
                break
            patience = PATIENCE if wrong < fewest else patience - 1
            fewest = min(fewest, wrong)
            for r in range(k) if patience >= 0 else range(last, last + 1):
                inside[r] ^= _has_wrong_sign(q[r], P[i, r], x, r, inside[r], size, max(P_size, size * scale))
        cycles[i] = wrong > 0
        for r in range(k):
            X[i, r] = max(x[r], 0.0)


@compiled
def _has_wrong_sign(q: Any, p: float, x: Any, r: int, inside: bool, size: float, dual_size: float) -> bool:
    """Whether an NNLS entry has the wrong sign: a positive one is negative, or the slope at a zero one is."""
    if inside:
        return bool(x[r] < -ZERO * size)
    slope = -p
    for s in range(len(x)):
        slope += q[s] * x[s]
    return bool(slope < -ZERO * dual_size)


@compiled
def _factor(q: Any, inside: Any, ridge: float, L: Any, free: Any) -> int:
    """Cholesky factor of the rows and columns of q whose NNLS entries are positive, and how many these are."""
    f = 0
    for r in range(len(q)):
        if not inside[r]:
            continue
        free[f] = r
        for b in range(f + 1):
            total = q[r, free[b]]
            for c in range(b):
                total -= L[f, c] * L[b, c]
            L[f, b] = np.sqrt(max(total, 0.0) + ridge) if b == f else total / L[b, b]
        f += 1
    return f


@compiled
def _solve(L: Any, free: Any, f: int, p: Any, x: Any) -> float:
    """Solve for the free entries of x in NNLS, zero elsewhere; returns the largest size of one."""
    y, size = np.empty(f), 0.0
    for r in range(len(x)):
        x[r] = 0.0
    for a in range(f):
        total = p[free[a]]
        for c in range(a):
            total -= L[a, c] * y[c]
        y[a] = total / L[a, a]
    for a in range(f - 1, -1, -1):
        value = y[a] / L[a, a]
        for c in range(a):
            y[c] -= L[a, c] * value
        x[free[a]], size = value, max(size, abs(value))
    return size
