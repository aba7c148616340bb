"""Moves in rounds: the blocks of one colour move their nodes at the same time, each as if the others stood still.

Inside a block nodes move one after the other; what other blocks of the round do is seen in the next one. The outcome depends on
the graph and its blocks alone, not on who works on which block, or when.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.chunked.graphs.blocks import COLOURS, BlockedGraph, Facts, RowBlock, Whole
from cvxnmf.graphs.moves import log_factorials, renumber
from cvxnmf.graphs.score import EXACT, Score, gain
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

Numbers = NDArray[np.int32]
#: Sweeps end when fewer nodes move than this share of all.
FEW_MOVES = 0.002


class Sums(NamedTuple):
    """Sums of each cluster for rounds of moves: weight inside it in ordered pairs, mass, and nodes of the first graph."""

    edges: FloatArray
    masses: FloatArray
    sizes: Whole


class Rule(NamedTuple):
    """Rule of moves in rounds: the score they raise, the least gain, and the mass of every node if all are alike, else 0."""

    score: Score
    least: float
    even_mass: float = 0.0


#: No clusters that moves must stay in.
ANYWHERE: Numbers = np.empty(0, dtype=np.int32)


@lru_cache(maxsize=1)
def _logs(n: int) -> FloatArray:
    """Logarithms of factorials for moves of blocks, one table per process."""
    return log_factorials(n)


def cluster_sums(graph: BlockedGraph, labels: Numbers, k: int, even_mass: float) -> Sums:
    """Sums inside the clusters of a graph in blocks; the weights of edges take a pass."""
    sums = _sums_without_edges(graph, labels, k, even_mass)
    _add_inside(sums.edges, graph.map_reduce(inside_block, labels)[0])
    return sums


def _sums_without_edges(graph: BlockedGraph, labels: Numbers, k: int, even_mass: float) -> Sums:
    counts = np.bincount(labels, graph.facts.counts, k).astype(np.int64)
    masses: FloatArray = np.asarray(counts * even_mass if even_mass else np.bincount(labels, graph.facts.masses, k), np.float64)
    return Sums(np.zeros(k), masses, counts)


def _add_inside(edges: FloatArray, parts: tuple[Any, ...]) -> None:
    for clusters, inside in parts:
        edges[clusters] += inside


def sweeps(graph: BlockedGraph, labels: Numbers, rule: Rule, most: int, inside: Numbers = ANYWHERE) -> Numbers:
    """Labels, numbered from 0, after nodes of blocks moved in at most so many sweeps; ends when hardly any moves.

    Only neighbours count that are alike in `inside`, if that is given.
    """
    rounds = Rounds(graph, labels.copy(), rule, inside)
    for _ in range(most):
        rounds.measure()
        if sum(rounds.move(colour) for colour in range(COLOURS)) <= FEW_MOVES * graph.n:
            break
    return consecutive_labels(rounds.labels)


class Rounds:
    """Rounds of moves: blocks of one colour after the other; whoever works on them is told what has changed only."""

    def __init__(self, graph: BlockedGraph, labels: Numbers, rule: Rule, inside: Numbers) -> None:
        self.graph, self.labels, self.rule = graph, labels, rule
        self.weighs_edges = rule.score.own != 0.0 or rule.score.simple != 0.0
        self.sums = _sums_without_edges(graph, labels, int(labels.max()) + 1, rule.even_mass)
        self.kept = graph.keep(labels, inside, *self.sums)

    def measure(self) -> None:
        """Sum the clusters anew, without rounding and without what blocks of one round did not know of each other."""
        exact = _sums_without_edges(self.graph, self.labels, len(self.sums.sizes), self.rule.even_mass)
        if self.weighs_edges:
            _add_inside(exact.edges, self.kept.map_blocks(inside_block))
        self._set(np.flatnonzero((exact.edges != self.sums.edges) | (exact.masses != self.sums.masses)), exact)

    def _set(self, clusters: Any, values: Sums) -> None:
        for number, (array, new) in enumerate(zip(self.sums, values, strict=True), 2):
            array[clusters] = new[clusters]
            self.kept.note_changes(number, clusters)

    def move(self, colour: int) -> int:
        """Move the nodes of the blocks of a colour in one round; how many moved."""
        n = int(self.sums.sizes.sum()) if self.rule.score.entropy else 1
        parts = self.kept.map_blocks(move_block, self.rule, n, colour=colour)
        return sum(self._follow(*part) for part in parts)

    def _follow(self, nodes: Numbers, targets: Numbers, changed: Numbers, gained: FloatArray) -> int:
        """Change labels and sums of clusters by the moves of a block in a round."""
        sums, before, counts = self.sums, self.labels[nodes], self.graph.facts.counts[nodes]
        masses = counts * self.rule.even_mass if self.rule.even_mass else self.graph.facts.masses[nodes]
        for clusters, sign in ((before, -1), (targets, 1)):
            np.add.at(sums.masses, clusters, sign * masses)
            np.add.at(sums.sizes, clusters, sign * counts)
        self.labels[nodes] = targets
        empty = before[sums.sizes[before] == 0]
        sums.masses[empty] = 0.0
        told = [(0, nodes), (3, before), (3, targets), (4, before), (4, targets)]
        if self.weighs_edges:
            sums.edges[changed] += gained
            sums.edges[empty] = 0.0
            told += [(2, changed), (2, empty)]
        for number, places in told:
            self.kept.note_changes(number, places)
        return len(nodes)


def consecutive_labels(labels: Any) -> Numbers:
    """Labels after rounds of moves as consecutive numbers from 0, in the order of their first nodes."""
    return np.asarray(renumber(labels.astype(np.int32, copy=False)))


def merged_facts(graph: BlockedGraph, parts: Numbers) -> Facts:
    """The facts of a graph in blocks whose nodes are parts."""
    sums = cluster_sums(graph, parts, int(parts.max()) + 1, 0.0)
    return Facts(sums.masses, sums.edges, sums.sizes)


# Functions of a block --------------------------------------------------------------------------------------------------------


def inside_block(block: RowBlock, state: Any, labels: Numbers, *others: Any) -> tuple[None, tuple[Any, ...]]:
    """The weight inside clusters that the rows of a block bring, of each of their clusters."""
    own = labels[block.first : block.first + len(block.masses)]
    clusters, places = np.unique(own, return_inverse=True)
    return None, (((clusters, _inside(block, labels, places.astype(np.int32), len(clusters))),),)


@compile_with(**EXACT)
def _inside(block: RowBlock, labels: Any, places: Any, count: int) -> Any:
    inside, alike = np.zeros(count), len(block.weights) == 1
    for i in range(len(block.masses)):
        own = labels[block.first + i]
        total = block.loops[i]
        for p in range(block.indptr[i], block.indptr[i + 1]):
            if labels[block.indices[p]] == own:
                total += block.weights[0] if alike else block.weights[p]
        inside[places[i]] += total
    return inside


def move_block(
    block: RowBlock, state: Any, labels: Numbers, inside: Numbers, edges: Any, masses: Any, sizes: Any, rule: Rule, n: int
) -> tuple[None, tuple[Any, ...]]:
    """The moves of a block in a round: nodes, their new clusters; clusters whose weight inside changes, and by how much."""
    return None, ((_move_block(block, labels, inside, Sums(edges, masses, sizes), rule, _logs(n)),),)


@compile_with(**EXACT)
def _clusters_near(block: RowBlock, labels: Any, k: int) -> Any:
    """Clusters near the rows of a block, numbered as they appear; of each node near them the number of its cluster."""
    near, names, slot = np.full(len(labels), -1, np.int32), np.empty(k, np.int32), np.full(k, -1, np.int32)
    count = 0
    for i in range(len(block.masses)):
        for p in range(block.indptr[i] - 1, block.indptr[i + 1]):
            j = block.first + i if p < block.indptr[i] else block.indices[p]
            if near[j] < 0:
                c = labels[j]
                if slot[c] < 0:
                    slot[c] = count
                    names[count] = c
                    count += 1
                near[j] = slot[c]
    return near, names[:count].copy()


@compile_with(**EXACT)
def _move_block(block: RowBlock, labels: Any, inside: Any, sums: Sums, rule: Rule, logs: Any) -> Any:
    near, names = _clusters_near(block, labels, len(sums.sizes))
    edges, masses, sizes = sums.edges[names], sums.masses[names], sums.sizes[names]
    links, touched, alike = np.zeros(len(names)), np.empty(len(names), np.int32), len(block.weights) == 1
    for i in range(len(block.masses)):
        node, found, own = block.first + i, 0, near[block.first + i]
        for p in range(block.indptr[i], block.indptr[i + 1]):
            if len(inside) > 0 and inside[block.indices[p]] != inside[node]:
                continue
            c = near[block.indices[p]]
            if links[c] == 0.0:
                touched[found] = c
                found += 1
            links[c] += block.weights[0] if alike else block.weights[p]
        count, loop = block.counts[i], block.loops[i]
        mass = rule.even_mass * count if rule.even_mass > 0.0 else block.masses[i]
        edges[own] -= 2.0 * links[own] + loop
        masses[own] -= mass
        sizes[own] -= count
        if sizes[own] == 0:
            edges[own] = masses[own] = 0.0
        best = rule.least + gain(rule.score, logs, edges[own], masses[own], sizes[own], 2.0 * links[own] + loop, mass, count)
        target = own
        for s in range(found):
            c = touched[s]
            if c != own:
                worth = gain(rule.score, logs, edges[c], masses[c], sizes[c], 2.0 * links[c] + loop, mass, count)
                if worth > best:
                    best, target = worth, c
        edges[target] += 2.0 * links[target] + loop
        masses[target] += mass
        sizes[target] += count
        near[node] = target
        for s in range(found):
            links[touched[s]] = 0.0
    return _changes(block, labels, near, names, edges, sums)


@compile_with(**EXACT)
def _changes(block: RowBlock, labels: Any, near: Any, names: Any, edges: Any, sums: Sums) -> Any:
    """Changes by the moves of a block: nodes and their clusters, clusters and their weight inside."""
    rows = len(block.masses)
    nodes, targets, count = np.empty(rows, np.int32), np.empty(rows, np.int32), 0
    for i in range(rows):
        c = names[near[block.first + i]]
        if c != labels[block.first + i]:
            nodes[count], targets[count] = block.first + i, c
            count += 1
    gained = edges - sums.edges[names]
    changed = gained != 0.0
    return nodes[:count].copy(), targets[:count].copy(), names[changed], gained[changed]
