"""Threaded products of matrices in compressed rows: fixed shares of the rows, the same bits for any number of threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray, aligned_empty
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.lanes import LANES, of_vectors
from cvxnmf.linalg.threads import map_in_threads, sum_in_threads

#: Below this many entries there is one share of the rows, from four times as many on there are so many, between two.
ONE_SHARE_BELOW, SHARES = 200_000, 8
#: Sums of a transposed product that stay in a cache; of more, those of an entry so far ahead are asked for.
CACHED_SUMS, AHEAD = 1 << 15, 8
#: Entries of a share at least for each sum that it has of its own.
ENTRIES_PER_SUM = 32
#: Sums and additions of so many vectors at a time.
_SUM_1, _SUM_2, _SUM_3, _SUM_4, _SUM_5, _SUM_6 = of_vectors("sum_of_rows", 6)
_ADD_1, _ADD_2, _ADD_3, _ADD_4, _ADD_5, _ADD_6 = of_vectors("addition_to_rows", 6)


def row_shares(A: Any, one_below: int = ONE_SHARE_BELOW, most: int = SHARES) -> list[tuple[int, int]]:
    """First and last row of shares of a matrix in compressed rows with about as many entries each; few entries are one share."""
    return shares_of_rows(A.indptr, one_below, most)


def shares_of_rows(indptr: Any, one_below: int = ONE_SHARE_BELOW, most: int = SHARES) -> list[tuple[int, int]]:
    """First and last row of shares with about as many entries each, from row pointers of a sparse matrix; a power of two."""
    rows, entries = len(indptr) - 1, int(indptr[-1])
    if entries < one_below:
        return [(0, rows)]
    shares = min(SHARES if entries >= 4 * one_below else 2, 1 << (max(1, most).bit_length() - 1))
    cuts = np.searchsorted(indptr, np.linspace(0, entries, shares + 1)[1:-1]).tolist()
    bounds = [0, *cuts, rows]
    return list(zip(bounds[:-1], bounds[1:], strict=True))


def shares_for_sums(A: Any, one_below: int = ONE_SHARE_BELOW) -> list[tuple[int, int]]:
    """Shares of the rows of a sparse matrix, each of which has a sum for every column: so few that adding these up is cheap."""
    return row_shares(A, one_below, A.nnz // (ENTRIES_PER_SUM * A.shape[1]))


def over_rows(A: Any, work: Callable[[int, int], Any]) -> list[Any]:
    """Call ``work(first row, last row)`` for all shares of the rows of a sparse matrix, in threads."""
    assert A.format == "csr", "compressed columns would be read beyond their end"
    return map_in_threads(lambda rows: work(*rows), row_shares(A))


@compile_with(error_model="numpy", nogil=True)
def _product(indptr: Any, indices: Any, data: Any, X: Any, result: Any, first: int, last: int) -> None:
    k = X.shape[1]
    for i in range(first, last):
        p, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        if k < LANES:
            for r in range(k):
                total = 0.0
                for e in range(p, end):
                    total += data[e] * X[np.uint32(indices[e]), r]  # unsigned: no index counts from the end
                result[i, r] = total
            continue
        r = 0
        while k - r > 5 * LANES:
            _SUM_6(indices, data, p, end, X, result, i, r, min(r + 5 * LANES, k - LANES))
            r += 6 * LANES
        if k - r > 4 * LANES:
            _SUM_5(indices, data, p, end, X, result, i, r, k - LANES)
        elif k - r > 3 * LANES:
            _SUM_4(indices, data, p, end, X, result, i, r, k - LANES)
        elif k - r > 2 * LANES:
            _SUM_3(indices, data, p, end, X, result, i, r, k - LANES)
        elif k - r > LANES:
            _SUM_2(indices, data, p, end, X, result, i, r, k - LANES)
        elif k > r:
            _SUM_1(indices, data, p, end, X, result, i, r, k - LANES)


def csr_times(A: Any, X: FloatArray) -> FloatArray:
    """Sparse product ``A X`` for A in compressed rows, on several threads where that pays."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    result, data = np.empty((A.shape[0], X.shape[1])), np.ascontiguousarray(A.data)  # equal values may be held once
    over_rows(A, lambda first, last: _product(A.indptr, A.indices, data, X, result, first, last))
    return result


@compile_with(error_model="numpy", nogil=True)
def _transposed_product(indptr: Any, indices: Any, data: Any, X: Any, result: Any, ahead: int, first: int, last: int) -> None:
    k, wide = X.shape[1], result.shape[1]
    row = np.zeros(wide)
    for i in range(first, last):
        for r in range(k):
            row[r] = X[i, r]
        p, end, r = np.int64(indptr[i]), np.int64(indptr[i + 1]), 0
        while wide - r >= 6 * LANES:
            _ADD_6(indices, data, p, end, row, result, r, ahead)
            r += 6 * LANES
        if wide - r == 5 * LANES:
            _ADD_5(indices, data, p, end, row, result, r, ahead)
        elif wide - r == 4 * LANES:
            _ADD_4(indices, data, p, end, row, result, r, ahead)
        elif wide - r == 3 * LANES:
            _ADD_3(indices, data, p, end, row, result, r, ahead)
        elif wide - r == 2 * LANES:
            _ADD_2(indices, data, p, end, row, result, r, ahead)
        elif wide > r:
            _ADD_1(indices, data, p, end, row, result, r, ahead)


