"""Local moves: nodes change their cluster while that raises the score.

All searches share one rule of gains (:mod:`cvxnmf.graphs.score`). `move_nodes` visits nodes while any move gains; `refine`
divides clusters into well connected parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.graphs.numbering import count_of, first_numbers, rising_order
from cvxnmf.graphs.score import EXACT, Score, gain, most_gain
from cvxnmf.linalg.arrays import FloatArray, is_held_once, is_uniform
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.prefetching import MOST, look_ahead, look_along, prefetch

Labels = NDArray[np.int64]
#: Visits per node after which moves end; rounding could let a few nodes go round for ever.
MOST_VISITS = 60


class Level(NamedTuple):
    """A level for local moves: weights of ordered pairs of different nodes in compressed rows, a single one if all are alike.

    Of each node there is its mass, the weight of ordered pairs that lie inside it, and how many nodes of the first graph it is.
    """

    indptr: Labels
    indices: NDArray[np.int32]
    weights: FloatArray
    masses: FloatArray
    loops: FloatArray
    counts: Labels


class Effort(NamedTuple):
    """Effort of local moves: visits per node and level, whether clusters are divided into parts, and the largest level.

    On levels of more nodes, all of them alone at the start, nodes are merged once and do not move. With `keep` moves empty no
    cluster. Nodes are visited by their mass, or as they stand in memory, which is faster if those of a cluster stand together.
    Visits end early when of as many as there are nodes fewer than a share moved one.
    """

    visits: int = MOST_VISITS
    divide: bool = True
    largest: int = 2**31
    keep: bool = False
    by_mass: bool = True
    few: float = 0.0


#: Moves between as many clusters as there are.
KEEP = Effort(keep=True)
#: The kind of the numbers of nodes and clusters in calls: each further kind, and each literal, would be compiled for itself.
WHOLE: Any = np.int64
#: How many visits ahead the sums of clusters are asked for.
SUMS_AHEAD = 2
#: Whether a node joins a cluster or leaves it.
IN, OUT = WHOLE(1), WHOLE(-1)
#: Of each cluster the weight inside it, its mass, its nodes of the first graph, and its nodes of this level, side by side.
SUMS = np.dtype([("edges", np.float64), ("masses", np.float64), ("sizes", np.int64), ("members", np.int64)], align=True)
Sums = NDArray[np.void]


class Near(NamedTuple):
    """Clusters near a node that moves and the weights that join it to them; of each cluster its place among them, or -1."""

    clusters: NDArray[np.int32]
    links: FloatArray
    places: NDArray[np.int32]


def level_of(A: Any, masses: FloatArray) -> Level:
    """The level for local moves of a symmetric sparse matrix whose nodes have these masses; rows in the order of columns."""
    A = sp.csr_array(A)
    loops = (A.data[0] * _has_loop(A.indptr, A.indices) if is_held_once(A) else A.diagonal()).astype(np.float64)
    if loops.any():
        coordinates = A.tocoo()
        off = coordinates.row != coordinates.col
        A = sp.csr_array((coordinates.data[off], (coordinates.row[off], coordinates.col[off])), shape=A.shape)
    A.sort_indices()
    weights = np.array(A.data[:1] if len(A.data) > 1 and is_uniform(A) else A.data, dtype=np.float64)
    facts = (np.ascontiguousarray(masses, dtype=np.float64), loops, np.ones(len(masses), dtype=np.int64))
    return Level(A.indptr.astype(np.int64), A.indices.astype(np.int32, copy=False), weights, *facts)


@compile_with(nogil=True)
def _has_loop(indptr: Any, indices: Any) -> Any:
    """Of each node of a graph for moves whether it is joined to itself."""
    found = np.zeros(len(indptr) - 1, np.bool_)
    for i in range(len(found)):
        for p in range(indptr[i], indptr[i + 1]):
            found[i] |= indices[p] == i
    return found


def log_factorials(n: int) -> FloatArray:
    """Logarithms of factorials ``log 0!`` to ``log n!``, for scores of moves."""
    return np.append(0.0, np.cumsum(np.log(np.arange(1.0, n + 1.0))))


@compile_with(**EXACT, forceinline=True)
def weight(level: Level, place: int) -> float:
    """The weight of a stored pair of nodes of a level."""
    return float(level.weights[place] if len(level.weights) > 1 else level.weights[0])


@compile_with(**EXACT)
def cluster_sums(level: Level, labels: Any, count: int) -> Any:
    """Sums inside the clusters 0, ..., count - 1 of a level: edges, masses, sizes and members."""
    sums = np.zeros(count, SUMS)
    for i in range(len(labels)):
        a = labels[i]
        inside = level.loops[i]
        for p in range(level.indptr[i], level.indptr[i + 1]):
            look_along(level.indices, labels, p)
            if labels[level.indices[p]] == a:
                inside += weight(level, p)
        own = sums[a]
        own.edges += inside
        own.masses += level.masses[i]
        own.sizes += level.counts[i]
        own.members += 1
    return sums


@compile_with(**EXACT, forceinline=True)
def shift(level: Level, sums: Any, node: int, cluster: int, links: float, sign: int) -> None:
    """Move a node into a cluster (IN) or out of it (OUT) in the sums of clusters."""
    changed = sums[cluster]
    changed.edges += sign * (2.0 * links + level.loops[node])
    changed.masses += sign * level.masses[node]
    changed.sizes += sign * level.counts[node]
    changed.members += sign
    if changed.members == 0:
        changed.edges = 0.0
        changed.masses = 0.0


@compile_with(**EXACT, forceinline=True)
def gain_of(level: Level, score: Score, logs: Any, sums: Any, node: int, cluster: int, links: float) -> float:
    """Gain of a move: what a cluster gains by a node that is not in it."""
    to, joined = sums[cluster], 2.0 * links + level.loops[node]
    return float(gain(score, logs, to.edges, to.masses, to.sizes, joined, level.masses[node], level.counts[node]))


@compile_with(**EXACT)
def _nobody_near(level: Level) -> Near:
    """Room for the clusters near any node of a level, for moves."""
    most = 1
    for i in range(len(level.masses)):
        most = max(most, level.indptr[i + 1] - level.indptr[i])
    return Near(np.empty(most, np.int32), np.empty(most), np.full(len(level.masses), -1, np.int32))


@compile_with(**EXACT, forceinline=True)
def _ask_for_sums(level: Level, labels: Any, node: int, sums: Any, near: Near) -> None:
    """Prefetch the sums of the clusters of a node's neighbours before it moves."""
    for p in range(level.indptr[node], min(level.indptr[node] + MOST, level.indptr[node + 1])):
        c = WHOLE(labels[level.indices[p]])
        prefetch(sums, c)
        prefetch(near.places, c)


