"""Work that is counted, not timed: the same effort gives the same bound on every machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: A kind of bound and its witness, as the trusted kernel takes them.
LabelWitness = tuple[str, dict[str, Any]]


class Budget:
    """Units of work that may still be spent, about a millisecond each, and a callback for the bounds that they give.

    Parameters
    ----------
    units : float
        All units there are.
    report : callable, optional
        Called with every bound, on the sum of pair weights.
    reserve : float
        Units that may be drawn once more is worth spending.
    """

    def __init__(self, units: float, report: Callable[[float], object] | None = None, reserve: float = 0.0) -> None:
        self.units, self.spent, self._report, self._reserve = units, 0.0, report, reserve

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left of the budget of work."""
        return self.spent >= self.units

    @property
    def left(self) -> float:
        """Units of work of the budget that may still be spent."""
        return max(0.0, self.units - self.spent)

    def spend(self, units: float) -> None:
        """Count work that was done against the budget."""
        self.spent += units

    def draw_reserve(self) -> None:
        """Let the reserve of the budget be spent as well."""
        self.units, self._reserve = self.units + self._reserve, 0.0

    def report(self, bound: float) -> None:
        """Report a bound that the budget's work has given."""
        if self._report is not None:
            self._report(bound)
