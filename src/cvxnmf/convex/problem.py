"""What every problem offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import SINGLE_THREAD_BELOW
from cvxnmf.results import AnyPoint

Index = NDArray[np.intp]


class Problem(ABC):
    """A convex problem, made by :func:`symmetric`, :func:`nonsymmetric` or :func:`sparse`.

    Attributes
    ----------
    A : ndarray
        The checked data.
    trace : float
        Weight of the penalty, resolved to its number.
    metric : ndarray
        The vector s of weights, one per node (rows, then columns of a rectangular A); 0 for those that carry no data and
        were set aside.
    blocks : tuple
        The independent pieces to solve.
    methods : tuple of str
        Names of the methods that can solve it, the best first.
    """

    A: Any
    trace: float
    metric: FloatArray
    blocks: tuple[Any, ...]
    methods: tuple[str, ...]

    @property
    @abstractmethod
    def size(self) -> int:
        """The smaller side of the matrices that are decomposed."""

    @property
    @abstractmethod
    def statement(self) -> dict[str, Any]:
        """The problem in the words of a certificate."""

    @abstractmethod
    def value(self, X: ArrayLike) -> float:
        """Objective at X."""

    @abstractmethod
    def gradient(self, X: ArrayLike) -> FloatArray:
        """Gradient of the objective at X."""

    @abstractmethod
    def with_trace(self, trace: float | Literal["auto"]) -> Problem:
        """Return the same problem with another trace weight."""

    @property
    def threads_from(self) -> int:
        """Size from which on BLAS gains by several threads."""
        return SINGLE_THREAD_BELOW

    def arranged(self, method: str, single: bool = False) -> Problem:
        """The same problem in the form that a method works on, if asked for in single precision where that is possible."""
        if single:
            validation.refuse(
                "precision='single' is for method='factored' on large sparse data (KL, conditional cone, trace > 0) only."
            )
        return self

    @abstractmethod
    def matrix(self, X: Any, name: str = "X") -> FloatArray:
        """Check a matrix that a user gives as a point of this problem."""

    @abstractmethod
    def starting_point(self, start: Any) -> Any:
        """Check a warm start: a solution, factors or a matrix."""

    @abstractmethod
    def restricted(self, given: Any, block: Any) -> Any:
        """A warm start on the nodes of one block."""

    @abstractmethod
    def joined(self, points: Sequence[Any]) -> tuple[AnyPoint, Index | None]:
        """The points of all blocks as one, and the groups of nodes if there are several."""

    @property
    def scale(self) -> float:
        """The size of the data, against which a vanishing value is judged."""
        return float(sum(block.scale for block in self.blocks))
