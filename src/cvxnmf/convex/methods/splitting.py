"""Alternating directions for two constraints at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cvxnmf.convex.clipping import return_to_domain
from cvxnmf.convex.methods.base import Method
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import smaller_definite_part
from cvxnmf.linalg.row_chunks import cached_rows
from cvxnmf.linalg.splitting import AlternatingDirections
from cvxnmf.results import FactorPoint, MatrixPoint

if TYPE_CHECKING:
    from cvxnmf.convex.component import DenseComponent
    from cvxnmf.convex.doubly_nonnegative import ProjectionComponent


class LossSplitting(Method):
    """Alternating directions between the set of X with its penalty and the entrywise loss with its limit, if it has one.

    ``X = argmin penalty + rho/2 |X - (Y - U)|^2``, ``Y = argmin loss + rho/2 |Y - X - U|^2``, lengths in the metric. At some
    early steps rho is set so that its multiplier and X are of one size.
    """

    check_every = 10
    patience = 20
    renewals: tuple[int, ...] = (3, 6, 10, 15, 22, 30, 45, 60)  # steps after which rho is set anew
    largest_change = 10.0

    def __init__(self, component: DenseComponent[Any], point: FactorPoint) -> None:
        self.component, self.taken, self.rho = component, 0, component.splitting_weight
        self.point = component.admissible(point)
        X = self.point.dense()
        self.state = AlternatingDirections(X)
        self.value = component.value(self.point, X)
        self._take_multiplier()

    def dual_candidate(self) -> FloatArray | None:
        """``rho S^2 (X - (Y - U)) S^2`` at the next X, returned to the domain of the dual.

        As the residual of a projection it is in the dual cone; the multiplier, in the domain, leaves the cone by more.
        """
        component, cone = self.component, self.component.cone
        residual = self.state.target
        np.subtract(self._next_point().dense(), residual, out=residual)
        cone.scale(cone.scale(residual))
        residual *= self.rho
        return return_to_domain(component.loss, cone, residual, component.loss.value_and_gradient(self.state.Y)[1])

    def _next_point(self) -> Any:
        """The proximal point of the penalty."""
        cone = self.component.cone
        return cone.project_scaled(cone.scale(self.state.target), self.component.trace / self.rho)

    def step(self) -> None:
        """One round over penalty, loss and multiplier."""
        component, state, near = self.component, self.state, self.state.Y
        nearest = self._next_point()
        X = nearest.dense()
        self.point = component.admissible(nearest)
        self.value = component.value(self.point, X if self.point is nearest else None)
        state.update(X, lambda B: component.loss.proximal(B, component.cone.entry_weights(self.rho), near))
        self.taken += 1
        if self.taken in self.renewals:
            self._renew_rho(X)

    def _take_multiplier(self) -> None:
        """Start from the slope at X, as at a solution, if it is of the size of X; from none elsewhere."""
        cone, X = self.component.cone, self.state.Y
        U = self.component.loss.value_and_gradient(X)[1]
        cone.unscale(cone.unscale(U))
        U /= self.rho
        if 0.0 < self._size(U.copy()) <= self.largest_change * self._size(X.copy()):
            self.state.U = U

    def _size(self, M: FloatArray) -> float:
        """The length of what the penalty sees of M, which is overwritten."""
        return float(np.linalg.norm(self.component.cone.penalised_part(M)))

    def _renew_rho(self, X: FloatArray) -> None:
        """Make ``rho |U| = rho |X|``, as the penalty sees them, within a factor of ten; X is overwritten."""
        ratio = self._size(self.state.U.copy()) / max(self._size(X), 1e-300)
        factor = float(np.clip(ratio, 1.0 / self.largest_change, self.largest_change))
        self.rho *= factor
        self.state.rescale(factor)


class SteadySplitting(LossSplitting):
    """The same with one rho throughout, where X grows for dozens of steps: on the psd cone with an ignored diagonal."""

    renewals = ()


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
