"""Full eigenvalue and singular value decompositions.

Drivers by measurement (2 cores): ``evd`` is the fastest full solver; a range-restricted driver wins when at most a tenth of the
pairs is wanted.
"""

from __future__ import annotations

import contextlib

import numpy as np
import scipy.linalg as sl

from cvxnmf.linalg.arrays import FloatArray

#: Up to this share of the pairs a range-restricted driver beats a full decomposition.
PARTIAL_SHARE = 0.1
#: Rows up to which numpy's way to the same driver is the faster one: half the time for 30 rows, none gained for 200.
SMALL = 200
#: Singular values below this share of the largest are lost in a Gram matrix.
SMALLEST_GRAM_SHARE = 1e-5


def add_outer(M: FloatArray, x: FloatArray, y: FloatArray) -> None:
    """Add ``x y'`` to M in place, without forming it where M lies in rows."""
    if M.flags.c_contiguous:
        sl.blas.dger(1.0, y, x, a=M.T, overwrite_a=True)  # transposed, a C array is what BLAS wants; of others it takes a copy
    else:
        M += np.outer(x, y)


def eigenpairs(M: FloatArray, overwrite: bool = False) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues of a symmetric matrix, increasing, with their vectors; M may be overwritten if that is said."""
    if len(M) <= SMALL:
        return np.linalg.eigh(M)
    values, vectors = sl.eigh(M.T, driver="evd", overwrite_a=overwrite, check_finite=False)
    return values, vectors


def eigenpairs_between(B: FloatArray, first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues from number `first` to `last` of a symmetric B, increasing, with their vectors; B may be overwritten.

    Where a matrix falls apart into blocks, LAPACK's driver for a range at times finds none, or fails. All are computed then, from
    the triangle that it leaves as it was.
    """
    diagonal = np.diag(B).copy()
    with contextlib.suppress(sl.LinAlgError):
        values, vectors = sl.eigh(B.T, subset_by_index=[first, last], overwrite_a=True, check_finite=False)
        if len(values) > last - first:
            return values, vectors
    B.flat[:: len(B) + 1] = diagonal
    values, vectors = sl.eigh(B.T, lower=False, driver="evd", check_finite=False)
    return values[first : last + 1], vectors[:, first : last + 1]


def eigenpairs_above(B: FloatArray, threshold: float, expected: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of a symmetric B above `threshold` in decreasing order, with their vectors; B is overwritten.

    Few `expected` pairs are computed by a range-restricted driver, which is only trusted if it also finds one below the
    threshold.
    """
    n = len(B)
    wanted = n if expected is None else expected + 2 + n // 50  # some more pairs cost next to nothing
    if n > 200 and wanted <= PARTIAL_SHARE * n:
        values, vectors = eigenpairs_between(B.copy(), n - wanted, n - 1)
        if values[0] > threshold:
            return eigenpairs_above(B, threshold)
    else:
        values, vectors = eigenpairs(B, overwrite=True)
    keep = int(np.searchsorted(-values[::-1], -threshold, side="left"))
    return values[::-1][:keep], vectors[:, ::-1][:, :keep]


def smaller_definite_part(M: FloatArray) -> tuple[FloatArray, bool]:
    """The positive or the negative part of a symmetric M, whichever has fewer eigenvalues, and whether it is the positive one.

    ``M = positive - negative``, both positive semidefinite up to rounding. M is overwritten.
    """
    values, vectors = eigenpairs(M, overwrite=True)
    first = int(np.searchsorted(values, 0.0, side="right"))
    is_positive = 2 * first >= len(values)
    chosen = slice(first, None) if is_positive else slice(first)
    half = vectors[:, chosen] * np.sqrt(np.abs(values[chosen]))
    return np.asarray(half @ half.T), is_positive


def best_low_rank(M: FloatArray, k: int, symmetric: bool) -> tuple[FloatArray, float]:
    """Best approximation of rank k of M, positive semidefinite if `symmetric`, and its squared norm."""
    if symmetric:
        values, vectors = _top_pairs(M, k)
        values = np.maximum(values, 0.0)
        return (vectors * values) @ vectors.T, float(np.sum(values * values))
    if M.shape[0] < M.shape[1]:
        X, energy = best_low_rank(M.T, k, symmetric)
        return X.T, energy
    squares, right = _top_pairs(M.T @ M, k)
    return (M @ right) @ right.T, float(np.sum(squares))


def _top_pairs(M: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """The k largest eigenvalues of a symmetric M and their vectors, in increasing order."""
    n = len(M)
    if n > 200 and k <= PARTIAL_SHARE * n:
        return eigenpairs_between(M.copy(), n - k, n - 1)
    values, vectors = eigenpairs(M)
    return values[n - k :], vectors[:, n - k :]


def singular_triples_above(B: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Left vectors, values and right vectors of B for singular values above `threshold`, in decreasing order.

    From the eigenpairs of the smaller Gram matrix, which is several times faster than a decomposition of B and as accurate for
    values that are not tiny against the largest; where the threshold is, B itself is decomposed.
    """
    if B.shape[0] < B.shape[1]:
        right, values, left = singular_triples_above(B.T, threshold)
        return left, values, right
    squares, vectors = eigenpairs(B.T @ B, overwrite=True)
    values = np.sqrt(np.maximum(squares[::-1], 0.0))
    if threshold < SMALLEST_GRAM_SHARE * values[0]:
        left, values, right = sl.svd(B, full_matrices=False, check_finite=False)
        keep = int(np.count_nonzero(values > max(threshold, np.finfo(np.float64).eps * len(B) * values[0])))
        return left[:, :keep], values[:keep], right[:keep].T
    keep = int(np.count_nonzero(values > threshold))
    right = vectors[:, ::-1][:, :keep]
    return B @ (right / values[:keep]), values[:keep], right


def spectral_norm(B: FloatArray) -> float:
    """Spectral norm: the largest singular value of B."""
    unit = max(float(B.max(initial=0.0)), -float(B.min(initial=0.0)))
    if not 0 < unit < np.inf:
        return unit
    unit = 1.0 if 1e-100 < unit < 1e100 else unit  # squares neither vanish nor overflow
    thin = B if unit == 1.0 else B / unit
    thin = thin if B.shape[0] >= B.shape[1] else thin.T
    top = _end_eigenvalue(thin.T @ thin, thin.shape[1] - 1)
    return float(unit * np.sqrt(max(0.0, top)))


def smallest_eigenvalue(B: FloatArray, metric: FloatArray | None = None) -> float:
    """Smallest eigenvalue of B, or of the pencil (B, metric) with a positive definite metric; both are overwritten."""
    return _end_eigenvalue(B, 0, metric)


def _end_eigenvalue(B: FloatArray, number: int, metric: FloatArray | None = None) -> float:
    """One eigenvalue of B, or of a pencil, by its number; where LAPACK's driver for a range finds none, all are computed."""
    metric = None if metric is None else metric.T  # transposed, a C array is what LAPACK wants: no copy
    diagonals = [(M, np.diag(M).copy()) for M in (B, metric) if M is not None]
    options = {"eigvals_only": True, "subset_by_index": [number, number], "overwrite_a": True, "overwrite_b": True}
    with contextlib.suppress(sl.LinAlgError):
        values = sl.eigh(B.T, metric, check_finite=False, **options)
        if len(values):
            return float(values[0])
    for M, diagonal in diagonals:
        M.flat[:: len(M) + 1] = diagonal
    return float(sl.eigh(B.T, metric, lower=False, eigvals_only=True, check_finite=False)[number])
