"""Solving the convex problems: one loop drives every method, and a certificate decides when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgError

from cvxnmf import validation
from cvxnmf.certificates import NEGLIGIBLE, relative_gap
from cvxnmf.convex.certify import assemble
from cvxnmf.convex.component import Component
from cvxnmf.convex.dual import Dual
from cvxnmf.convex.matrix_free import LARGEST_FALLBACK
from cvxnmf.convex.methods import METHODS, Method
from cvxnmf.convex.problem import Problem
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import Interrupted, Iterate, Solution, Status
from cvxnmf.results.status import keep_best
from cvxnmf.typing import MatrixLike

Callback = Callable[[Iterate], Any]

FROM_BEST_TO_WORST = (Status.OPTIMAL, Status.STALLED, Status.MAX_ITER, Status.INTERRUPTED, Status.NONFINITE)


def solve(
    problem: Problem,
    method: str = "auto",
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callback | None = None,
    start: Solution | MatrixLike | None = None,
    precision: str = "double",
) -> Solution:
    """Solve a convex problem to a certified relative gap.

    Parameters
    ----------
    problem : Problem
        Made by :func:`symmetric`, :func:`nonsymmetric` or :func:`sparse`.
    method : {"auto", "projected-gradient", "accelerated", "factored", "adaptive", "splitting"}
        "auto" takes the first of ``problem.methods``, which lists what can solve the problem: "adaptive", which finds out in its
        first steps what fits; but "factored" for large sparse data and for ``loss="mse-paper"``, "splitting" for that loss on
        the psd cone. docs/solving.md tells what each of them does.
    tol : float
        Stop when the certified relative gap ``(value - bound) / value`` is at or below it; values below a billionth
        of the data's scale count as that much.
    max_iter : int
        Most steps of the method, for each connected component that is solved apart.
    callback : callable, optional
        Called with an :class:`Iterate` after every step; a true answer stops the solve, keeping the best point.
    start : Solution, array-like of the problem's shape or pair (v, W), optional
        Warm start. It is projected on the cone, and not used where the method's own start is better.
    precision : {"double", "single"}
        "single" lets the first descent on large sparse data work in single precision, which is faster and good for gaps down to
        about 1e-4; what follows, and every certificate, is in double precision.

    Returns
    -------
    Solution

    Raises
    ------
    Interrupted
        On Ctrl-C; a KeyboardInterrupt whose `solution` is the best answer so far.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(30, 0.2, 0.8)
    >>> solution = cvxnmf.solve(cvxnmf.symmetric(A, trace="auto"), tol=1e-6)
    >>> bool(solution.certificate.relative_gap <= 1e-6)
    True
    """
    validation.require_problem(problem, Problem)
    validation.callback(callback)
    names = problem.methods
    validation.choice("method", method, ("auto", *METHODS))
    if method != "auto" and method not in names:
        validation.refuse(f"method={method!r} cannot solve this problem; choose {' or '.join(map(repr, names))} or 'auto'.")
    tol = validation.number("tol", tol, minimum=0.0)
    max_iter = validation.integer("max_iter", max_iter, minimum=1)
    given = None if start is None else problem.starting_point(start)
    multiplier = problem.starting_multiplier(start)
    single = validation.choice("precision", precision, ("double", "single")) == "single"
    name = names[0] if method == "auto" else method
    problem = problem.for_method(name, single)
    run = _Run(problem, name, tol, max_iter, callback)
    with (
        single_thread(problem.size, problem.components[0].threads_from),
        np.errstate(all="ignore"),  # values are tested for being finite
        keep_best(lambda _: run.best_so_far()),
    ):
        for component in problem.components:
            run.solve_component(component, given, multiplier)
        solution = run.solution()
    if solution.status is Status.STALLED and problem.matrix_free and problem.size <= LARGEST_FALLBACK:
        return solve(problem.dense(), "adaptive", tol, max_iter, callback, solution)  # its dual points are stronger
    return solution


def path(problem: Problem, traces: Sequence[float | Literal["auto"]], **options: Any) -> list[Solution]:
    """Solve the problem for each trace weight, each solve started from the last solution.

    Parameters
    ----------
    problem : Problem
        Made by :func:`symmetric`, :func:`nonsymmetric` or :func:`sparse`; its own trace is not used.
    traces : sequence of float or "auto"
        Trace weights; in decreasing order each start is a model of too low a rank, which is soon mended.
    **options
        Passed on to :func:`solve`; `start` is for the first one.

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
    validation.require_problem(problem, Problem)
    if isinstance(traces, str) or not isinstance(traces, Iterable):
        validation.refuse(f"traces must be a sequence of numbers such as [5.0, 2.0, 1.0], not {traces!r}.")
    solutions: list[Solution] = []
    start = options.pop("start", None)
    for trace in traces:
        try:
            solutions.append(solve(problem.with_trace(trace), start=start, **options))
        except Interrupted as stopped:
            stopped.finished = solutions
            raise
        start = solutions[-1]
    return solutions


