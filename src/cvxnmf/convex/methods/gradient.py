"""Projected gradient steps, plain and accelerated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.convex.methods.base import Method
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.momentum import Momentum
from cvxnmf.results import FactorPoint

if TYPE_CHECKING:
    from cvxnmf.convex.component import DenseComponent

#: Backtracking gives up here: the step no longer moves anything.
LARGEST_CURVATURE = 1e100


class ProjectedGradient(Method):
    """``X+ = P(X - t grad)`` in the metric, step length 1/L by backtracking (the paper, sign mended)."""

    check_every = 8
    patience = 5
    shrink = 0.8
    residual: FloatArray | None = None  # the slope of the last projection, a dual point of its own
    residual_bound = -np.inf
    outside = np.inf  # by how much of the floor the residual leaves the domain

    def __init__(self, component: DenseComponent, point: FactorPoint) -> None:
        self.component, self.point = component, point
        self.X = point.dense()
        self.value = component.value(point, self.X)
        self.L = 2.0 * component.average_curvature

    def step(self) -> None:
        """One projected gradient step from the current point."""
        self.point, self.X, self.value = self.projected_step(self.X)

    def projected_step(self, Y: FloatArray) -> tuple[FactorPoint, FloatArray, float]:
        """Return the projected gradient step from Y, its dense X and its value."""
        component, cone = self.component, self.component.cone
        loss_here, G = component.loss.value_and_gradient(Y)
        cone.unscale(G)
        self.L *= self.shrink
        self.residual = None  # its room is needed
        while True:
            target = G / -self.L
            target += cone.scale(Y.copy())
            point = cone.project_scaled(target, component.trace / self.L, self.point.W.shape[1] + 1)
            del target
            X = point.dense()
            loss_there = component.loss.value(X)
            if self._short_enough(loss_here, G, Y, loss_there, X) or self.L > LARGEST_CURVATURE:
                self._keep_residual(G, Y, X)
                return point, X, loss_there + component.trace * cone.factor_penalty(point)  # exact for what a projection returns
            del point, X  # the next try needs the room
            self.L *= 2.0

    def _keep_residual(self, G: FloatArray, Y: FloatArray, X: FloatArray) -> None:
        """Keep the residual ``grad(Y) + L S^2 (X - Y) S^2`` of the projection: with the penalty it is in the dual cone."""
        cone, loss = self.component.cone, self.component.loss
        w = cone.scale(X - Y)
        w *= self.L
        w += G
        cone.scale(w)
        self.residual_bound = -np.inf if loss.ignore_diagonal else loss.dual_value(w)
        is_inside = self.residual_bound > -np.inf
        self.residual, self.outside = (w, 0.0) if is_inside else (None, loss.share_outside(w))

    @property
    def gradient_proves_more(self) -> bool:
        """True: far from the optimum the gradient, shifted into the dual cone, may prove more than the residual."""
        return True

    def dual_candidate(self) -> FloatArray | None:
        """The residual of the last projected gradient step, if it lies in the domain of the dual."""
        handed_over, self.residual = self.residual, None  # it is overwritten: no second copy is kept
        return handed_over

    @property
    def expected_bound(self) -> float:
        """The bound that the residual of the last projected gradient step proves."""
        return self.residual_bound

    def _short_enough(self, loss_here: float, G: FloatArray, Y: FloatArray, loss_there: float, X: FloatArray) -> bool:
        """Whether a projected gradient step is short enough: the quadratic model with curvature L lies above the loss at X.

        Close to the optimum the difference of two losses is all rounding; the difference of two gradients is not.
        """
        cone = self.component.cone
        D = cone.scale(X - Y)
        quadratic = 0.5 * self.L * float(np.vdot(D, D))
        if quadratic > 1e-9 * abs(loss_here):
            return loss_there <= loss_here + float(np.vdot(G, D)) + quadratic
        change = cone.unscale(self.component.loss.value_and_gradient(X)[1])
        change -= G
        return 0.5 * float(np.vdot(change, D)) <= quadratic


class Accelerated(ProjectedGradient):
    """Projected gradient from a point extrapolated by Nesterov's momentum, halved on restart."""

    check_every = 16
    shrink = 0.95

    def __init__(self, component: DenseComponent, point: FactorPoint, momentum: bool = True) -> None:
        super().__init__(component, point)
        self.accelerate, self.momentum, self.ahead = momentum, Momentum(), self.X.copy()

    def step(self) -> None:
        """One projected gradient step from the point extrapolated by momentum."""
        cone = self.component.cone
        self.point, X, self.value = self.projected_step(self.ahead)
        backward, self.ahead = self.ahead, X
        backward -= X
        cone.scale(cone.scale(backward))
        moved = X - self.X
        self.X = X
        if float(np.vdot(backward, moved)) > 0:
            self.momentum.restart()
        moved *= self.momentum.extrapolation() if self.accelerate else 0.0
        moved += X
        self.ahead = moved
