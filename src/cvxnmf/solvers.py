"""Methods for the convex problems: each is a step, and one loop drives them all.

    projected-gradient   the paper's: a gradient step in the metric, projected; backtracking
    accelerated          the same step from an extrapolated point, restarted when momentum points uphill
    factored             a projected step, then quasi-Newton descent over the factors (v, W) it found
    splitting            alternating directions, for a lower limit on X (the paper's squared error)

Every stop is decided by a certificate, never by the size of a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize

from cvxnmf import certificates, spectra, validation
from cvxnmf.certificates import Dual
from cvxnmf.checking import NEGLIGIBLE
from cvxnmf.problems import Block, Problem
from cvxnmf.results import FloatArray, Iterate, Point, Solution, Status

Callback = Callable[[Iterate], Any]

#: Backtracking gives up here: the step no longer moves anything.
LARGEST_CURVATURE = 1e100
#: Columns of W with less than this share of the largest column's weight may be dropped at the end.
NEGLIGIBLE_COLUMN = 1e-6


class Method(Protocol):
    """What the loop knows of a method."""

    check_every: int
    point: Point
    value: float

    def __init__(self, block: Block, point: Point) -> None: ...

    def step(self) -> None:
        """Move to the next point and set its value."""

    def multiplier(self) -> FloatArray | None:
        """A matrix W with ``W + trace N`` in the dual cone that was found on the way, if any."""


class ProjectedGradient:
    """``X+ = P(X - t grad)`` in the metric, step length 1/L by backtracking (the paper, sign mended)."""

    check_every = 10
    shrink = 0.9

    def __init__(self, block: Block, point: Point) -> None:
        self.block, self.point = block, point
        self.X = point.dense()
        self.value = block.objective(point, self.X)
        self.L = 1.0

    def multiplier(self) -> FloatArray | None:
        """None: the gradient itself is the dual candidate."""
        return None

    def step(self) -> None:
        """One projected step from the current point."""
        self.point, self.X, self.value = self.projected_step(self.X)

    def projected_step(self, Y: FloatArray) -> tuple[Point, FloatArray, float]:
        """Return the projected gradient step from Y, its dense X and its value."""
        block, s = self.block, self.block.cone.s
        loss_here, G = block.loss.value_and_gradient(Y)
        G /= s[:, None]
        G /= s[None, :]
        self.L *= self.shrink
        while True:
            target = G / -self.L
            target /= s[:, None]
            target /= s[None, :]
            target += Y
            point = block.cone.project(target, block.trace / self.L, self.point.W.shape[1] + 1)
            del target
            X = point.dense()
            loss_there = block.loss.value(X)
            if self._short_enough(loss_here, G, Y, loss_there, X) or self.L > LARGEST_CURVATURE:
                return point, X, loss_there + block.trace * block.cone.penalty(point)
            self.L *= 2.0

    def _short_enough(self, loss_here: float, G: FloatArray, Y: FloatArray, loss_there: float, X: FloatArray) -> bool:
        """Whether the quadratic model with curvature L lies above the loss at X.

        Close to the optimum the difference of two losses is all rounding; the difference of two gradients is not.
        """
        s = self.block.cone.s
        D = X - Y
        D *= s[:, None]
        D *= s[None, :]
        quadratic = 0.5 * self.L * float(np.vdot(D, D))
        if quadratic > 1e-9 * abs(loss_here):
            return loss_there <= loss_here + float(np.vdot(G, D)) + quadratic
        change = self.block.loss.value_and_gradient(X)[1]
        change /= s[:, None]
        change /= s[None, :]
        change -= G
        return 0.5 * float(np.vdot(change, D)) <= quadratic


class Accelerated(ProjectedGradient):
    """Projected gradient from a point extrapolated by Nesterov's momentum, halved on restart."""

    check_every = 5

    def __init__(self, block: Block, point: Point, momentum: bool = True) -> None:
        super().__init__(block, point)
        self.momentum, self.weight, self.ahead = momentum, 1.0, self.X

    def step(self) -> None:
        """One step from the extrapolated point."""
        s = self.block.cone.s
        self.point, X, self.value = self.projected_step(self.ahead)
        moved = X - self.X
        uphill = float(np.vdot((self.ahead - X) * s[:, None] ** 2 * s[None, :] ** 2, moved)) > 0
        if uphill:
            self.weight = max(1.0, 0.5 * self.weight)
        longer = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.weight**2))
        moved *= (self.weight - 1.0) / longer if self.momentum else 0.0
        moved += X
        self.X, self.ahead, self.weight = X, moved, longer


