"""How much is measured."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

Value = TypeVar("Value")


class Scale(Enum):
    """Sizes of the tables: for tests of the machinery, for ``make bench`` and for ``make bench-full``."""

    TINY = "tiny"
    QUICK = "quick"
    FULL = "full"

    @property
    def full(self) -> bool:
        """Whether slow cases are wanted."""
        return self is Scale.FULL

    @property
    def quick(self) -> bool:
        """Whether there are three minutes."""
        return self is Scale.QUICK

    @property
    def tiny(self) -> bool:
        """Whether only the machinery is tried."""
        return self is Scale.TINY

    def pick(self, tiny: Value, quick: Value, full: Value) -> Value:
        """The value of a setting at this scale."""
        return {Scale.TINY: tiny, Scale.QUICK: quick, Scale.FULL: full}[self]
