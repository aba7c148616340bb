"""The bound by packing conflicted cycles, for large signed graphs.

A pair of weight below 0 and a path of pairs of weight above 0 between its nodes contradict each other: a partition loses the
least of their weights, and cycles that share no weight add up. The cycle along ``v_0, ..., v_L`` is the sum of the triangles
``x_{0,t} + x_{t,t+1} - x_{0,t+1} <= 1``, in which all chords cancel.

Cycles with exactly one pair that a good partition contradicts come first, since an optimal packing for an optimal partition has
no others; within these, short ones.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from cvxnmf.certificates.label_cuts import Cuts
from cvxnmf.certificates.pair_objectives import Integers, PairObjective
from cvxnmf.graphs.label_bounds.budget import Budget, LabelWitness
from cvxnmf.graphs.label_bounds.routing import network_of
from cvxnmf.graphs.label_bounds.separation import cuts_witness, make_triangles
from cvxnmf.graphs.multilevel import Labels
from cvxnmf.linalg.compiled import compile_with

#: Longest paths of a search, in turn.
LENGTHS = (2, 3, 4, 6, 10, 20)
#: Visited edges that count as a unit of work.
VISITS_PER_UNIT = 1e5


class CyclePacking:
    """Packing of conflicted cycles: cycles with multipliers that share no weight.

    Parameters
    ----------
    objective : PairObjective
        The quality, of which pairs without an entry weigh nothing.
    labels : ndarray of int, shape (n,)
        A good partition.
    budget : Budget
        Work that may be spent.
    """

    def __init__(self, objective: PairObjective, labels: Labels, budget: Budget) -> None:
        self.objective, self.labels, self.budget = objective, labels, budget
        off = objective.rows < objective.columns
        self.i, self.j, weights = objective.rows[off], objective.columns[off], objective.edges()[off]
        self.left = np.abs(weights)
        self.network = network_of(objective.n, self.i[weights > 0], self.j[weights > 0], np.flatnonzero(weights > 0))
        self.demands = np.flatnonzero(weights < 0)
        self.bound = float(objective.diagonal().sum()) + 2.0 * float(np.maximum(weights, 0).sum())
        self.paths: list[Integers] = []
        self.amounts: list[int] = []

    def run(self, target: float) -> None:
        """Pack cycles until the bound on the sum of L is at the target, no cycle is left or the budget is spent."""
        one_cluster = np.zeros_like(self.labels)
        for labels, length in itertools.product((self.labels, one_cluster), LENGTHS):
            self._pack(labels, length)
            self.budget.report(self.bound)
            if self.budget.exhausted or self.bound <= target:
                return

    def _pack(self, labels: Labels, length: int) -> None:
        """Pack cycles of at most `length` and one edges, crossing from cluster to cluster once on each way at most."""
        open_ones = self.demands[self.left[self.demands] > 0]
        ends = self.i[open_ones], self.j[open_ones]
        visits = int(self.budget.left * VISITS_PER_UNIT)
        nodes, starts, amounts, spent = _pack_paths(*ends, open_ones, self.network, labels, self.left, length, visits)
        self.budget.spend(1.0 + spent / VISITS_PER_UNIT)
        self.paths += np.split(nodes, starts[1:-1]) if len(amounts) else []
        self.amounts += amounts.tolist()
        self.bound -= 2.0 * float(amounts.sum())

    def cuts(self) -> Cuts:
        """The triangle cuts of all packed cycles, with their multipliers."""
        triples = [np.stack([path[1:-1], np.full(len(path) - 2, path[0]), path[2:]], axis=1) for path in self.paths]
        nodes = np.concatenate(triples) if triples else np.zeros((0, 3), dtype=np.int64)
        multipliers = np.repeat(np.array(self.amounts, dtype=np.int64), [len(one) for one in triples])
        return make_triangles(nodes)._replace(multipliers=multipliers)

    def witnesses(self) -> list[LabelWitness]:
        """Witnesses of the label bound: the cycles packed so far."""
        return [("cuts", cuts_witness(self.cuts()))]


@compile_with(nogil=True)
def _pack_paths(
    sources: Any, targets: Any, demands: Any, network: Any, labels: Any, left: Any, length: int, most_visits: int
) -> Any:
    """Pack paths of cycles: each with the weight that it takes from its pairs (from `left`, too), and the edges visited."""
    n = len(labels)
    seen, parent, by, queue = np.full(n, -1), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    nodes, starts, amounts = [np.int64(0)], [np.int64(1)], [np.int64(0)]
    visits, stamp = 0, 0
    for d in range(len(demands)):
        while left[demands[d]] > 0 and visits < most_visits:
            stamp += 1
            found, more = _find_path(sources[d], targets[d], network, labels, left, length, stamp, (seen, parent, by, queue))
            visits += more
            if not found:
                break
            amount, v = left[demands[d]], targets[d]
            while v != sources[d]:
                amount, v = min(amount, left[by[v]]), parent[v]
            left[demands[d]] -= amount
            v = targets[d]
            while v != sources[d]:
                left[by[v]] -= amount
                nodes.append(v)
                v = parent[v]
            nodes.append(v)
            starts.append(np.int64(len(nodes)))
            amounts.append(amount)
    return np.array(nodes)[1:], np.array(starts) - 1, np.array(amounts)[1:], visits


@compile_with(nogil=True)
def _find_path(source: int, target: int, network: Any, labels: Any, left: Any, length: int, stamp: int, search: Any) -> Any:
    """Path of a cycle to pack, breadth first, through clusters of the two nodes only and without return to the first one."""
    (indptr, indices, numbers), (seen, parent, by, queue) = network, search
    here, there = labels[source], labels[target]
    queue[0], first, last, visits = source, 0, 1, 0
    seen[source] = stamp
    for _ in range(length):
        level_end = last
        while first < level_end:
            u = queue[first]
            first += 1
            visits += indptr[u + 1] - indptr[u]
            for p in range(indptr[u], indptr[u + 1]):
                v = indices[p]
                allowed = labels[v] == there or (labels[v] == here and labels[u] == here)
                if allowed and seen[v] != stamp and left[numbers[p]] > 0:
                    seen[v], parent[v], by[v] = stamp, u, numbers[p]
                    if v == target:
                        return True, visits
                    queue[last] = v
                    last += 1
    return False, visits
