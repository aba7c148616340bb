"""A matrix in blocks that multiplies like a matrix: ``A @ V``, ``A.T @ U``, ``A[rows]``, ``A.mean()``, ``A.max()``."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.chunked.memory import gram_fits
from cvxnmf.chunked.protocol import Blocks, Largest
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.leading import krylov_pairs, leading_eigenpairs


class BlockMatrix:
    """Nonnegative data in blocks of rows, with the numbers of a first pass that also checks them.

    Attributes
    ----------
    blocks : Blocks
        Who holds the data, and runs functions on them.
    given : object
        What the user gave.
    single : bool
        Whether the data are of single precision or less.
    gram_fits, turned_gram_fits : bool
        Whether there is room for ``A'A``, and for ``AA'``.
    energies : tuple of float
        ``||A_b||²`` of each block.
    total, largest, entropy : float
        Sum of the entries, the largest one, and ``sum A log A - A``.
    """

    def __init__(self, blocks: Blocks, given: Any, single: bool, room: float, threads: int) -> None:
        self.blocks, self.given, self.single = blocks, given, single
        self.shape = blocks.shape
        self.gram_fits, self.turned_gram_fits = gram_fits(self.shape[1], room, threads), gram_fits(self.shape[0], room)
        self._gram: FloatArray | None = None
        _, (self.energies, self.total, self.largest, self.entropy) = blocks.run(survey, None)
        if not self.largest > 0:
            validation.refuse("A is all zeros; there is nothing to fit.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.blocks.close()

    @property
    def energy(self) -> float:
        """``||A||²``."""
        return math.fsum(self.energies)

    @property
    def T(self) -> Turned:
        """The transpose."""
        return Turned(self)

    def mean(self) -> float:
        """Mean of the entries."""
        return float(self.total) / (self.shape[0] * self.shape[1])

    def max(self) -> float:
        """The largest entry."""
        return float(self.largest)

    def __matmul__(self, V: FloatArray) -> FloatArray:
        return self.blocks.gather(self.blocks.run(times, None, np.ascontiguousarray(V))[0])

    def __getitem__(self, rows: NDArray[np.intp]) -> FloatArray:
        return (self.T @ _indicator(self.shape[0], rows)).T

    def gram(self) -> FloatArray:
        """``A'A``, formed once."""
        if self._gram is None:
            _, (self._gram,) = self.blocks.run(gram, None)
        return self._gram

    def gram_product(self, X: FloatArray) -> FloatArray:
        """``A'(AX)`` in one pass."""
        _, (product,) = self.blocks.run(gram_times, None, np.ascontiguousarray(X))
        return np.asarray(product)

    def leading_pairs(self, k: int) -> tuple[FloatArray, FloatArray]:
        """The k largest eigenvalues of ``A'A``, decreasing, and their vectors: from that matrix, or by a few passes."""
        if self.gram_fits:
            return leading_eigenpairs(self.gram(), k)
        return krylov_pairs(self.gram_product, self.shape[1], k)


class Turned:
    """The transpose of a matrix in blocks."""

    def __init__(self, matrix: BlockMatrix) -> None:
        self.matrix, self.shape = matrix, matrix.shape[::-1]

    @property
    def T(self) -> BlockMatrix:
        """The matrix itself."""
        return self.matrix

    def mean(self) -> float:
        """Mean of the entries."""
        return self.matrix.mean()

    def max(self) -> float:
        """The largest entry."""
        return self.matrix.max()

    def __matmul__(self, U: FloatArray) -> FloatArray:
        blocks = self.matrix.blocks
        _, (product,) = blocks.run(turned_times, blocks.scatter(np.asarray(U, dtype=np.float64)))
        return np.asarray(product)

    def __getitem__(self, columns: NDArray[np.intp]) -> FloatArray:
        return (self.matrix @ _indicator(self.matrix.shape[1], columns)).T


def _indicator(size: int, places: NDArray[np.intp]) -> FloatArray:
    """Columns of the identity."""
    E = np.zeros((size, len(places)))
    E[places, np.arange(len(places))] = 1.0
    return E


# Functions of a block ------------------------------------------------------------------------------------------------------


def survey(block: Any, kept: Any) -> tuple[None, tuple[Any, ...]]:
    """Energy, sum, largest entry and ``sum a log a - a`` of a block."""
    entries = block.data if sp.issparse(block) else block.ravel()
    positive = np.log(np.where(entries > 0, entries, 1.0))
    entropy = float(np.vdot(entries, positive)) - float(entries.sum())
    return None, ((float(np.square(entries).sum()),), float(entries.sum()), Largest(entries.max(initial=0.0)), entropy)


def times(block: Any, kept: Any, V: FloatArray) -> tuple[FloatArray, tuple[Any, ...]]:
    """Keep ``A_b V``."""
    return np.asarray(block @ V), ()


def turned_times(block: Any, U: FloatArray) -> tuple[None, tuple[Any, ...]]:
    """``A_b' U_b``."""
    return None, (turned_product(block, U),)


def gram(block: Any, kept: Any) -> tuple[None, tuple[Any, ...]]:
    """``A_b' A_b``."""
    product = block.T @ block
    return None, (product.toarray() if sp.issparse(product) else product,)


def gram_times(block: Any, kept: Any, X: FloatArray) -> tuple[None, tuple[Any, ...]]:
    """``A_b' (A_b X)``."""
    return None, (turned_product(block, np.asarray(block @ X)),)


def turned_product(block: Any, U: FloatArray) -> FloatArray:
    """``A_b' U``, of a dense block as ``(U' A_b)'``, which libraries do up to three times as fast."""
    return np.asarray(block.T @ U) if sp.issparse(block) else np.ascontiguousarray((U.T @ block).T)
