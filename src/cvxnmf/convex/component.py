"""One piece of a problem: what methods and certificates see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from cvxnmf.convex.effects import balancing_effects
from cvxnmf.convex.geometry import Geometry
from cvxnmf.convex.losses import Loss
from cvxnmf.convex.problem import Index
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import FactorPoint, Point

#: Entries of X beyond this size are cut off before X is projected or certified; their exp is 0 or infinite anyway.
LOWEST_LOG = -1e6

C = TypeVar("C", bound=Geometry[Any])


@dataclass(frozen=True, eq=False)
class Block(Generic[C]):
    """One connected piece of a problem without empty rows.

    Attributes
    ----------
    nodes : ndarray of int
        Rows of the whole v and W that this piece covers.
    lower : ndarray or None
        Entrywise lower limit of X (``log(A/2)`` for the paper's squared error).
    """

    nodes: Index
    loss: Loss
    cone: C
    trace: float
    lower: FloatArray | None = None

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def scale(self) -> float:
        """The size of the data."""
        return self.loss.scale

    def objective(self, point: FactorPoint, X: FloatArray | None = None) -> float:
        """Loss plus penalty at a point of the cone."""
        loss = self.loss.value(point.dense() if X is None else X)
        return loss + self.trace * self.cone.penalty(point) if self.trace else loss

    def slopes(self, point: FactorPoint) -> tuple[float, FloatArray, FloatArray]:
        """Loss at a point, and half its gradients over v and W."""
        loss, G = self.loss.value_and_gradient(point.dense())
        return loss, *self.cone.pulled_back(G, point.W)

    def start(self) -> FactorPoint:
        """The best model without positions."""
        start: FactorPoint = self.cone.point(self.cone.independent_effects(self.loss.A), np.zeros((self.size, 0)))
        return start

    @cached_property
    def average_curvature(self) -> float:
        """Mean curvature of the loss in the metric, at a model that is nowhere below the data."""
        X = np.maximum(self.start().dense(), self.loss.minimiser())
        return float(self.loss.curvature(X).sum() / self.cone.total_weight)

    def best_start(self, given: FactorPoint | FloatArray | None = None) -> FactorPoint:
        """The best of the start above, the user's, and ``log A`` projected on the cone where A has no zero."""
        candidates = [self.start()]
        if isinstance(given, tuple) and (self.cone.free_effects or not given.v.any()):
            candidates.append(given)
        elif given is not None:
            X = given.dense() if isinstance(given, tuple) else given
            candidates.append(self.cone.project(np.clip(X, LOWEST_LOG, -LOWEST_LOG)))
        best = self.loss.minimiser()
        if best.min() > -np.inf:
            candidates.append(self.cone.project(best))
        values = [self.objective(point) for point in candidates]
        return candidates[int(np.argmin([value if np.isfinite(value) else np.inf for value in values]))]

    def balanced(self, point: FactorPoint, X: FloatArray | None = None) -> FactorPoint:
        """Return the point with the best effects for its positions, where effects are free."""
        if not self.cone.free_effects or self.lower is not None:
            return point
        v = balancing_effects(self.loss, self.cone, point.dense() if X is None else X)
        balanced: FactorPoint = self.cone.point(point.v + v, point.W)
        return balanced

    def restore(self, X: FloatArray) -> tuple[FloatArray, bool]:
        """Return the nearest admissible matrix and whether X lay outside beyond rounding."""
        if X.min() < LOWEST_LOG or X.max() > -LOWEST_LOG:
            return self.restore(np.clip(X, LOWEST_LOG, -LOWEST_LOG))[0], True
        tolerance = 8 * float(np.finfo(np.float64).eps) * len(X) * max(1.0, float(np.abs(X).max()))
        restored = not self.cone.contains(X, tolerance)
        if restored:
            X = self.cone.project(X).dense()
        lift = self.lift(X)
        return X + lift, restored or lift > tolerance

    def lifted(self, point: Point) -> Point:
        """Return the point raised by a constant until it respects the lower limit, if there is one."""
        t = self.lift(point.dense()) if self.lower is not None else 0.0
        if t == 0.0:
            return point
        if self.cone.free_effects:
            return Point(point.v + 0.5 * t, point.W)
        return Point(point.v, np.column_stack([point.W, np.full(self.size, np.sqrt(t))]))

    def lift(self, X: FloatArray) -> float:
        """The least t >= 0 for which ``X + t 11'`` respects the lower limit, if there is one."""
        return 0.0 if self.lower is None else max(0.0, float((self.lower - X).max()))
