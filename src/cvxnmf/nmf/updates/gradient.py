"""Projected gradient with backtracking (Lin 2007), also onto columns of a given sparseness (Hoyer 2004)."""

from __future__ import annotations

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.losses import NEGLIGIBLE_ENTRY, FactorObjective, NMFLoss
from cvxnmf.nmf.updates.rule import Rule

#: Halvings of a step before it is given up.
HALVINGS = 60


class Gradient(Rule[FactorObjective]):
    """Projected gradient; the step is the last one doubled, then halved until the objective has fallen enough."""

    by_rows = False

    def __init__(self, steps: int = 4, enough: float = 0.01) -> None:
        self.steps, self.enough, self.length = steps, enough, 0.0

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """The nearest nonnegative factor to a gradient step."""
        return np.maximum(new, 0.0)

    def update(self, objective: FactorObjective, X: FloatArray) -> FloatArray:
        """A few projected gradient steps on one factor."""
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
        """The first projected gradient step, halved in turn, of sufficient decrease, and the value there."""
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
        """A gradient step kept off zero: an entry falls to a tenth at most."""
        return np.asarray(np.maximum(np.maximum(new, X / 10.0), NEGLIGIBLE_ENTRY * X.max()))


class Sparseness(Gradient):
    """A gradient step, then every column on the set of its Hoyer sparseness, with its norm kept if `keep_norm`.

    The set is not convex, so that any decrease is taken.
    """

    def __init__(self, sparseness: float, keep_norm: bool) -> None:
        super().__init__(steps=1, enough=0.0)
        self.sparseness, self.keep_norm = sparseness, keep_norm

    def feasible_start(self, X: FloatArray, loss: NMFLoss) -> FloatArray:
        """The start with every column projected on the set of its sparseness."""
        return self.project(X, X)

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """A gradient step projected, column by column, on the set of its sparseness."""
        norms = np.linalg.norm(X if self.keep_norm else new, axis=0)
        columns = [project_on_sparseness(x, self.sparseness, float(norm)) for x, norm in zip(new.T, norms, strict=True)]
        return np.stack(columns, axis=1)


def project_on_sparseness(x: FloatArray, sparseness: float, norm: float) -> FloatArray:
    """The nearest nonnegative vector of a given norm and Hoyer sparseness.

    Project on the plane of the sum, move along it to the sphere, drop what is negative, again.
    """
    n = len(x)
    if not norm > 0 or n == 1:
        return np.maximum(x, 0.0)
    total = norm * (np.sqrt(n) - sparseness * (np.sqrt(n) - 1.0))
    free = np.ones(n, dtype=bool)
    y = x + (total - x.sum()) / n
    while True:
        count = int(free.sum())
        middle = np.where(free, total / count, 0.0)
        away = np.where(free, y - middle, 0.0)
        room = max(0.0, norm**2 - total**2 / count)
        size = float(away @ away)
        if size <= 1e-30 * norm**2 and room > 0:  # all equal: any direction in the plane is as near
            away = np.where(free, -1.0 / count, 0.0)
            away[int(np.argmax(np.where(free, x, -np.inf)))] += 1.0
            size = float(away @ away)
        y = middle + np.sqrt(room / size) * away if size > 0 else middle
        negative = y < 0
        if not negative.any():
            return y
        free &= ~negative
        y = np.where(free, y, 0.0)
        y = np.where(free, y + (total - y.sum()) / int(free.sum()), 0.0)
