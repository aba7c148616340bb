"""Local moves: nodes change their cluster while that raises the score; clusters become the nodes of a smaller graph.

All searches share one rule of gains (:mod:`cvxnmf.graphs.score`). `move_nodes` visits nodes while any move gains; `refine`
divides clusters into well connected parts; `ascend` alternates the two with aggregation, the idea of Louvain and Leiden (Traag,
Waltman and van Eck 2019). A pass of Kernighan and Lin makes the best of all moves, worse ones too, and returns to the best labels
on the way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.graphs.score import EXACT, Score, gain
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

Labels = NDArray[np.int64]
#: Visits per node after which moves end; rounding could let a few nodes go round for ever.
MOST_VISITS = 60


class Level(NamedTuple):
    """A graph for moves: weights of ordered pairs of different nodes in compressed rows.

    Of each node there is its mass, the weight of ordered pairs that lie inside it, and how many nodes of the first graph it is.
    """

    indptr: Labels
    indices: Labels
    weights: FloatArray
    masses: FloatArray
    loops: FloatArray
    counts: Labels


class Sums(NamedTuple):
    """Of each cluster the weight inside it, its mass, its nodes of the first graph, and its nodes of this level."""

    edges: FloatArray
    masses: FloatArray
    sizes: Labels
    members: Labels


def level_of(A: Any, masses: FloatArray) -> Level:
    """A symmetric sparse matrix whose nodes have these masses as a level; rows in the order of their columns."""
    A = sp.csr_array(A)
    loops = A.diagonal().astype(np.float64)
    if loops.any():
        coordinates = A.tocoo()
        off = coordinates.row != coordinates.col
        A = sp.csr_array((coordinates.data[off], (coordinates.row[off], coordinates.col[off])), shape=A.shape)
    A.sort_indices()
    ones = np.ones(len(masses), dtype=np.int64)
    pointers, weights = (A.indptr.astype(np.int64), A.indices.astype(np.int64)), A.data.astype(np.float64)
    return Level(*pointers, weights, np.ascontiguousarray(masses, dtype=np.float64), loops, ones)


def log_factorials(n: int) -> FloatArray:
    """``log 0!`` to ``log n!``."""
    return np.append(0.0, np.cumsum(np.log(np.arange(1.0, n + 1.0))))


@compile_with(**EXACT)
def cluster_sums(level: Level, labels: Any, count: int) -> Sums:
    """What lies inside the clusters 0, ..., count - 1."""
    sums = Sums(np.zeros(count), np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.int64))
    for i in range(len(labels)):
        a = labels[i]
        sums.edges[a] += level.loops[i]
        sums.masses[a] += level.masses[i]
        sums.sizes[a] += level.counts[i]
        sums.members[a] += 1
        for p in range(level.indptr[i], level.indptr[i + 1]):
            if labels[level.indices[p]] == a:
                sums.edges[a] += level.weights[p]
    return sums


@compile_with(**EXACT)
def _shift(level: Level, sums: Sums, node: int, cluster: int, links: float, sign: int) -> None:
    """Put a node into a cluster (sign 1) or take it out of it (-1)."""
    sums.edges[cluster] += sign * (2.0 * links + level.loops[node])
    sums.masses[cluster] += sign * level.masses[node]
    sums.sizes[cluster] += sign * level.counts[node]
    sums.members[cluster] += sign
    if sums.members[cluster] == 0:
        sums.edges[cluster] = 0.0
        sums.masses[cluster] = 0.0


@compile_with(**EXACT)
def _gain_of(level: Level, score: Score, logs: Any, sums: Sums, node: int, cluster: int, links: float) -> float:
    """What a cluster gains by a node that is not in it."""
    joined = 2.0 * links + level.loops[node]
    mass, count = level.masses[node], level.counts[node]
    return float(gain(score, logs, sums.edges[cluster], sums.masses[cluster], sums.sizes[cluster], joined, mass, count))


@compile_with(**EXACT)
def _gather(level: Level, labels: Any, node: int, inside: Any, links: Any, near: Any, seen: Any) -> int:
    """Weights that join a node to the clusters of its neighbours that are alike in `inside`; how many clusters there are."""
    found = 0
    for p in range(level.indptr[node], level.indptr[node + 1]):
        j = level.indices[p]
        if inside[j] != inside[node]:
            continue
        c = labels[j]
        if not seen[c]:
            seen[c] = True
            near[found] = c
            found += 1
        links[c] += level.weights[p]
    return found


@compile_with(**EXACT)
def _best_cluster(
    level: Level, score: Score, logs: Any, sums: Sums, node: int, own: int, least: float, links: Any, near: Any, found: int
) -> Any:
    """The cluster that gains most by a node, its own if no other gains more by `least`; that gain."""
    best, target = _gain_of(level, score, logs, sums, node, own, links[own]) + least, own
    for s in range(found):
        c = near[s]
        if c != own:
            worth = _gain_of(level, score, logs, sums, node, c, links[c])
            if worth > best:
                best, target = worth, c
    return best, target


@compile_with(**EXACT)
def _forget(links: Any, near: Any, seen: Any, found: int) -> None:
    for s in range(found):
        links[near[s]] = 0.0
        seen[near[s]] = False


@compile_with(**EXACT)
def move_nodes(level: Level, score: Score, logs: Any, labels: Any, order: Any, least: float, most: int, keep: bool) -> Any:
    """Move single nodes to the cluster of a neighbour, or to a new one, while that gains.

    A queue holds the nodes to try. Labels are numbers below n and are overwritten. There are never more than `most` clusters if
    there were not before; with `keep` none is emptied.
    """
    n = len(labels)
    sums = cluster_sums(level, labels, n)
    free = [c for c in range(n - 1, -1, -1) if sums.members[c] == 0]
    queue, waiting, first, length = order.copy(), np.ones(n, np.bool_), 0, n
    links, near, seen, everywhere = np.zeros(n), np.empty(n, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for _ in range(MOST_VISITS * n):
        if length == 0:
            break
        i = queue[first]
        first, length, waiting[i] = (first + 1) % n, length - 1, False
        a = labels[i]
        if keep and sums.members[a] == 1:
            continue
        found = _gather(level, labels, i, everywhere, links, near, seen)
        _shift(level, sums, i, a, links[a], -1)
        best, target = _best_cluster(level, score, logs, sums, i, a, least, links, near, found)
        if sums.members[a] > 0 and len(free) > 0 and n - len(free) < most:
            if _gain_of(level, score, logs, sums, i, free[-1], 0.0) > best + least:
                target = free.pop()
        _shift(level, sums, i, target, links[target], 1)
        _forget(links, near, seen, found)
        if target != a:
            labels[i] = target
            if sums.members[a] == 0:
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
    """Parts of the clusters: single nodes, each in turn merged with the part of its cluster that gains most."""
    n = len(labels)
    parts = np.arange(n)
    sums = Sums(level.loops.copy(), level.masses.copy(), level.counts.copy(), np.ones(n, np.int64))
    links, near, seen = np.zeros(n), np.empty(n, np.int64), np.zeros(n, np.bool_)
    for i in order:
        a = parts[i]
        if sums.members[a] != 1:
            continue
        found = _gather(level, parts, i, labels, links, near, seen)
        _shift(level, sums, i, a, 0.0, -1)
        _, target = _best_cluster(level, score, logs, sums, i, a, least, links, near, found)
        _shift(level, sums, i, target, links[target], 1)
        _forget(links, near, seen, found)
        parts[i] = target
    return parts


@compile_with(**EXACT)
def renumber(labels: Any) -> Any:
    """Labels as consecutive numbers from 0, in the order of their first nodes."""
    names, count = np.full(labels.max() + 1, -1), 0
    numbers = np.empty_like(labels)
    for i in range(len(labels)):
        if names[labels[i]] < 0:
            names[labels[i]] = count
            count += 1
        numbers[i] = names[labels[i]]
    return numbers


@compile_with(**EXACT)
def aggregate(level: Level, parts: Any) -> Level:
    """The graph whose nodes are parts, numbered from 0."""
    n, count = len(parts), parts.max() + 1
    starts = np.zeros(count + 1, np.int64)
    for i in range(n):
        starts[parts[i] + 1] += 1
    starts = np.cumsum(starts)
    members, place = np.empty(n, np.int64), starts[:-1].copy()
    for i in range(n):
        members[place[parts[i]]] = i
        place[parts[i]] += 1
    sums = cluster_sums(level, parts, count)
    indptr, indices, weights = np.zeros(count + 1, np.int64), np.empty_like(level.indices), np.empty_like(level.weights)
    slot, filled = np.full(count, -1), 0
    for c in range(count):
        begin = filled
        for q in range(starts[c], starts[c + 1]):
            i = members[q]
            for p in range(level.indptr[i], level.indptr[i + 1]):
                d = parts[level.indices[p]]
                if d == c:
                    continue
                if slot[d] < begin:
                    slot[d] = filled
                    indices[filled] = d
                    weights[filled] = 0.0
                    filled += 1
                weights[slot[d]] += level.weights[p]
        indptr[c + 1] = filled
    return Level(indptr, indices[:filled].copy(), weights[:filled].copy(), sums.masses, sums.edges, sums.sizes)


@compile_with(**EXACT)
def visiting_order(level: Level, falling: bool) -> Any:
    """Nodes by rising or falling mass."""
    return np.argsort(-level.masses if falling else level.masses, kind="mergesort")


@compile_with(**EXACT)
def ascend(level: Level, score: Score, logs: Any, labels: Any, least: float, falling: bool, rounds: int, most: int) -> Any:
    """Moves, refinement and aggregation up to one node per cluster; all of it again while that changes labels.

    There are never more than `most` clusters if there were not before.
    """
    n = len(labels)
    for _ in range(rounds):
        here, current, whole, before = level, renumber(labels), np.arange(n), renumber(labels)
        while True:
            order = visiting_order(here, falling)
            current = renumber(move_nodes(here, score, logs, current, order, least, most, False))
            parts = renumber(refine(here, score, logs, current, order, least))
            if parts.max() + 1 == len(current):
                parts = current
                if parts.max() + 1 == len(current):
                    break
            smaller = np.empty(parts.max() + 1, np.int64)
            for i in range(len(current)):
                smaller[parts[i]] = current[i]
            here = aggregate(here, parts)
            whole, current = parts[whole], renumber(smaller)
        labels = renumber(current[whole])
        if np.array_equal(labels, before):
            break
    return labels


@compile_with(**EXACT)
def _best_move(level: Level, score: Score, logs: Any, sums: Sums, links: Any, fixed: Any, labels: Any) -> Any:
    """Gain, node and target of the best move, to a cluster that it has links to, of a node that is not fixed; -1 for none."""
    highest, node, target = -np.inf, -1, -1
    for i in range(len(labels)):
        a = labels[i]
        if fixed[i] or sums.members[a] == 1:
            continue
        _shift(level, sums, i, a, links[i, a], -1)
        lost = _gain_of(level, score, logs, sums, i, a, links[i, a])
        for b in range(links.shape[1]):
            if b != a and links[i, b] != 0.0:
                change = _gain_of(level, score, logs, sums, i, b, links[i, b]) - lost
                if change > highest:
                    highest, node, target = change, i, b
        _shift(level, sums, i, a, links[i, a], 1)
    return highest, node, target


@compile_with(**EXACT)
def kernighan_lin_pass(level: Level, score: Score, logs: Any, labels: Any, count: int, patience: int) -> Any:
    """The best labels on a way along which every node moves at most once, and what they gain; no cluster is emptied.

    The pass ends after `patience` moves without a new highest score.
    """
    n = len(labels)
    current, best, moved, links = labels.copy(), labels.copy(), np.zeros(n, np.bool_), np.zeros((n, count))
    sums = cluster_sums(level, current, count)
    for i in range(n):
        for p in range(level.indptr[i], level.indptr[i + 1]):
            links[i, current[level.indices[p]]] += level.weights[p]
    total, highest, idle = 0.0, 0.0, 0
    while idle < patience:
        change, node, target = _best_move(level, score, logs, sums, links, moved, current)
        if node < 0:
            break
        a = current[node]
        _shift(level, sums, node, a, links[node, a], -1)
        _shift(level, sums, node, target, links[node, target], 1)
        current[node], moved[node], total, idle = target, True, total + change, idle + 1
        for p in range(level.indptr[node], level.indptr[node + 1]):
            links[level.indices[p], a] -= level.weights[p]
            links[level.indices[p], target] += level.weights[p]
        if total > highest + 1e-9 * abs(highest) + 1e-12:
            highest, idle = total, 0
            best[:] = current
    return best, highest
