"""Descent over factors in the metric of the model's own Laplacian."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.convex import distances
from cvxnmf.convex.methods.base import Method
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import eigenpairs
from cvxnmf.linalg.lbfgs import Curvature, Descent
from cvxnmf.results import Point

if TYPE_CHECKING:
    from cvxnmf.convex.symmetric_component import SymmetricComponent

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

    def __init__(self, component: SymmetricComponent, point: Point) -> None:
        self.component = component
        curvature = Curvature(self.memory, max(ALWAYS_GRANTED, MEMORY_ARRAYS * component.size**2))
        self.descent = Descent(partial(distances.slopes, component), distances.from_point(point), curvature)
        self.value = self.descent.value

    @property
    def point(self) -> Point:
        """The point of the Laplacian descent in factors."""
        return distances.to_point(self.descent.x)

    def step(self) -> None:
        """Some descent steps in one Laplacian metric, and columns that have become negligible are dropped."""
        metric = distances.inverse_metric(self.component, self.descent.x, self.ridge)
        for _ in range(self.descent_steps):
            if not self.descent.step(metric, LONGEST_MOVE):
                break
        del metric
        self._drop_columns()
        self.value = self.descent.value

    def _drop_columns(self) -> None:
        """Turn W of the Laplacian descent to its principal directions and leave out the negligible ones."""
        descent = self.descent
        W = descent.x[:, 1:] - descent.x[:, 1:].mean(axis=0)
        squares, vectors = eigenpairs(W.T @ W, overwrite=True)
        del W
        keep = squares > self.negligible**2 * squares.max(initial=0.0)
        if keep.all():
            return
        basis = vectors[:, keep]

        def turn(x: FloatArray) -> FloatArray:
            return np.column_stack([x[:, 0], x[:, 1:] @ basis])

        descent.curvature.map(turn, descent.x.shape)
        del descent.gradient  # its room is needed
        descent.arrive(turn(descent.x))

    def resume(self) -> None:
        """Go on with the Laplacian descent where the objective has changed, its curvature only a little."""
        self.descent.arrive(self.descent.x)
        self.value = self.descent.value

    def settle(self) -> None:
        """Let directions of negative curvature of the dual point enter, a few at a time, while that lowers the value."""
        if not len(self.descent.curvature):  # nothing has changed since the last time
            return
        component, value = self.component, self.value
        point = before = component.balance_effects(self.point, distances.BALANCING_STEPS)
        for _ in range(self.entering_rounds):
            raised = distances.with_entering_directions(component, point, value)
            if raised is None:
                break
            point, value = raised, component.value(raised)
        if point is not before:
            self.descent.curvature.forget()
            self.descent.arrive(distances.from_point(point))
            self._drop_columns()
            self.value = self.descent.value
