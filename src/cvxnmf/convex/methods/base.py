"""What the loop knows of a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

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

    def multiplier(self) -> FloatArray | None:
        """The multiplier of a limit on X that was found on the way; None where the gradient itself is the dual candidate."""
        return None
