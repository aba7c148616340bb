"""Rows of data, dense, in compressed rows or in row chunks: the products and sums that losses and update rules need."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from cvxnmf.chunked import ChunkedMatrix
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.logarithm import weighted_logarithms
from cvxnmf.linalg.products import dense_times, dense_transposed_times
from cvxnmf.linalg.row_chunks import row_chunks
from cvxnmf.linalg.sparse_products import (
    csr_product_entries,
    csr_times,
    csr_transposed_times,
    ratio_product,
    row_shares,
    shares_for_sums,
)

#: Entries of a block of dense rows, which fits into a cache, and the fewest rows of one.
BLOCK_ENTRIES, BLOCK_ROWS = 1 << 17, 256
#: Entries of dense rows whose ratios to the model are taken at a time.
RATIO_ENTRIES = 1 << 20
#: Most lanes of rows that are worked on at once, whatever the number of threads, and entries of compressed rows that have any.
LANES, LANE_ENTRIES = 8, 100_000

#: Neighbouring blocks of rows, each with its place, that one thread works on in turn.
Lane = list[tuple[slice, "Storage"]]


class Products(Protocol):
    """The products of a matrix A without missing entries that losses and symmetric rules are made of."""

    def times(self, V: FloatArray) -> FloatArray:
        """The product ``A V`` with stored rows, a new array."""

    def ratio_times(self, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The product ``(A / UV') V`` with stored rows and ``sum A log(UV')``."""


