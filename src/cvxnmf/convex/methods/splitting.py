"""Alternating directions for two constraints at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.convex.dual import return_to_domain
from cvxnmf.convex.methods.base import Method
from cvxnmf.linalg.anderson import Anderson
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import smaller_definite_part
from cvxnmf.linalg.row_chunks import cached_rows
from cvxnmf.linalg.splitting import AlternatingDirections
from cvxnmf.results import FactorPoint, MatrixPoint

if TYPE_CHECKING:
    from cvxnmf.convex.component import DenseComponent
    from cvxnmf.convex.doubly_nonnegative import ProjectionComponent


#: Dense arrays of the size of X that the acceleration may fill.
MEMORY_ARRAYS = 2.6


class LossSplitting(Method):
    """Alternating directions between the set of X with its penalty and the entrywise loss with its limit, if there is one.

    ``X = argmin penalty + rho/2 |X - (Y - U)|^2``, ``Y = argmin loss + rho/2 |Y - X - U|^2``, lengths in the metric. At some
    early steps rho is set so that its multiplier and X are of one size, at some later ones so that X and Y come together as fast
    as they move; between them the steps are accelerated. Y and U are kept as vectors of entries, those of a triangle where X is
    symmetric.
    """

    check_every = 10
    patience = 20
    first_check = 8  # step of the first certificate from a given multiplier
    renewals: tuple[int, ...] = (3, 6, 10, 15)  # steps after which rho is set by sizes
    balances = (22, 30, 45, 60, 80, 105, 135)  # and by residuals
    largest_change = 10.0
    plain_steps = 6  # before it: far from the end the past misleads

    def __init__(self, component: DenseComponent, point: FactorPoint) -> None:
        self.component, self.taken, self.rho = component, 0, component.splitting_weight
        self.point = component.admissible(point)
        X = self.point.dense()
        self.value = component.value(self.point, X)
        cone, loss = component.cone, component.loss
        self.scales = cone.entry_scales()
        self.loss = type(loss)(cone.entries(loss.A))  # of the entries that make up X
        self.state = AlternatingDirections(cone.entries(X), acceleration=self._acceleration(loss.A.size))
        self._start_multiplier(X)

    def _acceleration(self, size: int) -> Anderson:
        """Anderson's acceleration of the splitting with MEMORY_ARRAYS arrays: five steps where X is symmetric, else two."""
        vectors = 2 * MEMORY_ARRAYS * size / len(self.loss.A)  # of single precision
        return Anderson(max(2, int(vectors / 2)), self.scales, self.plain_steps)

    def dual_candidate(self) -> FloatArray:
        """The splitting's dual candidate ``rho S^2 (X - (Y - U)) S^2`` at the next X, returned to the domain of the dual.

        As the residual of a projection it is in the dual cone; the multiplier, in the domain, leaves the cone by more.
        """
        component, cone = self.component, self.component.cone
        residual = self._next_point().dense()
        residual -= cone.matrix(self.state.target)
        cone.scale(cone.scale(residual))
        residual *= self.rho
        inside = cone.matrix(self.state.Y.copy())
        return return_to_domain(component.loss, cone, residual, component.loss.value_and_gradient(inside, out=inside)[1])

    @property
    def distance(self) -> float:
        """The length of the last step of alternating directions, before acceleration."""
        return self.state.distance

    def _next_point(self) -> FactorPoint:
        """The next point of alternating directions, the proximal point of the penalty."""
        cone = self.component.cone
        return cone.project_scaled(cone.scale(cone.matrix(self.state.target)), self.component.trace / self.rho)

    def settle(self) -> None:
        """Forget the steps that the splitting's acceleration remembers: a certificate needs their memory."""
        self.state.forget()

    def step(self) -> None:
        """One round of alternating directions over penalty, loss and multiplier."""
        self.point, self.value = None, np.inf  # their room is needed
        component, cone, nearest = self.component, self.component.cone, self._next_point()
        X, before = nearest.dense(), self.state.Y
        self.point = component.admissible(nearest)
        loss = component.loss.value(X if self.point is nearest else self.point.dense())
        self.value = loss + component.trace * cone.factor_penalty(self.point)  # exact for what a projection returns
        self.state.update(cone.entries(X), self._nearest)
        self.taken += 1
        if self.taken in self.renewals:
            self.state.forget()
            self._change_rho(self._size(cone.matrix(self.state.U.copy())) / max(self._size(nearest.dense()), 1e-300))
        elif self.taken in self.balances:
            self.state.forget()
            apart, moved = self._length(cone.entries(nearest.dense()) - self.state.Y), self._length(self.state.Y - before)
            self._change_rho(float(np.sqrt(apart / max(moved, 1e-300))))

    def _nearest(self, target: FloatArray) -> FloatArray:
        """The proximal point of the loss in the splitting, sought from Y; an ignored diagonal stays."""
        weights = self.rho if self.scales is None else self.rho * self.scales**2
        Y = self.loss.proximal(target, weights, self.state.Y)
        if self.component.loss.ignore_diagonal:
            heights = np.arange(len(self.component.cone.s), 0, -1)
            diagonal = np.cumsum(heights) - heights
            Y[diagonal] = target[diagonal]
        return Y

    def _start_multiplier(self, X: FloatArray) -> None:
        """Start the splitting's multiplier from the slope at X, if that is of the size of X; from zero elsewhere."""
        U = self._scaled_multiplier(self.component.loss.value_and_gradient(X)[1])
        if 0.0 < self._size(U.copy()) <= self.largest_change * self._size(X.copy()):  # Y may be a view of X
            self.state.U = self.component.cone.entries(U)

    def take_multiplier(self, slopes: FloatArray) -> None:
        """Start the splitting from a given multiplier: rho is not renewed by sizes, and the first certificate comes early."""
        self.state.U = self.component.cone.entries(self._scaled_multiplier(slopes))
        self.renewals, self.check_every = (), self.first_check

    def _scaled_multiplier(self, slopes: FloatArray) -> FloatArray:
        """The splitting's multiplier ``S^-2 slopes S^-2 / rho``, in place."""
        cone = self.component.cone
        U: FloatArray = cone.unscale(cone.unscale(slopes))
        U /= self.rho
        return U

    def _size(self, M: FloatArray) -> float:
        """The norm of the penalised part of M, which is overwritten."""
        return float(np.linalg.norm(self.component.cone.penalised_part(M)))

    def _length(self, entries: FloatArray) -> float:
        """The length of a vector of entries, in the metric."""
        return float(np.linalg.norm(entries if self.scales is None else entries * self.scales))

    def _change_rho(self, ratio: float) -> None:
        """Multiply the splitting's rho, within a factor of ten; the multiplier stays."""
        factor = float(np.clip(ratio, 1.0 / self.largest_change, self.largest_change))
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

    def dual_candidate(self) -> FloatArray:
        """The splitting's multiplier N of ``X >= 0``."""
        N = np.minimum(self.R, 0.0)
        N *= -self.rho
        return N

    def settle(self) -> None:
        """Make a doubly nonnegative matrix of the splitting's current one; that costs an eigenvalue, so not at every step."""
        self.point = self.component.nearest_admissible(self.R)
        self.value = self.component.value(self.point)

    def step(self) -> None:
        """One round of alternating directions over the two sets and the multiplier, which is kept when rho grows."""
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
        """The matrix ``(B + rho |R|) / (1 + rho)`` that the splitting makes positive semidefinite."""
        M: FloatArray = np.abs(self.R)
        M *= self.rho
        self.component.add_data(M)
        M /= 1.0 + self.rho
        return M