class Factored(ProjectedGradient):
    """L-BFGS descends over ``(v, W)``; a projected step then finds the rank and the way out of it.

    The projected steps alone make the method converge to the global optimum; the descent speeds it up.
    """

    check_every = 1
    shrink = 0.5
    descent_steps = 100

    def __init__(self, block: Block, point: Point) -> None:
        super().__init__(block, point)
        super().step()

    def step(self) -> None:
        """Descend over the factors, then take one projected step."""
        with spectra.single_thread():
            point = self._descend(self.point)
        X = point.dense()
        if self.block.objective(point, X) < self.value:
            self.X = X
        super().step()

    def _descend(self, point: Point) -> Point:
        """Lower the objective over the factors, variables scaled by the metric."""
        block, (n, rank) = self.block, point.W.shape
        s, effects = block.cone.s, block.cone.free_effects
        if not effects and rank == 0:
            return point

        def unpack(x: FloatArray) -> Point:
            x = x.reshape(n, -1) / s[:, None]
            return Point(x[:, 0], x[:, 1:]) if effects else Point(np.zeros(n), x)

        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            here = unpack(x)
            with np.errstate(over="ignore", invalid="ignore"):
                loss, G = block.loss.value_and_gradient(here.dense())
                value = loss + block.trace * block.cone.penalty(here)
                slope = 2.0 * (G @ here.W + block.trace * block.cone.penalty_gradient(here.W))
                if effects:
                    slope = np.column_stack([2.0 * G.sum(axis=1), slope])
            if not np.isfinite(value):
                return 1e300, np.zeros_like(x)
            return value, (slope / s[:, None]).ravel()

        first = np.column_stack([point.v, point.W]) if effects else point.W
        options = {"maxiter": self.descent_steps, "maxfun": 2 * self.descent_steps, "maxcor": 20, "ftol": 1e-15, "gtol": 0.0}
        found = minimize(objective, (first * s[:, None]).ravel(), jac=True, method="L-BFGS-B", options=options)
        return unpack(found.x)


class Splitting:
    """Alternating directions between the cone and the entrywise loss with its lower limit on X.

    ``X1 = P(X2 - U)``, ``X2 = argmin loss + rho/2 |S(X2 - X1 - U)S|^2``, ``U += X1 - X2``; the residual of
    the projection is a matrix of the dual cone.
    """

    check_every = 10
    relaxation = 1.6

    def __init__(self, block: Block, point: Point) -> None:
        self.block = block
        assert block.lower is not None
        self.lower = block.lower
        s = block.cone.s
        self.weight = np.outer(s, s) ** 2
        curvature = block.loss.curvature(block.start().dense())
        self.rho = 0.3 * float(curvature.sum() / self.weight.sum())
        self.X2 = point.dense() + block.lift(point.dense())
        self.U = np.zeros_like(self.X2)
        self.residual = np.zeros_like(self.X2)
        self._arrive(point)

    def _arrive(self, point: Point) -> None:
        self.point = self.block.lifted(point)
        self.value = self.block.objective(self.point)

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
        before, self.X2 = self.X2, block.loss.proximal(relaxed + self.U, self.rho * self.weight, self.lower)
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


METHODS: dict[str, type[Method]] = {
    "projected-gradient": ProjectedGradient,
    "accelerated": Accelerated,
    "factored": Factored,
    "splitting": Splitting,
}