class Storage(Products, Protocol):
    """Storage of a matrix A or some of its rows, without missing entries, in memory."""

    #: The array or csr_array.
    A: Any
    sparse: bool
    shape: tuple[int, int]
    #: What compiled loops take: the array, or `indptr`, `indices` and `data`.
    arrays: tuple[Any, ...]
    #: The stored entries, which may be overwritten where entries of the data are missing.
    entries: FloatArray
    #: Weights of the entries of a dense matrix; None where all count the same.
    weights: FloatArray | None

    @property
    def lanes(self) -> list[Lane]:
        """The stored rows in lanes for threads, cut by the shape of the data alone."""

    def row_ranges(self, one_below: int) -> list[tuple[int, int]]:
        """First and last stored rows of lanes of about as much work, or of a single lane for few entries."""

    def transposed_times(self, U: FloatArray) -> FloatArray:
        """The product ``A' U`` with stored rows."""

    def ratio_transposed_times(self, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The product ``(A / UV')' U`` with stored rows and ``sum A log(UV')``."""

    def row_parts(self, budget: int) -> list[slice]:
        """Slices of the stored rows that hold about `budget` entries each."""

    def entries_and_model(self, U: FloatArray, V: FloatArray, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Stored entries of some rows of A and those of ``UV'`` at their places; the latter may be overwritten."""

    def dense_rows(self, rows: slice) -> FloatArray:
        """Some of the stored rows as a dense array."""


class DenseRows:
    """Dense storage: a contiguous array, its entries weighted if weights are given."""

    sparse = False

    def __init__(self, A: FloatArray, weights: FloatArray | None = None) -> None:
        self.A, self.shape, self.arrays, self.entries, self.weights = A, A.shape, (A,), A, weights

    @cached_property
    def lanes(self) -> list[Lane]:
        """Blocks of dense rows that fit into a cache, in lanes of as many rows: 1, 2, 4 or 8, which threads share evenly."""
        m, n = self.shape
        budget = max(BLOCK_ENTRIES, BLOCK_ROWS * n)
        blocks = sum(1 for _ in row_chunks(m, n, budget))
        if blocks == 1:
            return [[(slice(0, m), self)]]
        ranges = self._even_ranges(min(LANES, 1 << (blocks - 1).bit_length()))
        chunks = [[slice(i + rows.start, i + rows.stop) for rows in row_chunks(j - i, n, budget)] for i, j in ranges]
        return [[(rows, DenseRows(self.A[rows])) for rows in lane] for lane in chunks]

    def row_ranges(self, one_below: int) -> list[tuple[int, int]]:
        """Lanes of about as many dense rows each."""
        return self._even_ranges(1 if self.A.size < one_below else min(LANES, self.shape[0]))

    def _even_ranges(self, count: int) -> list[tuple[int, int]]:
        cuts = [self.shape[0] * edge // count for edge in range(count + 1)]
        return list(zip(cuts, cuts[1:], strict=False))

    def times(self, V: FloatArray) -> FloatArray:
        """The product ``A V`` with dense rows."""
        return dense_times(self.A, V)

    def transposed_times(self, U: FloatArray) -> FloatArray:
        """The product ``A' U`` with dense rows."""
        return dense_transposed_times(self.A, U)

    def _ratio(self, rows: slice, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The ratio ``A / UV'`` of some dense rows and the model, and ``sum A log(UV')``."""
        A, W = self.A[rows], np.maximum(U[rows] @ V.T, np.finfo(np.float64).tiny)
        logarithms = float(weighted_logarithms(A, W))
        return np.divide(A, W, out=W), logarithms

    def ratio_times(self, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The product ``(A / UV') V`` with dense rows and ``sum A log(UV')``."""
        product, total = np.empty((self.shape[0], V.shape[1])), 0.0
        for rows in self.row_parts(RATIO_ENTRIES):
            ratio, logarithms = self._ratio(rows, U, V)
            product[rows], total = ratio @ V, total + logarithms
        return product, total

    def ratio_transposed_times(self, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The product ``(A / UV')' U`` with dense rows and ``sum A log(UV')``."""
        product, total = np.zeros((self.shape[1], U.shape[1])), 0.0
        for rows in self.row_parts(RATIO_ENTRIES):
            ratio, logarithms = self._ratio(rows, U, V)
            product, total = product + dense_transposed_times(ratio, U[rows]), total + logarithms
        return product, total

    def row_parts(self, budget: int) -> list[slice]:
        """Slices of dense rows of about `budget` entries each."""
        return list(row_chunks(self.shape[0], self.shape[1], budget))

    def entries_and_model(self, U: FloatArray, V: FloatArray, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Dense rows of A and of the model ``UV'``."""
        return self.A[rows], U[rows] @ V.T

    def dense_rows(self, rows: slice) -> FloatArray:
        """Some rows of dense storage, as a view."""
        return self.A[rows]


class CompressedRows:
    """Sparse storage: a csr_array of canonical format."""

    sparse = True
    weights: FloatArray | None = None

    def __init__(self, A: Any) -> None:
        self.A, self.shape, self.arrays, self.entries = A, A.shape, (A.indptr, A.indices, A.data), A.data
        self._ranges: dict[int, list[tuple[int, int]]] = {}

    @cached_property
    def lanes(self) -> list[Lane]:
        """Shares of the compressed rows with about as many entries each."""
        shares = shares_for_sums(self.A, LANE_ENTRIES)
        return [[(slice(0, self.shape[0]), self)]] if len(shares) == 1 else [[self._share(*rows)] for rows in shares]

    def row_ranges(self, one_below: int) -> list[tuple[int, int]]:
        """Lanes of compressed rows of about as many entries each."""
        if one_below not in self._ranges:
            self._ranges[one_below] = row_shares(self.A, one_below)
        return self._ranges[one_below]

    def _share(self, first: int, last: int) -> tuple[slice, Storage]:
        """The storage of some compressed rows, whose entries are not copied."""
        indptr, indices, data = self.arrays
        stored = slice(indptr[first], indptr[last])
        rows = sp.csr_array((last - first, self.shape[1]))  # scipy's own constructor copies what is less than a half
        rows.indptr, rows.indices, rows.data = indptr[first : last + 1] - indptr[first], indices[stored], data[stored]
        return slice(first, last), CompressedRows(rows)

    def times(self, V: FloatArray) -> FloatArray:
        """The product ``A V`` with compressed rows."""
        return csr_times(self.A, V)

    def transposed_times(self, U: FloatArray) -> FloatArray:
        """The product ``A' U`` with compressed rows."""
        return csr_transposed_times(self.A, U)

    def ratio_times(self, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The product ``(A / UV') V`` with compressed rows and ``sum A log(UV')`` over the nonzero entries."""
        return ratio_product(self.A, U, V)

    def ratio_transposed_times(self, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The product ``(A / UV')' U`` with compressed rows and ``sum A log(UV')`` over the nonzero entries."""
        A, model = self.A, csr_product_entries(self.A, U, V)
        positive = A.data > 0
        logarithms = float(np.vdot(A.data, np.log(np.where(positive, model, 1.0))))
        ratio = np.where(positive, A.data / np.where(positive, model, 1.0), 0.0)
        return np.asarray(sp.csr_array((ratio, A.indices, A.indptr), shape=A.shape).T @ U), logarithms

    def row_parts(self, budget: int) -> list[slice]:
        """Slices of the compressed rows that hold about `budget` nonzero entries each."""
        cuts = np.searchsorted(self.A.indptr, np.arange(budget, self.A.nnz, budget))
        return [slice(first, last) for first, last in zip([0, *cuts], [*cuts, self.shape[0]], strict=True)]

    def entries_and_model(self, U: FloatArray, V: FloatArray, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Nonzero entries of some compressed rows, and the model ``UV'`` at their places."""
        _, part = self._share(rows.start, rows.stop)
        return part.entries, csr_product_entries(part.A, U[rows], V)

    def dense_rows(self, rows: slice) -> FloatArray:
        """Some of the compressed rows, filled with zeros."""
        return np.asarray(self.A[rows].toarray())


def storage_of(A: Any) -> Storage:
    """The storage of an array or of a sparse matrix."""
    return CompressedRows(A.tocsr()) if sp.issparse(A) else DenseRows(A)


class ChunkedProducts:
    """Products with data in row chunks, a pass each; the last ones are remembered, so that a step asks for a pass once."""

    def __init__(self, matrix: ChunkedMatrix) -> None:
        self.matrix = matrix
        self._products: list[tuple[FloatArray, FloatArray]] = []
        self._ratios: tuple[FloatArray, FloatArray, float] | None = None

    def times(self, V: FloatArray) -> FloatArray:
        """The product ``A V`` with row chunks, by a pass if it is not remembered."""
        if all(known is not V for known, _ in self._products):
            self.remember(V, self.matrix @ V)
        return next(product for known, product in self._products if known is V).copy()

    def remember(self, V: FloatArray, product: FloatArray) -> None:
        """Remember a product ``A V`` with row chunks that is known already, beside the one before."""
        self._products = [*self._products[-1:], (V, product)]

    def ratio_times(self, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The product ``(A / VV') V`` with row chunks and ``sum A log(VV')``, where U is V."""
        assert U is V
        if self._ratios is None or self._ratios[0] is not V:
            chunks = self.matrix.chunks
            state, (logarithms,) = chunks.map_reduce(chunk_ratio_times, chunks.scatter(V), V)
            self._ratios = V, chunks.gather(state), float(logarithms)
        return self._ratios[1].copy(), self._ratios[2]


def chunk_ratio_times(chunk: Any, U: FloatArray, V: FloatArray) -> tuple[FloatArray, tuple[float]]:
    """The product ``(A_c / U_c V') V`` as the state of a row chunk, and ``sum A log(UV')``."""
    product, logarithms = storage_of(chunk).ratio_times(U, V)
    return product, (logarithms,)
