"""The matrix that is factored, ``exp_H(X)_ij = exp(a_i + b_j + w_i . z_j)``, and nonnegative features with ``exp_H(X) = UV'``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.row_chunks import row_chunks
from cvxnmf.results import Point

#: Entries worked on at a time.
CHUNK_ENTRIES = 1 << 21

Half = TypeVar("Half")
Mapped = TypeVar("Mapped")


class HadamardExponential(NamedTuple):
    """``exp(X)`` entrywise, ``X_ij = a_i + b_j + w_i . z_j``: log-scalings and an embedding of the rows and of the columns.

    A symmetric matrix has one and the same object left and right.
    """

    left: Point
    right: Point

    @property
    def symmetric(self) -> bool:
        """Whether the Hadamard exponential is symmetric, so that V is to be U."""
        return self.left is self.right

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns of the Hadamard exponential."""
        return len(self.left.v), len(self.right.v)

    @property
    def rank(self) -> int:
        """Dimension of the embedding of the Hadamard exponential."""
        return int(self.left.W.shape[1])

    @property
    def entries(self) -> int:
        """Number of entries of the Hadamard exponential."""
        return len(self.left.v) * len(self.right.v)

    def restrict(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> HadamardExponential:
        """Return the Hadamard exponential of some rows and columns, of one set for both if symmetric."""
        left = self.left.restrict_to(rows)
        return HadamardExponential(left, left if self.symmetric else self.right.restrict_to(columns))

    def chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Row chunks of the Hadamard exponential with their rows, never all of it at once."""
        (a, W), (b, Z) = self
        for rows in row_chunks(*self.shape, CHUNK_ENTRIES):
            yield rows, np.exp(a[rows, None] + b[None, :] + W[rows] @ Z.T)

    def centre(self) -> HadamardExponential:
        """Return the Hadamard exponential with both embeddings centred, of equal ranges, without directions of no extent.

        ``w.z = (w - s).(z - t) + w.t + s.z - s.t``: the last terms are log-scalings. A direction stretched by alpha in one
        half and by 1/alpha in the other gives the same products; equal ranges make the range of the midpoints smallest.
        """
        s, t = map_halves(lambda half: 0.5 * (half.W.max(axis=0) + half.W.min(axis=0)), self)
        own, other = map_halves(lambda half: np.ptp(half.W, axis=0), self)
        size = np.sqrt(own * other)
        kept = size > 1e-12 * max(1.0, float(size.max(initial=0.0)))
        stretch = np.sqrt(other[kept] / own[kept])

        def shift(half: Point, middle: FloatArray, across: FloatArray, stretch: FloatArray) -> Point:
            scalings = half.v + half.W @ across - 0.5 * float(middle @ across)
            return Point(scalings, (half.W - middle)[:, kept] * stretch)

        left = shift(self.left, s, t, stretch)
        if self.symmetric:
            return HadamardExponential(left, left)
        right = shift(self.right, t, s, 1.0 / stretch)
        surplus = 0.5 * (left.v.max() - right.v.max())
        return HadamardExponential(left._replace(v=left.v - surplus), right._replace(v=right.v + surplus))

    def gaussian_bumps(self, centres: FloatArray, weight: float) -> Features:
        """Gaussian bumps, features ``sqrt(weight) exp(v + |w|^2/2 - |w - t|^2)`` for every row and centre t."""
        squares = np.sum(centres**2, axis=1)

        def around(half: Point) -> FloatArray:
            U = half.W @ (2.0 * centres.T)
            U -= squares[None, :]
            U += (half.v - 0.5 * np.sum(half.W**2, axis=1) + 0.5 * np.log(weight))[:, None]
            return np.asarray(np.exp(U, out=U))

        return Features(*map_halves(around, self))

    def measure_errors(self, features: Features) -> Errors:
        """Errors of ``UV'`` against the Hadamard exponential, entry by entry and as a whole."""
        largest = error = norm = 0.0
        for rows, E in self.chunks():
            difference = features.left[rows] @ features.right.T - E
            error += float(np.vdot(difference, difference))
            norm += float(np.vdot(E, E))
            np.divide(np.abs(difference, out=difference), E, out=difference, where=E > 0)
            largest = max(largest, float(difference.max()))
        return Errors(largest, error, norm)


class Features(NamedTuple):
    """Nonnegative features for rows and columns, ``exp_H(X) = left right'``; one array twice if symmetric."""

    left: FloatArray
    right: FloatArray

    @property
    def columns(self) -> int:
        """Number of columns of the nonnegative features."""
        return int(self.left.shape[1])

    def select(self, kept: NDArray[np.intp]) -> Features:
        """Return some of the columns of the nonnegative features."""
        return Features(*map_halves(lambda half: half[:, kept], self))

    def with_weights(self, weights: FloatArray) -> Features:
        """Return the feature columns of positive weight, the weight shared by the two halves."""
        kept = weights > 0
        return Features(*map_halves(lambda half: np.asarray(half[:, kept] * np.sqrt(weights[kept])), self))


class Errors(NamedTuple):
    """Errors of ``UV'`` against ``exp_H(X)``: the largest relative one, and squared Frobenius norms of error and matrix."""

    largest: float
    squared_error: float
    squared_norm: float

    @property
    def frobenius(self) -> float:
        """Relative error of nonnegative features in the Frobenius norm."""
        return float(np.sqrt(self.squared_error / self.squared_norm)) if self.squared_norm > 0 else 0.0

    @staticmethod
    def combine(parts: Iterable[Errors]) -> Errors:
        """Return the errors of a Hadamard exponential made of disjoint parts."""
        largest, error, norm = 0.0, 0.0, 0.0
        for part in parts:
            largest, error, norm = max(largest, part.largest), error + part.squared_error, norm + part.squared_norm
        return Errors(largest, error, norm)


def map_halves(function: Callable[[Half], Mapped], halves: tuple[Half, Half]) -> tuple[Mapped, Mapped]:
    """Apply a function to the halves of rows and columns, only once if these are one."""
    left = function(halves[0])
    return left, left if halves[1] is halves[0] else function(halves[1])


def refuse_columns(needed: int, max_columns: int) -> NoReturn:
    """Refuse to build more feature columns than allowed, with the number that is needed."""
    validation.refuse(
        f"This accuracy needs about {needed:,} columns, more than max_columns={max_columns:,}; raise tol or max_columns, or "
        "penalise X more (a larger trace) for a lower rank."
    )
