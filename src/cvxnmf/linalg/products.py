"""Products of shapes at which libraries are slow: thin ones, and single entries of ``UV'``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray, aligned_empty
from cvxnmf.linalg.compiled import compile_with, compiled
from cvxnmf.linalg.lanes import LANES, of_vectors, vector_loop

#: Columns up to which the compiled loops, in double precision, beat the library's matrix product of that and of single precision.
THIN, THIN_SINGLE = 64, 32
#: Rows of a product that are summed together, a multiple of all that a strip takes at once, and entries of a sum at a time: what
#: is multiplied then stays in the first cache.
ROWS, DEPTH = 24, 64
#: How many rows ahead those of narrow matrices are asked for.
AHEAD = 8
_STRIP_1, _STRIP_2, _STRIP_3, _STRIP_4, _STRIP_5, _STRIP_6 = of_vectors("product_strip", 6)
_STRIP_VECTORS = vector_loop("strip_vectors")


def dense_times(A: FloatArray, X: FloatArray) -> FloatArray:
    """``A X`` in double precision for a dense A, multiplied in its own precision; a library does it for many columns."""
    if not is_thin(A, X):
        return np.ascontiguousarray(A @ X.astype(A.dtype, copy=False), dtype=np.float64)
    factor = pad_columns(X)
    result = np.zeros((len(A), factor.shape[1]))
    add_times(A, 0, len(A), factor, result)
    return np.ascontiguousarray(result[:, : X.shape[1]])


def dense_transposed_times(A: FloatArray, X: FloatArray) -> FloatArray:
    """``A' X`` in double precision; with many columns as ``(X' A)'``, which libraries do faster."""
    if not is_thin(A, X):
        return np.ascontiguousarray((X.T.astype(A.dtype, copy=False) @ A).T, dtype=np.float64)
    factor = pad_columns(X)
    result = np.zeros((A.shape[1], factor.shape[1]))
    add_transposed_times(A, 0, len(A), factor, result, DEPTH)
    return np.ascontiguousarray(result[:, : X.shape[1]])


def is_thin(A: FloatArray, X: FloatArray) -> bool:
    """Whether the product of A with X is thin enough for the compiled loops."""
    return X.shape[1] <= THIN and A.flags.c_contiguous and A.dtype == np.float64


def pad_columns(X: FloatArray) -> FloatArray:
    """X padded with columns of zeros up to whole vectors, for thin products."""
    k = X.shape[1]
    if k % LANES == 0:
        return np.ascontiguousarray(X, dtype=np.float64)
    result = aligned_empty((len(X), k + -k % LANES))
    result[:, :k], result[:, k:] = X, 0.0
    return result


@compile_with(error_model="numpy", nogil=True)
def _add_product(
    A: Any, place: int, across: int, along: int, rows: int, count: int, B: Any, first: int, C: Any, row: int, ahead: int
) -> None:
    """Add a thin product to all columns of some rows of C, in strips of as many vectors as a processor takes, or nearly."""
    column, most = 0, _STRIP_VECTORS()
    while column < C.shape[1]:
        left = (C.shape[1] - column) // LANES
        strips = (left + most - 1) // most
        vectors = (left + strips - 1) // strips
        if most == 6:  # long registers hold two vectors each
            vectors = min(left, vectors + vectors % 2)
        if vectors == 6:
            _STRIP_6(A, place, across, along, rows, count, B, first, C, row, column, ahead)
        elif vectors == 5:
            _STRIP_5(A, place, across, along, rows, count, B, first, C, row, column, ahead)
        elif vectors == 4:
            _STRIP_4(A, place, across, along, rows, count, B, first, C, row, column, ahead)
        elif vectors == 3:
            _STRIP_3(A, place, across, along, rows, count, B, first, C, row, column, ahead)
        elif vectors == 2:
            _STRIP_2(A, place, across, along, rows, count, B, first, C, row, column, ahead)
        else:
            _STRIP_1(A, place, across, along, rows, count, B, first, C, row, column, ahead)
        column += vectors * LANES


@compile_with(error_model="numpy", nogil=True)
def add_times(A: Any, first: int, rows: int, X: Any, result: Any) -> None:
    """Add the product of some rows of A with X, whose columns are whole vectors, to as many rows of the result."""
    n = A.shape[1]
    depth, ahead = (n, AHEAD * n) if n <= 2 * DEPTH else (DEPTH, 0)  # a processor guesses the way along long rows
    for i in range(0, rows, ROWS):
        for j in range(0, n, depth):
            _add_product(A, (first + i) * n + j, n, 1, min(ROWS, rows - i), min(depth, n - j), X, j, result, i, ahead)


@compile_with(error_model="numpy", nogil=True)
def add_transposed_times(A: Any, first: int, rows: int, X: Any, result: Any, ahead: int) -> None:
    """Add the product of the transpose of some rows of A with as many of X, in whole vectors, to the result.

    Rows so many ahead are asked for meanwhile: 0 for rows that are in a cache.
    """
    n = A.shape[1]
    for i in range(0, rows, DEPTH):
        _add_product(A, (first + i) * n, 1, n, len(result), min(DEPTH, rows - i), X, i, result, 0, ahead * n)


@compile_with(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def product_entries(rows: Any, columns: Any, U: Any, V: Any) -> Any:
    """Single entries ``(UV')_ij`` of a product, at the listed places."""
    result = np.empty(len(rows))
    for e in range(len(rows)):
        u, v = U[rows[e]], V[columns[e]]
        total = 0.0
        for r in range(U.shape[1]):
            total += u[r] * v[r]
        result[e] = total
    return result


@compiled
def put_entries(values: Any, rows: Any, columns: Any, A: Any) -> None:
    """Write single entries of A: the values at the listed places."""
    for e in range(len(rows)):
        A[rows[e], columns[e]] = values[e]
