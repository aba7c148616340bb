"""Reduction to fewer columns: by nonnegative weights fitted to ``exp_H(X)``, or exactly (Caratheodory)."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray
from scipy.optimize import nnls

from cvxnmf.cp.hadamard_exponential import CHUNK_ENTRIES, Features, HadamardExponential, map_halves
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.row_chunks import row_chunks

#: Added to the unit diagonal of a least squares problem, times its largest row sum: above the rounding of a Cholesky step.
RIDGE = 1e-15


def refit_weights(target: HadamardExponential, features: Features) -> Features:
    """Reduce features to the columns that have weight in the nonnegative combination nearest to ``exp_H(X)``.

    ``min c'Hc - 2b'c`` with ``H = (U'U) o (V'V)`` entrywise and ``b_k = u_k' exp_H(X) v_k``.
    """
    unit = unit_columns(features)
    b = np.zeros(unit.columns)
    for rows, E in target.chunks():
        b += np.sum(unit.left[rows] * (E @ unit.right), axis=0)
    H = _gram(unit)
    H[np.diag_indices(len(H))] += RIDGE * H.sum(axis=1).max()
    return unit.with_weights(nonnegative_least_squares(H, b))


def unit_columns(features: Features) -> Features:
    """The feature columns that are not zero, scaled to unit length, for the reduction."""
    sizes = map_halves(lambda half: np.linalg.norm(half, axis=0), features)
    kept = (sizes[0] > 0) & (sizes[1] > 0)
    left = features.left[:, kept] / sizes[0][kept]
    return Features(left, left if features.right is features.left else features.right[:, kept] / sizes[1][kept])


def _gram(features: Features) -> FloatArray:
    """The Gram matrix ``(U'U) o (V'V)`` of the reduction, the second factor in row chunks."""
    H = np.asarray(features.left.T @ features.left)
    if features.right is features.left:
        return np.multiply(H, H, out=H)
    for chunk in row_chunks(len(H), len(H), CHUNK_ENTRIES):
        H[chunk] *= features.right[:, chunk].T @ features.right
    return H


def nonnegative_least_squares(H: FloatArray, b: FloatArray, max_exchanges: int = 300) -> FloatArray:
    """Weights of a reduction that minimise ``c'Hc - 2b'c`` over ``c >= 0``; H, positive definite, and b are positive.

    One large problem, its systems solved by LAPACK; :mod:`cvxnmf.linalg.nnls` solves many small ones in a compiled pass.
    All weights of the wrong sign leave the support and all columns with a descent direction enter it (block principal
    pivoting), one at a time once that stops making progress; after `max_exchanges` a slower method takes over that cannot cycle.
    """
    support, allowance = _likely_support(H, b), 1e-10 * b.max()
    fewest, patience = len(b) + 1, 3
    for _ in range(max_exchanges):
        c = _solve_on_support(H, b, support)
        wrong = np.where(support, c < 0, b - H @ c > allowance)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return c
        patience = 3 if count < fewest else patience - 1
        fewest = min(fewest, count)
        if patience < 0:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        support ^= wrong
    return _slow_least_squares(H, b)


def _likely_support(H: FloatArray, b: FloatArray) -> NDArray[np.bool_]:
    """Columns that keep some weight under a few multiplicative updates of the reduction's least squares."""
    c = b / H.sum(axis=1)
    for _ in range(30):
        c *= b / (H @ c)
    return np.asarray(c > 1e-2 * c.max())


def _solve_on_support(H: FloatArray, b: FloatArray, support: NDArray[np.bool_]) -> FloatArray:
    """The stationary weights of a reduction with zeros outside the support."""
    nodes = np.flatnonzero(support)
    c = np.zeros(len(b))
    block = H[np.ix_(nodes, nodes)].T  # the same matrix, in the order that can be overwritten
    c[nodes] = sl.cho_solve(sl.cho_factor(block, overwrite_a=True), b[nodes])
    return c


def _slow_least_squares(H: FloatArray, b: FloatArray) -> FloatArray:
    """Nonnegative least squares of a reduction by Lawson and Hanson's method, one column at a time."""
    root = sl.cholesky(H)
    return np.asarray(nnls(root, sl.solve_triangular(root, b, trans="T"), maxiter=30 * len(b))[0])


def reduce_exactly(target: HadamardExponential, features: Features) -> Features:
    """Exact reduction: features with the product ``UV'`` in at most n(n+1)/2 columns, or min(m, n) if it is rectangular."""
    if target.symmetric:
        half = _independent_columns(features.left)
        return Features(half, half)
    U, V = features
    if features.columns <= min(len(U), len(V)):
        return features
    return Features(U @ V.T, np.eye(len(V))) if len(V) <= len(U) else Features(np.eye(len(U)), V @ U.T)


def _independent_columns(features: FloatArray) -> FloatArray:
    """Exact reduction of ``UU'`` to at most n(n+1)/2 columns: weights move along dependencies until they vanish."""
    n = len(features)
    upper = np.triu_indices(n)
    while features.shape[1] > len(upper[0]):
        products = features[upper[0]] * features[upper[1]]
        size = np.linalg.norm(products, axis=0)
        dependency = np.linalg.svd(products[:, : len(upper[0]) + 1] / size[: len(upper[0]) + 1])[2][-1]
        direction = dependency / size[: len(upper[0]) + 1]
        direction = direction if direction.max() > 0 else -direction
        ratios = np.where(direction > 0, direction, 0.0)
        step = 1.0 / ratios.max()
        weights = np.ones(features.shape[1])
        weights[: len(direction)] -= step * direction
        weights[int(np.argmax(ratios))] = 0.0
        features = features[:, weights > 0] * np.sqrt(weights[weights > 0])
    return features
