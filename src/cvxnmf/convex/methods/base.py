"""What the loop knows of a method."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray


class Method(ABC):
    """A step from one point to the next; the loop, the certificates and the end are other people's."""

    point: Any
    value: float
    check_every: int  # steps between two certificates
    aim: float = 0.0  # the relative gap that the loop wants
    patience: int = 5  # certificates in a row that may bring nothing before the loop gives up
    gives_up: bool = False  # whether another method is known to be faster from here

    def __iter__(self) -> Iterator[Method]:
        """The schedule of a single method: this one for every step."""
        return itertools.repeat(self)

    @abstractmethod
    def step(self) -> None:
        """Move to the next point and set its value."""

    def take_multiplier(self, slopes: FloatArray) -> None:
        """Begin with slopes of the loss that proved a bound of the same problem with another trace, where a method uses any."""
        return

    def settle(self) -> None:
        """Bring point and value up to date before they are certified, where a step does not."""
        return

    @property
    def gradient_proves_more(self) -> bool:
        """Whether the gradient at the point may make a better dual point than a candidate that does not reach the end."""
        return False

    def dual_candidate(self) -> FloatArray | None:
        """What a dual point is made of that was found on the way; None where the gradient at the point is as good."""
        return None

    @property
    def distance(self) -> float:
        """How far the iteration is from its end, in a unit of its own; not a number if the method does not know."""
        return np.nan

    @property
    def expected_bound(self) -> float:
        """What the dual candidate proves, as far as the method knows without a check; minus infinity if it does not know."""
        return -np.inf


#: Methods and schedules by the names a user gives, the best first; each is made of a component and a point.
Methods = Mapping[str, Callable[[Any, Any], Iterable[Method]]]
