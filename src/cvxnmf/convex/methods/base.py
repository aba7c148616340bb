"""The interface of a method, as the loop of :mod:`cvxnmf.convex.solve` sees it."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray


class Method(ABC):
    """A step from one point to the next; :func:`solve` runs the loop, asks for certificates and decides when to stop."""

    point: Any
    value: float
    check_every: int  # steps between two certificates
    aim: float = 0.0  # the relative gap that the loop wants
    patience: int = 5  # certificates in a row that may leave the gap unchanged before the loop stops
    gives_up: bool = False  # whether another method is known to be faster from here

    def __iter__(self) -> Iterator[Method]:
        """The schedule of a single method, which takes every step itself."""
        return itertools.repeat(self)

    @abstractmethod
    def step(self) -> None:
        """Move the method to the next point and set its value."""

    def take_multiplier(self, slopes: FloatArray) -> None:
        """Start the method from slopes of the loss that proved a bound with another trace; most methods use none."""
        return

    def settle(self) -> None:
        """Bring the method's point and value up to date before they are certified, where a step does not."""
        return

    @property
    def gradient_proves_more(self) -> bool:
        """Whether the gradient at the method's point may prove more than its candidate, while that does not close the gap."""
        return False

    def dual_candidate(self) -> FloatArray | None:
        """A slope of the loss, found by the method's steps, to make a dual point of; None where the gradient is as good."""
        return None

    @property
    def distance(self) -> float:
        """How far the method's iteration is from its fixed point, in a unit of its own; NaN if the method does not know."""
        return np.nan

    @property
    def expected_bound(self) -> float:
        """The bound that the method's dual candidate will prove, as the method computes it; minus infinity if unknown."""
        return -np.inf


#: Methods and schedules by the names a user gives, the best first; each is made of a component and a point.
Methods = Mapping[str, Callable[[Any, Any], Iterable[Method]]]
