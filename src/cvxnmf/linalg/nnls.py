"""Nonnegative least squares by block principal pivoting (Kim & Park 2011), all rows at once."""

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
    """The ``x >= 0`` that minimise ``x'Qx - 2 p'x``, one per row of P, shape (rows, k).

    Entries are zero or solve a linear system; all with the wrong sign change sides at once, or only the last one where that
    does not help. Rows that cycle by rounding are left to an active-set method.

    Q is positive definite, of shape (rows, k, k), or (1, k, k): one for all rows, whose factorisations are then shared by rows
    with the same positive entries. `positive` is a first guess of these entries. `regularise` adds a tiny multiple of the
    identity to each system, for a Q that may be singular. There are at most so many `pivots`, exchanges.
    """
    count, k = P.shape
    ridge = max(1e-14 * float(np.trace(Q[0])) / k if regularise else 0.0, np.finfo(np.float64).tiny)
    X, positive, left = np.zeros_like(P), positive.copy(), np.arange(count)
    fewest, patience = np.full(count, k + 1), np.full(count, PATIENCE)
    scale, P_size = np.einsum("rii->ri", Q).max(axis=1, keepdims=True), np.abs(P).max(axis=1, keepdims=True)
    for number in range(pivots):
        rows: Any = left if number else slice(None)
        x, dual = _solve(Q if len(Q) == 1 else Q[rows], P[rows], positive[rows], ridge)
        size = np.abs(x).max(axis=1, keepdims=True)
        dual_size = np.maximum(P_size[rows], size * (scale if len(Q) == 1 else scale[rows]))
        wrong = np.where(positive[rows], x < -ZERO * size, dual < -ZERO * dual_size)
        X[rows] = np.maximum(x, 0.0)
        going = wrong.any(axis=1)
        left, wrong = left[going], wrong[going]
        if not len(left):
            return X
        exchanged = wrong.sum(axis=1)
        patience[left] = np.where(exchanged < fewest[left], PATIENCE, patience[left] - 1)
        fewest[left] = np.minimum(fewest[left], exchanged)
        last = np.arange(k) == (k - 1 - np.argmax(wrong[:, ::-1], axis=1))[:, None]
        positive[left] ^= wrong & (last | (patience[left] >= 0)[:, None])
    for row in left:  # a cycle by rounding
        R = sl.cholesky(Q[0 if len(Q) == 1 else row] + max(ridge, ZERO) * np.eye(k))
        X[row], _ = so.nnls(R, sl.solve_triangular(R, P[row], trans="T"))
    return X


def _solve(Q: FloatArray, P: FloatArray, positive: NDArray[np.bool_], ridge: float) -> tuple[FloatArray, FloatArray]:
    """Primal and dual variables of all rows; with one Q for all, rows with the same positive entries share a factorisation."""
    if len(Q) > 1:
        order, bounds = np.arange(len(P)), np.arange(len(P) + 1)
    else:
        _, group = np.unique(np.packbits(positive, axis=1), axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(group.ravel()))])
    X = solve_groups(Q, P, positive, order, bounds, ridge)
    product = X @ Q[0] if len(Q) == 1 else np.matmul(X[:, None, :], Q)[:, 0]
    return X, np.where(positive, 0.0, product - P)


@compiled
def solve_groups(Q: Any, P: Any, positive: Any, order: Any, bounds: Any, ridge: float) -> Any:
    """Rows x of X with ``x_F = Q_FF^-1 p_F``, zero elsewhere, F the positive entries of the row.

    Rows ``order[bounds[g]:bounds[g + 1]]`` share one set, whose Cholesky factor is computed once. Q is the same for all rows,
    or one per row with groups of one row each.
    """
    m, k = P.shape
    X = np.zeros((m, k))
    L, free, y = np.empty((k, k)), np.empty(k, np.int64), np.empty(k)
    for g in range(len(bounds) - 1):
        leader, f = order[bounds[g]], 0
        q = Q[leader if len(Q) > 1 else 0]
        for r in range(k):
            if positive[leader, r]:
                free[f] = r
                f += 1
        for a in range(f):
            for b in range(a + 1):
                total = q[free[a], free[b]]
                for c in range(b):
                    total -= L[a, c] * L[b, c]
                if a == b:
                    L[a, a] = np.sqrt(max(total, 0.0) + ridge)
                else:
                    L[a, b] = total / L[b, b]
        for e in range(bounds[g], bounds[g + 1]):
            i = order[e]
            for a in range(f):
                total = P[i, free[a]]
                for c in range(a):
                    total -= L[a, c] * y[c]
                y[a] = total / L[a, a]
            for a in range(f - 1, -1, -1):
                total = y[a]
                for c in range(a + 1, f):
                    total -= L[c, a] * y[c]
                y[a] = total / L[a, a]
                X[i, free[a]] = y[a]
    return X
