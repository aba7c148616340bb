"""Contenders of a race: descents on a sample of the rows, or on all of them, that are left and taken up again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cvxnmf.nmf.alternating import Alternating, Objective
from cvxnmf.nmf.data_matrix import NO_PENALTY, MemoryMatrix
from cvxnmf.nmf.descent import Descent, Run
from cvxnmf.nmf.initialise import Factors
from cvxnmf.nmf.methods import METHODS, Needs
from cvxnmf.results import Status

if TYPE_CHECKING:
    from cvxnmf.nmf.race import Race


class Stopped(Exception):
    """Raised in a race when a callback has asked to stop."""


class Sample(NamedTuple):
    """A sample of the rows that contenders race on, and its share of all rows."""

    data: MemoryMatrix
    share: float

    @property
    def whole(self) -> bool:
        """Whether the sample of a race is all rows."""
        return self.share == 1.0


class Contender:
    """A descent in a race, left and taken up again; one that goes on from another has its origin.

    The first steps, as many as `wait` says, are plain ones, which keep the basin of the start.
    """

    def __init__(
        self, race: Race, sample: Sample, start: Factors, wait: int | None = None, parent: Contender | None = None
    ) -> None:
        self.race, self.sample = race, sample
        self.origin: Contender = self if parent is None else parent.origin
        self.descent = self._descent(start, wait)
        self.lifted: Contender | None = self if sample.whole else None
        self.solves_exactly = False
        if sample.whole:
            race.on_all_rows.append(self)

    def _descent(self, start: Factors, wait: int | None) -> Descent:
        rules = METHODS["hals"].make[self.race.loss.kind](Needs(racing=True))
        if wait is not None and rules.extrapolation is not None:
            rules.extrapolation.wait, rules.extrapolation.weight = wait, min(0.5, rules.extrapolation.weight)
        U, V = (np.ascontiguousarray(side, dtype=np.float64) for side in start)
        stopping = self.race.stopping if self.sample.whole else self.race.stopping._replace(callback=None)
        return Descent(Alternating(Objective(self.sample.data, self.race.loss, NO_PENALTY), rules, U, V), stopping)

    @property
    def value(self) -> float:
        """The loss of the contender on the rows of its sample."""
        return self.descent.values[-1]

    @property
    def steps(self) -> int:
        """Steps that the contender has taken so far."""
        return len(self.descent.values) - 1

    @property
    def factors(self) -> Factors:
        """The factors U and V of the contender."""
        U, V = self.descent.point
        return self.sample.data.collect(U), V

    def result(self, status: Status) -> Run:
        """The run of the contender, evaluated in the precision of the data."""
        self.descent.objective = Objective(self.race.exact, self.race.loss, NO_PENALTY)
        return self.descent.result(status)

    def run(self, steps: int, tol: float) -> bool:
        """Take up to so many steps with the contender, after `max_iter` of them as a new descent; whether that has ended."""
        limit = self.race.stopping.max_iter
        if self.steps >= limit:
            self.descent, self.solves_exactly = self._descent(self.factors, 0), False
        before = self.steps
        self.status = self.descent.advance(min(steps, limit - self.steps), max(tol, self.race.stopping.tol / 100))
        cost = self.race.effort.exact_step if self.solves_exactly else 1.0
        self.race.effort.spent += cost * self.sample.share * (self.steps - before)
        if self.status is Status.INTERRUPTED:
            raise Stopped
        return self.status is not Status.MAX_ITER

    def solve_exactly(self) -> None:
        """Go on with exact updates of V in the contender, whose rows are the shorter side of the data."""
        iteration = self.descent.iteration
        assert isinstance(iteration, Alternating)
        iteration.solve_exactly()
        self.solves_exactly = iteration.rules.exact is not None

    def predicted_decrease(self, window: int) -> float:
        """The decrease a contender can still expect if the last two windows of steps go on as a geometric series."""
        values = self.descent.values
        if len(values) <= 2 * window:
            return np.inf
        earlier, latest = values[-1 - 2 * window] - values[-1 - window], values[-1 - window] - values[-1]
        if latest <= 0:
            return 0.0
        ratio = min(latest / earlier if earlier > 0 else 0.99, 0.95)
        return latest * ratio / (1.0 - ratio)
