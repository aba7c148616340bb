"""Symmetric matrices: made from a triangle, or so up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.linalg.arrays import LARGE_SPARSE, FloatArray, with_short_indices
from cvxnmf.linalg.compiled import compile_with

#: Differences of mirrored entries up to this share of the largest entry are rounding, perhaps of work in single precision.
ROUNDING = 1e-6
#: Rows and columns of a tile.
TILE = 128


def asymmetry(A: Any) -> float:
    """Largest difference of mirrored entries, ``max |a_ij - a_ji|``, of a square dense or sparse A.

    Mirrored entries that are both missing (NaN) or the same infinity do not differ.
    """
    if sp.issparse(A):
        largest = -1.0
        if A.nnz >= LARGE_SPARSE and A.format == "csr" and A.has_canonical_format:
            largest = float(_mirrored_difference(A.indptr, A.indices, A.data))
        return largest if largest >= 0.0 else float(abs(A - A.T).max())
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.abs(A - A.T), initial=0.0))


@compile_with(nogil=True)
def _mirrored_difference(indptr: Any, indices: Any, data: Any) -> float:
    """Largest difference of mirrored entries, columns of a row rising, without a transposed copy; -1 if an entry has no mirror.

    Entries above the diagonal, row by row, meet those below it row by row as well, each row from its left end.
    """
    place, largest = indptr[:-1].copy(), 0.0
    for i in range(len(place)):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if j > i:
                q = place[j]
                if q == indptr[j + 1] or indices[q] != i:
                    return -1.0
                difference = abs(data[p] - data[q])
                if not np.isfinite(difference):  # missing or infinite entries are others' business
                    return -1.0
                largest = max(largest, difference)
                place[j] += 1
    for i in range(len(place)):
        if place[i] < indptr[i + 1] and indices[place[i]] < i:
            return -1.0
    return largest


def rounding_asymmetry(A: Any) -> float:
    """Largest :func:`asymmetry` of a nonnegative A that is rounding alone; NaN where entries are missing."""
    return ROUNDING * float(A.max() if sp.issparse(A) else np.nanmax(A, initial=0.0))


def most_asymmetric(A: Any) -> tuple[int, int]:
    """Row and column of an entry of a square A that differs most from its mirror image."""
    difference = abs(A - A.T)
    if sp.issparse(A):
        entries = difference.tocoo()
        place = int(np.argmax(entries.data))
        return int(entries.row[place]), int(entries.col[place])
    i, j = np.unravel_index(int(np.nanargmax(difference)), difference.shape)
    return int(i), int(j)


def make_symmetric(M: FloatArray) -> FloatArray:
    """Make M symmetric, ``(M + M') / 2``, in its place, in tiles."""
    for i in range(0, len(M), TILE):
        for j in range(i, len(M), TILE):
            here, there = M[i : i + TILE, j : j + TILE], M[j : j + TILE, i : i + TILE]
            here[:] = 0.5 * (here + there.T)
            there[:] = here.T
    return M


def mirror_upper(upper: Any) -> Any:
    """The symmetric sparse matrix with this upper triangle, diagonal included."""
    return with_short_indices(sp.csr_array(upper + sp.csr_array(sp.triu(upper, 1)).T))
