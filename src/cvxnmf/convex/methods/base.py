"""What the loop knows of a method."""

from __future__ import annotations

from typing import Any, Protocol

from cvxnmf.linalg.arrays import FloatArray


class Method(Protocol):
    """What the loop knows of a method."""

    patience: int

    @property
    def check_every(self) -> int:
        """Steps between two certificates."""

    @property
    def point(self) -> Any:
        """The current point."""

    @property
    def value(self) -> float:
        """The objective there."""

    def step(self) -> None:
        """Move to the next point and set its value."""

    def settle(self) -> None:
        """Bring point and value up to date before they are certified, where a step does not."""

    def multiplier(self) -> FloatArray | None:
        """The multiplier of a limit on X that was found on the way, if any."""
