"""An augmented Lagrangian for a lower limit on X."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.convex.losses import LimitedSquaredError, SquaredError
from cvxnmf.convex.methods.base import Method
from cvxnmf.convex.methods.gradient import ProjectedGradient
from cvxnmf.convex.methods.laplacian import LaplacianDescent
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import FactorPoint, Point

if TYPE_CHECKING:
    from cvxnmf.convex.symmetric_component import LimitedComponent


class AugmentedSquaredError(SquaredError):
    """The tangent squared error with a multiplier M of ``X >= lower`` and a quadratic penalty: an augmented Lagrangian.

    ``loss(X) + sum (M - sigma (X - lower))_+^2 / 2 sigma`` over the entries with data: with ``onset = lower + M / sigma``, below
    which X is pressed upwards, the last term is ``sigma/2 (onset - X)_+^2``. ``sigma = weight a^2 + q_i q_j``, where ``q_i^2`` is
    a multiple of the mean square of row i: multipliers of small entries are of the size of their rows', to which they grow by
    steps of the size of sigma.
    """

    weight, row_weight = 6.0, 5.0

    def __init__(self, loss: LimitedSquaredError) -> None:
        super().__init__(loss.A, loss.ignore_diagonal)
        self.limit = loss.lower()
        self.limit[self.A == 0] = 0.0  # any number: it has no weight
        self.onset = self.limit.copy()
        squares = self.A * self.A
        q = np.sqrt(self.row_weight * squares.mean(axis=1))
        self.sigma = np.where(squares > 0, self.weight * squares + np.outer(q, q), 0.0).astype(np.float32)

    def renew(self, X: FloatArray) -> None:
        """Renew the multiplier of the augmented Lagrangian: the slope of its penalty at X."""
        for rows in self._chunks():
            self.onset[rows] = self.limit[rows] + self._depth(X[rows], rows)

    def _depth(self, X: FloatArray, rows: slice) -> FloatArray:
        """How far some rows of X are below the onset of the augmented Lagrangian's penalty."""
        depth = self.onset[rows] - X
        return np.maximum(depth, 0.0, out=depth)

    def value(self, X: FloatArray) -> float:
        """The augmented Lagrangian at X: the loss and the quadratic penalty."""
        return self._total(sum(self._value_and_slope(X[rows], rows)[0] for rows in self._chunks()))

    def _value_and_slope(self, X: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        """Augmented ``(E - a)^2 - a^2 (X - lower)_- / 2 + sigma depth^2 / 2`` and its derivative, E no lower than a/2."""
        A, depth, E = self.A[rows], self._depth(X, rows), self._model(self._visible(X, rows), rows)
        np.maximum(E, 0.5 * A, out=E)
        rest = X - self.limit[rows]
        np.minimum(rest, 0.0, out=rest)
        total = -0.5 * float(np.vdot(A * A, rest))
        slope = self.sigma[rows] * depth
        total += 0.5 * float(np.vdot(slope, depth))
        np.subtract(E, A, out=rest)
        total += float(np.vdot(rest, rest))
        E *= rest
        E *= 2.0
        E -= slope
        return total, E

    def _curvature(self, X: FloatArray, rows: slice) -> FloatArray:
        """Second derivatives of the augmented Lagrangian; a little of the metric keeps the tangent's from vanishing."""
        H = super()._curvature(X, rows) + 1e-3 * super()._metric_weights(X, rows)
        H += self.sigma[rows] * (self._depth(X, rows) > 0)
        return H

    def _metric_weights(self, X: FloatArray, rows: slice) -> FloatArray:
        """Metric weights of the augmented Lagrangian: the loss's, the multiplier's, and the penalty's where it presses."""
        H, depth = super()._metric_weights(X, rows), self._depth(X, rows)
        H += self.sigma[rows] * (0.3 * depth + 0.5 * (depth > 0))
        return H


class LimitedDescent(LaplacianDescent):
    """A descent whose objective changes a little between steps: a longer memory, and directions enter once per step."""

    memory = 12
    entering_rounds = 1


class AugmentedDescent(Method):
    """Descents in the metric of the model's Laplacian on the loss with a multiplier M of the limit and its quadratic penalty.

    After every descent M becomes the slope of the penalty. The slope of the loss less M is nearly in the dual
    cone: a dual point.
    """

    check_every = 2
    patience = 20

    def __init__(self, component: LimitedComponent, point: FactorPoint) -> None:
        self.component, self.loss, self.taken = component, AugmentedSquaredError(component.loss), 0
        free = component.with_loss(self.loss)
        if not point.W.shape[1]:
            first = ProjectedGradient(free, point)
            first.step()
            point = first.point
        self.descent = LimitedDescent(free, Point(point.v, point.W))
        self.point = component.admissible(point)
        self.value = component.value(self.point)

    def step(self) -> None:
        """One descent on the augmented Lagrangian; the multiplier is renewed before each but the first."""
        if self.taken:
            self.loss.renew(self.descent.point.dense())
            self.descent.resume()
        self.descent.step()
        self.taken += 1

    def settle(self) -> None:
        """Let directions enter the augmented descent, and raise its point to the limit."""
        self.descent.settle()
        self.point = self.component.admissible(self.descent.point)
        self.value = self.component.value(self.point)

    def dual_candidate(self) -> FloatArray | None:
        """The dual candidate of the augmented Lagrangian: the slope of the loss with its multiplier."""
        X = self.descent.point.dense()
        return self.loss.value_and_gradient(X, out=X)[1]
