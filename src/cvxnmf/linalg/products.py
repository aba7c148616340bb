"""Products of shapes at which libraries are slow: thin ones, and single entries of ``UV'``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compiled

#: Columns up to which the compiled loops beat the library's matrix product.
THIN = 16


def dense_times(A: FloatArray, X: FloatArray) -> FloatArray:
    """``A X`` in double precision for a dense A, multiplied in its own precision; with few columns in one pass over A."""
    if A.dtype == np.float32:
        return np.asarray(A @ X.astype(np.float32), dtype=np.float64)
    if X.shape[1] <= THIN and A.flags.c_contiguous and A.dtype == np.float64:
        return np.asarray(thin_product(A, np.ascontiguousarray(X.T)))
    return np.ascontiguousarray(A @ X)


def dense_transposed_times(A: FloatArray, X: FloatArray) -> FloatArray:
    """``A' X`` in double precision; with few columns in one pass over A, else as ``(X' A)'``, which libraries do faster."""
    if A.dtype == np.float32:
        return np.asarray(A.T @ X.astype(np.float32), dtype=np.float64)
    if X.shape[1] <= THIN and A.flags.c_contiguous and A.dtype == np.float64:
        return np.ascontiguousarray(thin_transposed_product(A, np.ascontiguousarray(X)).T)
    return np.ascontiguousarray((X.T @ A).T)


@compiled
def thin_product(A: Any, H: Any) -> Any:
    """``A H'``: four rows and two columns at a time, whose sums stay in registers."""
    (m, n), k = A.shape, H.shape[0]
    result = np.empty((m, k))
    rows, columns = m - m % 4, k - k % 2
    for i in range(0, rows, 4):
        a, b, c, d = A[i], A[i + 1], A[i + 2], A[i + 3]
        for r in range(0, columns, 2):
            x, y = H[r], H[r + 1]
            ax, ay, bx, by, cx, cy, dx, dy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for j in range(n):
                ax += a[j] * x[j]
                ay += a[j] * y[j]
                bx += b[j] * x[j]
                by += b[j] * y[j]
                cx += c[j] * x[j]
                cy += c[j] * y[j]
                dx += d[j] * x[j]
                dy += d[j] * y[j]
            result[i, r], result[i + 1, r], result[i + 2, r], result[i + 3, r] = ax, bx, cx, dx
            result[i, r + 1], result[i + 1, r + 1], result[i + 2, r + 1], result[i + 3, r + 1] = ay, by, cy, dy
    for i in range(m):
        for r in range(columns if i < rows else 0, k):  # what is left over
            total = 0.0
            for j in range(n):
                total += A[i, j] * H[r, j]
            result[i, r] = total
    return result


@compiled
def thin_transposed_product(A: Any, X: Any) -> Any:
    """``X' A``: four rows and two columns at a time, so that a row of the result is loaded and stored once for four."""
    (m, n), k = A.shape, X.shape[1]
    result = np.zeros((k, n))
    rows, columns = m - m % 4, k - k % 2
    for i in range(0, rows, 4):
        a, b, c, d = A[i], A[i + 1], A[i + 2], A[i + 3]
        for r in range(0, columns, 2):
            first, second = result[r], result[r + 1]
            ax, bx, cx, dx = X[i, r], X[i + 1, r], X[i + 2, r], X[i + 3, r]
            ay, by, cy, dy = X[i, r + 1], X[i + 1, r + 1], X[i + 2, r + 1], X[i + 3, r + 1]
            for j in range(n):
                first[j] += (ax * a[j] + bx * b[j]) + (cx * c[j] + dx * d[j])
                second[j] += (ay * a[j] + by * b[j]) + (cy * c[j] + dy * d[j])
    for i in range(m):
        for r in range(columns if i < rows else 0, k):  # what is left over
            x, row = X[i, r], result[r]
            for j in range(n):
                row[j] += x * A[i, j]
    return result


@compiled
def product_entries(rows: Any, columns: Any, U: Any, V: Any) -> Any:
    """``(UV')_ij`` at the listed places."""
    result = np.empty(len(rows))
    for e in range(len(rows)):
        u, v = U[rows[e]], V[columns[e]]
        total = 0.0
        for r in range(U.shape[1]):
            total += u[r] * v[r]
        result[e] = total
    return result
