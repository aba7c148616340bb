"""What the loop knows of a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray


class Method(ABC):
    """A step from one point to the next; the loop, the certificates and the end are other people's."""

    point: Any
    value: float
    check_every: int  # steps between two certificates
    patience: int = 5  # certificates in a row that may bring nothing before the loop gives up

    @abstractmethod
    def step(self) -> None:
        """Move to the next point and set its value."""

    def settle(self) -> None:
        """Bring point and value up to date before they are certified, where a step does not."""
        return

    def dual_candidate(self) -> FloatArray | None:
        """What a dual point is made of that was found on the way; None where the gradient at the point is as good."""
        return None

    @property
    def expected_bound(self) -> float:
        """What the dual candidate proves, as far as the method knows without a check; minus infinity if it does not know."""
        return -np.inf
