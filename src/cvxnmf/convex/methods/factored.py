"""Descent over the factors (v, W)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from cvxnmf.convex.component import Block
from cvxnmf.convex.matrix_free import StreamedBlock
from cvxnmf.convex.methods.gradient import Accelerated, ProjectedGradient
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import Point

#: Dense n-by-n arrays that the descent over factors may fill; columns of W beyond that are left out of it.
DESCENT_ARRAYS = 4
#: As many numbers are always granted.
SMALL_PROBLEM = 2_000_000


class Factored(ProjectedGradient):
    """L-BFGS descends over ``(v, W)``; a projected step then finds the rank and the way out of it.

    The projected steps alone make the method converge to the global optimum; the descent speeds it up.
    """

    check_every = 1
    shrink = 0.5
    descent_steps = 100

    def step(self) -> None:
        """Descend over the factors, then take one projected step; the first one is needed to have factors."""
        if self.point.W.shape[1] == 0:
            super().step()
        most = max(SMALL_PROBLEM, DESCENT_ARRAYS * self.X.size) // (15 * self.block.size)
        del self.X  # the descent needs the room
        with single_thread():
            point = descended(self.block, self.point, most, self.descent_steps)
        self.X = point.dense()
        if not self.block.objective(point, self.X) < self.value:
            self.X = self.point.dense()
        super().step()


def descended(
    block: Any,
    point: Any,
    most: int,
    steps: int,
    precision: float = 1e-15,
    watch: Callable[[Any, float], None] | None = None,
) -> Any:
    """Lower the objective over at most `most` columns by L-BFGS, variables scaled by the metric.

    Parameters
    ----------
    block : Block or StreamedBlock
        What is minimised.
    point : Point or PairedPoint
        Where to start.
    most : int
        Columns of W beyond it are left out.
    steps : int
        Most steps.
    precision : float
        Relative decrease of the objective in one step that ends the descent.
    watch : callable, optional
        Told the point and its value after every step.
    """
    cone, effects = block.cone, block.cone.free_effects
    v, W = point.v, point.W[:, :most]
    n, rank = W.shape
    size = float(np.sqrt(np.mean(cone.s**2)))
    unit = block.average_curvature * size**4  # of the objective, so that A -> cA changes nothing below
    s = cone.s / size
    if not effects and rank == 0:
        return point

    def unpack(x: FloatArray) -> Any:
        x = x.reshape(n, -1) / s[:, None]
        return cone.point(x[:, 0], x[:, 1:]) if effects else cone.point(np.zeros(n), x)

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        here = unpack(x)
        slope = np.empty((n, rank + effects))
        loss, over_effects, slope[:, effects:] = block.slopes(here)
        value = loss + block.trace * cone.factor_penalty(here) if block.trace else loss
        if not np.isfinite(value):
            return 1e300, np.zeros_like(x)
        if block.trace:
            slope[:, effects:] += block.trace * cone.penalty_gradient(here.W)
        if effects:
            slope[:, 0] = over_effects
        slope *= (2.0 / unit) / s[:, None]
        return value / unit, slope.ravel()

    first = np.column_stack([v, W]) if effects else W
    memory = int(np.clip((DESCENT_ARRAYS * n / (rank + 1) - 11) / 2, 2, 20))  # L-BFGS holds 2 memory + 11 vectors
    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": memory, "ftol": precision, "gtol": 0.0}

    def told(intermediate_result: Any) -> None:
        if watch is not None:
            watch(unpack(intermediate_result.x.copy()), float(intermediate_result.fun) * unit)

    start = (first * s[:, None]).ravel()
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options, callback=told)
    return unpack(found.x)


class Streamed:
    """Descent over ``(v, W)`` with the model streamed: first the directions that enter are added, found by Lanczos iterations.

    A point that no direction enters and no descent lowers is the global optimum.
    """

    check_every = 1
    patience = 3
    descent_steps = 100

    def __init__(self, block: StreamedBlock, point: Point) -> None:
        self.block, self.point = block, point
        self.value = block.objective(point)
        self.precision, self.following = 1e-7, block.for_first_descent()

    def settle(self) -> None:
        """Nothing to do: every step sets both."""

    def multiplier(self) -> FloatArray | None:
        """None: the gradient itself is the dual candidate."""
        return None

    def step(self) -> None:
        """Let directions in, then descend, more precisely each time."""
        before = self.point, self.value
        raised = self.block.with_entering(self.point)
        point = descended(self.following, raised, raised.W.shape[1], self.descent_steps, self.precision, self._reach)
        value = self.block.objective(point)
        self.point, self.value = (point, value) if value <= before[1] else before
        self.precision, self.following = 1e-2 * self.precision, self.block

    def _reach(self, point: Point, value: float) -> None:
        """Keep a better point on the way, so that a descent that is broken off is not lost."""
        if value <= self.value:
            self.point, self.value = point, value


class Adaptive:
    """Accelerated steps while they are enough, then descent over factors: even margins need few of the first kind only."""

    patience = 5
    switch_after = 60

    def __init__(self, block: Block[Any], point: Any) -> None:
        self.block, self.taken = block, 0
        self.at_work: ProjectedGradient = Accelerated(block, point)

    @property
    def check_every(self) -> int:
        """Rare at first: on thin data a certificate costs as much as several steps."""
        return 1 if isinstance(self.at_work, Factored) else 2 * self.at_work.check_every

    @property
    def point(self) -> Any:
        """The current point."""
        return self.at_work.point

    @property
    def value(self) -> float:
        """The objective there."""
        return self.at_work.value

    def settle(self) -> None:
        """Nothing to do: every step sets both."""

    def multiplier(self) -> FloatArray | None:
        """None: the gradient itself is the dual candidate."""
        return None

    def step(self) -> None:
        """One step of the method at work."""
        if self.taken == self.switch_after:
            curvature = self.at_work.L
            self.at_work = Factored(self.block, self.at_work.point)
            self.at_work.L = curvature
        self.taken += 1
        self.at_work.step()