def solve(
    problem: Problem,
    method: str = "auto",
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callback | None = None,
    start: Any = None,
) -> Solution:
    """Solve a convex problem to a certified relative gap.

    Parameters
    ----------
    problem : Problem
        Made by :func:`symmetric`.
    method : {"auto", "projected-gradient", "accelerated", "factored", "splitting"}
        "splitting" is for ``loss="mse-paper"`` and only for it; "auto" chooses.
    tol : float
        Stop when the certified relative gap is at or below it.
    max_iter : int
        Most steps of the method (per connected component).
    callback : callable, optional
        Called with an :class:`Iterate` after every step; returning True stops the solve, keeping the best point.
    start : Solution, array-like of shape (n, n) or pair (v, W), optional
        Warm start.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(30, 0.2, 0.8)
    >>> solution = cvxnmf.solve(cvxnmf.symmetric(A, trace="auto"), tol=1e-6)
    >>> bool(solution.certificate.relative_gap <= 1e-6)
    True
    """
    names = _fitting_methods(problem)
    validation.choice("method", method, ("auto", *METHODS))
    if method != "auto" and method not in names:
        validation.refuse(
            f"method={method!r} cannot solve loss={problem.loss_name!r}; choose {' or '.join(map(repr, names))} or 'auto'."
        )
    tol = validation.number("tol", tol, minimum=0.0)
    max_iter = validation.integer("max_iter", max_iter, minimum=1)
    given = None if start is None else validation.starting_point(start, problem.size)
    run = _Run(problem, METHODS[names[0] if method == "auto" else method], tol, max_iter, callback)
    with spectra.single_thread(problem.size):
        for block in problem.blocks:
            run.solve_block(block, _block_start(block, given))
        return run.solution()


def path(problem: Problem, traces: Sequence[Any], **options: Any) -> list[Solution]:
    """Solve the problem for each trace weight, each solve started from the last solution.

    Parameters
    ----------
    problem : Problem
        Made by :func:`symmetric`; its own trace is not used.
    traces : sequence of float or "auto"
        Trace weights, best in decreasing order.
    **options
        Passed on to :func:`solve`.

    Returns
    -------
    list of Solution

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(30, 0.2, 0.8)
    >>> [s.rank for s in cvxnmf.path(cvxnmf.symmetric(A), [100.0, 6.0])]
    [0, 1]
    """
    solutions: list[Solution] = []
    start = options.pop("start", None)
    for trace in traces:
        solutions.append(solve(problem.with_trace(trace), start=start, **options))
        start = solutions[-1]
    return solutions


def _fitting_methods(problem: Problem) -> list[str]:
    """Methods that can solve the problem, the best first."""
    if problem.blocks[0].lower is not None:
        return ["splitting"]
    if not problem.blocks[0].cone.free_effects:  # solutions of high rank: the factors do not pay
        return ["accelerated", "factored", "projected-gradient"]
    return ["factored", "accelerated", "projected-gradient"]


def _block_start(block: Block, given: Point | FloatArray | None) -> Point:
    """The start of one block: the user's where it is usable, else the model without positions."""
    if given is None:
        return block.start()
    if isinstance(given, Point):
        point = given.restricted(block.nodes)
        if not block.cone.free_effects and point.v.any():
            point = block.cone.project(np.maximum(point.dense(), -1e6))
    else:
        point = block.cone.project(np.maximum(given[np.ix_(block.nodes, block.nodes)], -1e6))
    return point if np.isfinite(block.objective(point)) else block.start()


