"""Components of the symmetric problem on dense matrices: with a loss alone, and under a lower limit on X."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxnmf.convex.component import Certified, Component, DenseComponent
from cvxnmf.convex.cones import Cone
from cvxnmf.convex.dual import Dual
from cvxnmf.convex.losses import LimitedSquaredError
from cvxnmf.convex.methods import Accelerated, Adaptive, Factored, LimitSplitting, Method, ProjectedGradient
from cvxnmf.convex.symmetric_dual import constraint_multiplier, dual_point
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import AnyPoint, FactorPoint, Point


@dataclass(frozen=True, eq=False)
class SymmetricComponent(DenseComponent[Cone]):
    """``loss(A, exp(X)) + trace <N, X>`` over X in the cone, on the nodes of one connected component."""

    @property
    def entries(self) -> Any:
        """Rows and columns of its nodes."""
        return np.ix_(self.nodes, self.nodes)

    @property
    def methods(self) -> Mapping[str, Callable[[Any, Any], Method]]:
        """On the psd cone, where solutions have a high rank, factors do not pay."""
        if self.cone.free_effects:
            best: dict[str, Callable[[Any, Any], Method]] = {"factored": Factored, "accelerated": Accelerated}
        else:
            best = {"accelerated": Accelerated, "factored": Factored}
        return best | {"projected-gradient": ProjectedGradient, "adaptive": Adaptive}

    def dual_point(self, point: AnyPoint, multiplier: FloatArray | None = None) -> Dual | None:
        """Return a dual point, accepted by the check, or None if the point is too far off to tell anything."""
        return dual_point(self, point.dense(), multiplier)


@dataclass(frozen=True, eq=False)
class LimitedComponent(SymmetricComponent):
    """A symmetric component under the paper's lower limit ``exp(X) >= A/2``; effects are not balanced, lest it be broken."""

    loss: LimitedSquaredError

    @property
    def methods(self) -> Mapping[str, Callable[[Any, Any], Method]]:
        """Alternating directions between the cone and the limit."""
        return {"splitting": LimitSplitting}

    def certify(self, point: FactorPoint, value: float, multiplier: FloatArray | None = None) -> Certified:
        """The point and its value as they are, and a dual point."""
        return Component.certify(self, point, value, multiplier)

    def dual_point(self, point: AnyPoint, multiplier: FloatArray | None = None) -> Dual | None:
        """Return a dual point for X and the multiplier of its limit, which is estimated from X if it is not given."""
        if multiplier is None:
            multiplier = constraint_multiplier(self, self.loss.lower, point.dense())
        return super().dual_point(point, multiplier)

    def last_dual(self, point: FactorPoint) -> Dual | None:
        """A dual point for the multiplier that X itself suggests, which may be better than the method's."""
        return self.dual_point(point)

    def tidy(self, point: FactorPoint, limit: float) -> FactorPoint:
        """Columns orthogonal, by decreasing weight; none is dropped, lest the limit be broken."""
        return self.cone.canonical_factors(Point(point.v, point.W))

    def admits(self, point: FactorPoint) -> bool:
        """Whether the point has no effects that are not free, and respects the limit."""
        return super().admits(point) and not self.lift(point.dense())

    def restore(self, X: FloatArray) -> tuple[FloatArray, bool]:
        """Return the nearest matrix of the cone, raised to its limit, and whether X lay outside beyond rounding."""
        X, restored = super().restore(X)
        lift = self.lift(X)
        tolerance = 8 * float(np.finfo(np.float64).eps) * len(X) * max(1.0, float(np.abs(X).max()))
        return X + lift, restored or lift > tolerance

    def raise_to_limit(self, point: FactorPoint) -> Point:
        """Return the point raised by a constant until it respects the lower limit."""
        t = self.lift(point.dense())
        if t == 0.0:
            return Point(point.v, point.W)
        if self.cone.free_effects:
            return Point(point.v + 0.5 * t, point.W)
        return Point(point.v, np.column_stack([point.W, np.full(self.size, np.sqrt(t))]))

    def lift(self, X: FloatArray) -> float:
        """The least t >= 0 for which ``X + t 11'`` respects the lower limit."""
        return max(0.0, float((self.loss.lower - X).max()))
