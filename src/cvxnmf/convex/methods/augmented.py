"""An augmented Lagrangian for a lower limit on X."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cvxnmf.convex.losses import AugmentedSquaredError
from cvxnmf.convex.methods.base import Method
from cvxnmf.convex.methods.factored import Factored
from cvxnmf.convex.methods.laplacian import LaplacianDescent
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import FactorPoint, Point

if TYPE_CHECKING:
    from cvxnmf.convex.symmetric_component import LimitedComponent


class AugmentedDescent(Method):
    """Descents in the metric of the model's Laplacian on the loss with a multiplier M of the limit and its quadratic penalty.

    After some descents M becomes the slope of the penalty, whose weight grows. The slope of the loss less M is nearly in the dual
    cone: a dual point.
    """

    check_every = 4
    patience = 20
    descents = 4  # before the multiplier is renewed

    def __init__(self, component: LimitedComponent, point: FactorPoint) -> None:
        self.component, self.loss, self.taken = component, AugmentedSquaredError(component.loss), 0
        free = component.with_loss(self.loss)
        if not point.W.shape[1]:
            first = Factored(free, point)
            first.step()
            point = first.point
        self.descent = LaplacianDescent(free, Point(point.v, point.W))
        self.point = component.raise_to_limit(point)
        self.value = component.value(self.point)

    def step(self) -> None:
        """One descent; the multiplier is renewed before every few of them but the first."""
        if self.taken and self.taken % self.descents == 0:
            self.loss.renew(self.descent.point.dense())
            self.descent.restart()
        self.descent.step()
        self.taken += 1

    def settle(self) -> None:
        """Raise the point of the descent to the limit."""
        self.point = self.component.raise_to_limit(self.descent.point)
        self.value = self.component.value(self.point)

    def dual_candidate(self) -> FloatArray | None:
        """The slope of the loss with its multiplier."""
        return self.loss.value_and_gradient(self.descent.point.dense())[1]
