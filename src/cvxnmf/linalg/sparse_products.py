"""Threaded products of matrices in compressed rows: fixed shares of the rows, the same bits for any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.threads import map_in_threads

#: Below this many entries there is one share of the rows, from four times as many on there are so many, between two.
ONE_SHARE_BELOW, SHARES = 200_000, 8


def row_shares(A: Any, one_below: int = ONE_SHARE_BELOW) -> list[tuple[int, int]]:
    """First and last row of shares of a matrix in compressed rows with about as many entries each; few entries are one share."""
    if A.nnz < one_below:
        return [(0, A.shape[0])]
    shares = SHARES if A.nnz >= 4 * one_below else 2
    cuts = np.searchsorted(A.indptr, np.linspace(0, A.nnz, shares + 1)[1:-1]).tolist()
    bounds = [0, *cuts, A.shape[0]]
    return list(zip(bounds[:-1], bounds[1:], strict=True))


def over_rows(A: Any, work: Callable[[int, int], Any]) -> list[Any]:
    """Call ``work(first row, last row)`` for all shares of the rows, in threads."""
    assert A.format == "csr", "compressed columns would be read beyond their end"
    return map_in_threads(lambda rows: work(*rows), row_shares(A))


@compile_with(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _product(indptr: Any, indices: Any, data: Any, X: Any, result: Any, first: int, last: int) -> None:
    k = X.shape[1]
    row = np.empty(k)  # an array of its own: the compiler need not fear that it overlaps with X
    for i in range(first, last):
        p, end = indptr[i], indptr[i + 1]
        for r in range(k):
            row[r] = 0.0
        while p + 1 < end:  # two entries at a time: the row is loaded and stored once for both
            a, b = data[p], data[p + 1]
            x, y = X[np.uint32(indices[p])], X[np.uint32(indices[p + 1])]  # unsigned: no index counts from the end
            for r in range(k):
                row[r] += a * x[r] + b * y[r]
            p += 2
        if p < end:
            a, x = data[p], X[np.uint32(indices[p])]
            for r in range(k):
                row[r] += a * x[r]
        for r in range(k):
            result[i, r] = row[r]


def csr_times(A: Any, X: FloatArray) -> FloatArray:
    """``A X`` for A in compressed rows, on several threads where that pays."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    result, data = np.empty((A.shape[0], X.shape[1])), np.ascontiguousarray(A.data)  # equal values may be held once
    over_rows(A, lambda first, last: _product(A.indptr, A.indices, data, X, result, first, last))
    return result


@compile_with(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _transposed_product(indptr: Any, indices: Any, data: Any, X: Any, result: Any) -> None:
    k = X.shape[1]
    row = np.empty(k)
    for i in range(len(indptr) - 1):
        for r in range(k):
            row[r] = X[i, r]
        for p in range(indptr[i], indptr[i + 1]):
            a, target = data[p], result[np.uint32(indices[p])]
            for r in range(k):
                target[r] += a * row[r]


def csr_transposed_times(A: Any, X: FloatArray) -> FloatArray:
    """``A' X`` for A in compressed rows, by adding multiples of the rows of X, on one thread."""
    assert A.format == "csr", "compressed columns would be read beyond their end"
    X = np.ascontiguousarray(X, dtype=np.float64)
    result = np.zeros((A.shape[1], X.shape[1]))
    _transposed_product(A.indptr, A.indices, A.data, X, result)
    return result


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
    """``(UV')_ij`` at the stored entries of A."""
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
        """The combination; Y = 0 when left out."""
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
    """``(A / XV') V`` over the nonzero entries of A, and ``sum A log(XV')``."""
    X, V = np.ascontiguousarray(X), np.ascontiguousarray(V)
    result = np.empty(X.shape)
    parts = over_rows(A, lambda first, last: _ratio_product(A.indptr, A.indices, A.data, X, V, result, first, last))
    return result, float(sum(parts))