def csr_transposed_times(A: Any, X: FloatArray) -> FloatArray:
    """Sparse product ``A' X`` for A in compressed rows, by adding multiples of rows of X, on several threads where that pays."""
    assert A.format == "csr", "compressed columns would be read beyond their end"
    X, data, k = np.ascontiguousarray(X, dtype=np.float64), np.ascontiguousarray(A.data), X.shape[1]
    shape = A.shape[1], k + -k % LANES
    ahead = AHEAD if math.prod(shape) > CACHED_SUMS else 0

    def part(rows: tuple[int, int]) -> FloatArray:
        result = aligned_empty(shape)
        result[:] = 0.0
        _transposed_product(A.indptr, A.indices, data, X, result, ahead, *rows)
        return result

    total = sum_in_threads(part, shares_for_sums(A), lambda one, other: np.add(one, other, out=one))
    return np.ascontiguousarray(total[:, :k])


@compile_with(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _entries(indptr: Any, indices: Any, U: Any, V: Any, result: Any, first: int, last: int) -> None:
    for i in range(first, last):
        u = U[i]
        for p in range(indptr[i], indptr[i + 1]):
            v, total = V[np.uint32(indices[p])], 0.0
            for r in range(len(u)):
                total += u[r] * v[r]
            result[p] = total


def csr_product_entries(A: Any, U: FloatArray, V: FloatArray) -> FloatArray:
    """Entries ``(UV')_ij`` of a product at the stored places of a sparse A in compressed rows."""
    U, V, result = np.ascontiguousarray(U), np.ascontiguousarray(V), np.empty(A.nnz)
    over_rows(A, lambda first, last: _entries(A.indptr, A.indices, U, V, result, first, last))
    return result


@compile_with(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _combination(
    indptr: Any, indices: Any, data: Any, e: Any, t: Any, X: Any, shift: Any, scale: Any, Y: Any, R: Any, first: int, last: int
) -> None:
    k = X.shape[1]
    for i in range(first, last):
        row, own, other, x = R[i], X[i], Y[i], e[i]
        for r in range(k):
            row[r] = -x * t[r] - shift * own[r]
        for p in range(indptr[i], indptr[i + 1]):
            a, near = data[p], X[np.uint32(indices[p])]
            for r in range(k):
                row[r] += a * near[r]
        for r in range(k):
            row[r] = scale * row[r] - other[r]


class RankOneDowndate:
    """``B = A - ee'`` with a symmetric A in compressed rows: ``scale (B X - shift X) - Y`` in one pass over the edges."""

    def __init__(self, A: Any, e: FloatArray) -> None:
        self.A, self.e, self.nothing = A, e, np.zeros((1, 1))

    def __call__(self, X: FloatArray, shift: float = 0.0, scale: float = 1.0, Y: FloatArray | None = None) -> FloatArray:
        """Sparse product ``scale (B X - shift X) - Y`` for ``B = A - ee'``; Y = 0 when left out."""
        X, result = np.ascontiguousarray(X), np.empty(X.shape)
        Y = np.broadcast_to(self.nothing, X.shape) if Y is None else np.ascontiguousarray(Y)
        A, e, t = self.A, self.e, self.e @ X

        def work(first: int, last: int) -> None:
            _combination(A.indptr, A.indices, A.data, e, t, X, shift, scale, Y, result, first, last)

        over_rows(A, work)
        return result


@compile_with(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _ratio_product(indptr: Any, indices: Any, data: Any, X: Any, V: Any, result: Any, first: int, last: int) -> float:
    k, total = X.shape[1], 0.0
    for i in range(first, last):
        row, x = result[i], X[i]
        for r in range(k):
            row[r] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            a, v = data[e], V[np.uint32(indices[e])]
            w = 0.0
            for r in range(k):
                w += x[r] * v[r]
            if a > 0.0:
                total += a * np.log(w)
                ratio = a / w
                for r in range(k):
                    row[r] += ratio * v[r]
    return total


def ratio_product(A: Any, X: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
    """Sparse product ``(A / XV') V`` over the nonzero entries of A, and ``sum A log(XV')``."""
    X, V = np.ascontiguousarray(X), np.ascontiguousarray(V)
    result = np.empty(X.shape)
    parts = over_rows(A, lambda first, last: _ratio_product(A.indptr, A.indices, A.data, X, V, result, first, last))
    return result, float(sum(parts))
