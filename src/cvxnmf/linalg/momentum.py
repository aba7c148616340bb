"""Nesterov's momentum: how far an accelerated method extrapolates, and how it restarts."""

from __future__ import annotations

import numpy as np


class Momentum:
    """Nesterov's momentum, by the weights ``t' = (1 + sqrt(1 + 4 t^2)) / 2``, from ``t = 1`` on.

    An accelerated method extrapolates its last step by ``(t - 1) / t'``: not at all at first, and nearly by 1 after many steps.
    """

    def __init__(self) -> None:
        self.weight = 1.0

    def restart(self, share: float = 0.5) -> None:
        """Restart Nesterov's momentum: lower the weight to a share of itself, when a step has gone uphill."""
        self.weight = max(1.0, share * self.weight)

    def extrapolation(self) -> float:
        """Share of the last step by which Nesterov's momentum extrapolates; the weight grows."""
        before, self.weight = self.weight, 0.5 * (1.0 + float(np.sqrt(1.0 + 4.0 * self.weight**2)))
        return (before - 1.0) / self.weight
