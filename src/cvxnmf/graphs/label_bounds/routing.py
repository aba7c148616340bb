"""The bound by routing demands along edges, for sparse graphs: edge lengths are prices that rise where routes crowd.

See `certificates.label_routing` for the bound. Every pass routes all demands along shortest paths, a turn of the nodes at a
time; the price of an edge then grows with what its load exceeds its capacity by, and falls where there is room. The average of
the routings of the later passes is the proof.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.label_routing import Routing, edges_of
from cvxnmf.certificates.pair_objectives import Integers, PairObjective
from cvxnmf.graphs.label_bounds.budget import Budget, LabelWitness
from cvxnmf.graphs.multilevel import Labels
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

#: Passes, and turns of the nodes within a pass.
PASSES, TURNS = 40, 20
#: Of how many last passes an average is tried.
WINDOWS = (1, 4, 8)
#: Size of the first price steps; prices of edges inside clusters and between them at first.
STEP, INSIDE, BETWEEN = 0.1, 0.1, 0.9
#: No price is lower; every edge's own small share on top leaves no two paths equally long.
PRICE, APART = 2.0**-8, 1e-3
#: Visited edges that count as a unit of work.
VISITS_PER_UNIT = 3e4
#: Parts of the averaged routing that are tried.
SHARES = np.linspace(0.3, 1.0, 71)


class Network(NamedTuple):
    """Network for routing: neighbours of every node in compressed rows, and the numbers of the edges to them."""

    indptr: Integers
    indices: Integers
    numbers: Integers


def network_of(n: int, i: Integers, j: Integers, numbers: Integers) -> Network:
    """The network for routing along edges with these ends and numbers."""
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    table = sp.csr_array(sp.coo_array((np.tile(numbers + 1, 2), ends), shape=(n, n)))  # no number is 0, which would not be kept
    return Network(table.indptr.astype(np.int64), table.indices.astype(np.int64), table.data.astype(np.int64) - 1)


def best_share(capacity: FloatArray, load: FloatArray, routed: float) -> tuple[float, float]:
    """The share of a routing that gives the lowest ``sum max(capacity, share load) - share routed``, and this bound."""
    totals = [float(np.maximum(capacity, share * load).sum()) - share * routed for share in SHARES]
    place = int(np.argmin(totals))
    return float(SHARES[place]), totals[place]


class _Pass(NamedTuple):
    """One pass of routing: the edge lengths by turns, the loads, and the amount routed."""

    lengths: Any
    load: FloatArray
    routed: float


class Router:
    """Router of demands: prices and passes for one quality; the best routing so far stays at hand.

    Parameters
    ----------
    objective : PairObjective
        The quality.
    labels : ndarray of int, shape (n,)
        A good partition: edges between its clusters are dear at first.
    budget : Budget
        Work that may be spent.
    """

    def __init__(self, objective: PairObjective, labels: Labels, budget: Budget) -> None:
        self.objective, self.budget, self.edges = objective, budget, edges_of(objective)
        self.network = network_of(objective.n, self.edges.i, self.edges.j, np.arange(len(self.edges.i)))
        self.usable, self.half_demands = self.edges.capacity > 0, 0.5 * self.edges.demand
        self.sizes, self.beta = objective.sizes.astype(np.float64), float(objective.beta)
        self.alone = float(objective.diagonal().sum()) / objective.scale
        self.turns = np.arange(objective.n) % TURNS
        self.prices = np.where(labels[self.edges.i] != labels[self.edges.j], BETWEEN, INSIDE)
        self.apart = 1.0 + APART * (np.arange(len(self.prices)) * 0.6180339887498949 % 1.0)
        self.passes: list[_Pass] = []
        self.best: Routing | None = None
        self.bound = np.inf

    def run(self, target: float) -> None:
        """Route pass after pass until the bound on the sum of L is at the target, or the passes or the budget are spent."""
        if not self.edges.capacity.any():
            return
        for number in range(PASSES):
            self._pass(STEP / np.sqrt(1.0 + number))
            self._keep_best()
            if self.budget.exhausted or self.bound <= target:
                return

    def _pass(self, step: float) -> None:
        """Route all demands once, a turn of the nodes at a time, and change the prices after each."""
        load, routed, lengths = np.zeros(len(self.prices)), 0.0, np.empty((TURNS, len(self.prices)), dtype=np.float32)
        for turn in range(TURNS):
            lengths[turn] = self.prices * self.apart
            part = np.zeros_like(load)
            paths = self.network, self.usable, lengths[turn].astype(np.float64)
            demands = self.half_demands, self.sizes, self.beta
            amount, visits = _route(np.flatnonzero(self.turns == turn), paths, demands, part)
            load += part
            routed += amount
            self.budget.spend(1.0 + visits / VISITS_PER_UNIT)
            self._change_prices(TURNS * part, step)
        self.passes.append(_Pass(lengths, load, routed))

    def _change_prices(self, load: FloatArray, step: float) -> None:
        """Change routing prices: dearer where the load exceeds the capacity, cheaper where it does not."""
        capacity = self.edges.capacity
        excess = (load - capacity) / np.maximum(capacity, 0.05 * float(capacity.mean()))
        self.prices = np.clip(self.prices + step * excess, PRICE, 1.0)

    def _keep_best(self) -> None:
        """Keep the average routing of the last passes, as many and in such a share as give the lowest bound."""
        del self.passes[: -max(WINDOWS)]
        for count in (one for one in WINDOWS if one <= len(self.passes)):
            window = self.passes[-count:]
            load, routed = np.mean([one.load for one in window], axis=0), float(np.mean([one.routed for one in window]))
            share, total = best_share(self.edges.capacity, load, routed)
            bound = (self.alone + 2 * total) * float(self.objective.scale)
            if bound < self.bound:
                self.bound, self.best = bound, Routing(self.turns, np.stack([one.lengths for one in window]), share)
        self.budget.report(self.bound)

    def witnesses(self) -> list[LabelWitness]:
        """Witnesses of the label bound: the best routing, if there is one yet."""
        return [] if self.best is None else [("routing", self.best._asdict())]


@compile_with(nogil=True, error_model="numpy")
def _route(sources: Any, paths: Any, demands: Any, load: Any) -> Any:
    """Route half the demands of some nodes, added to `load`; the amount routed, and the number of edges visited.

    `paths` are the network, the edges that may be used, and their lengths; `demands` half the demands of adjacent pairs, and the
    sizes and their factor, whose products are those of all others.
    """
    (indptr, indices, numbers), (half_demands, sizes, beta) = paths[0], demands
    n = len(sizes)
    distance, parent, by, order = np.full(n, np.inf), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    settled, amounts = np.zeros(n, np.bool_), np.zeros(n)
    routed, visits = 0.0, 0
    for i in sources:
        count, seen = _grow_tree(i, paths, (distance, parent, by, order, settled))
        visits += seen
        for q in range(1, count):
            amounts[order[q]] = 0.5 * beta * sizes[i] * sizes[order[q]]
        for p in range(indptr[i], indptr[i + 1]):
            if settled[indices[p]]:
                amounts[indices[p]] = half_demands[numbers[p]]
        amounts[i] = 0.0
        for q in range(1, count):
            routed += amounts[order[q]]
        for q in range(count - 1, 0, -1):
            v = order[q]
            load[by[v]] += amounts[v]
            amounts[parent[v]] += amounts[v]
        for q in range(count):
            v = order[q]
            distance[v], amounts[v], settled[v] = np.inf, 0.0, False
    return routed, visits


@compile_with(nogil=True, error_model="numpy")
def _grow_tree(source: int, paths: Any, tree: Any) -> Any:
    """Routing tree of shortest paths below 1 from a node: how many nodes they reach, in their order, and edges visited."""
    (indptr, indices, numbers), usable, lengths = paths
    distance, parent, by, order, settled = tree
    count, visits, heap = 0, 0, [(0.0, source)]
    distance[source] = 0.0
    while len(heap) > 0:
        d, u = heapq.heappop(heap)
        if settled[u]:
            continue
        settled[u] = True
        order[count] = u
        count += 1
        visits += indptr[u + 1] - indptr[u]
        for p in range(indptr[u], indptr[u + 1]):
            v = indices[p]
            longer = d + lengths[numbers[p]]
            if usable[numbers[p]] and longer < distance[v] and longer < 1.0:
                distance[v], parent[v], by[v] = longer, u, numbers[p]
                heapq.heappush(heap, (longer, v))
    return count, visits
