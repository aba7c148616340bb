"""Descent over factors in the metric of the model's own Laplacian."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg as sl

from cvxnmf.convex import distances
from cvxnmf.convex.methods.base import Method
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.lbfgs import Curvature
from cvxnmf.results import Point

if TYPE_CHECKING:
    from cvxnmf.convex.component import DenseComponent
    from cvxnmf.convex.cones import Cone

#: No coordinate of a position moves by more than this in one step.
LONGEST_MOVE = 1.0
#: Dense n-by-n arrays that steps and changes of the gradient may fill.
MEMORY_ARRAYS = 2.6
#: As many numbers are granted to them at any size.
ALWAYS_GRANTED = 25_000


class LaplacianDescent(Method):
    """L-BFGS over effects u and positions W with ``X_ij = u_i + u_j - |w_i - w_j|^2 / 2``.

    Without a penalty a model of a sparse graph falls to nothing across its cuts, and the Hessian over the positions acts like a
    graph Laplacian, which no diagonal scaling can see. The initial metric is that of the model: ``E + Diag(E1)`` over the effects
    and ``L_E + ridge Diag(E1)``, with the penalty, over every column of W; it is renewed in every step.
    Before a certificate directions enter along which the gradient is negative.
    """

    check_every = 2
    patience = 5
    descent_steps = 25
    memory = 8
    ridge = 1e-2
    negligible = 1e-3  # singular values of W below this share of the largest are dropped
    entering_rounds = 5

    def __init__(self, component: DenseComponent[Cone], point: Point) -> None:
        self.component = component
        self.curvature = Curvature(self.memory, max(ALWAYS_GRANTED, MEMORY_ARRAYS * component.size**2))
        self._arrive(distances.from_point(point))

    def _arrive(self, x: FloatArray) -> None:
        self.x = x
        self.value, self.gradient = distances.slopes(self.component, x)

    @property
    def point(self) -> Point:
        """The point in factors."""
        return distances.to_point(self.x)

    def step(self) -> None:
        """Some descent steps in one metric, and columns that have become negligible are dropped."""
        metric = distances.inverse_metric(self.component, self.x, self.ridge)
        for _ in range(self.descent_steps):
            direction = self.curvature.times(self.gradient, metric)
            np.negative(direction, out=direction)
            slope = float(np.vdot(self.gradient, direction))
            if not slope < 0:
                self.curvature.forget()
                return
            if not self._line_search(direction, slope):
                break
            del direction
        del metric
        self._drop_columns()

    def _line_search(self, direction: FloatArray, slope: float) -> bool:
        """Go along a direction, which is overwritten, until Armijo's rule holds, by interpolation; False if no step does."""
        before, gradient, x = self.value, self.gradient, self.x
        length = min(1.0, LONGEST_MOVE / max(float(np.abs(direction[:, 1:]).max(initial=0.0)), 1e-300))
        while length > 1e-10:
            there = length * direction
            there += x
            value, slopes = distances.slopes(self.component, there)
            if value <= before + 1e-4 * length * slope:
                self.curvature.learn(np.subtract(there, x, out=direction), np.subtract(slopes, gradient, out=gradient))
                self.x, self.value, self.gradient = there, value, slopes
                return True
            del there, slopes  # their room is needed
            bend = value - before - slope * length
            length *= float(np.clip(-0.5 * slope * length / bend, 0.1, 0.5)) if np.isfinite(bend) else 0.1
        return False

    def _drop_columns(self) -> None:
        """Turn W to its principal directions and leave out the negligible ones."""
        W = self.x[:, 1:] - self.x[:, 1:].mean(axis=0)
        squares, vectors = sl.eigh((W.T @ W).T, overwrite_a=True, check_finite=False)
        del W
        keep = squares > self.negligible**2 * squares.max(initial=0.0)
        if keep.all():
            return
        basis = vectors[:, keep]

        def turn(x: FloatArray) -> FloatArray:
            return np.column_stack([x[:, 0], x[:, 1:] @ basis])

        self.curvature.map(turn, self.x.shape)
        del self.gradient  # its room is needed
        self._arrive(turn(self.x))

    def resume(self) -> None:
        """Go on where the objective has changed, its curvature only a little."""
        self._arrive(self.x)

    def settle(self) -> None:
        """Let directions of negative curvature of the dual point enter, a few at a time, while that lowers the value."""
        if not len(self.curvature):  # nothing has changed since the last time
            return
        component, value = self.component, self.value
        point = before = distances.balance(component, self.point)
        for _ in range(self.entering_rounds):
            raised = distances.with_entering_directions(component, point, value)
            if raised is None:
                break
            point, value = raised, component.value(raised)
        if point is not before:
            self.curvature.forget()
            self._arrive(distances.from_point(point))
            self._drop_columns()
