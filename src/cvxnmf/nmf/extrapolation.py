"""Extrapolation of alternating updates, restarted when the value rises (Ang & Gillis 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray, aligned_empty
from cvxnmf.linalg.compiled import compiled

#: Weight to begin with where plain steps converge at once.
LEAST_WEIGHT = 0.05


@dataclass
class Extrapolation:
    """Updates start a little ahead of the last factor, and fall back when the value rises."""

    wait: int  #: Plain steps first, which keep the basin of the start.
    weight: float  #: How far ahead, in units of the last step; adapted.
    keep: float = 0.0  #: Share of an entry that extrapolation must leave.
    most: float = 1.0  #: Largest weight; adapted.
    cautious: bool = False  #: Whether the plain steps tell how far ahead the first ones may go.

    def point(self, new: FloatArray, old: FloatArray) -> FloatArray:
        """The extrapolated factor ``new + weight (new - old)``, not below ``keep * new``."""
        new, old = (np.ascontiguousarray(factor, dtype=np.float64) for factor in (new, old))
        ahead = aligned_empty(new.shape)
        extrapolate(new, old, self.weight, self.keep, ahead, 0, new.size)
        return ahead

    def begin(self, contraction: float) -> None:
        """Begin to extrapolate after plain steps, the last of which lowered the value by `contraction` times the one before.

        Steps that converge fast by themselves are not to be thrown far ahead.
        """
        if self.cautious:
            self.weight = min(self.weight, max(contraction, LEAST_WEIGHT))

    def slow_down(self) -> None:
        """Lower the weight of extrapolation after the value rose."""
        self.most = self.weight
        self.weight /= 1.5

    def speed_up(self) -> None:
        """Raise the weight of extrapolation after the value fell."""
        self.weight = min(self.most, 1.05 * self.weight)
        self.most = min(1.0, 1.01 * self.most)


@compiled
def extrapolate(new: Any, old: Any, weight: float, keep: float, result: Any, first: int, end: int) -> None:
    """Extrapolated entries ``new + weight (new - old)``, not below ``keep * new``, of arrays taken as flat."""
    x, y, z = new.reshape(-1)[first:end], old.reshape(-1)[first:end], result.reshape(-1)[first:end]
    for j in range(end - first):
        z[j] = max(keep * x[j], x[j] + weight * (x[j] - y[j]))
