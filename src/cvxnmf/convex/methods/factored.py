"""Descent over the factors (v, W)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.convex.methods.base import Method
from cvxnmf.convex.methods.gradient import ProjectedGradient
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.lbfgs import Curvature, Descent
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import FactorPoint

if TYPE_CHECKING:
    from cvxnmf.convex.component import FactorComponent
    from cvxnmf.convex.matrix_free import MatrixFreeComponent

#: Dense n-by-n arrays that the descent over factors may fill; columns of W beyond that are left out of it.
DESCENT_ARRAYS = 5.0
#: Vectors of the size of (v, W) that a descent holds, beside two for every step that it remembers.
DESCENT_VECTORS = 7
#: Steps that it remembers at least and at most.
LEAST_MEMORY, MOST_MEMORY = 2, 20


class Factored(ProjectedGradient):
    """Descent over factors: L-BFGS over ``(v, W)``, then a projected step, which finds the rank and the way out of it.

    The projected steps alone make the method converge to the global optimum; the descent speeds it up.
    """

    check_every = 1
    shrink = 0.5
    descent_steps = 100

    def step(self) -> None:
        """Descend over the factors, then take one projected step; the first one is needed to have factors."""
        if self.point.W.shape[1] == 0:
            super().step()
        most = int(DESCENT_ARRAYS * self.X.size / ((DESCENT_VECTORS + 2 * LEAST_MEMORY) * self.component.size))
        del self.X  # the descent needs the room
        self.residual = None
        with single_thread():
            point = descend_factors(self.component, self.point, most, self.descent_steps)
        self.X = point.dense()
        if not self.component.value(point, self.X) < self.value:
            self.X = self.point.dense()
        super().step()


def descend_factors(
    component: FactorComponent,
    point: FactorPoint,
    most: int,
    steps: int,
    precision: float = 1e-15,
    watch: Callable[[FactorPoint, float], None] | None = None,
    slopes: Callable[[FactorPoint], tuple[float, FloatArray, FloatArray]] | None = None,
) -> FactorPoint:
    """Lower the objective from a point over at most `most` columns of W by L-BFGS, variables scaled by the metric.

    It ends after so many steps, or when one lowers the objective by a share below `precision`. `watch` is told the point and its
    value after every step; `slopes` are loss and half its gradients over v and W at a point, those of the component if left out.
    """
    slopes = component.slopes if slopes is None else slopes
    cone, effects, trace = component.cone, component.cone.free_effects, component.trace
    v, W = point.v, point.W[:, :most]
    n, rank = W.shape
    size = float(np.sqrt(np.mean(cone.s**2)))
    unit = component.average_curvature * size**4  # of the objective, so that A -> cA changes nothing below
    s = cone.s / size
    if not effects and rank == 0:
        return point

    def unpack(x: FloatArray) -> FactorPoint:
        x = x / s[:, None]
        return cone.point(x[:, 0], x[:, 1:]) if effects else cone.point(np.zeros(n), x)

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        here = unpack(x)
        slope = np.empty((n, rank + effects))
        loss, over_effects, slope[:, effects:] = slopes(here)
        value = loss + trace * cone.factor_penalty(here) if trace else loss
        if not np.isfinite(value):
            return np.inf, slope
        if trace:
            slope[:, effects:] += trace * cone.penalty_gradient(here.W)
        if effects:
            slope[:, 0] = over_effects
        slope *= (2.0 / unit) / s[:, None]
        return value / unit, slope

    first = np.column_stack([v, W]) if effects else W
    memory = int(np.clip((DESCENT_ARRAYS * n / (rank + 1) - DESCENT_VECTORS) / 2, LEAST_MEMORY, MOST_MEMORY))
    descent = Descent(objective, first * s[:, None], Curvature(memory))
    for _ in range(steps):
        before = descent.value
        if not descent.step():
            break
        if watch is not None:
            watch(unpack(descent.x), descent.value * unit)
        if before - descent.value <= precision * max(abs(before), abs(descent.value), 1.0):
            break
    return unpack(descent.x)


class MatrixFreeDescent(Method):
    """Descent over ``(v, W)`` by products with the model: first the directions that enter are added, found by Lanczos iterations.

    A point that no direction enters and no descent lowers is the global optimum. Where many directions enter it gives up.
    """

    check_every = 1
    patience = 3
    descent_steps = 100

    def __init__(self, component: MatrixFreeComponent, point: FactorPoint) -> None:
        self.component, self.point = component, point
        self.value = component.value(point)
        self.precision, self.slopes = 1e-7, partial(component.slopes, single=component.first_single)

    def step(self) -> None:
        """Let directions into the factors, then descend by matrix-free products, more precisely each time."""
        before, component = (self.point, self.value), self.component
        raised = component.add_entering_directions(self.point)
        if raised.W.shape[1] >= component.high_rank:
            self.gives_up = True
            return
        rank, steps = raised.W.shape[1], self.descent_steps
        point = descend_factors(component, raised, rank, steps, self.precision, self._reach, self.slopes)
        value = component.value(point)
        self.point, self.value = (point, value) if value <= before[1] else before
        self.precision, self.slopes = 1e-2 * self.precision, partial(component.slopes, single=False)

    def _reach(self, point: FactorPoint, value: float) -> None:
        """Keep a better point on the way of a descent over factors, so that nothing is lost if it is broken off."""
        if value <= self.value:
            self.point, self.value = point, value
