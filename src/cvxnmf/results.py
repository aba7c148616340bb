"""What the package hands back: status, iterates, points and solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cvxnmf.checking import Certificate

FloatArray = NDArray[np.float64]


class Status(Enum):
    """How a solve ended; the member's value is its sentence."""

    OPTIMAL = "The certified relative gap is at or below the tolerance."
    MAX_ITER = "The iteration limit was reached before the certified gap fell below the tolerance."
    STALLED = "Neither the value nor the bound moves any more; the gap that is left stands in the certificate."
    NONFINITE = "A value stopped being finite; the last finite point is returned."
    INFEASIBLE = "No point satisfies the constraints."
    INTERRUPTED = "Stopped on request; the best point so far is returned with its certificate."

    @property
    def sentence(self) -> str:
        """The status in plain words."""
        return str(self.value)

    def __str__(self) -> str:
        """Name and sentence, as a person would want to read them."""
        return f"{self.name}: {self.value}"


class Point(NamedTuple):
    """A point of the cone in factors: ``X = v1' + 1v' + WW'``."""

    v: FloatArray
    W: FloatArray

    def dense(self) -> FloatArray:
        """Return X itself, shape (n, n), symmetric to the last bit."""
        X: FloatArray = self.W @ self.W.T
        height = max(1, (1 << 18) // max(1, len(X)))
        for first in range(0, len(X), height):  # v_i + v_j commutes; blocks save a second matrix
            rows = slice(first, first + height)
            X[rows] += np.add.outer(self.v[rows], self.v)
        return X

    def restricted(self, nodes: NDArray[np.intp]) -> Point:
        """Return the same point on a subset of the nodes."""
        return Point(self.v[nodes], self.W[nodes])


@dataclass(frozen=True)
class Iterate:
    """One line of a solver's history, also what a callback receives.

    Attributes
    ----------
    iteration : int
        Steps taken so far.
    seconds : float
        Wall time since the solve began, certificates included.
    value, bound : float
        Objective at this iterate, and the best proved lower bound so far; of the components reached so far when
        several are solved apart.
    rank : int
        Number of columns of W at this iterate, in the component at work.
    """

    iteration: int
    seconds: float
    value: float
    bound: float
    rank: int

    @property
    def gap(self) -> float:
        """Difference of value and bound."""
        return self.value - self.bound


@dataclass(frozen=True, eq=False)
class Solution:
    """The solved convex problem: ``X = v1' + 1v' + WW'`` and its proof.

    The fitted matrix is ``np.exp(solution.X)``.

    Attributes
    ----------
    v : ndarray of shape (n,)
        Node effects; zero on the ``"psd"`` cone, ``-inf`` for nodes without any data.
    W : ndarray of shape (n, rank)
        Positions; columns by decreasing weight.
    status : Status
        How the solve ended.
    certificate : Certificate
        Value at this very point, the proved lower bound and its witness.
    history : sequence of Iterate
        One entry per step.
    n_iter : int
        Steps taken, summed over the components when the problem fell apart.
    seconds : float
        Wall time of the solve.
    groups : ndarray of shape (n,) or None
        With trace 0 on the conditional cone, the component of each node if there are several (-1: no data);
        X is ``-inf`` across groups.
    """

    v: FloatArray
    W: FloatArray
    status: Status
    certificate: Certificate
    history: Sequence[Iterate]
    n_iter: int
    seconds: float
    groups: NDArray[np.intp] | None = None

    @property
    def X(self) -> FloatArray:
        """The solution as a dense (n, n) matrix, formed anew at every call."""
        X = Point(self.v, self.W).dense()
        if self.groups is not None:
            X[self.groups[:, None] != self.groups[None, :]] = -np.inf
        return X

    @property
    def value(self) -> float:
        """Objective at the returned point."""
        return self.certificate.value

    @property
    def rank(self) -> int:
        """Number of columns of W."""
        return int(self.W.shape[1])

    def __repr__(self) -> str:
        """Return one line."""
        gap = self.certificate.relative_gap
        return f"<Solution: {len(self.v)} nodes, rank {self.rank}, value {self.value:.6g}, gap {gap:.1e}, {self.status.name}>"

    def __str__(self) -> str:
        """Return a summary of a few lines."""
        steps = "1 step" if self.n_iter == 1 else f"{self.n_iter} steps"
        return (
            f"Solution of {len(self.v)} nodes, rank {self.rank}\n"
            f"{self.certificate}\n"
            f"  {steps} in {self.seconds:.2f} s; {self.status}"
        )


@dataclass(frozen=True, eq=False)
class CPFactor:
    """Explicit nonnegative factors of a completely positive matrix, ``E = UU'`` up to the stated errors.

    Attributes
    ----------
    U : ndarray of shape (n, columns)
        Nonnegative.
    max_relative_error : float
        Largest of ``|UU' - E| / E`` over the entries, measured.
    frobenius_error : float
        ``||UU' - E|| / ||E||``, measured.
    """

    U: FloatArray
    max_relative_error: float
    frobenius_error: float

    def __repr__(self) -> str:
        """Return one line."""
        n, columns = self.U.shape
        return (
            f"<CPFactor: {n} rows, {columns} columns, relative error {self.max_relative_error:.1e} at most, "
            f"{self.frobenius_error:.1e} in norm>"
        )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a solve: ends loops as Ctrl-C does, and carries the best answer so far.

    Attributes
    ----------
    solution : Solution
        The best point so far with its certificate, status INTERRUPTED.
    """

    def __init__(self, solution: Solution) -> None:
        super().__init__("interrupted; the best answer so far is in the exception's `solution`")
        self.solution = solution
