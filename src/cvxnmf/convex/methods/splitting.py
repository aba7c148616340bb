"""Alternating directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.convex.component import Block
from cvxnmf.convex.doubly_nonnegative import Projection
from cvxnmf.convex.losses import SquaredError
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import definite_parts
from cvxnmf.results import MatrixPoint, Point


class LimitSplitting:
    """Alternating directions between the cone and the entrywise loss with its lower limit on X.

    ``X1 = P(X2 - U)``, ``X2 = argmin loss + rho/2 |S(X2 - X1 - U)S|^2``, ``U += X1 - X2``; the residual of
    the projection is a matrix of the dual cone.
    """

    check_every = 10
    patience = 20
    relaxation = 1.6

    def __init__(self, block: Block[Any], point: Any) -> None:
        self.block = block
        assert block.lower is not None
        assert isinstance(block.loss, SquaredError)
        self.lower, self.loss = block.lower, block.loss
        s = block.cone.s
        self.weight = np.outer(s, s) ** 2
        self.rho = 0.3 * block.average_curvature
        self.X2 = point.dense() + block.lift(point.dense())
        self.U = np.zeros_like(self.X2)
        self.residual = np.zeros_like(self.X2)
        self._arrive(point)

    def _arrive(self, point: Point) -> None:
        self.point = self.block.lifted(point)
        self.value = self.block.objective(self.point)

    def settle(self) -> None:
        """Nothing to do: every step sets both."""

    def multiplier(self) -> FloatArray | None:
        """Residual of the last projection: with the penalty it lies in the dual cone by construction."""
        W: FloatArray = self.rho * self.weight * self.residual
        return W

    def step(self) -> None:
        """One round over cone, loss and multiplier."""
        block = self.block
        target = self.X2 - self.U
        nearest = block.cone.project(target, block.trace / self.rho)
        X1 = nearest.dense()
        self.residual = X1 - target
        relaxed = self.relaxation * X1 + (1.0 - self.relaxation) * self.X2
        before, self.X2 = self.X2, self.loss.limited_proximal(relaxed + self.U, self.rho * self.weight, self.lower)
        self.U += relaxed - self.X2
        self._balance(self._length(X1 - self.X2), self.rho * self._length(self.X2 - before))
        self._arrive(nearest)

    def _length(self, D: FloatArray) -> float:
        return float(np.sqrt(np.sum(self.weight * D * D)))

    def _balance(self, primal: float, dual: float) -> None:
        """Keep the two residuals within a factor of ten of each other."""
        factor = 2.0 if primal > 10.0 * dual else 0.5 if dual > 10.0 * primal else 1.0
        self.rho *= factor
        self.U /= factor
        self.residual /= factor


class ProjectionSplitting:
    """Alternating directions between positive semidefinite and nonnegative matrices, for the matrix of both nearest to B.

    ``X = P((B + rho (Y - U)) / (1 + rho))``, ``Y = (X + U)_+``, ``U += X - Y``; ``-rho U >= 0`` is the
    multiplier of ``X >= 0``. A rho that grows to a limit was the fastest of the rules tried (docs/mathematics.md).
    """

    check_every = 10
    patience = 20
    relaxation = 1.8
    growth = 1.05
    largest_rho = 300.0

    def __init__(self, block: Projection, point: MatrixPoint) -> None:
        self.block, self.rho = block, 3.0
        self.Y, self.U = np.maximum(block.B, 0.0), np.zeros_like(block.B)  # nearer than any restored point
        self.point, self.value = point, block.objective(point)

    def multiplier(self) -> FloatArray | None:
        """The multiplier N of ``X >= 0``."""
        return np.maximum(0.0, -self.rho * self.U)

    def settle(self) -> None:
        """Make a doubly nonnegative matrix of the current one; it costs an eigenvalue, so not at every step."""
        self.point = self.block.restored(self.Y)
        self.value = self.block.objective(self.point)

    def step(self) -> None:
        """One round over the two sets and the multiplier."""
        X = definite_parts((self.block.B + self.rho * (self.Y - self.U)) / (1.0 + self.rho))[0]
        X *= self.relaxation
        X += (1.0 - self.relaxation) * self.Y
        self.U += X
        self.Y = np.maximum(self.U, 0.0)
        self.U -= self.Y
        factor = min(self.growth, self.largest_rho / self.rho)
        self.rho *= factor
        self.U /= factor
