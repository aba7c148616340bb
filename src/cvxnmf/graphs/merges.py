"""Merges: clusters are joined two by two, always those whose union loses least, down to any number of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.graphs.ascent import aggregate
from cvxnmf.graphs.moves import WHOLE, Labels, Level, renumber, weight
from cvxnmf.graphs.score import EXACT, Score, gain
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

#: Up to this many clusters all pairs are looked at; of more, only those that edges join, and many merge at once.
ALL_PAIRS = 1500


def merge_clusters(level: Level, score: Score, logs: FloatArray, labels: Labels, count: int) -> Labels:
    """Labels after clusters were merged until there are `count` of them."""
    labels = renumber(np.ascontiguousarray(labels, dtype=np.int64))
    while (present := int(labels.max()) + 1) > max(count, ALL_PAIRS):
        pairs = _mutual_pairs(aggregate(level, labels), score, logs)[: present - count]
        if not len(pairs):
            break
        labels = join(labels, pairs)
    if present <= count:
        return labels
    return join(labels, merge_order(aggregate(level, labels), score, logs)[: present - count])


def join(labels: Labels, pairs: Labels) -> Labels:
    """Labels, consecutive from 0, after merges in order; a pair names the cluster that stays and the one that goes."""
    names = np.arange(int(labels.max()) + 1)
    for kept, gone in pairs[::-1]:  # what is merged last has its final name first
        names[gone] = names[kept]
    return np.asarray(renumber(names[labels]))


@compile_with(**EXACT)
def _merge_gain(level: Level, score: Score, logs: Any, a: int, b: int, link: float) -> float:
    """Gain of a merge: what the union of two nodes of a level is worth more than both."""
    edges, mass, size = level.loops[b], level.masses[b], level.counts[b]
    together = gain(score, logs, level.loops[a], level.masses[a], level.counts[a], edges + 2.0 * link, mass, size)
    return float(together - gain(score, logs, 0.0, 0.0, WHOLE(0), edges, mass, size))


@compile_with(**EXACT)
def _best_partner(level: Level, score: Score, logs: Any, links: Any, alive: Any, a: int) -> Any:
    highest, partner = -np.inf, -1
    for b in range(len(alive)):
        if alive[b] and b != a:
            worth = _merge_gain(level, score, logs, a, b, links[a, b])
            if worth > highest:
                highest, partner = worth, b
    return highest, partner


@compile_with(**EXACT)
def merge_order(level: Level, score: Score, logs: Any) -> Any:
    """All merges of the nodes of a level, the best one at each step, as pairs (kept, gone)."""
    n = len(level.masses)
    links, alive = np.zeros((n, n)), np.ones(n, np.bool_)
    for a in range(n):
        for p in range(level.indptr[a], level.indptr[a + 1]):
            links[a, level.indices[p]] += weight(level, p)
    level = Level(*level[:3], level.masses.copy(), level.loops.copy(), level.counts.copy())
    highest, partners = np.full(n, -np.inf), np.full(n, -1)
    for a in range(n):
        highest[a], partners[a] = _best_partner(level, score, logs, links, alive, a)
    pairs = np.empty((n - 1, 2), np.int64)
    for step in range(n - 1):
        a = int(np.argmax(highest))
        a, b = min(a, partners[a]), max(a, partners[a])
        pairs[step, 0], pairs[step, 1] = a, b
        level.loops[a] += level.loops[b] + 2.0 * links[a, b]
        level.masses[a] += level.masses[b]
        level.counts[a] += level.counts[b]
        for c in range(n):
            links[a, c] += links[b, c]
            links[c, a] = links[a, c]
        links[a, a] = 0.0
        alive[b], highest[b] = False, -np.inf
        for c in range(n):
            if alive[c] and (c == a or partners[c] == a or partners[c] == b):
                highest[c], partners[c] = _best_partner(level, score, logs, links, alive, c)
            elif alive[c]:
                worth = _merge_gain(level, score, logs, c, a, links[c, a])
                if worth > highest[c]:
                    highest[c], partners[c] = worth, a
    return pairs


@compile_with(**EXACT)
def _mutual_pairs(level: Level, score: Score, logs: Any) -> Any:
    """Merges of many at once: pairs of nodes of a level that are each other's best partners, those that gain most first."""
    n = len(level.masses)
    highest, partners = np.full(n, -np.inf), np.full(n, -1)
    for a in range(n):
        for p in range(level.indptr[a], level.indptr[a + 1]):
            worth = _merge_gain(level, score, logs, a, level.indices[p], weight(level, p))
            if worth > highest[a]:
                highest[a], partners[a] = worth, level.indices[p]
    chosen = [a for a in range(n) if partners[a] > a and partners[partners[a]] == a]
    order = np.argsort(-highest[np.array(chosen, dtype=np.int64)], kind="mergesort")
    pairs = np.empty((len(chosen), 2), np.int64)
    for place in range(len(chosen)):
        a = chosen[order[place]]
        pairs[place, 0], pairs[place, 1] = a, partners[a]
    return pairs
