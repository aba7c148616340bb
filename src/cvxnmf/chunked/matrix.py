"""A matrix in row chunks that multiplies like a matrix: ``A @ V``, ``A.T @ U``, ``A[rows]``, ``A'A`` and totals."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.chunked.map_reduce import Maximum, RowChunks
from cvxnmf.chunked.memory import DEFAULTS, Settings, gram_fits
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.products import dense_transposed_times
from cvxnmf.linalg.symmetry import ROUNDING


class ChunkedMatrix:
    """A nonnegative matrix in row chunks, with the totals of a first pass that also checks them.

    `chunks` hold what the user has given and map functions over it; `single` tells of single precision or less; `gram_fits` and
    `transposed_gram_fits` whether there is room for ``A'A`` and for ``AA'``. The totals are ``||A_c||²`` of each chunk, the sum
    of the entries, the largest one, and ``sum A log A - A``.
    """

    def __init__(
        self, chunks: RowChunks, given: Any, single: bool, room: float, threads: int, settings: Settings = DEFAULTS
    ) -> None:
        self.chunks, self.given, self.single = chunks, given, single
        self.shape = chunks.shape
        self.gram_fits = gram_fits(self.shape[1], room, threads, settings)
        self.transposed_gram_fits = gram_fits(self.shape[0], room, 1, settings)
        self._gram: FloatArray | None = None
        _, (self.energies, self.total, self.largest, self.entropy) = chunks.map_reduce(chunk_totals, None)
        if not self.largest > 0:
            validation.refuse("A is all zeros; there is nothing to fit.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.chunks.close()

    @property
    def energy(self) -> float:
        """Energy ``||A||²`` of the matrix in row chunks."""
        return math.fsum(self.energies)

    @property
    def T(self) -> Transposed:
        """The transpose of the matrix in row chunks."""
        return Transposed(self)

    def mean(self) -> float:
        """Mean of the entries of the matrix in row chunks."""
        return float(self.total) / (self.shape[0] * self.shape[1])

    def max(self) -> float:
        """The largest entry of the matrix in row chunks."""
        return float(self.largest)

    def __matmul__(self, V: FloatArray) -> FloatArray:
        return self.chunks.gather(self.chunks.map_reduce(chunk_times, None, np.ascontiguousarray(V))[0])

    def __getitem__(self, rows: NDArray[np.intp]) -> FloatArray:
        return (self.T @ _identity_columns(self.shape[0], rows)).T

    def require_symmetric(self) -> None:
        """Refuse a matrix in chunks that is not symmetric up to rounding: ``Ax = A'x`` for random numbers x, in two passes."""
        (m, n), hint = self.shape, "use symmetric=False"
        if m != n:
            validation.refuse(f"A must be square for symmetric factors, not {m} by {n}; {hint}.")
        x = np.random.default_rng(0).uniform(1.0, 2.0, (n, 1))
        rows, columns = (self @ x).ravel(), (self.T @ x).ravel()
        differing = np.flatnonzero(np.abs(rows - columns) > ROUNDING * np.maximum(rows, columns))
        if len(differing):
            validation.refuse(f"A is not symmetric: row {differing[0]} is not column {differing[0]}; {hint}.")

    def gram(self) -> FloatArray:
        """The Gram matrix ``A'A`` of the matrix in row chunks, formed once."""
        if self._gram is None:
            _, (self._gram,) = self.chunks.map_reduce(chunk_gram, None)
        return self._gram

    def gram_product(self, X: FloatArray) -> FloatArray:
        """Product ``A'(AX)`` with the matrix in row chunks, in one pass."""
        _, (product,) = self.chunks.map_reduce(chunk_gram_times, None, np.ascontiguousarray(X))
        return np.asarray(product)


class Transposed:
    """The transpose of a matrix in row chunks."""

    def __init__(self, matrix: ChunkedMatrix) -> None:
        self.T, self.shape = matrix, matrix.shape[::-1]
        self.mean, self.max = matrix.mean, matrix.max

    def __matmul__(self, U: FloatArray) -> FloatArray:
        chunks = self.T.chunks
        _, (product,) = chunks.map_reduce(chunk_transposed_times, chunks.scatter(np.asarray(U, dtype=np.float64)))
        return np.asarray(product)

    def __getitem__(self, columns: NDArray[np.intp]) -> FloatArray:
        return (self.T @ _identity_columns(self.T.shape[1], columns)).T


def _identity_columns(size: int, places: NDArray[np.intp]) -> FloatArray:
    """Columns of the identity, which pick rows of a matrix in chunks."""
    E = np.zeros((size, len(places)))
    E[places, np.arange(len(places))] = 1.0
    return E


# Functions of a chunk ------------------------------------------------------------------------------------------------------


def chunk_totals(chunk: Any, state: Any) -> tuple[None, tuple[Any, ...]]:
    """Energy, sum, largest entry and ``sum a log a - a`` of one row chunk of a matrix."""
    entries = chunk.data if sp.issparse(chunk) else chunk.ravel()
    positive = np.log(np.where(entries > 0, entries, 1.0))
    entropy = float(np.vdot(entries, positive)) - float(entries.sum())
    return None, ((float(np.square(entries).sum()),), float(entries.sum()), Maximum(entries.max(initial=0.0)), entropy)


def chunk_times(chunk: Any, state: Any, V: FloatArray) -> tuple[FloatArray, tuple[Any, ...]]:
    """Product ``A_c V`` of a row chunk, as its state."""
    return np.asarray(chunk @ V), ()


def chunk_transposed_times(chunk: Any, U: FloatArray) -> tuple[None, tuple[Any, ...]]:
    """Product ``A_c' U_c`` of a row chunk with the rows of U in its state."""
    return None, (transposed_product(chunk, U),)


def chunk_gram(chunk: Any, state: Any) -> tuple[None, tuple[Any, ...]]:
    """Gram matrix ``A_c' A_c`` of a row chunk."""
    product = chunk.T @ chunk
    return None, (product.toarray() if sp.issparse(product) else product,)


def chunk_gram_times(chunk: Any, state: Any, X: FloatArray) -> tuple[None, tuple[Any, ...]]:
    """Product ``A_c' (A_c X)`` of a row chunk with its Gram matrix."""
    return None, (transposed_product(chunk, np.asarray(chunk @ X)),)


def transposed_product(chunk: Any, U: FloatArray) -> FloatArray:
    """Product ``A_c' U`` of a row chunk, dense or sparse."""
    return np.asarray(chunk.T @ U) if sp.issparse(chunk) else dense_transposed_times(chunk, U)
