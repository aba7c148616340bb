"""Alternating directions for two constraints at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.convex.methods.base import Method
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import definite_parts
from cvxnmf.linalg.splitting import AlternatingDirections
from cvxnmf.results import FactorPoint, MatrixPoint

if TYPE_CHECKING:
    from cvxnmf.convex.doubly_nonnegative import ProjectionComponent
    from cvxnmf.convex.symmetric_component import LimitedComponent


class LimitSplitting(Method):
    """Alternating directions between the cone and the entrywise loss with its lower limit on X.

    ``X = P(Y - U)``, ``Y = argmin loss + rho/2 |S(Y - X - U)S|^2``; the residual of the projection is a matrix of the dual cone.
    """

    check_every = 10
    patience = 20

    def __init__(self, component: LimitedComponent, point: FactorPoint) -> None:
        self.component, self.weight = component, np.outer(component.cone.s, component.cone.s) ** 2
        self.rho = 0.3 * component.average_curvature
        X = point.dense()
        self.directions = AlternatingDirections(X + component.lift(X))
        self.residual = np.zeros_like(X)
        self._arrive(point)

    def _arrive(self, point: FactorPoint) -> None:
        self.point = self.component.lifted(point)
        self.value = self.component.value(self.point)

    def multiplier(self) -> FloatArray | None:
        """Residual of the last projection: with the penalty it lies in the dual cone by construction."""
        W: FloatArray = self.rho * self.weight * self.residual
        return W

    def step(self) -> None:
        """One round over cone, loss and multiplier."""
        component, before = self.component, self.directions.Y

        def project(target: FloatArray) -> FloatArray:
            self.nearest = component.cone.project(target, component.trace / self.rho)
            X = self.nearest.dense()
            self.residual = X - target
            return X

        X = self.directions.step(project, lambda target: component.loss.proximal(target, self.rho * self.weight))
        self._balance(self._length(X - self.directions.Y), self.rho * self._length(self.directions.Y - before))
        self._arrive(self.nearest)

    def _length(self, D: FloatArray) -> float:
        return float(np.sqrt(np.sum(self.weight * D * D)))

    def _balance(self, primal: float, dual: float) -> None:
        """Keep the two residuals within a factor of ten of each other."""
        factor = 2.0 if primal > 10.0 * dual else 0.5 if dual > 10.0 * primal else 1.0
        self.rho *= factor
        self.directions.rescale(factor)
        self.residual /= factor


class ProjectionSplitting(Method):
    """Alternating directions between positive semidefinite and nonnegative matrices, for the matrix of both nearest to B.

    ``X = P((B + rho (Y - U)) / (1 + rho))``, ``Y = (X + U)_+``; ``-rho U >= 0`` is the multiplier of ``X >= 0``. A rho that
    grows to a limit was the fastest of the rules tried (docs/mathematics.md).
    """

    check_every = 10
    patience = 20
    relaxation = 1.8
    growth = 1.05
    largest_rho = 300.0

    def __init__(self, component: ProjectionComponent, point: MatrixPoint) -> None:
        self.component, self.rho = component, 3.0
        self.directions = AlternatingDirections(np.maximum(component.B, 0.0), self.relaxation)  # nearer than a restored point
        self.point, self.value = point, component.value(point)

    def multiplier(self) -> FloatArray | None:
        """The multiplier N of ``X >= 0``."""
        return np.maximum(0.0, -self.rho * self.directions.U)

    def settle(self) -> None:
        """Make a doubly nonnegative matrix of the current one; it costs an eigenvalue, so not at every step."""
        self.point = self.component.restored(self.directions.Y)
        self.value = self.component.value(self.point)

    def step(self) -> None:
        """One round over the two sets and the multiplier."""
        B, rho = self.component.B, self.rho
        self.directions.step(lambda Y: definite_parts((B + rho * Y) / (1.0 + rho))[0], lambda X: np.maximum(X, 0.0))
        factor = min(self.growth, self.largest_rho / rho)
        self.rho *= factor
        self.directions.rescale(factor)
