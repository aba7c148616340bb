"""An augmented Lagrangian for a lower limit on X."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.convex.losses import LimitedSquaredError, SquaredError
from cvxnmf.convex.methods.base import Method
from cvxnmf.convex.methods.factored import Factored
from cvxnmf.convex.methods.laplacian import LaplacianDescent
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import FactorPoint, Point

if TYPE_CHECKING:
    from cvxnmf.convex.symmetric_component import LimitedComponent


class AugmentedSquaredError(SquaredError):
    """The tangent squared error with a multiplier M of ``X >= lower`` and a quadratic penalty: an augmented Lagrangian.

    ``loss(X) + sum (M - sigma (X - lower))_+^2 / 2 sigma`` over the entries with data, ``sigma = weight a^2``.
    """

    first_weight, growth, largest_weight = 4.0, 2.0, 10.0

    def __init__(self, loss: LimitedSquaredError) -> None:
        super().__init__(loss.A, loss.ignore_diagonal)
        self.weight, self.M = self.first_weight, np.zeros_like(self.A)
        self.limit = np.where(self.A > 0, loss.lower(), 0.0)

    def renew(self, X: FloatArray) -> None:
        """Take the slope of the penalty at X as the multiplier, and penalise more."""
        for rows in self._chunks():
            self.M[rows] = self._pressure(X[rows], rows)
        self.weight = min(self.growth * self.weight, self.largest_weight)

    def _sigma(self, rows: slice) -> FloatArray:
        """Weights of the quadratic penalty."""
        sigma: FloatArray = self.A[rows] * self.A[rows]
        sigma *= self.weight
        return sigma

    def _pressure(self, X: FloatArray, rows: slice) -> FloatArray:
        """``(M - sigma (X - lower))_+``; zero where there are no data."""
        pressure = self.limit[rows] - X
        pressure *= self._sigma(rows)
        pressure += self.M[rows]
        return np.maximum(pressure, 0.0, out=pressure)

    def _penalty(self, pressure: FloatArray, rows: slice) -> float:
        """``sum pressure^2 / 2 sigma``; 0 / 0 counts as 0."""
        return 0.5 * float(np.sum(pressure * pressure / np.maximum(self._sigma(rows), 1e-300)))

    def value(self, X: FloatArray) -> float:
        """The loss and the penalty."""
        return super().value(X) + sum(self._penalty(self._pressure(X[rows], rows), rows) for rows in self._chunks())

    def _value_and_slope(self, X: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        """Those of both."""
        total, G = super()._value_and_slope(X, rows)
        pressure = self._pressure(X, rows)
        G -= pressure
        return total + self._penalty(pressure, rows), G

    def _curvature(self, X: FloatArray, rows: slice) -> FloatArray:
        """Second derivatives; a little of the metric keeps those of the tangent from vanishing."""
        active = np.where(self._pressure(X, rows) > 0, self._sigma(rows), 0.0)
        return super()._curvature(X, rows) + active + 1e-3 * super()._metric_weights(X, rows)

    def _metric_weights(self, X: FloatArray, rows: slice) -> FloatArray:
        """Those of the loss, the multiplier's, and those of the penalty where it presses."""
        pressure = self._pressure(X, rows)
        return super()._metric_weights(X, rows) + 0.3 * pressure + np.where(pressure > 0, 0.5 * self._sigma(rows), 0.0)


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
        """Let directions enter, and raise the point of the descent to the limit."""
        self.descent.settle()
        self.point = self.component.raise_to_limit(self.descent.point)
        self.value = self.component.value(self.point)

    def dual_candidate(self) -> FloatArray | None:
        """The slope of the loss with its multiplier."""
        X = self.descent.point.dense()
        return self.loss.value_and_gradient(X, out=X)[1]
