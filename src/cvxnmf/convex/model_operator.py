"""The model ``E = exp(v1' + 1v' + WW')`` as an operator: products with it, without ever holding it.

A compiled kernel forms E in square tiles that stay in the cache, takes their exponential by a polynomial and multiplies at
once; of two mirrored tiles only one is formed. Threads take fixed shares of the tiles, so that the same number of threads
gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.exponential import exponentiate
from cvxnmf.linalg.row_chunks import row_chunks
from cvxnmf.linalg.threads import single_thread, thread_count, thread_pool

#: Rows and columns of a tile.
TILE = 128
#: Below this many rows a single thread is faster.
ONE_THREAD_BELOW = 300
#: Up to this many entries E may be stored, in single precision, where products need not be more exact.
STORED_ENTRIES = 70_000_000


@compile_with(error_model="numpy", nogil=True)
def _add(rows: Any, more: Any) -> None:
    """Add rows of a product with the model in place; a plain loop is compiled in a moment."""
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            rows[i, j] += more[i, j]


@compile_with(error_model="numpy", nogil=True)
def _share_of_products(v: Any, W: Any, R: Any, first: int, every: int) -> Any:
    """Products of the model's rows of tiles ``first, first + every, ...`` and of their mirror images with R."""
    n = len(v)
    product, scratch = np.zeros_like(R), np.empty(TILE * TILE, R.dtype)
    for row in range(first * TILE, n, every * TILE):
        last = min(n, row + TILE)
        for column in range(row, n, TILE):
            end = min(n, column + TILE)
            E = np.dot(W[row:last], W[column:end].T)
            for i in range(last - row):
                for j in range(end - column):
                    E[i, j] += v[row + i] + v[column + j]
            exponentiate(E.reshape(-1), scratch[: E.size])
            _add(product[row:last], np.dot(E, R[column:end]))
            if column > row:
                _add(product[column:end], np.dot(E.T, R[row:last]))
    return product


def _gaussian_kernel(W: Any, lengths: Any) -> Any:
    """``exp(-|w_i - w_j|^2 / 2)`` in single precision, half the squared lengths given; in rows, which saves a second matrix."""
    K = W @ W.T
    for chunk in row_chunks(len(K), 1, TILE):
        rows = K[chunk]
        rows -= lengths[chunk, None]
        rows -= lengths[None, :]
        np.exp(rows, out=rows)
    return K


class Model:
    """The model operator ``E = exp(v1' + 1v' + WW')`` of n nodes, any number of columns; `single` is for single precision."""

    def __init__(self, v: FloatArray, W: FloatArray, single: bool = False) -> None:
        self.kind: Any = np.float32 if single else np.float64
        self.v: Any = np.ascontiguousarray(v, dtype=self.kind)
        self.W: Any = np.ascontiguousarray(W, dtype=self.kind)
        self._stored: Any = None

    def __matmul__(self, R: FloatArray) -> FloatArray:
        """The product ``E R`` of the model with a vector or a matrix R, exact to rounding."""
        columns = np.ascontiguousarray(R if R.ndim == 2 else R[:, None], dtype=self.kind)
        if self.W.shape[1] == 0:  # of rank one
            x = np.exp(self.v)
            product = np.outer(x, x @ columns)
        else:
            product = sum(self._shares(columns))
        return np.asarray(product if R.ndim == 2 else product[:, 0], dtype=np.float64)

    def times_in_single_precision(self, x: FloatArray) -> FloatArray:
        """The product ``E x`` of the model to single precision, from stored entries where there is room for them.

        ``E = D K D`` with ``K_ij = exp(-|w_i - w_j|^2 / 2)``, which lies between 0 and 1 whatever the unit of the data.
        """
        n = len(self.v)
        if self.W.shape[1] == 0 or n * n > STORED_ENTRIES:
            return self @ x
        if self._stored is None:
            lengths = 0.5 * np.sum(self.W * self.W, axis=1)
            self._stored = np.exp(self.v + lengths), _gaussian_kernel(self.W.astype(np.float32), lengths.astype(np.float32))
        scaling, near = self._stored
        y = scaling * x
        unit = max(float(np.abs(y).max(initial=0.0)), np.finfo(np.float64).tiny)
        return np.asarray(scaling * (unit * (near @ (y / unit).astype(np.float32)).astype(np.float64)))

    def _shares(self, R: Any) -> list[Any]:
        """Shares of a product with the model, one computed by each thread."""
        threads = 1 if len(self.v) < ONE_THREAD_BELOW else thread_count()
        with single_thread():
            if threads == 1:
                return [_share_of_products(self.v, self.W, R, 0, 1)]
            pool = thread_pool(threads)
            shares = [pool.submit(_share_of_products, self.v, self.W, R, first, threads) for first in range(threads)]
            return [share.result() for share in shares]


def leading_pivots(columns: Callable[[Any], FloatArray], diagonal: FloatArray, room: float, most: int) -> FloatArray | None:
    """Pivot nodes whose columns of a positive semidefinite matrix leave at most `room` of its trace; None if there are too many.

    Cholesky's factorisation, the largest entry left on the diagonal as the next pivot.
    """
    left = diagonal.copy()
    pivots: list[int] = []
    factor = np.empty((len(left), min(most, len(left))), order="F")
    while left.sum() > room:
        if len(pivots) == factor.shape[1]:
            return None
        pivot, count = int(np.argmax(left)), len(pivots)
        column = columns([pivot])[:, 0] - factor[:, :count] @ factor[pivot, :count]
        factor[:, count] = column / np.sqrt(left[pivot])
        left = np.maximum(left - factor[:, count] ** 2, 0.0)
        left[pivot] = 0.0
        pivots.append(pivot)
    return np.array(pivots or [int(np.argmax(diagonal))], dtype=np.float64)
