"""Two ways from a graph to its clusters: the convex problem of all nodes, or of groups of nodes where there are many.

Both answer the same questions: what stands out of the noise, the solution of the convex problem, its clusters.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np

from cvxnmf import validation
from cvxnmf.convex.coarsening import (
    FIRST_DIRECTIONS,
    MOST_DIRECTIONS,
    Coarse,
    coarsened,
    directions_at_least,
    divided,
    floored_noise_level,
)
from cvxnmf.convex.noise import Noise, degree_metric, modularity_pairs
from cvxnmf.convex.solve import solve
from cvxnmf.convex.symmetric import symmetric
from cvxnmf.graphs.clusters import Clusters, Graph, canonical_order, clustered, without_empty
from cvxnmf.graphs.refine import polished
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import Interrupted, Iterate, Point, Solution

#: If more than this share of all directions stands out of the noise, there is none to speak of.
NOISELESS_SHARE = 0.25
#: Eigenvalues that are kept for looking at, beyond those above the noise.
SHOWN = 20
#: Shares of the time that the stages on a large graph take, about.
STAGES = {"directions": 0.5, "groups": 0.1, "convex problem": 0.1, "clusters": 0.3}

Callback = Callable[[Iterate], Any] | None


class Way(Protocol):
    """How a graph is partitioned."""

    level: Noise
    spectrum: FloatArray

    def solved(self, terms: dict[str, Any], options: dict[str, Any]) -> Solution:
        """The solution of the convex problem with these terms, on all nodes."""

    def clusters(self, solution: Solution, k: int, above_noise: int, refine: bool, hasty: bool) -> Clusters:
        """The clusters that the solution gives."""


class AllNodes:
    """Every node has a position of its own.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Symmetric adjacency matrix.
    k : int or None
        Number of clusters, if it is known.
    """

    def __init__(self, A: Any, k: int | None) -> None:
        self.A = A
        with single_thread():
            self.level, self.spectrum, self.directions = self._leading(0 if k is None else k)

    def _leading(self, k: int) -> tuple[Noise, FloatArray, FloatArray]:
        """The noise of the graph, never below rounding, and leading eigenpairs of its modularity matrix in the degree metric.

        Vectors are those of positions, ``S^-1`` times eigenvectors, weighted by the roots of their eigenvalues.
        """
        kept = np.flatnonzero(self.A.sum(axis=1))
        part = self.A[kept][:, kept].tocsr()
        s = degree_metric(np.asarray(part.sum(axis=1)).ravel())
        level, count = floored_noise_level(part, s), k + SHOWN
        while True:
            spectrum, vectors = modularity_pairs(part, s, min(count, len(kept)))
            if count >= len(kept) or spectrum[-1] <= level.edge:
                directions = np.zeros((self.A.shape[0], len(spectrum)))
                directions[kept] = vectors / s[:, None] * np.sqrt(np.maximum(spectrum, 0.0))
                return _plausible(level, spectrum, len(kept)), spectrum, directions
            count *= 2

    def solved(self, terms: dict[str, Any], options: dict[str, Any]) -> Solution:
        """The solution of the convex problem."""
        return solve(symmetric(self.A, **terms), **options)

    def clusters(self, solution: Solution, k: int, above_noise: int, refine: bool, hasty: bool) -> Clusters:
        """Clusters of the positions, improved by the likelihood."""
        W = positions(solution, self.directions, k)
        with single_thread():
            return clustered(self.A, W, k, self.level.dispersion, above_noise, refine, hasty)


def _plausible(level: Noise, spectrum: FloatArray, n: int) -> Noise:
    """The noise, or where almost nothing looks like it (smooth similarities) what lies below the widest gap of the spectrum."""
    above = spectrum[spectrum > level.edge]
    if len(above) <= NOISELESS_SHARE * n or len(above) < 3:
        return level
    leading = above[: max(3, int(np.sqrt(n)))]
    gap = int(np.argmax(leading[:-1] / leading[1:]))
    edge = float(np.sqrt(leading[gap] * leading[gap + 1]))
    return level._replace(edge=edge, dispersion=(edge / level.unit_edge) ** 2)


def positions(solution: Solution, directions: FloatArray, k: int) -> FloatArray:
    """Positions around their mean, the heaviest directions only; separate components apart.

    Where the solution has none, because what they add is below its tolerance, they are those that would enter first: the
    leading directions of the modularity matrix.
    """
    if solution.rank == 0:
        return directions[:, : k - 1]
    present = np.isfinite(solution.v)
    W = np.where(present[:, None], solution.W, 0.0)
    W = W - np.where(present[:, None], W[present].mean(axis=0), 0.0)
    if solution.groups is None:
        _, weights, turned = np.linalg.svd(W, full_matrices=False)
        heavy = int(np.count_nonzero(weights > 1e-9 * max(weights.max(initial=0.0), 1e-9)))
        return np.asarray(W @ turned[: min(heavy, 2 * k)].T)
    apart = 2.0 * (1.0 + np.abs(W).max(initial=0.0))
    return np.column_stack([W, apart * (solution.groups[:, None] == np.unique(solution.groups)[None, :])])


class InGroups:
    """Nodes share positions in groups of near ones; clusters are then improved on the graph itself.

    Nodes with edges are taken in an order that does not depend on their names.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Symmetric adjacency matrix.
    k : int or None
        Number of clusters, if it is known.
    n_groups : int
        Number of groups.
    callback : callable, optional
        Told about every step of every stage.
    """

    def __init__(self, A: Any, k: int | None, n_groups: int, callback: Callback) -> None:
        self.n, self.n_groups, self.progress = A.shape[0], n_groups, _Progress(callback, A.shape[0])
        self.kept = np.flatnonzero(np.diff(A.indptr))
        self.part = A if len(self.kept) == self.n else A[self.kept][:, self.kept].tocsr()
        self.s = degree_metric(np.asarray(self.part.sum(axis=1)).ravel())
        with single_thread():
            self.order = canonical_order(self.part, self.s * self.s, np.zeros((len(self.kept), 0)))
            self.level = floored_noise_level(self.part, self.s)
            self.spectrum, self.positions = self._leading(k)

    @cached_property
    def ordered(self) -> Any:
        """The graph on nodes with edges, in canonical order."""
        return self.part[self.order][:, self.order].tocsr()

    def _leading(self, k: int | None) -> tuple[FloatArray, FloatArray]:
        """Leading eigenvalues of the modularity matrix, and positions in those directions, in canonical order."""
        s, wanted = self.s[self.order], 0 if k is None else k - 1
        most = min(MOST_DIRECTIONS + 1, max(1, len(s) // 2))
        count = min(FIRST_DIRECTIONS if k is None else k + 1, most)
        heard = lambda step: self.progress.tell("directions", step / 6)  # noqa: E731
        while True:
            values, vectors = directions_at_least(self.ordered, s, self.level.edge, count, wanted, heard)
            if k is not None or len(values) < count or count == most:
                return values, vectors / s[:, None] * np.sqrt(np.maximum(values, 0.0))
            count = min(2 * count, most)

    @cached_property
    def coarse(self) -> Coarse:
        """The graph and its groups."""
        self.progress.tell("groups", 0.0)
        with single_thread():
            weights = self.s[self.order] ** 2
            groups = np.empty(len(self.kept), dtype=np.intp)
            groups[self.order] = divided(self.positions, weights, self.n_groups)
            return coarsened(self.part, self.s, groups)

    def solved(self, terms: dict[str, Any], options: dict[str, Any]) -> Solution:
        """The solution with positions of groups, on all nodes."""
        heard = self.progress.heard("convex problem")
        try:
            solution = self.coarse.solution(terms["trace"], **options | {"callback": heard})
        except Interrupted as stopped:
            raise Interrupted(self._with_bare_nodes(cast(Solution, stopped.solution))) from None
        self.progress.last = solution.certificate
        return self._with_bare_nodes(solution)

    def _with_bare_nodes(self, solution: Solution) -> Solution:
        """A solution on all nodes, those without edges too."""
        v, W = np.full(self.n, -np.inf), np.zeros((self.n, solution.W.shape[1]))
        v[self.kept], W[self.kept] = solution.v, solution.W
        return dataclasses.replace(solution, point=Point(v, W))

    def clusters(self, solution: Solution, k: int, above_noise: int, refine: bool, hasty: bool) -> Clusters:
        """Clusters of the groups, then of the nodes."""
        coarse, unit = self.coarse, self.level.dispersion
        first = np.unique(coarse.groups, return_index=True)[1]
        on_groups = dataclasses.replace(
            solution, point=Point(solution.v[self.kept][first], solution.W[self.kept][first]), groups=None
        )
        back = np.empty_like(self.order)
        back[self.order] = np.arange(len(back))
        W = positions(on_groups, self.positions[back][first], k)
        with single_thread():
            count = min(k, len(coarse.metric))
            found = clustered(coarse.sums, W, count, unit, above_noise, refine, hasty or self.progress.stopped)
            labels = found.labels[coarse.groups]
            q = np.pad(found.memberships[coarse.groups], ((0, 0), (0, k - count)))
            if k > 1 and refine and not (hasty or self.progress.stopped):
                heard = lambda share: self.progress.tell("clusters", share)  # noqa: E731
                labels, q, filled = polished(Graph(self.ordered, unit), labels[self.order], k, heard)
                found = found._replace(filled=max(found.filled, filled))
                labels, q = labels[back], q[back]
            elif count < k:
                labels, q, _ = without_empty(Graph(self.part, unit), q, k)
        return self._on_all_nodes(found._replace(labels=labels, memberships=q), k)

    def _on_all_nodes(self, found: Clusters, k: int) -> Clusters:
        """Clusters by decreasing size; nodes without edges belong to all in proportion to their sizes."""
        sizes = np.bincount(found.labels, minlength=k)
        rank = np.argsort(-sizes, kind="stable")
        labels, q = np.zeros(self.n, dtype=np.intp), np.tile(sizes[rank] / sizes.sum(), (self.n, 1))
        labels[self.kept], q[self.kept] = np.argsort(rank)[found.labels], found.memberships[:, rank]
        return Clusters(labels, q, found.filled)


class _Progress:
    """Tells a callback about stages, and how much of the whole is done."""

    def __init__(self, callback: Callback, n: int) -> None:
        validation.callback(callback)
        self.callback, self.n, self.began, self.count, self.stopped = callback, n, time.perf_counter(), 0, False
        self.last: Any = None

    def heard(self, stage: str) -> Callback:
        """A callback for a stage that speaks of its own iterates."""
        return lambda iterate: self.tell(stage, None, iterate)

    def tell(self, stage: str, share: float | None, iterate: Iterate | None = None) -> bool:
        """Tell of a stage of which this share is done, None if nobody can tell; whether the work shall stop, now or before."""
        if self.callback is None:
            return False
        self.count += 1
        names = list(STAGES)
        done = sum(STAGES[name] for name in names[: names.index(stage)]) + STAGES[stage] * min(share or 0.0, 1.0)
        done = 0.0 if share is None else min(done, 0.99)
        value, bound = (np.nan, np.nan) if self.last is None else (self.last.value, self.last.bound)
        at = Iterate(self.count, 0.0, value, bound, 0) if iterate is None else iterate
        words = f"{stage} of {self.n:,} nodes"
        seconds = time.perf_counter() - self.began
        answer = self.callback(dataclasses.replace(at, iteration=self.count, seconds=seconds, stage=words, share=done))
        self.stopped = self.stopped or bool(answer)
        return self.stopped
