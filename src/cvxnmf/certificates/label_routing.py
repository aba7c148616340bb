"""Upper bounds for partitions from routing demands along edges.

Pairs of weight ``V_ij > 0`` are edges of capacity V, all others have the demand ``-V_ij``. If an amount f of the demand of (i,
k) goes along a path of edges, then ``x_ik >= 1 - sum (1 - x_e)`` over the path, and any routing that exceeds no demand proves

    sum_{i<j} V_ij x_ij <= sum_e max(capacity_e, load_e) - routed.

Here every node sends half of its demands along a tree of shortest paths, as far as these are shorter than 1, for several sets of
edge lengths, of which the average counts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from cvxnmf.certificates.pair_objectives import Integers, PairBound, PairObjective, exact_sum
from cvxnmf.certificates.rounding import UNIT
from cvxnmf.certificates.statement import Array, CertificateError

#: Entries of the arrays of distances that are worked on at a time, unless told otherwise.
TREE_ENTRIES = 1 << 20
#: No edge is shorter, so that distances grow along every path, whatever rounding does.
SHORTEST = 2.0**-10


class Edges(NamedTuple):
    """Edges for routing: pairs of nodes with an entry, their capacity, and the demand of those that have none, in units of V."""

    i: Integers
    j: Integers
    capacity: Array
    demand: Array


def edges_of(objective: PairObjective) -> Edges:
    """The edges of a quality for routing, capacities rounded up and demands rounded down."""
    off = objective.rows < objective.columns
    i, j, values = objective.rows[off], objective.columns[off], objective.edges()[off] / objective.scale
    return Edges(i, j, np.maximum(values, 0.0), np.maximum(-values, 0.0))


def routing_bound(objective: PairObjective, edges: Edges, load: Array, routed: float, size: float, rounding: float) -> PairBound:
    """Label bound from routed demands, on the sum of L over pairs in one cluster; `rounding` bounds relative errors of loads.

    `size` is the sum of the absolute values that `routed` is a sum of. As rounding counts in units of twice the roundoff, half of
    what it adds could be spared.
    """
    total = float(np.maximum(edges.capacity, (1 + rounding) * load).sum())
    allowed = rounding * (total + abs(routed)) + 64 * UNIT * size
    highest = exact_sum(objective.diagonal()) + 2 * Fraction(total - routed + allowed) * Fraction(objective.scale)
    return PairBound(highest, Fraction(allowed) * Fraction(objective.scale))


class Routing(NamedTuple):
    """Witness of a label bound: routing along trees by edge lengths; edges in the order of the objective's entries.

    Attributes
    ----------
    turns : ndarray of int, shape (n,)
        Which set of lengths a node uses within a round.
    lengths : ndarray of shape (rounds, turns, edges)
        Positive edge lengths.
    share : float
        What part of all this is routed, from 0 to 1.
    """

    turns: Integers
    lengths: Array
    share: float


def bound_by_routing(objective: PairObjective, routing: Routing, entries: int = TREE_ENTRIES) -> PairBound:
    """The label bound by routing on the sum of L over ordered pairs in one cluster; so many entries of distances at a time."""
    edges, rounds = edges_of(objective), len(routing.lengths)
    _check(objective, edges, routing)
    load, routed = np.zeros(len(edges.i)), 0.0
    demands = _HalfDemands(objective, edges)
    height = max(1, entries // objective.n)
    for lengths in routing.lengths:
        for turn in np.unique(routing.turns):
            trees = _Trees(objective.n, edges, lengths[turn])
            sources = np.flatnonzero(routing.turns == turn)
            for first in range(0, len(sources), height):
                some = sources[first : first + height]
                routed += trees.route(some, demands.of(some), load)
    part, rounding = routing.share / rounds, (4 * objective.n + 64 * rounds + 4096) * UNIT
    return routing_bound(objective, edges, part * load, part * routed, part * routed, rounding)


def _check(objective: PairObjective, edges: Edges, routing: Routing) -> None:
    """Refuse a routing whose turns, lengths or share are out of range."""
    fits = routing.turns.shape == (objective.n,) and routing.lengths.shape[2:] == edges.i.shape and len(routing.lengths) > 0
    if not (fits and np.all((routing.turns >= 0) & (routing.turns < routing.lengths.shape[1]))):
        raise CertificateError("The routing of the certificate has wrong shapes.")
    if not np.all((routing.lengths >= SHORTEST) & (routing.lengths <= 16)):
        raise CertificateError("The routing of the certificate has lengths out of range.")
    if not 0 <= routing.share <= 1:
        raise CertificateError("The routing of the certificate has a share that is not from 0 to 1.")


class _HalfDemands:
    """Half the demand of every pair of nodes for routing, a few rows at a time."""

    def __init__(self, objective: PairObjective, edges: Edges) -> None:
        self.sizes, self.half = objective.sizes.astype(np.float64), 0.5 * float(objective.beta)
        entries = np.tile(0.5 * edges.demand, 2), (np.r_[edges.i, edges.j], np.r_[edges.j, edges.i])
        self.adjacent = sp.csr_array(sp.coo_array(entries, shape=(objective.n, objective.n)))

    def of(self, sources: Integers) -> Array:
        """Half demands of some nodes with all others; adjacent pairs have their own, mostly 0, and a node none with itself."""
        demands = self.half * np.multiply.outer(self.sizes[sources], self.sizes)
        demands[np.arange(len(sources)), sources] = 0.0
        adjacent = self.adjacent[sources].tocoo()
        demands[adjacent.row, adjacent.col] = adjacent.data
        return np.asarray(demands)


class _Trees:
    """Trees of shortest paths that demands are routed along, on edges that have a capacity."""

    def __init__(self, n: int, edges: Edges, lengths: Array) -> None:
        self.n, usable = n, np.flatnonzero(edges.capacity > 0)
        i, j = edges.i[usable], edges.j[usable]
        self.graph = sp.csr_array((lengths[usable], (i, j)), shape=(n, n))
        self.keys, self.edges = i * n + j, usable

    def route(self, sources: Integers, demands: Array, load: Array) -> float:
        """Route demands of some sources along their trees: add to the `load` of edges, and return how much is routed."""
        distances, parents = dijkstra(self.graph, directed=False, indices=sources, return_predecessors=True, limit=1.0)
        amounts = np.where(distances < 1.0, demands, 0.0)
        routed = float(amounts.sum())
        amounts = _subtree_sums(amounts, distances, parents)
        rows, nodes = np.nonzero(parents >= 0)
        ends = parents[rows, nodes]
        at = self.edges[np.searchsorted(self.keys, np.minimum(ends, nodes) * self.n + np.maximum(ends, nodes))]
        load += np.bincount(at, weights=amounts[rows, nodes], minlength=len(load))
        return routed


def _subtree_sums(amounts: Any, distances: Array, parents: NDArray[np.int32]) -> Array:
    """For every node in every routing tree the sum of the amounts at and beyond it, from the farthest node inwards."""
    rows = np.arange(len(amounts))
    order = np.argsort(-np.where(np.isfinite(distances), distances, -1.0), axis=1, kind="stable")
    for step in range(int(np.isfinite(distances).sum(axis=1).max(initial=0))):
        node = order[:, step]
        parent = parents[rows, node]
        inner = parent >= 0
        amounts[rows[inner], parent[inner]] += amounts[rows[inner], node[inner]]
    return np.asarray(amounts)
