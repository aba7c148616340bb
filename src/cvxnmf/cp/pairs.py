"""What is factored, ``exp(a_i + b_j + w_i . z_j)``, and features of both halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray

#: Numbers worked on at a time.
BLOCK_ENTRIES = 1 << 21
#: Matrices of up to this many entries are kept while they are needed again and again.
HELD_ENTRIES = 1 << 24


Side = TypeVar("Side")
Made = TypeVar("Made")


class Rows(NamedTuple):
    """One half of what is factored: effects and positions."""

    v: FloatArray
    W: FloatArray

    def restricted(self, nodes: NDArray[np.intp]) -> Rows:
        """Return some of the rows."""
        return Rows(self.v[nodes], self.W[nodes])


class Pairs(NamedTuple):
    """Pairs of rows to be factored, ``exp(a_i + b_j + w_i . z_j)``; if symmetric, one half stands left and right."""

    left: Rows
    right: Rows

    @property
    def symmetric(self) -> bool:
        """Whether V is to be U."""
        return self.left is self.right

    @property
    def rank(self) -> int:
        """Number of columns of the positions."""
        return int(self.left.W.shape[1])

    @property
    def entries(self) -> int:
        """Number of entries."""
        return len(self.left.v) * len(self.right.v)

    def restricted(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Pairs:
        """Return the entries of some rows and columns, the same ones if symmetric."""
        left = self.left.restricted(rows)
        return Pairs(left, left if self.symmetric else self.right.restricted(columns))

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Blocks of rows and of the matrix itself, never all of it at once."""
        (a, W), (b, Z) = self
        height = max(1, BLOCK_ENTRIES // max(len(b), 1))
        for first in range(0, len(a), height):
            rows = slice(first, min(len(a), first + height))
            yield rows, np.exp(a[rows, None] + b[None, :] + W[rows] @ Z.T)


class Features(NamedTuple):
    """Nonnegative columns for both halves, ``exp(X) = left right'``; one array twice if symmetric."""

    left: FloatArray
    right: FloatArray

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self.left.shape[1])

    def chosen(self, kept: NDArray[np.intp]) -> Features:
        """Return some of the columns."""
        return Features(*on_both(lambda half: half[:, kept], self))

    def weighted(self, weights: FloatArray) -> Features:
        """Return the columns of positive weight, the weight shared by the two halves."""
        kept = weights > 0
        return Features(*on_both(lambda half: np.asarray(half[:, kept] * np.sqrt(weights[kept])), self))


def on_both(function: Callable[[Side], Made], halves: tuple[Side, Side]) -> tuple[Made, Made]:
    """Apply a function to both halves, only once if they are one."""
    left = function(halves[0])
    return left, left if halves[1] is halves[0] else function(halves[1])


def centred(pairs: Pairs) -> Pairs:
    """Centre the range of each half, give both the same ranges and leave out columns without extent.

    ``w.z = (w - s).(z - t) + w.t + s.z - s.t``: the last terms are effects. A column stretched by alpha in one half and by
    1/alpha in the other gives the same products; equal ranges make the range of the midpoints smallest.
    """
    s, t = on_both(lambda half: 0.5 * (half.W.max(axis=0) + half.W.min(axis=0)), pairs)
    own, other = on_both(lambda half: np.ptp(half.W, axis=0), pairs)
    size = np.sqrt(own * other)
    kept = size > 1e-12 * max(1.0, float(size.max(initial=0.0)))
    stretch = np.sqrt(other[kept] / own[kept])

    def moved(half: Rows, middle: FloatArray, across: FloatArray, stretch: FloatArray) -> Rows:
        effects = half.v + half.W @ across - 0.5 * float(middle @ across)
        return Rows(effects, (half.W - middle)[:, kept] * stretch)

    left = moved(pairs.left, s, t, stretch)
    if pairs.symmetric:
        return Pairs(left, left)
    right = moved(pairs.right, t, s, 1.0 / stretch)
    surplus = 0.5 * (left.v.max() - right.v.max())
    return Pairs(left._replace(v=left.v - surplus), right._replace(v=right.v + surplus))


def measured_errors(pairs: Pairs, features: Features) -> tuple[float, float, float]:
    """Largest relative error of an entry, squared Frobenius error and squared Frobenius norm."""
    largest = error = norm = 0.0
    for block, E in pairs.blocks():
        difference = features.left[block] @ features.right.T - E
        error += float(np.vdot(difference, difference))
        norm += float(np.vdot(E, E))
        np.divide(np.abs(difference, out=difference), E, out=difference, where=E > 0)
        largest = max(largest, float(difference.max()))
    return largest, error, norm


def gaussian_bumps(pairs: Pairs, centres: FloatArray, weight: float) -> Features:
    """``sqrt(weight) exp(v + |w|^2/2 - |w - t|^2)`` for every row and centre."""
    squares = np.sum(centres**2, axis=1)

    def around(half: Rows) -> FloatArray:
        U = half.W @ (2.0 * centres.T)
        U -= squares[None, :]
        U += (half.v - 0.5 * np.sum(half.W**2, axis=1) + 0.5 * np.log(weight))[:, None]
        return np.asarray(np.exp(U, out=U))

    return Features(*on_both(around, pairs))


def refuse_columns(needed: int, max_columns: int) -> NoReturn:
    """Refuse to build more columns than allowed, with the number that is needed."""
    validation.refuse(
        f"This accuracy needs about {needed:,} columns, more than max_columns={max_columns:,}; raise tol or max_columns, or "
        "penalise X more (a larger trace) for a lower rank."
    )
