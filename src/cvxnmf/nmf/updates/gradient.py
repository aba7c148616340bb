"""Projected gradient with backtracking (Lin 2007)."""

from __future__ import annotations

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.losses import NEGLIGIBLE_ENTRY, FactorObjective
from cvxnmf.nmf.updates.rule import Rule

#: Halvings of a step before it is given up.
HALVINGS = 60


class Gradient(Rule):
    """Projected gradient; the step is the last one doubled, then halved until the objective has fallen enough."""

    by_rows = False

    def __init__(self, steps: int = 4, enough: float = 0.01) -> None:
        self.steps, self.enough, self.length = steps, enough, 0.0

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """The nearest nonnegative factor."""
        return np.maximum(new, 0.0)

    def update(self, objective: FactorObjective, X: FloatArray) -> FloatArray:
        """A few steps."""
        value = objective.value(X)
        for _ in range(self.steps):
            G = objective.gradient(X)
            size = float(np.linalg.norm(G))
            if not size > 0:
                break
            following = self._step(objective, X, G, value, 2.0 * self.length or float(np.linalg.norm(X)) / size)
            if following is None:
                break
            X, value = following
        return X

    def _step(
        self, objective: FactorObjective, X: FloatArray, G: FloatArray, value: float, length: float
    ) -> tuple[FloatArray, float] | None:
        """The first step, halved in turn, of sufficient decrease, and the value there."""
        for _ in range(HALVINGS):
            new = self.project(X - length * G, X)
            new_value = objective.value(new)
            if new_value < value and (not self.enough or new_value <= value + self.enough * float(np.vdot(G, new - X))):
                self.length = length
                return new, new_value
            length /= 2.0
        return None


class PositiveGradient(Gradient):
    """Projected gradient for Kullback-Leibler, where a factor must not reach zero: an entry falls to a tenth at most."""

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """Off zero."""
        return np.asarray(np.maximum(np.maximum(new, X / 10.0), NEGLIGIBLE_ENTRY * X.max()))