@dataclass
class _Run:
    """One solve: the loop, its clock and history, and the best point and bound of each block."""

    problem: Problem
    method: type[Method]
    tol: float
    max_iter: int
    callback: Callback | None
    history: list[Iterate] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    duals: list[Dual | None] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)
    value_before: float = 0.0
    bound_before: float = 0.0

    def solve_block(self, block: Block, start: Point) -> None:
        """Run the method on one block until its gap is certified."""
        search = _Search(self.problem, block, self.method(block, start))
        interrupted = Status.INTERRUPTED in self.statuses
        status = Status.INTERRUPTED if interrupted else self._loop(search)
        self.points.append(search.tidy_point(self.tol))
        self.duals.append(search.dual)
        self.statuses.append(status)
        self.value_before += search.value
        self.bound_before += search.bound

    def _loop(self, search: _Search) -> Status:
        """The one loop: step, certify now and then, record, stop."""
        search.certify()
        due = search.method.check_every
        iteration = 0
        try:
            while search.relative_gap > self.tol:
                if iteration == self.max_iter:
                    return Status.MAX_ITER
                iteration += 1
                search.method.step()
                if not search.accept():
                    return Status.NONFINITE
                if iteration >= due or iteration == self.max_iter:
                    search.certify()
                    due = iteration + max(search.method.check_every, iteration // 10)
                if self._record(search):
                    return Status.INTERRUPTED
                if search.stalled:
                    return Status.STALLED
        except KeyboardInterrupt:
            search.certify()
            return Status.INTERRUPTED
        return Status.OPTIMAL

    def _record(self, search: _Search) -> Any:
        """Add a line to the history and tell the callback; its answer stops the loop."""
        self.history.append(
            Iterate(
                iteration=len(self.history) + 1,
                seconds=time.perf_counter() - self.began,
                value=self.value_before + search.method.value,
                bound=self.bound_before + search.bound,
                rank=search.method.point.W.shape[1],
            )
        )
        return self.callback is not None and self.callback(self.history[-1]) is True

    def solution(self) -> Solution:
        """Join the blocks; the value is computed at the joined point."""
        n, blocks = self.problem.size, self.problem.blocks
        v, groups = np.full(n, -np.inf), np.full(n, -1)
        W = np.zeros((n, sum(point.W.shape[1] for point in self.points)))
        column, value = 0, 0.0
        for number, (block, point) in enumerate(zip(blocks, self.points, strict=True)):
            rank = point.W.shape[1]
            v[block.nodes], groups[block.nodes] = point.v, number
            W[block.nodes, column : column + rank] = point.W
            column += rank
            value += block.objective(point)
        return Solution(
            v=v,
            W=W,
            status=_worst(self.statuses),
            certificate=certificates.assemble(self.problem, value, self.duals),
            history=tuple(self.history),
            n_iter=len(self.history),
            groups=groups if len(blocks) > 1 else None,
        )


class _Search:
    """The state of one block: the method at work, the best point and the best proved bound."""

    patience = 5

    def __init__(self, problem: Problem, block: Block, method: Method) -> None:
        self.problem, self.block, self.method = problem, block, method
        self.point, self.value = method.point, method.value
        self.dual: Dual | None = None
        self.idle, self.gap_before = 0, np.inf

    @property
    def bound(self) -> float:
        """Best proved bound so far; 0 is always one."""
        return 0.0 if self.dual is None else self.dual.bound

    @property
    def relative_gap(self) -> float:
        """Gap of the best point to the best bound."""
        return (self.value - self.bound) / max(self.value, NEGLIGIBLE * self.block.loss.scale)

    @property
    def stalled(self) -> bool:
        """Whether several certificates in a row brought nothing."""
        return self.idle >= self.patience

    def accept(self) -> bool:
        """Keep the method's point if it is the best so far; False if it is not finite."""
        if not np.isfinite(self.method.value):
            return False
        if self.method.value < self.value:
            self.point, self.value = self.method.point, self.method.value
        return True

    def certify(self) -> None:
        """Balance the effects of the method's point, and keep the better value and bound."""
        block, point = self.block, self.method.point
        X = point.dense()
        if block.cone.free_effects and block.lower is None:
            effects = certificates.balancing_effects(block, X)
            point = Point(point.v + effects, point.W)
            X += np.add.outer(effects, effects)
            value = block.objective(point, X)
            if value <= self.value + 1e-14 * abs(self.value):  # equal but for rounding: prefer matched row sums
                self.point, self.value = point, value
        dual = certificates.dual_point(self.problem, block, X, self.method.multiplier())
        if dual is not None and dual.bound > self.bound:
            self.dual = dual
        gap = self.value - self.bound
        moved = self.gap_before - gap > 1e-15 * block.loss.scale
        self.idle, self.gap_before = 0 if moved else self.idle + 1, gap

    def tidy_point(self, tol: float) -> Point:
        """The best point in tidy factors, without columns that do not matter at this tolerance."""
        block, point = self.block, self.block.cone.tidied(self.point)
        weights = np.sum((block.cone.s[:, None] * point.W) ** 2, axis=0)
        short = Point(point.v, point.W[:, weights > NEGLIGIBLE_COLUMN * weights.max(initial=0.0)])
        allowed = max(self.value, NEGLIGIBLE * block.loss.scale) * tol * 0.01
        fits = block.lower is None and block.objective(short) <= self.value + min(allowed, self.value - self.bound)
        return short if fits else point


def _worst(statuses: Sequence[Status]) -> Status:
    """The status of the whole: that of the block that fared worst."""
    order = [Status.OPTIMAL, Status.STALLED, Status.MAX_ITER, Status.INTERRUPTED, Status.NONFINITE]
    return max(statuses, key=order.index)
