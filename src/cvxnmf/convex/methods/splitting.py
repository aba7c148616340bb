"""Alternating directions for two constraints at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.convex.methods.base import Method
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import smaller_definite_part
from cvxnmf.linalg.row_chunks import cached_rows
from cvxnmf.linalg.splitting import AlternatingDirections
from cvxnmf.results import FactorPoint, MatrixPoint

if TYPE_CHECKING:
    from cvxnmf.convex.doubly_nonnegative import ProjectionComponent
    from cvxnmf.convex.rectangular_component import NuclearComponent
    from cvxnmf.convex.symmetric_component import LimitedComponent


class LimitSplitting(Method):
    """Alternating directions between the cone and the entrywise loss with its lower limit on X.

    ``X = P(Y - U)``, ``Y = argmin loss + rho/2 |S(Y - X - U)S|^2``; the residual of the projection is a matrix of the dual cone.
    """

    check_every = 10
    patience = 20

    def __init__(self, component: LimitedComponent, point: FactorPoint) -> None:
        self.component = component
        self.rho = 0.3 * component.average_curvature
        X = point.dense()
        self.state = AlternatingDirections(X + component.loss.lift(X))
        self.residual = np.zeros_like(X)
        self._arrive(point)

    def _arrive(self, point: FactorPoint) -> None:
        self.point = self.component.raise_to_limit(point)
        self.value = self.component.value(self.point)

    def dual_candidate(self) -> FloatArray | None:
        """Residual of the last projection: with the penalty it lies in the dual cone by construction."""
        W = self.component.cone.scale(self.component.cone.scaled_copy(self.residual))
        W *= self.rho
        return W

    def step(self) -> None:
        """One round over cone, loss and multiplier."""
        component, state = self.component, self.state
        self.residual, before = state.target, state.Y
        nearest = component.cone.project(self.residual, component.trace / self.rho)
        X = nearest.dense()
        np.subtract(X, self.residual, out=self.residual)
        weights = np.sqrt(self.rho) * component.cone.s**2
        state.update(X, lambda B: component.loss.proximal(B, weights, before))
        self._balance(self._length(X - state.Y), self.rho * self._length(state.Y - before))
        self._arrive(nearest)

    def _length(self, D: FloatArray) -> float:
        return float(np.linalg.norm(self.component.cone.scale(D)))

    def _balance(self, primal: float, dual: float) -> None:
        """Keep the two residuals within a factor of ten of each other."""
        factor = 2.0 if primal > 10.0 * dual else 0.5 if dual > 10.0 * primal else 1.0
        self.rho *= factor
        self.state.rescale(factor)
        self.residual /= factor


class NuclearSplitting(Method):
    """Alternating directions between the nuclear norm and the entrywise loss of a rectangle.

    ``X = argmin penalty + rho/2 |X - (Y - U)|^2``, ``Y = argmin loss + rho/2 |Y - X - U|^2``. The gradient at Y is nearly a dual
    point. At some early steps rho is set so that its multiplier and X are of one size.
    """

    check_every = 10
    patience = 20
    renewals = (3, 6, 10, 15, 22, 30, 45, 60)  # steps after which rho is set anew
    largest_change = 10.0

    def __init__(self, component: NuclearComponent, point: FactorPoint) -> None:
        self.component, self.taken = component, 0
        X = point.dense()
        self.rho = 2.0 * component.trace / float(np.sqrt(max(X.shape)))
        self.state = AlternatingDirections(X)
        self.point, self.value = point, component.value(point, X)

    def dual_candidate(self) -> FloatArray | None:
        """The gradient at Y, its effects balanced."""
        return self.component.balanced_gradient(MatrixPoint(self.state.Y))

    def step(self) -> None:
        """One round over penalty, loss and multiplier."""
        component, state, near = self.component, self.state, self.state.Y
        self.point = component.cone.project_scaled(component.cone.scale(state.target), component.trace / self.rho)
        X = self.point.dense()
        self.value = component.value(self.point, X)
        state.update(X, lambda B: component.loss.proximal(B, self.rho, near))
        self.taken += 1
        if self.taken in self.renewals:
            self._renew_rho(X)

    def _renew_rho(self, X: FloatArray) -> None:
        """Make ``rho |U| = rho |X|``, centred, within a factor of ten."""
        multiplier, size = (float(np.linalg.norm(self.component.cone.centre(M))) for M in (self.state.U.copy(), X))
        factor = float(np.clip(multiplier / max(size, 1e-300), 1.0 / self.largest_change, self.largest_change))
        self.rho *= factor
        self.state.rescale(factor)


class ProjectionSplitting(Method):
    """Alternating directions between positive semidefinite and nonnegative matrices, for the matrix of both nearest to B.

    ``X = P((B + rho (Y - U)) / (1 + rho))``, ``Y = (X + U)_+``; ``-rho U >= 0`` is the multiplier of ``X >= 0``. Y and U are the
    positive and the negative part of one matrix R, so that ``Y - U = |R|``. A rho that grows to a limit was the fastest of the
    rules tried (docs/mathematics.md).
    """

    check_every = 10
    patience = 20
    relaxation = 1.8
    growth = 1.05
    largest_rho = 300.0

    def __init__(self, component: ProjectionComponent, point: MatrixPoint) -> None:
        self.component, self.rho = component, 3.0
        self.R = np.maximum(component.B, 0.0)  # nearer than a restored point
        self.point, self.value = point, component.value(point)

    def dual_candidate(self) -> FloatArray | None:
        """The multiplier N of ``X >= 0``."""
        N = np.minimum(self.R, 0.0)
        N *= -self.rho
        return N

    def settle(self) -> None:
        """Make a doubly nonnegative matrix of the current one; it costs an eigenvalue, so not at every step."""
        self.point = self.component.nearest_admissible(self.R)
        self.value = self.component.value(self.point)

    def step(self) -> None:
        """One round over the two sets and the multiplier, which is kept when rho grows."""
        X, is_positive = smaller_definite_part(self._mean())
        if not is_positive:
            X += self._mean()
        factor = min(self.growth, self.largest_rho / self.rho)
        for rows in cached_rows(X):
            R = self.R[rows]
            R[:] = self.relaxation * X[rows] + np.where(R > 0, (1.0 - self.relaxation) * R, R)
            np.divide(R, factor, out=R, where=R < 0)
        self.rho *= factor

    def _mean(self) -> FloatArray:
        """``(B + rho |R|) / (1 + rho)``."""
        M: FloatArray = np.abs(self.R)
        M *= self.rho
        self.component.add_data(M)
        M /= 1.0 + self.rho
        return M
