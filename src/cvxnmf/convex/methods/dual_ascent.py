"""Ascent of the dual of the doubly nonnegative problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.convex.methods.base import Method
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.momentum import Momentum
from cvxnmf.results import MatrixPoint

if TYPE_CHECKING:
    from cvxnmf.convex.doubly_nonnegative import ProjectionComponent


class DualAscent(Method):
    """Accelerated ascent over the multiplier ``N >= 0`` of ``X >= 0``: ``N+ = (N - P)_+`` with P the positive part of ``B + N``.

    Every step has a bound, ``|A|^2 - |P|^2``, and a doubly nonnegative matrix near P, at no further decomposition.
    """

    check_every = 20

    def __init__(self, component: ProjectionComponent, point: MatrixPoint, N: FloatArray | None = None) -> None:
        self.component, self.momentum = component, Momentum()
        self.N = self.ahead = np.zeros_like(component.A) if N is None else N
        self.point, self.value = point, component.value(point)
        self.best_N, self.best_bound = self.N, -np.inf
        self.gaps: list[float] = []  # relative gap after every step

    def dual_candidate(self) -> FloatArray | None:
        """The multiplier N of the dual ascent's best bound."""
        return self.best_N

    @property
    def expected_bound(self) -> float:
        """The best bound of all steps of the dual ascent."""
        return self.best_bound

    def steps_to_go(self, window: int = 4) -> float:
        """Steps of the dual ascent until the wanted gap, by the rate of the last ones."""
        if len(self.gaps) <= window:
            return 0.0
        before, now, aim = self.gaps[-1 - window], self.gaps[-1], max(self.aim, 1e-15)
        return float(window * np.log(now / aim) / max(np.log(before / now), 1e-300)) if now > aim else 0.0

    def step(self) -> None:
        """One step of dual ascent from the extrapolated multiplier."""
        component, ahead, before = self.component, self.ahead, self.N
        positive = component.positive_part(ahead)
        bound = component.dual_value(positive)
        if bound > self.best_bound:
            self.best_N, self.best_bound = ahead, bound
        restored = component.nonnegative_near(positive)
        value = component.value(restored)
        if value < self.value:
            self.point, self.value = restored, value
        self.gaps.append(max(0.0, self.value - self.best_bound) / max(self.value, 1e-300))
        self.N = np.subtract(ahead, positive, out=positive)
        np.maximum(self.N, 0.0, out=self.N)
        moved = self.N - before
        if float(np.vdot(ahead, moved)) > float(np.vdot(self.N, moved)):
            self.momentum.restart()
        moved *= self.momentum.extrapolation()
        moved += self.N
        self.ahead = np.maximum(moved, 0.0, out=moved)
