"""The bound by routing demands along edges, for large sparse graphs: edge lengths are prices that rise where routes crowd.

See `certificates.label_routing` for the bound. Every pass routes all demands along shortest paths, a turn of the nodes at a
time; the price of an edge then grows with what its load exceeds its capacity by, and falls where there is room. The average of
the routings of the later passes is the proof.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxnmf.certificates.label_routing import Routing
from cvxnmf.certificates.pair_objectives import PairObjective
from cvxnmf.graphs.label_bounds.budget import Budget
from cvxnmf.graphs.multilevel import Labels, labels_at_resolution
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

#: Up to this much work for trees in the whole graph (nodes times edges), demands are routed anywhere; beyond it inside regions.
WHOLE = 1e8
#: Passes, and turns within a pass, if demands are routed anywhere; the same inside regions.
PASSES, TURNS, REGION_PASSES, REGION_TURNS = 40, 20, 6, 4
#: Of how many last passes an average is tried.
WINDOWS = (1, 4, 8)
#: Size of the first price steps, by the same two ways.
STEP, REGION_STEP = 0.1, 0.03
#: What a load inside a region may exceed a capacity by, in capacities, and still move the price.
STEEPEST = 9.0
#: No price is lower; every edge's own small share on top leaves no two paths equally long.
PRICE, APART = 2.0**-8, 1e-3
#: Visited edges that count as a unit of work.
VISITS_PER_UNIT = 3e4
#: Parts of the averaged routing that are tried.
SHARES = np.linspace(0.3, 1.0, 71)


class _Network(NamedTuple):
    """Edges of positive weight in compressed rows, with their numbers; entries of adjacent pairs of any weight."""

    indptr: Labels
    indices: Labels
    numbers: Labels
    usable: Any
    half_demands: FloatArray


class Router:
    """Prices and passes for one quality; the best routing so far stays at hand.

    Parameters
    ----------
    objective : PairObjective
        The quality.
    labels : ndarray of int, shape (n,)
        A good partition: edges between its clusters are dear at first, and its connected parts are the regions of a large graph.
    budget : Budget
        Work that may be spent.
    """

    def __init__(self, objective: PairObjective, labels: Labels, budget: Budget) -> None:
        self.objective, self.budget = objective, budget
        off = objective.rows < objective.columns
        self.i, self.j = objective.rows[off], objective.columns[off]
        values = objective.edges()[off] / objective.scale
        self.capacity = np.maximum(values, 0.0)
        self.network = _network(objective.n, self.i, self.j, values)
        self.sizes, self.beta = objective.sizes.astype(np.float64), float(objective.beta)
        self.alone = float(objective.diagonal().sum()) / objective.scale
        self.anywhere = float(objective.n) * len(self.i) <= WHOLE
        self.regions = np.zeros(objective.n, dtype=np.int64) if self.anywhere else self._find_regions(labels)
        self.turns = np.arange(objective.n) % (TURNS if self.anywhere else REGION_TURNS)
        between = labels[self.i] != labels[self.j] if self.anywhere else np.zeros(len(self.i), dtype=bool)
        self.prices = np.where(between, 0.9, 0.1 if self.anywhere else 0.2)
        self.apart = 1.0 + APART * (np.arange(len(self.i)) * 0.6180339887498949 % 1.0)
        self.volumes = np.bincount(self.regions, weights=self.sizes)
        self.flows = self._first_flows()
        self.passes: list[tuple[FloatArray, FloatArray, FloatArray, float]] = []
        self.best: Routing | None = None
        self.bound = np.inf

    def run(self, target: float) -> None:
        """Pass after pass until the bound on the sum of L is at the target, or the passes or the budget are spent."""
        if not self.capacity.any():
            return
        for number in range(PASSES if self.anywhere else REGION_PASSES):
            self._pass(number)
            self._keep_best()
            if self.budget.exhausted or self.bound <= target:
                return

    def _find_regions(self, labels: Labels) -> Labels:
        """Connected parts of clusters, of a finer partition if trees in these would be too large."""
        usable = self.capacity > 0
        for share in (1.0, 3.0, 10.0, 30.0, 100.0):
            labels = labels if share == 1.0 else labels_at_resolution(self.objective, share)
            inside = usable & (labels[self.i] == labels[self.j])
            graph = sp.csr_array((inside[inside], (self.i[inside], self.j[inside])), shape=(self.objective.n, self.objective.n))
            regions = connected_components(graph, directed=False)[1].astype(np.int64)
            nodes, edges = np.bincount(regions), np.bincount(regions[self.i[inside]], minlength=regions.max() + 1)
            if float(nodes @ edges) <= 10 * WHOLE:
                break
        return np.asarray(regions)

    def _first_flows(self) -> FloatArray:
        """Flows between regions up to capacity and demand."""
        flows = np.where(self.regions[self.i] != self.regions[self.j], self.capacity, 0.0)
        return self._within_demand(flows)

    def _within_demand(self, flows: FloatArray) -> FloatArray:
        """Flows scaled down where those between two regions exceed their demand."""
        used = np.flatnonzero(flows > 0)
        a, b = self.regions[self.i[used]], self.regions[self.j[used]]
        _, place = np.unique(np.minimum(a, b) * len(self.volumes) + np.maximum(a, b), return_inverse=True)
        total = np.bincount(place, weights=flows[used])[place] if len(used) else np.zeros(0)
        scaled = np.zeros_like(flows)
        scaled[used] = flows[used] * np.minimum(1.0, self.beta * self.volumes[a] * self.volumes[b] / np.maximum(total, 1e-300))
        return scaled

    def _pass(self, number: int) -> None:
        """Route everything once, a turn of the nodes at a time, and change the prices after each."""
        n, m, turns = self.objective.n, len(self.i), int(self.turns.max()) + 1
        load, routed, used = np.zeros(m), 0.0, np.empty((turns, m))
        carried = np.bincount(self.i, weights=self.flows, minlength=n) + np.bincount(self.j, weights=self.flows, minlength=n)
        depth = np.zeros(n)
        step = (STEP if self.anywhere else REGION_STEP) / np.sqrt(1.0 + number)
        for turn in range(turns):
            used[turn] = (self.prices * self.apart).astype(np.float32)
            sources = np.flatnonzero(self.turns == turn)
            part = np.zeros(m)
            amount, visits = _route(
                sources, *self.network, used[turn], self.regions, self.sizes, self.volumes, self.beta, carried, part, depth
            )
            load += part
            routed += amount
            self.budget.spend(1.0 + visits / VISITS_PER_UNIT)
            self._change_prices(turns * part, step)
        load += self.flows
        routed += self._routed_between()
        self.passes.append((used, self.flows, load, routed))
        self._change_flows(depth, step)

    def _change_prices(self, load: FloatArray, step: float) -> None:
        """Dearer where the load exceeds the capacity, cheaper where it does not."""
        typical = float(self.capacity.mean())
        excess = (load - self.capacity) / np.maximum(self.capacity, 0.05 * typical)
        self.prices = np.clip(self.prices + step * (excess if self.anywhere else np.minimum(excess, STEEPEST)), PRICE, 1.0)

    def _change_flows(self, depth: FloatArray, step: float) -> None:
        """Move flows between regions towards all there is room for where routes cost less than 1, to none elsewhere."""
        if self.anywhere:
            return
        worthwhile = (self.regions[self.i] != self.regions[self.j]) & (depth[self.i] + depth[self.j] < 1.0)
        full = self._within_demand(np.where(worthwhile, self.capacity, 0.0))
        self.flows = self.flows + min(1.0, 2.0 * step) * (full - self.flows)

    def _routed_between(self) -> float:
        """What the flows carry less the part of adjacent pairs."""
        outside = np.flatnonzero(self.regions[self.i] != self.regions[self.j])
        if not len(outside):
            return 0.0
        a, b = self.regions[self.i[outside]], self.regions[self.j[outside]]
        _, place = np.unique(np.minimum(a, b) * len(self.volumes) + np.maximum(a, b), return_inverse=True)
        adjacent = np.bincount(place, weights=self.beta * self.sizes[self.i[outside]] * self.sizes[self.j[outside]])
        demand = np.zeros(len(adjacent))
        demand[place] = self.beta * self.volumes[a] * self.volumes[b]
        total = np.bincount(place, weights=self.flows[outside])
        return float(total.sum() - (total * adjacent / np.maximum(demand, 1e-300)).sum())

    def _keep_best(self) -> None:
        """The average of the last passes, as many and in such a share as give the lowest bound."""
        del self.passes[: -max(WINDOWS)]
        for count in (one for one in WINDOWS if one <= len(self.passes)):
            window = self.passes[-count:]
            load, routed = np.mean([one[2] for one in window], axis=0), float(np.mean([one[3] for one in window]))
            totals = [float(np.maximum(self.capacity, share * load).sum()) - share * routed for share in SHARES]
            place = int(np.argmin(totals))
            bound = (self.alone + 2 * totals[place]) * float(self.objective.scale)
            if bound < self.bound:
                self.bound = bound
                lengths: Any = np.stack([one[0] for one in window]).astype(np.float32)
                flows = np.mean([one[1] for one in window], axis=0)
                self.best = Routing(self.regions, self.turns, lengths, flows, float(SHARES[place]))
        self.budget.report(self.bound)


def _network(n: int, i: Labels, j: Labels, values: FloatArray) -> _Network:
    numbers = np.arange(len(i)) + 1
    entries = (np.tile(numbers, 2), (np.concatenate([i, j]), np.concatenate([j, i])))
    table = sp.csr_array(sp.coo_array(entries, shape=(n, n)))
    at = table.data.astype(np.int64) - 1
    return _Network(table.indptr.astype(np.int64), table.indices.astype(np.int64), at, values > 0, 0.5 * np.maximum(-values, 0.0))


@compile_with(nogil=True, error_model="numpy")
def _route(
    sources: Any,
    indptr: Any,
    indices: Any,
    numbers: Any,
    usable: Any,
    half_demands: Any,
    prices: Any,
    regions: Any,
    sizes: Any,
    volumes: Any,
    beta: float,
    carried: Any,
    load: Any,
    depth: Any,
) -> Any:
    """Route half the demands of some nodes, and what they carry for other regions, along their shortest paths.

    Loads are added to `load`; `depth` becomes the mean distance of each source to its region. Returns the amount of own demands
    that is routed, and the number of edges visited.
    """
    n = len(sizes)
    distance, parent, by = np.full(n, np.inf), np.empty(n, np.int64), np.empty(n, np.int64)
    settled, order = np.zeros(n, np.bool_), np.empty(n, np.int64)
    amounts = np.zeros(n)
    routed, visits = 0.0, 0
    for i in sources:
        limit = np.inf if carried[i] > 0.0 else 1.0
        count, heap = 0, [(0.0, i)]
        distance[i] = 0.0
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
                if settled[v] or regions[v] != regions[i] or not usable[numbers[p]]:
                    continue
                longer = d + prices[numbers[p]]
                if longer < distance[v] and longer < limit:
                    distance[v], parent[v], by[v] = longer, u, numbers[p]
                    heapq.heappush(heap, (longer, v))
        own, mean = 0.5 * beta * sizes[i], 0.0
        for q in range(1, count):
            v = order[q]
            amounts[v] = own * sizes[v] if distance[v] < 1.0 else 0.0
            mean += sizes[v] * min(distance[v], 1.0)
        depth[i] = mean / max(volumes[regions[i]], 1e-300)
        for p in range(indptr[i], indptr[i + 1]):
            v = indices[p]
            amounts[v] = half_demands[numbers[p]] if settled[v] and distance[v] < 1.0 else 0.0
        share = carried[i] / max(volumes[regions[i]], 1e-300)
        for q in range(1, count):
            routed += amounts[order[q]]
            amounts[order[q]] += share * sizes[order[q]]
        amounts[i] = 0.0
        for q in range(count - 1, 0, -1):
            v = order[q]
            load[by[v]] += amounts[v]
            amounts[parent[v]] += amounts[v]
        for q in range(count):
            v = order[q]
            distance[v], amounts[v], settled[v] = np.inf, 0.0, False
        for p in range(indptr[i], indptr[i + 1]):
            amounts[indices[p]] = 0.0
            distance[indices[p]] = np.inf
    return routed, visits
