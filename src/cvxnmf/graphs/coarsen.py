"""Large graphs: groups of near nodes share a position in the convex problem, and labels are refined on the graph itself."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.certificates import Certificate
from cvxnmf.convex.coarsening import MOST_DIRECTIONS, Coarsening, coarsen, group_near_points, leading_positions
from cvxnmf.graphs.block_model import Clusters, PlantedPartition
from cvxnmf.graphs.description_length import DescribedGraph
from cvxnmf.graphs.embedding import Embedding, centred_positions
from cvxnmf.graphs.order import canonical_order, in_order
from cvxnmf.graphs.refinement import Refinement, cluster_positions, refine_labels
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import Iterate, Point, Solution
from cvxnmf.results.status import keep_best

#: Shares of the time that the stages on a large graph take, about.
STAGES = {"directions": 0.5, "groups": 0.1, "convex problem": 0.1, "clusters": 0.3}

Callback = Callable[[Iterate], Any] | None


class GroupEmbedding(Embedding):
    """Coarsened embedding of a large graph: nodes that are near in the leading directions share a position.

    Nodes with edges are taken in canonical order, so that their names do not matter. The number k of clusters is None if it is
    not known; the callback is told about every step of every stage.
    """

    def __init__(self, A: sp.csr_array, k: int | None, n_groups: int, callback: Callback) -> None:
        self.n_groups, self.progress = n_groups, Progress(callback, A.shape[0])
        super().__init__(A)
        with single_thread():
            self.order = canonical_order(self.part, self.s * self.s)
            most = min(max(MOST_DIRECTIONS, k or 0) + 1, max(1, len(self.kept) // 2))
            s = self.s[self.order]
            self.spectrum, self.directions = leading_positions(
                self.ordered_graph, s, self.noise.edge, k, most, self._tell_direction
            )

    def _tell_direction(self, step: int) -> bool:
        return self.progress.tell("directions", step / 6)

    @cached_property
    def ordered_graph(self) -> sp.csr_array:
        """The large graph on nodes with edges, in canonical order."""
        return in_order(self.part, self.order)

    @cached_property
    def coarse(self) -> Coarsening:
        """The coarsened graph: groups of nodes near in the leading directions."""
        self.progress.tell("groups", 0.0)
        with single_thread():
            groups = np.empty(len(self.kept), dtype=np.intp)
            groups[self.order] = group_near_points(self.directions, self.s[self.order] ** 2, self.n_groups)
            return coarsen(self.part, self.s, groups)

    def solve(self, terms: dict[str, Any], options: dict[str, Any]) -> Solution:
        """The solution of the convex problem with positions of groups, on all nodes."""
        options = options | {"callback": lambda iterate: self.progress.tell("convex problem", None, iterate)}
        with keep_best(lambda solution: solution and self._on_all_nodes(solution)):
            solution = self.coarse.solve(terms["trace"], **options)
        self.progress.certificate = solution.certificate
        return self._on_all_nodes(solution)

    def _on_all_nodes(self, solution: Solution) -> Solution:
        """A solution of a coarsened graph on all nodes, those without edges too."""
        v, W = np.full(self.A.shape[0], -np.inf), np.zeros((self.A.shape[0], solution.W.shape[1]))
        v[self.kept], W[self.kept] = solution.v, solution.W
        return dataclasses.replace(solution, point=Point(v, W))

    def clusters(self, solution: Solution, k: int, refinement: Refinement) -> Clusters:
        """K clusters of a coarsened graph's groups, refined as clusters of the nodes."""
        groups, dispersion = self.coarse.groups, self.noise.dispersion
        refinement = Refinement.QUICK if self.progress.stopped else refinement
        with single_thread():
            count = min(k, len(self.coarse.metric))
            W = self._group_positions(solution, k)
            sums = DescribedGraph(self.coarse.found.pairs, False, dispersion)
            found = cluster_positions(sums, W, count, self.above_noise, refinement).by_size().of_nodes(groups)
            if refinement is Refinement.LIKELIHOOD and k > 1:
                report = partial(self.progress.tell, "clusters")
                graph = DescribedGraph(self.ordered_graph, False, dispersion)
                refined = refine_labels(graph, found.labels[self.order], k, report)
                found = refined.of_nodes(np.argsort(self.order))._replace(n_filled=max(found.n_filled, refined.n_filled))
            elif count < k:
                q = np.pad(found.memberships, ((0, 0), (0, k - count)))
                found = PlantedPartition(self.part, dispersion).label_all(q)._replace(n_filled=found.n_filled)
        return self._with_isolated_nodes(found.by_size())

    def _group_positions(self, solution: Solution, k: int) -> FloatArray:
        """Positions of the groups of a coarsened graph: those of the first node of each."""
        first = np.unique(self.coarse.groups, return_index=True)[1]
        point = Point(solution.v[self.kept][first], solution.W[self.kept][first])
        return centred_positions(
            dataclasses.replace(solution, point=point, groups=None), self.directions[np.argsort(self.order)][first], k
        )

    def _with_isolated_nodes(self, found: Clusters) -> Clusters:
        """Clusters of all nodes: those without edges belong to all clusters in proportion to their sizes."""
        sizes = np.bincount(found.labels, minlength=found.memberships.shape[1])
        labels, q = np.zeros(self.A.shape[0], dtype=np.intp), np.tile(sizes / sizes.sum(), (self.A.shape[0], 1))
        labels[self.kept], q[self.kept] = found.labels, found.memberships
        return Clusters(labels, q, found.n_filled)


class Progress:
    """Progress of work on a coarsened graph of n nodes: stages and shares told to a callback; a true answer stops it."""

    def __init__(self, callback: Callback, n: int) -> None:
        validation.callback(callback)
        self.callback, self.n, self.began, self.count, self.stopped = callback, n, time.perf_counter(), 0, False
        self.certificate: Certificate | None = None

    def tell(self, stage: str, share: float | None, iterate: Iterate | None = None) -> bool:
        """Tell of a stage of which this share is done, None if unknown; whether the work shall stop, now or before."""
        if self.callback is None:
            return False
        self.count += 1
        earlier = sum(list(STAGES.values())[: list(STAGES).index(stage)])
        done = 0.0 if share is None else min(earlier + STAGES[stage] * min(share, 1.0), 0.99)
        if iterate is None:
            value, bound = (self.certificate.value, self.certificate.bound) if self.certificate else (np.nan, np.nan)
            iterate = Iterate(self.count, 0.0, value, bound, 0)
        seconds, words = time.perf_counter() - self.began, f"{stage} of {self.n:,} nodes"
        answer = self.callback(dataclasses.replace(iterate, iteration=self.count, seconds=seconds, stage=words, share=done))
        self.stopped = self.stopped or bool(answer)
        return self.stopped
