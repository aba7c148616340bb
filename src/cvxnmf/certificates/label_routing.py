"""Upper bounds for partitions from routing demands along edges, in memory of the size of the graph.

Pairs of weight ``V_ij > 0`` are edges of capacity V, all others have the demand ``-V_ij``. If an amount f of the demand of (i,
k) goes along a path of edges, then ``x_ik >= 1 - sum (1 - x_e)`` over the path, and any routing that exceeds no demand proves

    sum_{i<j} V_ij x_ij <= sum_e max(capacity_e, load_e) - routed.

Nodes are divided into regions. Every node sends half of its demands along a tree of shortest paths inside its region, for several
sets of edge lengths, of which the average counts. A cut edge (u, v) between two regions carries a flow that gathers along the
tree of u in proportion to the sizes of the nodes and spreads along that of v: any pair of the two regions gets its share, and
no demand is exceeded while the flows between two regions P, Q sum to at most ``beta p(P) p(Q)``. Adjacent pairs are not counted
as routed.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from cvxnmf.certificates.pair_objectives import Integers, PairObjective, exact_sum
from cvxnmf.certificates.rounding import UNIT
from cvxnmf.certificates.statement import Array, CertificateError

#: Entries of the arrays of distances that are worked on at a time.
TREE_ENTRIES = 1 << 20
#: No edge is shorter, so that distances grow along every path, whatever rounding does.
SHORTEST = 2.0**-10


class Routing(NamedTuple):
    """Trees by edge lengths, and flows between regions; edges in the order of the objective's entries off the diagonal.

    Attributes
    ----------
    regions : ndarray of int, shape (n,)
        The region of every node.
    turns : ndarray of int, shape (n,)
        Which set of lengths a node uses within a round.
    lengths : ndarray of shape (rounds, turns, edges)
        Positive edge lengths.
    flows : ndarray of shape (edges,)
        Flow along edges between regions, in units of V.
    share : float
        What part of all this is routed, from 0 to 1.
    """

    regions: Integers
    turns: Integers
    lengths: Array
    flows: Array
    share: float


class _Edges(NamedTuple):
    """Pairs of nodes with an entry: ends, capacity, and the demand of those that have none."""

    i: Integers
    j: Integers
    capacity: Array
    demand: Array


def bound_by_routing(objective: PairObjective, routing: Routing) -> Fraction:
    """The bound on the sum of L over ordered pairs in one cluster."""
    edges = _edges(objective)
    _check_flows(objective, edges, routing)
    load, routed = np.zeros(len(edges.i)), 0.0
    carried = _at_ends(edges, routing.flows, objective.n)
    for region in _regions(edges, routing.regions):
        load[region.inside], amount = _region_loads(objective, edges, routing, region, carried[region.nodes])
        routed += amount
    outside = routing.regions[edges.i] != routing.regions[edges.j]
    load[outside] += routing.flows[outside]
    routed += _between_regions(objective, edges, routing)
    margin = (4 * objective.n + 64 * len(routing.lengths) + 4096) * UNIT
    load, routed = routing.share * (1 + margin) * load, routing.share * (1 - margin) * routed
    total = float(np.maximum(edges.capacity, load).sum()) * (1 + margin) - routed
    return exact_sum(objective.diagonal()) + 2 * Fraction(total + 64 * UNIT * abs(routed)) * Fraction(objective.scale)


def _edges(objective: PairObjective) -> _Edges:
    """Capacities rounded up, demands rounded down, in units of V."""
    off = objective.rows < objective.columns
    i, j, values = objective.rows[off], objective.columns[off], objective.edges()[off] / objective.scale
    return _Edges(i, j, np.maximum(values, 0.0), np.maximum(-values, 0.0))


class _Region(NamedTuple):
    """A region: its nodes, the edges inside it, and their ends counted within the region."""

    nodes: Integers
    inside: Integers
    i: Integers
    j: Integers


def _regions(edges: _Edges, regions: Integers) -> Iterator[_Region]:
    """All regions with the edges inside them."""
    order = np.argsort(regions, kind="stable")
    starts = np.concatenate([[0], np.flatnonzero(np.diff(regions[order])) + 1, [len(order)]])
    place = np.empty(len(regions), dtype=np.int64)
    place[order] = np.arange(len(order)) - np.repeat(starts[:-1], np.diff(starts))
    inner = np.flatnonzero(regions[edges.i] == regions[edges.j])
    inner = inner[np.argsort(regions[edges.i[inner]], kind="stable")]
    limits = np.searchsorted(regions[edges.i[inner]], regions[order[starts[:-1]]])
    for first, last, nodes in zip(limits, [*limits[1:], len(inner)], np.split(order, starts[1:-1]), strict=True):
        inside = inner[first:last]
        yield _Region(nodes, inside, place[edges.i[inside]], place[edges.j[inside]])


def _check_flows(objective: PairObjective, edges: _Edges, routing: Routing) -> None:
    """Refuse flows inside regions, below 0, or above the demand between two regions."""
    n, m, rounds = objective.n, len(edges.i), routing.lengths.shape[0]
    shapes = routing.regions.shape == routing.turns.shape == (n,) and routing.lengths.shape[2:] == routing.flows.shape == (m,)
    if not (shapes and rounds > 0 and np.all((routing.turns >= 0) & (routing.turns < routing.lengths.shape[1]))):
        raise CertificateError("The routing of the certificate has wrong shapes.")
    if not (np.all((routing.lengths >= SHORTEST) & (routing.lengths <= 16)) and np.all(routing.flows >= 0)):
        raise CertificateError("The routing of the certificate has lengths out of range or flows below 0.")
    if not 0 <= routing.share <= 1:
        raise CertificateError("The routing of the certificate has a share that is not from 0 to 1.")
    a, b = routing.regions[edges.i], routing.regions[edges.j]
    used = routing.flows > 0
    if np.any(used & ((a == b) | (edges.capacity <= 0))):
        raise CertificateError("The routing of the certificate has a flow between regions inside one of them.")
    amounts, limits = _per_pair_of_regions(objective, edges, routing)
    if np.any(amounts > limits * (1 + 1e-9)):
        raise CertificateError("The routing of the certificate exceeds a demand.")


def _per_pair_of_regions(objective: PairObjective, edges: _Edges, routing: Routing) -> tuple[Array, Array]:
    """Of every edge with a flow: all flow between its two regions, and their demand."""
    used = np.flatnonzero(routing.flows > 0)
    a, b = routing.regions[edges.i[used]], routing.regions[edges.j[used]]
    count = int(routing.regions.max(initial=0)) + 1
    volume = np.bincount(routing.regions, weights=objective.sizes, minlength=count)
    _, place = np.unique(np.minimum(a, b) * count + np.maximum(a, b), return_inverse=True)
    amounts = np.bincount(place, weights=routing.flows[used])[place] if len(used) else np.zeros(0)
    return np.asarray(amounts, dtype=np.float64), np.asarray(float(objective.beta) * volume[a] * volume[b], dtype=np.float64)


def _between_regions(objective: PairObjective, edges: _Edges, routing: Routing) -> float:
    """What the flows route: all they carry but the part of adjacent pairs, and at most the demand."""
    amounts, limits = _per_pair_of_regions(objective, edges, routing)
    used = np.flatnonzero(routing.flows > 0)
    count = int(routing.regions.max(initial=0)) + 1
    a, b = routing.regions[edges.i], routing.regions[edges.j]
    keys = np.minimum(a, b) * count + np.maximum(a, b)
    shares, adjacent = np.zeros(len(edges.i)), float(objective.beta) * objective.sizes[edges.i] * objective.sizes[edges.j]
    pairs, first = np.unique(keys[used], return_index=True)
    place = np.minimum(np.searchsorted(pairs, keys), max(len(pairs) - 1, 0))
    if len(pairs):
        between = (pairs[place] == keys) & (a != b)
        shares[between] = (amounts / np.maximum(limits, np.finfo(float).tiny))[first][place[between]]
    return max(0.0, float(routing.flows.sum()) * (1 - 1e-9) - float((shares * adjacent).sum()))


def _at_ends(edges: _Edges, flows: Array, n: int) -> Array:
    """What every node carries of the flows along its edges."""
    return np.asarray(np.bincount(edges.i, weights=flows, minlength=n) + np.bincount(edges.j, weights=flows, minlength=n))


def _region_loads(
    objective: PairObjective, edges: _Edges, routing: Routing, region: _Region, carried: Array
) -> tuple[Array, float]:
    """Loads of the edges inside a region, averaged over the rounds, and what its nodes route among themselves."""
    load, routed = np.zeros(len(region.inside)), 0.0
    sizes = objective.sizes[region.nodes].astype(np.float64)
    usable = np.flatnonzero(edges.capacity[region.inside] > 0)
    halves = _half_demands(region, 0.5 * edges.demand[region.inside])
    height = max(1, TREE_ENTRIES // len(region.nodes))
    for lengths in routing.lengths:
        for turn in np.unique(routing.turns[region.nodes]):
            trees = _Trees(region, usable, lengths[turn][region.inside].astype(np.float64), sizes)
            sources = np.flatnonzero(routing.turns[region.nodes] == turn)
            for first in range(0, len(sources), height):
                some = sources[first : first + height]
                own = 0.5 * float(objective.beta) * np.multiply.outer(sizes[some], sizes)
                own[np.arange(len(some)), some] = 0.0
                adjacent = halves[some].tocoo()
                own[adjacent.row, adjacent.col] = adjacent.data
                routed += trees.route(some, own, carried[some], load) / len(routing.lengths)
    return load / len(routing.lengths), routed


def _half_demands(region: _Region, halves: Array) -> Any:
    """Half the demands of adjacent pairs, most of them 0, which are kept."""
    entries = (np.tile(halves, 2), (np.concatenate([region.i, region.j]), np.concatenate([region.j, region.i])))
    return sp.csr_array(sp.coo_array(entries, shape=(len(region.nodes), len(region.nodes))))


class _Trees:
    """Trees of shortest paths inside a region, along its usable edges."""

    def __init__(self, region: _Region, usable: Integers, lengths: Array, sizes: Array) -> None:
        self.count, self.sizes = len(region.nodes), sizes
        i, j = region.i[usable], region.j[usable]
        self.graph = sp.csr_array((lengths[usable], (i, j)), shape=(self.count, self.count))
        keys = np.minimum(i, j) * self.count + np.maximum(i, j)
        order = np.argsort(keys)
        self.keys, self.edges = keys[order], usable[order]

    def route(self, sources: Integers, own: Array, carried: Array, load: Array) -> float:
        """Add to `load` what some sources send along their trees, and return how much of their own demands they route."""
        limit = np.inf if np.any(carried > 0) else 1.0
        distances, parents = dijkstra(self.graph, directed=False, indices=sources, return_predecessors=True, limit=limit)
        reached = np.isfinite(distances)
        if not np.all(reached[carried > 0][:, self.sizes > 0]):
            raise CertificateError("The routing of the certificate sends a flow through a region that is not connected.")
        amounts = np.where(distances < 1.0, own, 0.0)
        routed = float(amounts.sum())
        shares = self.sizes / max(float(self.sizes.sum()), np.finfo(np.float64).tiny)
        amounts = _subtree_sums(amounts + np.where(reached, np.multiply.outer(carried, shares), 0.0), distances, parents)
        rows, nodes = np.nonzero(reached & (parents >= 0))
        ends = parents[rows, nodes]
        at = self.edges[np.searchsorted(self.keys, np.minimum(ends, nodes) * self.count + np.maximum(ends, nodes))]
        load += np.bincount(at, weights=amounts[rows, nodes], minlength=len(load))
        return routed


def _subtree_sums(amounts: Array, distances: Array, parents: NDArray[np.int32]) -> Array:
    """Of every node in every tree the sum of the amounts at and beyond it, from the farthest node inwards."""
    rows = np.arange(len(amounts))
    order = np.argsort(-np.where(np.isfinite(distances), distances, -1.0), axis=1, kind="stable")
    for step in range(int(np.isfinite(distances).sum(axis=1).max(initial=0))):
        node = order[:, step]
        parent = parents[rows, node]
        inner = parent >= 0
        amounts[rows[inner], parent[inner]] += amounts[rows[inner], node[inner]]
    return amounts