@compile_with(**EXACT, forceinline=True)
def _gather(level: Level, labels: Any, node: int, inside: Any, near: Near) -> int:
    """Gather the clusters near a node that moves, of neighbours alike in `inside`, of all if that is empty; their number."""
    found, anywhere = 0, len(inside) == 0
    for p in range(level.indptr[node], level.indptr[node + 1]):
        j = level.indices[p]
        if not anywhere and inside[j] != inside[node]:
            continue
        c = labels[j]
        place = near.places[c]
        if place < 0:
            near.places[c], near.clusters[found], near.links[found] = found, c, weight(level, p)
            found += 1
        else:
            near.links[place] += weight(level, p)
    for s in range(found):
        near.places[near.clusters[s]] = -1
    return found


@compile_with(**EXACT, forceinline=True)
def _links_to(near: Near, found: int, cluster: int) -> float:
    """The weight that joins a node that moves to a cluster near it."""
    for s in range(found):
        if near.clusters[s] == cluster:
            return float(near.links[s])
    return 0.0


@compile_with(**EXACT, forceinline=True)
def _best_cluster(
    level: Level, score: Score, logs: Any, sums: Any, node: int, own: int, links: float, least: float, near: Near, found: int
) -> Any:
    """Best move of a node: the cluster that gains most, its own if none gains more by `least`; that gain, and the links."""
    best, target, joined = gain_of(level, score, logs, sums, node, own, links) + least, own, links
    for s in range(found):
        c = WHOLE(near.clusters[s])
        if c != own and most_gain(score, 2.0 * near.links[s] + level.loops[node], level.masses[node]) > best:
            worth = gain_of(level, score, logs, sums, node, c, near.links[s])
            if worth > best:
                best, target, joined = worth, c, near.links[s]
    return best, target, joined


