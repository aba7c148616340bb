"""The search of :func:`cvxnmf.factorize`: a race, or descents from a few deterministic starts, and the best run of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates import Certificate
from cvxnmf.convex.coarsening import LARGEST_WHOLE
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf import initialise
from cvxnmf.nmf.contender import Contender, Stopped
from cvxnmf.nmf.data_matrix import DataMatrix, MemoryMatrix
from cvxnmf.nmf.descent import Run, Stopping, descend
from cvxnmf.nmf.initialise import Factors
from cvxnmf.nmf.loss_names import find_loss
from cvxnmf.nmf.progress import with_place
from cvxnmf.nmf.race import Race
from cvxnmf.nmf.starts import starting_point
from cvxnmf.results import Factorization, Iterate, Level, Status
from cvxnmf.results.status import keep_best

#: Convex problems of up to this many rows are solved for a start.
LARGEST_CONVEX = 1500


class Search:
    """The search of factorize, descents from several starts; descents work on `data`, certificates speak of A."""

    def __init__(self, data: DataMatrix, A: Any, k: int, loss: str, stopping: Stopping) -> None:
        self.data, self.A, self.k, self.loss, self.symmetric, self.stopping = data, A, k, loss, data.symmetric, stopping
        self.runs: list[Run] = []  # the best ones, in the order of their values
        self.stopped = False
        self.start_levels: tuple[Level, ...] = ()

    @property
    def best(self) -> Run:
        """The best run of the search so far."""
        return self.runs[0]

    def run(self, given: Any = None) -> None:
        """Search from the user's start, or by a race or descents from our own starts."""
        with keep_best(self._best_with), single_thread(), np.errstate(all="ignore"):
            if given is not None:
                self.descend(starting_point(self.data, self.k, given, self.symmetric))
            elif self._may_race():
                self._race(self.data)  # type: ignore[arg-type]  # data in memory
            else:
                starts = list(self._starts())
                for number, start in enumerate(starts):
                    self.descend(start(), (number, len(starts)))
                    if self.stopped:
                        return

    def descend(self, start: Factors, place: tuple[int, int] = (0, 1)) -> Run:
        """Descend in the search from one start, of so many, to the end, and keep the run if it is the best."""
        stopping = self.stopping._replace(callback=with_place(self.stopping.callback, self._place(*place)))
        U, V = (np.ascontiguousarray(X, dtype=np.float64) for X in start)
        return self._keep(descend(self.data, (U, V), "hals", self.loss, self.symmetric, stopping=stopping))

    def _place(self, number: int, count: int) -> Callable[[Iterate], tuple[str, float]]:
        """Which start of the search takes a step, and the share of all steps that are done at most."""
        return lambda iterate: (
            f"start {number + 1} of {count}",
            (number + iterate.iteration / self.stopping.max_iter) / count,
        )

    def tell_bound(self, certificate: Certificate) -> None:
        """Tell the callback of the search the bound that was proved."""
        if self.stopping.callback is not None and not self.stopped and certificate.bound > 0:
            steps = len(self.best.history)
            seconds = self.best.history[-1].seconds if steps else 0.0
            self.stopping.callback(Iterate(steps, seconds, self.best.value, certificate.bound, self.k, "proved", 1.0))

    def _keep(self, run: Run) -> Run:
        """Keep the run in the search if it is the best."""
        self.runs = sorted([*self.runs, run], key=lambda run: run.value)[:1]
        self.stopped = run.status is Status.INTERRUPTED
        return run

    def _may_race(self) -> bool:
        """Whether the search can be a race: in memory, not symmetric, and of a rank between one and full."""
        return self.data.in_memory and not self.symmetric and 1 < self.k < min(self.data.shape)

    def _race(self, data: MemoryMatrix) -> None:
        """The winner of a race on the search's data, the longer side as rows."""
        wide = data.shape[0] < data.shape[1]
        race = Race(data.transpose() if wide else data, self.k, find_loss(self.loss), self.stopping)

        def finish(contender: Contender, status: Status) -> Run:
            run = contender.result(status)
            return run._replace(U=run.V, V=run.U) if wide else run

        def best_so_far(inner: Any) -> Factorization | None:
            return None if race.best is None else finish(race.best, Status.INTERRUPTED).factorization()

        with keep_best(best_so_far):
            try:
                winner = race.run()
                self._keep(finish(winner, winner.status))
            except Stopped:
                assert race.best is not None
                self._keep(finish(race.best, Status.INTERRUPTED))

    def _best_with(self, current: Any) -> Factorization | None:
        """The best of all runs of the search and the one that was broken off; None before the first."""
        runs = [run.factorization() for run in self.runs[:1]] + ([] if current is None else [current])
        if not runs:
            return None
        best: Factorization = min(runs, key=lambda run: run.value)
        return dataclasses.replace(best, status=Status.INTERRUPTED)

    def levels(self, certificate: Certificate) -> tuple[Level, ...]:
        """Certificates of the levels of a search from groups of nodes, if there are several."""
        last = Level(self.data.shape[0], f"nonnegative factors with {self.k} column{'' if self.k == 1 else 's'}", certificate)
        return (*self.start_levels, last) if self.start_levels else ()

    def _starts(self) -> Iterator[Callable[[], Factors]]:
        """Deterministic starts of a search without a race; made one at a time, since they are large."""
        A, k = self.data.matrix, self.k
        if self.symmetric:
            yield from self._symmetric_starts()
        elif self.data.in_memory and 1 < k:
            yield lambda: _exact(A, k)
        else:
            yield lambda: initialise.nndsvd(A, k)
            if 1 < k < min(A.shape):
                yield lambda: initialise.successive_projection(A, k)
                yield lambda: initialise.standing_columns(A, k)

    def _symmetric_starts(self) -> Iterator[Callable[[], Factors]]:
        """Starts of a symmetric search: eigenvectors and the convex solution, of a large graph that of groups of nodes."""
        A, k = self.data.matrix, self.k
        grouped = sp.issparse(A) and k > 1 and A.shape[0] > LARGEST_CONVEX
        if not grouped or A.shape[0] <= LARGEST_WHOLE:
            yield lambda: initialise.eigen_nndsvd(A, k)
        if grouped:
            yield self._grouped_start
        elif self.data.in_memory and not sp.issparse(A) and len(A) <= LARGEST_CONVEX and k > 1:
            yield lambda: initialise.convex(A, k, symmetric=True)

    def _grouped_start(self) -> Factors:
        U, solution = initialise.in_groups(self.data.matrix, self.k)
        groups = solution.certificate.statement["groups"]
        self.start_levels = (Level(groups, "convex models with positions of groups: the start", solution.certificate),)
        return U, U


def _exact(A: Any, k: int) -> Factors:
    """The exact factors of a search where the rank reaches a side: the data and the identity, padded with zero columns."""
    dense = np.asarray(A.toarray() if sp.issparse(A) else A)
    m, n = dense.shape
    U, V = (dense, np.eye(n)) if n <= m else (np.eye(m), dense.T)
    return tuple(np.pad(side, ((0, 0), (0, k - side.shape[1]))) for side in (U, V))  # type: ignore[return-value]
