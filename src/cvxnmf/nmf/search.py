"""The search of :func:`cvxnmf.factorize`: descents from several deterministic starts, and from exchanged columns of the best."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates import Certificate
from cvxnmf.convex.coarsening import LARGEST_WHOLE
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf import initialise
from cvxnmf.nmf.data import DataMatrix
from cvxnmf.nmf.descent import Run, Stopping, descend
from cvxnmf.nmf.losses import LOSSES
from cvxnmf.nmf.starts import starting_point
from cvxnmf.results import Factorization, Level, Status
from cvxnmf.results.status import keep_best

Factors = tuple[FloatArray, FloatArray]

#: Convex problems of up to this many rows are solved for a start.
LARGEST_CONVEX = 1500
#: Pairs of columns that are exchanged in vain before a run is left, and the most exchanges of a run.
EXCHANGED_PAIRS, EXCHANGES = 4, 20
#: Residuals of up to this many entries are looked at as a whole.
LARGEST_RESIDUAL = 20_000_000


class Search:
    """Descents from several starts, and the best of them; `data` are what the descents work on, A what certificates speak of."""

    def __init__(self, data: DataMatrix, A: Any, k: int, loss: str, symmetric: bool, stopping: Stopping) -> None:
        self.data, self.A, self.k, self.loss, self.symmetric, self.stopping = data, A, k, loss, symmetric, stopping
        self.runs: list[Run] = []  # the best ones, in the order of their values
        self.stopped = False
        self.start_levels: tuple[Level, ...] = ()

    @property
    def best(self) -> Run:
        """The best run so far."""
        return self.runs[0]

    def run(self, given: Any = None) -> None:
        """Descend from the given start, or from all of ours, and then exchange columns of the best."""
        with keep_best(self._best_with):
            if given is not None:
                self.descend(starting_point(self.data, self.k, given, self.symmetric))
                return
            for start in self._starts():
                self.descend(start())
                if self.stopped:
                    return
            if self._may_exchange():
                for run in list(self.runs):
                    self._exchange_columns(run)

    def descend(self, start: Factors) -> Run:
        """Descend from one start to the end, and remember the run if it is among the best."""
        U, V = (np.ascontiguousarray(X, dtype=np.float64) for X in start)
        run = descend(self.data, (U, V), "hals", self.loss, self.symmetric, stopping=self.stopping)
        count = LOSSES[self.loss].exchanged_runs if self.data.in_memory else 1
        self.runs = sorted([*self.runs, run], key=lambda run: run.value)[:count]
        self.stopped = run.status is Status.INTERRUPTED
        return run

    def _best_with(self, current: Any) -> Factorization:
        """The best of all runs and the one that was broken off."""
        runs = [run.factorization() for run in self.runs[:1]] + ([] if current is None else [current])
        best: Factorization = min(runs, key=lambda run: run.value)
        return dataclasses.replace(best, status=Status.INTERRUPTED)

    def levels(self, certificate: Certificate) -> tuple[Level, ...]:
        """What is proved on which level, if there are several."""
        last = Level(self.data.shape[0], f"nonnegative factors with {self.k} columns", certificate)
        return (*self.start_levels, last) if self.start_levels else ()

    def _starts(self) -> Iterator[Callable[[], Factors]]:
        """Deterministic starts, no single one of which is reliable everywhere; made one at a time, since they are large."""
        A, k = self.data.matrix, self.k
        if self.symmetric:
            yield from self._symmetric_starts()
        elif self.data.in_memory and 1 < k and k >= min(A.shape):
            yield lambda: _exact(A, k)
        else:
            yield lambda: initialise.nndsvd(A, k)
            if 1 < k < min(A.shape):
                yield lambda: initialise.successive_projection(A, k)
                yield lambda: initialise.standing_columns(A, k)
                if self.data.in_memory:  # many passes over the data
                    yield lambda: initialise.merge(A, k, 1.5)
                    yield lambda: initialise.merge(A, k, 2.0)

    def _symmetric_starts(self) -> Iterator[Callable[[], Factors]]:
        """Eigenvectors and the convex solution, of a large graph that of groups of its nodes."""
        A, k = self.data.matrix, self.k
        grouped = sp.issparse(A) and k > 1 and A.shape[0] > LARGEST_CONVEX
        if not grouped or A.shape[0] <= LARGEST_WHOLE:
            yield lambda: initialise.eigen_nndsvd(A, k)
        if grouped:
            yield self._grouped_start
        elif not sp.issparse(A) and len(A) <= LARGEST_CONVEX and k > 1:
            yield lambda: initialise.convex(A, k, symmetric=True)

    def _grouped_start(self) -> Factors:
        U, solution = initialise.in_groups(self.data.matrix, self.k)
        groups = solution.certificate.statement["groups"]
        self.start_levels = (Level(groups, "convex models with positions of groups: the start", solution.certificate),)
        return U, U

    def _may_exchange(self) -> bool:
        """Whether columns can be exchanged: the residual is looked at as a whole."""
        shape, k = self.data.shape, self.k
        small = np.prod(shape, dtype=np.float64) <= LARGEST_RESIDUAL
        return bool(self.data.in_memory and not self.symmetric and 1 < k < min(shape) and small)

    def _exchange_columns(self, run: Run) -> None:
        """Exchange a column and descend again, as long as that helps."""
        A, choice = self.data.matrix, 0
        full = A.toarray() if sp.issparse(A) else A
        for _ in range(EXCHANGES):
            if self.stopped or choice == EXCHANGED_PAIRS:
                return
            following = self.descend(initialise.exchange_columns(full, run.U, run.V, choice))
            better = following.value < run.value * (1.0 - 1e-6)
            run, choice = (following, 0) if better else (run, choice + 1)


def _exact(A: Any, k: int) -> Factors:
    """The data next to the identity."""
    dense = np.asarray(A.toarray() if sp.issparse(A) else A)
    m, n = dense.shape
    U, V = (dense, np.eye(n)) if n <= m else (np.eye(m), dense.T)
    return tuple(np.pad(side, ((0, 0), (0, k - side.shape[1]))) for side in (U, V))  # type: ignore[return-value]