@compile_with(**EXACT)
def move_nodes(level: Level, score: Score, logs: Any, labels: Any, order: Any, least: float, most: int, effort: Effort) -> Any:
    """Move single nodes to the cluster of a neighbour, or to a new one, while that gains and for so many visits per node.

    A queue holds the nodes to try. Labels are numbers below n and are overwritten. There are never more than `most` clusters if
    there were not before.
    """
    n = len(labels)
    sums, near, everywhere = cluster_sums(level, labels, n), _nobody_near(level), labels[:0]
    free = [c for c in range(n - 1, -1, -1) if sums[c].members == 0]
    queue, waiting, first, length, moved = order.copy(), np.ones(n, np.bool_), 0, n, 0
    for visit in range(effort.visits * n):
        if visit % n == 0 and visit > 0:
            if moved < effort.few * n:
                break
            moved = 0
        if length == 0:
            break
        look_ahead(level.indptr, level.indices, labels, queue, first)
        i = WHOLE(queue[first])
        first, length, waiting[i] = (first + 1 if first + 1 < n else 0), length - 1, False
        a = WHOLE(labels[i])
        if effort.keep and sums[a].members == 1:
            continue
        found = _gather(level, labels, i, everywhere, near)
        own = _links_to(near, found, a)
        shift(level, sums, i, a, own, OUT)
        best, target, links = _best_cluster(level, score, logs, sums, i, a, own, least, near, found)
        if sums[a].members > 0 and len(free) > 0 and n - len(free) < most:
            if gain_of(level, score, logs, sums, i, free[-1], 0.0) > best + least:
                target, links = free.pop(), 0.0
        shift(level, sums, i, target, links, IN)
        if target != a:
            labels[i] = target
            moved += 1
            if sums[a].members == 0:
                free.append(a)
            for p in range(level.indptr[i], level.indptr[i + 1]):
                j = level.indices[p]
                if labels[j] != target and not waiting[j]:
                    waiting[j] = True
                    queue[(first + length) % n] = j
                    length += 1
    return labels


@compile_with(**EXACT)
def refine(level: Level, score: Score, logs: Any, labels: Any, order: Any, least: float) -> Any:
    """Refine clusters into parts: single nodes, each in turn merged with the part of its cluster that gains most.

    Without labels all nodes are in one cluster.
    """
    parts, sums = single_parts(level)
    merge_alone(level, score, logs, labels, order, least, parts, sums)
    return parts


@compile_with(**EXACT)
def single_parts(level: Level) -> Any:
    """Every node of a level a part of its own, and the sums inside these parts."""
    parts = first_numbers(len(level.masses))
    sums = np.zeros(len(parts), SUMS)
    for i in range(len(parts)):
        shift(level, sums, i, i, 0.0, IN)
    return parts, sums


@compile_with(**EXACT)
def merge_alone(level: Level, score: Score, logs: Any, labels: Any, order: Any, least: float, parts: Any, sums: Any) -> None:
    """Merge nodes still alone into parts; clusters that these nodes are not in stay, so that threads may share them."""
    near = _nobody_near(level)
    for place in range(len(order)):
        look_ahead(level.indptr, level.indices, parts, order, place)
        _ask_for_sums(level, parts, order[(place + SUMS_AHEAD) % len(order)], sums, near)
        i = WHOLE(order[place])
        a = WHOLE(parts[i])
        if sums[a].members != 1:
            continue
        found = _gather(level, parts, i, labels, near)
        shift(level, sums, i, a, 0.0, OUT)
        _, target, links = _best_cluster(level, score, logs, sums, i, a, 0.0, least, near, found)
        shift(level, sums, i, target, links, IN)
        parts[i] = target


@compile_with(**EXACT)
def renumber(labels: Any) -> Any:
    """Labels as consecutive numbers from 0, in the order of their first nodes."""
    names, count = np.full(count_of(labels), -1), 0
    numbers = np.empty_like(labels)
    for i in range(len(labels)):
        if names[labels[i]] < 0:
            names[labels[i]] = count
            count += 1
        numbers[i] = names[labels[i]]
    return numbers


@compile_with(**EXACT)
def visiting_order(level: Level, falling: bool) -> Any:
    """Order in which moves visit nodes: by rising or falling mass."""
    return rising_order(level.masses, -1.0 if falling else 1.0)
