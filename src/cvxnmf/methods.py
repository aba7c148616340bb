"""Methods for the convex problems, each a step from one point to the next.

projected-gradient   the paper's: a gradient step in the metric, projected; backtracking
accelerated          the same step from an extrapolated point, momentum halved when it points uphill
factored             quasi-Newton descent over the factors (v, W), then a projected step; streamed for large sparse data
adaptive             accelerated at first, then factored
splitting            alternating directions, for a lower limit on X (the paper's squared error) and for two sets at once
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize

from cvxnmf import spectra
from cvxnmf.losses import SquaredError
from cvxnmf.problems import Block, StreamedBlock
from cvxnmf.problems.doubly_nonnegative import Projection
from cvxnmf.results import FloatArray, MatrixPoint, Point

#: Dense n-by-n arrays that the descent over factors may fill; columns of W beyond that are left out of it.
DESCENT_ARRAYS = 4
#: As many numbers are always granted.
SMALL_PROBLEM = 2_000_000
#: Backtracking gives up here: the step no longer moves anything.
LARGEST_CURVATURE = 1e100


class Method(Protocol):
    """What the loop knows of a method."""

    patience: int

    @property
    def check_every(self) -> int:
        """Steps between two certificates."""

    @property
    def point(self) -> Any:
        """The current point."""

    @property
    def value(self) -> float:
        """The objective there."""

    def step(self) -> None:
        """Move to the next point and set its value."""

    def settle(self) -> None:
        """Bring point and value up to date before they are certified, where a step does not."""

    def multiplier(self) -> FloatArray | None:
        """The multiplier of a limit on X that was found on the way, if any."""


class ProjectedGradient:
    """``X+ = P(X - t grad)`` in the metric, step length 1/L by backtracking (the paper, sign mended)."""

    check_every = 8
    patience = 5
    shrink = 0.8

    def __init__(self, block: Block[Any], point: Any) -> None:
        self.block, self.point = block, point
        self.X = point.dense()
        self.value = block.objective(point, self.X)
        self.L = 2.0 * block.average_curvature

    def settle(self) -> None:
        """Nothing to do: every step sets both."""

    def multiplier(self) -> FloatArray | None:
        """None: the gradient itself is the dual candidate."""
        return None

    def step(self) -> None:
        """One projected step from the current point."""
        self.point, self.X, self.value = self.projected_step(self.X)

    def projected_step(self, Y: FloatArray) -> tuple[Any, FloatArray, float]:
        """Return the projected gradient step from Y, its dense X and its value."""
        block, cone = self.block, self.block.cone
        loss_here, G = block.loss.value_and_gradient(Y)
        cone.unscale(G)
        self.L *= self.shrink
        while True:
            target = G / -self.L
            target += cone.scaled(Y)
            point = cone.project_scaled(target, block.trace / self.L, self.point.W.shape[1] + 1)
            del target
            X = point.dense()
            loss_there = block.loss.value(X)
            if self._short_enough(loss_here, G, Y, loss_there, X) or self.L > LARGEST_CURVATURE:
                return point, X, loss_there + block.trace * cone.factor_penalty(point)  # exact for what a projection returns
            self.L *= 2.0

    def _short_enough(self, loss_here: float, G: FloatArray, Y: FloatArray, loss_there: float, X: FloatArray) -> bool:
        """Whether the quadratic model with curvature L lies above the loss at X.

        Close to the optimum the difference of two losses is all rounding; the difference of two gradients is not.
        """
        cone = self.block.cone
        D = cone.scale(X - Y)
        quadratic = 0.5 * self.L * float(np.vdot(D, D))
        if quadratic > 1e-9 * abs(loss_here):
            return loss_there <= loss_here + float(np.vdot(G, D)) + quadratic
        change = cone.unscale(self.block.loss.value_and_gradient(X)[1])
        change -= G
        return 0.5 * float(np.vdot(change, D)) <= quadratic


class Accelerated(ProjectedGradient):
    """Projected gradient from a point extrapolated by Nesterov's momentum, halved on restart."""

    shrink = 0.9

    def __init__(self, block: Block[Any], point: Any, momentum: bool = True) -> None:
        super().__init__(block, point)
        self.momentum, self.weight, self.ahead = momentum, 1.0, self.X.copy()

    def step(self) -> None:
        """One step from the extrapolated point."""
        cone = self.block.cone
        self.point, X, self.value = self.projected_step(self.ahead)
        backward, self.ahead = self.ahead, X
        backward -= X
        cone.scale(cone.scale(backward))
        moved = X - self.X
        self.X = X
        if float(np.vdot(backward, moved)) > 0:
            self.weight = max(1.0, 0.5 * self.weight)
        longer = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.weight**2))
        moved *= (self.weight - 1.0) / longer if self.momentum else 0.0
        moved += X
        self.ahead, self.weight = moved, longer


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
        with spectra.single_thread():
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
        X = spectra.parts((self.block.B + self.rho * (self.Y - self.U)) / (1.0 + self.rho))[0]
        X *= self.relaxation
        X += (1.0 - self.relaxation) * self.Y
        self.U += X
        self.Y = np.maximum(self.U, 0.0)
        self.U -= self.Y
        factor = min(self.growth, self.largest_rho / self.rho)
        self.rho *= factor
        self.U /= factor


def splitting(block: Any, point: Any) -> Method:
    """The splitting method for this kind of block."""
    return ProjectionSplitting(block, point) if isinstance(block, Projection) else LimitSplitting(block, point)


def factored(block: Any, point: Any) -> Method:
    """The descent over factors for this kind of block."""
    return Streamed(block, point) if isinstance(block, StreamedBlock) else Factored(block, point)


METHODS: dict[str, Callable[[Any, Any], Method]] = {
    "projected-gradient": ProjectedGradient,
    "accelerated": Accelerated,
    "factored": factored,
    "adaptive": Adaptive,
    "splitting": splitting,
}
