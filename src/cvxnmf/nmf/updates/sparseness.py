"""Columns of a given sparseness (Hoyer 2004)."""

from __future__ import annotations

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.losses import NMFLoss
from cvxnmf.nmf.updates.gradient import Gradient


class Sparseness(Gradient):
    """A gradient step, then every column on the set of its sparseness, with its norm kept if `keep_norm`.

    The set is not convex, so that any decrease is taken.
    """

    def __init__(self, sparseness: float, keep_norm: bool) -> None:
        super().__init__(steps=1, enough=0.0)
        self.sparseness, self.keep_norm = sparseness, keep_norm

    def feasible_start(self, X: FloatArray, loss: NMFLoss) -> FloatArray:
        """The start on the set."""
        return self.project(X, X)

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """Column by column."""
        norms = np.linalg.norm(X if self.keep_norm else new, axis=0)
        columns = [project_on_sparseness(x, self.sparseness, float(norm)) for x, norm in zip(new.T, norms, strict=True)]
        return np.stack(columns, axis=1)


def project_on_sparseness(x: FloatArray, sparseness: float, norm: float) -> FloatArray:
    """The nearest nonnegative vector of this norm and sparseness.

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
