"""Upper bounds for partitions from currents inside regions and flows between them, for graphs of any size.

As in `label_routing`, edges have capacities and all other pairs demands, ``beta p_i p_k`` at most, and any routing of demands
along edges that exceeds none proves

    sum_{i<j} V_ij x_ij <= sum_e max(capacity_e, load_e) - routed.

Nodes are divided into connected regions. An edge (u, v) between the regions P and Q carries a flow that comes from all nodes of P
and goes to all nodes of Q in proportion to their sizes; a node sends a part of its own demands to all nodes of its region. So
everything inside a region goes from single nodes u to all nodes in proportion to their sizes, and the electrical current with
given conductances does it: with the Laplacian L of the conductances, ``potentials = L^+ (e_u - p / sum p)``. Pairs of P and Q get
``sum of flows / p(P) p(Q)`` of the product of their sizes, which may not exceed beta. Adjacent pairs are not counted as routed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxnmf.certificates.label_routing import Edges, edges_of, routing_bound
from cvxnmf.certificates.pair_objectives import Integers, PairBound, PairObjective
from cvxnmf.certificates.rounding import UNIT, is_finite
from cvxnmf.certificates.statement import Array, CertificateError

#: Entries of the matrices of currents that are worked on at a time, unless told otherwise.
CURRENT_ENTRIES = 1 << 20
#: Conductances lie between this and its inverse.
LEAST_CONDUCTANCE = 1e-9


class Currents(NamedTuple):
    """Witness of a label bound by currents: regions with conductances, flows between them; edges in the objective's order.

    Attributes
    ----------
    regions : ndarray of int, shape (n,)
        The region of every node.
    conductances : ndarray of shape (edges,)
        Of the edges inside regions.
    flows : ndarray of shape (edges,)
        Along the edges between regions, in units of V.
    own : ndarray of shape (n,)
        What part of its demands inside the region a node sends; half of the demand of a pair is that of either node.
    """

    regions: Integers
    conductances: Array
    flows: Array
    own: Array


class Region(NamedTuple):
    """A region of a graph for currents: its nodes, the edges inside with a capacity, and their ends counted within the region."""

    nodes: Integers
    inside: Integers
    i: Integers
    j: Integers


def bound_by_currents(objective: PairObjective, currents: Currents, entries: int = CURRENT_ENTRIES) -> PairBound:
    """The label bound by currents on the sum of L over ordered pairs in one cluster; so many entries of matrices at a time."""
    edges = edges_of(objective)
    _check(objective, edges, currents)
    sizes, load = objective.sizes.astype(np.float64), currents.flows.astype(np.float64)
    amounts = carried_flows(edges, load, objective.n) + own_amounts(objective, currents)
    for region in find_regions(edges, currents.regions):
        nodes, inside = region.nodes, region.inside
        load[inside] = _loads(region, currents.conductances[inside], sizes[nodes], amounts[nodes], entries)
    routed = routed_inside(objective, edges, currents) + routed_between(objective, edges, currents)
    size = 3 * float(own_amounts(objective, currents).sum()) + 2 * float(currents.flows.sum())
    return routing_bound(objective, edges, load, routed, size, rounding=(64 * objective.n + 4096) * UNIT)


def find_regions(edges: Edges, regions: Integers) -> Iterator[Region]:
    """All regions of at least two nodes in which currents flow."""
    order = np.argsort(regions, kind="stable")
    starts = np.concatenate([[0], np.flatnonzero(np.diff(regions[order])) + 1, [len(order)]])
    place = np.empty(len(regions), dtype=np.int64)
    place[order] = np.arange(len(order)) - np.repeat(starts[:-1], np.diff(starts))
    inner = np.flatnonzero((regions[edges.i] == regions[edges.j]) & (edges.capacity > 0))
    inner = inner[np.argsort(regions[edges.i[inner]], kind="stable")]
    limits = np.searchsorted(regions[edges.i[inner]], regions[order[starts[:-1]]])
    for first, last, nodes in zip(limits, [*limits[1:], len(inner)], np.split(order, starts[1:-1]), strict=True):
        if len(nodes) > 1:
            inside = inner[first:last]
            yield Region(nodes, inside, place[edges.i[inside]], place[edges.j[inside]])


def _check(objective: PairObjective, edges: Edges, currents: Currents) -> None:
    """Refuse currents in regions that are not connected, and conductances, flows or parts out of range."""
    n, regions = objective.n, currents.regions
    if (
        not regions.shape == currents.own.shape == (n,)
        or not currents.conductances.shape == currents.flows.shape == edges.i.shape
    ):
        raise CertificateError("The currents of the certificate have wrong shapes.")
    inside, usable = regions[edges.i] == regions[edges.j], edges.capacity > 0
    wires = currents.conductances[inside & usable]
    if not (np.all((wires >= LEAST_CONDUCTANCE) & (wires <= 1 / LEAST_CONDUCTANCE)) and np.all(currents.flows >= 0)):
        raise CertificateError("The currents of the certificate have conductances out of range or flows below 0.")
    if not np.all((currents.own >= 0) & (currents.own <= 1)):
        raise CertificateError("The currents of the certificate have parts of demands that are not from 0 to 1.")
    if np.any((currents.flows > 0) & (inside | ~usable)):
        raise CertificateError("The currents of the certificate have a flow inside a region.")
    joined = sp.csr_array((wires, (edges.i[inside & usable], edges.j[inside & usable])), shape=(n, n))
    if connected_components(joined, directed=False)[0] != len(np.unique(regions)):
        raise CertificateError("The currents of the certificate have a region that is not connected.")
    shares, _ = demand_shares(objective, edges, currents)
    if np.any(shares > 1 + 1e-9):
        raise CertificateError("The currents of the certificate exceed a demand.")


def demand_shares(objective: PairObjective, edges: Edges, currents: Currents) -> tuple[Array, Array]:
    """For every edge the part of the demand between its two regions that flows route, and the demand of its own two ends."""
    regions, sizes = np.unique(currents.regions, return_inverse=True)[1], objective.sizes.astype(np.float64)
    volumes = np.bincount(regions, weights=sizes)
    a, b = regions[edges.i], regions[edges.j]
    _, place = np.unique(np.minimum(a, b) * len(volumes) + np.maximum(a, b), return_inverse=True)
    total = np.bincount(place, weights=currents.flows)[place] if len(place) else np.zeros(0)
    demand = float(objective.beta) * volumes[a] * volumes[b]
    shares = np.divide(total, demand, out=np.where(total > 0, np.inf, 0.0), where=demand > 0)
    return np.where(a == b, 0.0, shares), float(objective.beta) * sizes[edges.i] * sizes[edges.j]


def carried_flows(edges: Edges, flows: Array, n: int) -> Array:
    """Flow that every node carries along its edges between regions."""
    return np.asarray(np.bincount(edges.i, weights=flows, minlength=n) + np.bincount(edges.j, weights=flows, minlength=n))


def own_amounts(objective: PairObjective, currents: Currents) -> Array:
    """Current that every node sends of its own demands into its region, itself included."""
    sizes = objective.sizes.astype(np.float64)
    volumes = np.bincount(currents.regions, weights=sizes)
    return np.asarray(0.5 * float(objective.beta) * currents.own * sizes * volumes[currents.regions])


def routed_inside(objective: PairObjective, edges: Edges, currents: Currents) -> float:
    """Demand routed by currents inside regions, without that of nodes to themselves and to adjacent nodes."""
    sizes, half = objective.sizes.astype(np.float64), 0.5 * float(objective.beta)
    inside = currents.regions[edges.i] == currents.regions[edges.j]
    i, j = edges.i[inside], edges.j[inside]
    adjacent = half * float(((currents.own[i] + currents.own[j]) * sizes[i] * sizes[j]).sum())
    return float(own_amounts(objective, currents).sum()) - half * float((currents.own * sizes**2).sum()) - adjacent


def routed_between(objective: PairObjective, edges: Edges, currents: Currents) -> float:
    """Demand routed by flows between regions: all they carry but the part of adjacent pairs."""
    shares, adjacent = demand_shares(objective, edges, currents)
    return float(currents.flows.sum()) * (1 - 1e-9) - float((shares * adjacent).sum())


def laplacian_inverse(count: int, i: Integers, j: Integers, conductances: Array) -> Array:
    """An inverse of the Laplacian for currents in a region, but for what all potentials have in common."""
    L = np.zeros((count, count))
    L[i, j] = L[j, i] = -conductances
    L.flat[:: count + 1] = -L.sum(axis=1)
    try:  # on a copy: SciPy 1.17 does not survive singular matrices that it may overwrite
        return np.asarray(sl.inv(L + np.trace(L) / count**2, check_finite=False))
    except sl.LinAlgError:
        raise CertificateError("The currents of the certificate could not be computed.") from None


def _loads(region: Region, conductances: Array, sizes: Array, amounts: Array, entries: int) -> Array:
    """Loads that currents put on the edges inside a region.

    Computed currents miss their divergence by a little. What is missing goes along a spanning tree, whose edges then carry at
    most half the sum of its absolute values.
    """
    count, edges = len(region.nodes), len(region.inside)
    inverse = laplacian_inverse(count, region.i, region.j, conductances)
    shares = sizes / max(float(sizes.sum()), np.finfo(np.float64).tiny)
    common = inverse @ shares
    at = np.arange(edges)
    incidence = sp.csr_array((np.repeat([1.0, -1.0], edges), (np.r_[region.i, region.j], np.r_[at, at])), shape=(count, edges))
    load, missing = np.zeros(edges), 0.0
    width = max(1, entries // edges)
    for first in range(0, count, width):
        sources = np.arange(first, min(first + width, count))
        potentials: Any = inverse[:, sources] - common[:, None]
        currents = conductances[:, None] * (potentials[region.i] - potentials[region.j])
        divergence = np.where(np.arange(count)[:, None] == sources, 1.0, 0.0) - shares[:, None]
        missed = np.abs(divergence - incidence @ currents).sum(axis=0)
        sent = np.abs(currents)
        missing += float(amounts[sources] @ (missed + 8 * (count + 16) * UNIT * (1.0 + sent.sum(axis=0))))
        load += sent @ amounts[sources]
    load += 0.5 * missing
    if not is_finite(load):
        raise CertificateError("The currents of the certificate could not be computed.")
    return load
