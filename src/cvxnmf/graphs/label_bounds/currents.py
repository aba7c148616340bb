"""The bound by currents inside regions and flows between them, for large sparse graphs.

See `certificates.label_currents` for the bound. A step lowers the conductances of edges whose load exceeds their capacity and
raises those of the others, and moves flows and own demands along the derivative of the bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxnmf.certificates.label_currents import (
    LEAST_CONDUCTANCE,
    Currents,
    carried_flows,
    demand_shares,
    find_regions,
    laplacian_inverse,
    own_amounts,
    routed_between,
    routed_inside,
)
from cvxnmf.certificates.label_routing import edges_of
from cvxnmf.certificates.pair_objectives import PairObjective
from cvxnmf.graphs.label_bounds.budget import Budget, LabelWitness
from cvxnmf.graphs.label_bounds.routing import best_share
from cvxnmf.graphs.multilevel import Labels, labels_at_resolution
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

#: Multiples of the resolution whose clusters are tried as regions, besides the partition given.
RESOLUTIONS = (1.1, 3.0, 10.0, 30.0)
#: Steps that every choice of regions gets, and all steps of the best one.
FIRST_STEPS, STEPS = 4, 14
#: Size of the first step of flows; the part of a capacity within which an edge counts as partly loaded.
STEP, WIDTH = 0.15, 0.01
#: The part of their capacities that edges between regions start with.
FIRST_FLOW = 0.8
#: Regions may need so many operations for a step, and a region have so many nodes.
MOST_OPERATIONS, MOST_NODES = 2e10, 3000
#: Operations that count as a unit of work.
OPERATIONS_PER_UNIT = 1e7


class _State(NamedTuple):
    """State of a search for currents: loads of all edges, the amount routed, and the cost of a further unit from each node."""

    load: FloatArray
    routed: float
    costs: FloatArray


class CurrentSearch:
    """Currents of growing quality for one choice of regions; the best ones so far stay at hand.

    Parameters
    ----------
    objective : PairObjective
        The quality.
    labels : ndarray of int, shape (n,)
        Clusters; their connected parts are the regions.
    """

    def __init__(self, objective: PairObjective, labels: Labels) -> None:
        self.objective, self.edges = objective, edges_of(objective)
        edges, n = self.edges, objective.n
        joined = (edges.capacity > 0) & (labels[edges.i] == labels[edges.j])
        graph = sp.csr_array((joined[joined], (edges.i[joined], edges.j[joined])), shape=(n, n))
        regions = connected_components(graph, directed=False)[1].astype(np.int64)
        self.regions = list(find_regions(edges, regions))
        self.inside = regions[edges.i] == regions[edges.j]
        self.sizes = objective.sizes.astype(np.float64)
        self.alone = float(objective.diagonal().sum()) / objective.scale
        conductances = np.clip(edges.capacity / max(float(edges.capacity.sum()) / max(len(edges.i), 1), 1e-300), 1e-3, 1e3)
        flows = np.where(self.inside, 0.0, FIRST_FLOW * edges.capacity)
        self.currents = self._within_demand(Currents(regions, conductances, flows, np.ones(n)))
        self.steps, self.bound, self.best = 0, np.inf, self.currents

    @property
    def operations(self) -> float:
        """Operations that a step of the search for currents costs."""
        return float(sum(2.0 * len(one.nodes) ** 3 + 4.0 * len(one.nodes) * len(one.inside) for one in self.regions))

    @property
    def is_small_enough(self) -> bool:
        """Whether time and memory for a step of the search for currents are within limits."""
        return self.operations <= MOST_OPERATIONS and max((len(one.nodes) for one in self.regions), default=1) <= MOST_NODES

    def run(self, steps: int, target: float, budget: Budget) -> None:
        """Improve currents in some steps, fewer if the bound on the sum of L reaches the target or the budget is spent."""
        for _ in range(steps):
            state = self._evaluate()
            self._keep_best(state)
            self._step(state)
            budget.spend(1.0 + 0.1 * len(self.regions) + self.operations / OPERATIONS_PER_UNIT)
            if self.bound <= target or budget.exhausted:
                return

    def _within_demand(self, currents: Currents) -> Currents:
        """Currents whose flows are scaled down where those between two regions exceed their demand."""
        shares, _ = demand_shares(self.objective, self.edges, currents)
        return currents._replace(flows=currents.flows / np.maximum(shares, 1.0))

    def _evaluate(self) -> _State:
        """Loads, the amount routed and costs at the present currents."""
        currents, edges, n = self.currents, self.edges, self.objective.n
        load, costs = currents.flows.copy(), np.zeros(n)
        amounts = carried_flows(edges, load, n) + own_amounts(self.objective, currents)
        for nodes, inside, i, j in self.regions:
            conductances, capacity = currents.conductances[inside], edges.capacity[inside]
            inverse = laplacian_inverse(len(nodes), i, j, conductances)
            shares = self.sizes[nodes] / max(float(self.sizes[nodes].sum()), np.finfo(np.float64).tiny)
            potentials = inverse - (inverse @ shares)[:, None]
            load[inside], costs[nodes] = _loads_and_costs(potentials, i, j, conductances, amounts[nodes], capacity)
        routed = routed_inside(self.objective, edges, currents) + routed_between(self.objective, edges, currents)
        return _State(load, routed, costs)

    def _keep_best(self, state: _State) -> None:
        """Keep the currents if they are the best so far, in such a share as gives the lowest bound."""
        share, total = best_share(self.edges.capacity, state.load, state.routed)
        bound = (self.alone + 2 * total) * float(self.objective.scale)
        if bound < self.bound:
            self.bound = bound
            self.best = self.currents._replace(flows=share * self.currents.flows, own=share * self.currents.own)

    def _step(self, state: _State) -> None:
        """Step of currents: conductances by the root of capacity over load; flows and own demands up where they cost below 1."""
        capacity, step = self.edges.capacity, STEP / np.sqrt(1.0 + self.steps)
        ratio = np.divide(capacity, state.load, out=np.full_like(capacity, 2.0), where=state.load > 0.5 * capacity)
        wires = self.currents.conductances * np.sqrt(np.maximum(ratio, 0.25))
        wires = np.clip(wires / (float(wires[self.inside].mean()) if self.inside.any() else 1.0), 1e3 * LEAST_CONDUCTANCE, 1e6)
        profit = 1.0 - state.costs[self.edges.i] - state.costs[self.edges.j]
        flows = np.clip(self.currents.flows + step * capacity * np.clip(profit, -1.0, 1.0), 0.0, capacity)
        own = np.clip(self.currents.own + step * np.clip(1.0 - state.costs, -1.0, 1.0), 0.0, 1.0)
        self.currents = Currents(self.currents.regions, wires, np.where(self.inside, 0.0, flows), own)
        self.currents = self._within_demand(self.currents)
        self.steps += 1


class CurrentBound:
    """The label bound of the best currents over several choices of regions.

    Parameters
    ----------
    objective : PairObjective
        The quality.
    labels : ndarray of int, shape (n,)
        A partition, whose clusters are the first regions that are tried.
    budget : Budget
        Work that may be spent.
    """

    def __init__(self, objective: PairObjective, labels: Labels, budget: Budget) -> None:
        self.objective, self.labels, self.budget = objective, labels, budget
        self.search: CurrentSearch | None = None

    def run(self, target: float) -> None:
        """Search currents: a few steps for every choice of regions, the rest for the best one."""
        if not (float(self.objective.beta) > 0 and np.any(self.objective.edges() > 0)):
            return  # there are no demands but of adjacent pairs, or no capacities
        for share in (None, *RESOLUTIONS):
            labels = self.labels if share is None else labels_at_resolution(self.objective, share)
            search = CurrentSearch(self.objective, labels)
            if search.is_small_enough:
                search.run(FIRST_STEPS, target, self.budget)
                self._take(search)
            if self.budget.exhausted:
                return
        if self.search is not None:
            for _ in range(FIRST_STEPS, STEPS):
                self.search.run(1, target, self.budget)
                self._take(self.search)

    def _take(self, search: CurrentSearch) -> None:
        if self.search is None or search.bound < self.search.bound:
            self.search = search
        self.budget.report(self.search.bound)

    def witnesses(self) -> list[LabelWitness]:
        """Witnesses of the label bound: the best currents, if there are any yet."""
        return [] if self.search is None else [("currents", self.search.best._asdict())]


@compile_with(nogil=True, error_model="numpy")
def _loads_and_costs(potentials: Any, i: Any, j: Any, conductances: Any, amounts: Any, capacity: Any) -> Any:
    """Loads of edges by currents, and per node the part of a further unit that would go over loaded edges."""
    count = len(amounts)
    loads, costs = np.empty(len(i)), np.zeros(count)
    for e in range(len(i)):
        a, b, load = potentials[i[e]], potentials[j[e]], 0.0
        for u in range(count):
            load += abs(a[u] - b[u]) * amounts[u]
        loads[e] = load * conductances[e]
        beyond = (loads[e] - capacity[e]) / (WIDTH * capacity[e])
        if beyond > -14.0:
            price = conductances[e] / (1.0 + np.exp(-beyond))
            for u in range(count):
                costs[u] += abs(a[u] - b[u]) * price
    return loads, costs