@dataclass
class _Run:
    """One solve of a convex problem: the loop, its clock and history, and the best point and bound of each component."""

    problem: Problem
    method: str
    tol: float
    max_iter: int
    callback: Callback | None
    history: list[Iterate] = field(default_factory=list)
    points: list[Any] = field(default_factory=list)
    duals: list[Dual | None] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)
    value_before: float = 0.0
    bound_before: float = 0.0
    search: _Search | None = None

    def solve_component(self, component: Component[Any], given: Any, multiplier: FloatArray | None) -> None:
        """Run the method on one component of the solve until its gap is certified."""
        self.search = _Search(component, iter(component.methods[self.method](component, component.start(given))), self.tol)
        if multiplier is not None:
            self.search.method.take_multiplier(multiplier)
        stopped = Status.INTERRUPTED in self.statuses
        try:
            if component.certifies_start:
                self.search.certify()
            self._finish(Status.INTERRUPTED if stopped else self._loop(self.search))
        except LinAlgError:  # eigensolvers do not survive infinities
            self._finish(Status.NONFINITE)

    def _finish(self, status: Status, tidy: bool = True) -> None:
        """Keep the point and dual point of a component's solve; after an interrupt the factors are not tidied, to save time."""
        assert self.search is not None
        del self.search.method, self.search.schedule  # their arrays are not needed any more, the room is
        self.points.append(self.search.tidy_point() if tidy else self.search.point)
        self.duals.append(self.search.dual)
        self.statuses.append(status)
        self.value_before += self.search.value
        self.bound_before += self.search.bound
        self.search = None

    def best_so_far(self) -> Solution:
        """The best answer when the solve is interrupted: components not reached keep their start."""
        if self.search is not None:
            self.search.accept()  # the point that the interrupted step had reached
            self._finish(Status.INTERRUPTED, tidy=False)
        for component in self.problem.components[len(self.points) :]:
            self.points.append(component.start())
            self.duals.append(None)
            self.statuses.append(Status.INTERRUPTED)
        return self.solution()

    def _loop(self, search: _Search) -> Status:
        """The one loop of all solves: step, certify now and then, record, stop."""
        due = usual = search.method.check_every
        iteration = certified = 0
        while search.relative_gap > self.tol:
            if iteration == self.max_iter:
                return Status.MAX_ITER
            iteration += 1
            search.step()
            if not search.accept():
                return Status.NONFINITE
            if search.method.gives_up:
                return Status.STALLED
            if usual != search.method.check_every:  # another method is at work
                usual = search.method.check_every
                due = max(iteration + 1, certified + usual)
            if iteration >= due or iteration == self.max_iter or search.promises(self.tol):
                gap = search.relative_gap
                search.certify()
                due, certified = iteration + self._wait(search, iteration, iteration - certified, gap), iteration
            if self._record(search):
                search.certify()
                return Status.INTERRUPTED
            if search.stalled:
                return Status.STALLED
        return Status.OPTIMAL

    def _wait(self, search: _Search, iteration: int, waited: int, gap_before: float) -> int:
        """Steps of the solve until the next certificate: by the rate since the last one, at most twice `check_every`."""
        usual = max(search.method.check_every, search.method.check_every * iteration // 80)
        gap = search.relative_gap
        if not self.tol < gap < gap_before:
            return usual
        predicted = waited * np.log(gap / self.tol) / np.log(gap_before / gap) if self.tol else np.inf
        return int(np.clip(np.ceil(predicted), 1, 2 * usual))

    def _record(self, search: _Search) -> bool:
        """Add a line to the history of the solve and tell the callback; a true answer stops the loop."""
        value, bound = self.value_before + search.method.value, self.bound_before + search.bound
        seconds, rank = time.perf_counter() - self.began, search.component.rank(search.method.point)
        self.history.append(Iterate(len(self.history) + 1, seconds, value, bound, rank))
        return self.callback is not None and bool(self.callback(self.history[-1]))

    def solution(self) -> Solution:
        """Join the components of the solve; the value is that of the joined point, and the status the worst of all."""
        point, groups = self.problem.join_points(self.points)
        value = sum(component.value(part) for component, part in zip(self.problem.components, self.points, strict=True))
        certificate, status = assemble(self.problem, value, self.duals), max(self.statuses, key=FROM_BEST_TO_WORST.index)
        seconds = time.perf_counter() - self.began
        return Solution(point, status, certificate, tuple(self.history), len(self.history), seconds, groups)


class _Search:
    """The state of the solve on one component: the method at work, the best point and the best proved bound."""

    def __init__(self, component: Component[Any], schedule: Iterator[Method], tol: float) -> None:
        self.component, self.schedule, self.tol = component, schedule, tol
        self.method = next(schedule)
        self.method.aim = tol
        self.point, self.value = self.method.point, self.method.value
        self.dual: Dual | None = None
        self.idle, self.gap_before, self.distance_then = 0, np.inf, np.nan

    @property
    def bound(self) -> float:
        """Best proved bound of the solve on a component so far, at least 0."""
        return 0.0 if self.dual is None else self.dual.bound

    @property
    def relative_gap(self) -> float:
        """Relative gap of the best point to the best bound in the solve on a component."""
        return relative_gap(self.value, self.bound, self.component.scale)

    @property
    def expected_gap(self) -> float:
        """The gap that a certificate would show now in the solve, as far as the method knows."""
        return relative_gap(self.value, self.method.expected_bound, self.component.scale)

    def promises(self, gap: float) -> bool:
        """Whether a certificate would show the gap now in the solve, as the method's expected bound or distance tells.

        The gap is proportional to the distance far from the optimum and to its square nearby; the exponent 3/2 is assumed.
        """
        then, here = self.distance_then, self.relative_gap
        is_near = 0.0 < then < np.inf and here > 0.0 and self.method.distance <= then * (gap / here) ** (2.0 / 3.0)
        return bool(self.expected_gap <= gap or is_near)

    def step(self) -> None:
        """One step of the solve by the method at work; the schedule says which one takes the next."""
        self.method.step()
        self.method = next(self.schedule)
        self.method.aim = self.tol

    @property
    def stalled(self) -> bool:
        """Whether the solve stalls: as many certificates in a row as the method's patience allows have not lowered the gap."""
        return self.idle >= self.method.patience

    def accept(self) -> bool:
        """Keep the method's point in the solve if it is the best so far; False if it is not finite."""
        if not np.isfinite(self.method.value):
            return False
        if self.method.value < self.value:
            self.point, self.value = self.method.point, self.method.value
        return True

    def certify(self) -> None:
        """Balance the effects of the method's point, and keep the better value and bound."""
        method = self.method
        self.distance_then = method.distance
        method.settle()
        self.accept()
        candidate = None if method.gradient_proves_more and self.expected_gap > self.tol else method.dual_candidate()
        point, value, dual = self.component.certify(method.point, method.value, candidate)
        if value <= self.value + 1e-14 * abs(self.value):  # equal but for rounding: prefer matched margins
            self.point, self.value = point, value
        self.keep(dual)
        gap = self.value - self.bound
        moved = self.gap_before - gap > 1e-15 * self.component.scale
        self.idle, self.gap_before = 0 if moved else self.idle + 1, gap

    def keep(self, dual: Dual | None) -> None:
        """Keep a dual point in the solve that proves more than the best so far."""
        if dual is not None and dual.bound > self.bound:
            self.dual = dual

    def tidy_point(self) -> Any:
        """The best point of the solve in tidy factors, without columns that do not matter at the tolerance."""
        unit = max(self.value, NEGLIGIBLE * self.component.scale)
        limit = max(self.value, min(self.value + 0.01 * self.tol * unit, self.bound + self.tol * unit))
        return self.component.tidy(self.point, limit)
