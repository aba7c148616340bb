"""Clusters of a graph in blocks: nodes merge and move in rounds, level by level, and then shorten the description.

First clusters come from modularity at a fine resolution, merged from single nodes over ever smaller graphs and moved on the graph
itself; then nodes and whole clusters move while that shortens the description, at rates that are measured anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cvxnmf import validation
from cvxnmf.chunked.graphs.blocks import BlockedGraph, Facts, RowBlock
from cvxnmf.graphs.block_model import RateModel
from cvxnmf.graphs.blocked.description import BlockedDescription
from cvxnmf.graphs.blocked.rounds import ANYWHERE, Numbers, Rule, consecutive_labels, merged_facts, sweeps
from cvxnmf.graphs.blocked.smoothing import smoothed_clusters
from cvxnmf.graphs.candidates import LOST, SMOOTHED_RESOLUTION
from cvxnmf.graphs.description_length import Candidate
from cvxnmf.graphs.merges import merge_clusters
from cvxnmf.graphs.moves import Level

#: The resolution of first clusters.
FIRST_RESOLUTION = 4.0
#: Sweeps of single nodes on each level, of first clusters on the graph itself, and of clusters that shorten the description.
MERGING, SETTLING, SHORTENING = 2, 12, 3
#: Levels end when this share of their nodes is left.
HARDLY_FEWER = 0.98
#: Times that rates are measured anew, and a share of the length by which it must become shorter to go on.
POLISHES, SETTLED = 3, 1e-5

#: Told what is done, and the share of the whole; a true answer is not asked for.
Report = Callable[[str, float], None]


class Found(NamedTuple):
    """Result of a search in blocks: the best clusters, their description, and numbers of clusters with lengths."""

    labels: Numbers
    description: BlockedDescription
    alternatives: tuple[tuple[int, float], ...]


def find_clusters(graph: BlockedDescription, report: Report) -> Found:
    """Search a graph in blocks for the clusters that describe it shortest, of those that rounds of moves lead to."""
    rule = graph.rule(graph.modularity_score(FIRST_RESOLUTION))
    report("first clusters", 0.1)
    labels = _first_clusters(graph, merged_up(graph.blocks, rule), rule, report)
    report("description length", 0.7)
    best = shorten(graph, labels, 1, divide=False)
    best = shorten(graph, best.labels.astype(np.int32), 1, divide=True)
    if best.n_clusters > 1:
        graph = graph.with_measured_code(best.labels)
        best = shorten(graph, best.labels.astype(np.int32), POLISHES, divide=False)
    one = np.zeros(graph.blocks.n, dtype=np.int32)
    if best.length >= 0.0:
        return Found(one, graph, ((1, 0.0),))
    return Found(best.labels.astype(np.int32), graph, ((best.n_clusters, best.length), (1, 0.0)))


def _first_clusters(graph: BlockedDescription, merged: Numbers, rule: Rule, report: Report) -> Numbers:
    """First clusters in blocks: merged nodes after moves, or averages over neighbours where these tell more."""
    if graph.excess(merged) > LOST:
        report("averages over neighbours", 0.4)
        coarse = graph.rule(graph.modularity_score(SMOOTHED_RESOLUTION))
        settled = sweeps(graph.blocks, smoothed_clusters(graph.blocks, merged), coarse, SETTLING)
        if graph.excess(settled) < 0.0:
            return settled
    report("moves", 0.5)
    return sweeps(graph.blocks, merged, rule, SETTLING)


def find_modular(graph: BlockedDescription, resolution: float, report: Report) -> Found:
    """Search a graph in blocks for clusters of high modularity."""
    rule = graph.rule(graph.modularity_score(resolution))
    report("first clusters", 0.1)
    labels = merged_up(graph.blocks, rule)
    report("moves", 0.6)
    labels = sweeps(graph.blocks, labels, rule, SETTLING)
    return Found(_joined_clusters(graph.blocks, labels, rule), graph, ())


def exactly(found: Found, k: int) -> Found:
    """The clusters of a search in blocks merged until there are k; refused if there are not so many."""
    graph, present = found.description, int(found.labels.max()) + 1
    if present < k:
        validation.refuse(f"{present} clusters were found in blocks, fewer than the {k} asked for; ask for at most {present}.")
    score = graph.score(found.labels.astype(np.int64), RateModel.PER_CLUSTER) or graph.modularity_score(1.0)
    clusters = graph.blocks.aggregate(found.labels, merged_facts(graph.blocks, found.labels))
    (parts,) = clusters.map_reduce(block_as_it_is)
    level = _level(parts, clusters.facts)
    clusters.close()
    names = merge_clusters(level, score, graph.logs, np.arange(present), k)
    return found._replace(labels=names.astype(np.int32)[found.labels])


def block_as_it_is(block: RowBlock, state: Any) -> tuple[None, tuple[Any, ...]]:
    """Row lengths, columns and weights of a block of a graph."""
    weights = np.broadcast_to(block.weights, len(block.indices)) if len(block.weights) == 1 else block.weights
    return None, (((np.diff(block.indptr), block.indices, weights),),)


def _level(parts: Any, facts: Facts) -> Level:
    """A small graph in blocks as one level in memory, for merges."""
    degrees, indices, weights = (np.concatenate([part[place] for part in parts]) for place in range(3))
    return Level(np.append(0, np.cumsum(degrees)), indices, weights.astype(np.float64), *facts)


def merged_up(graph: BlockedGraph, rule: Rule, inside: Numbers = ANYWHERE) -> Numbers:
    """Labels after nodes, and then clusters of ever smaller graphs in blocks, merged and moved while that gains.

    If clusters are given that they lie inside of, these are divided.
    """
    whole = parts = sweeps(graph, np.arange(graph.n, dtype=np.int32), rule, MERGING, inside)
    here = graph
    while int(parts.max()) + 1 <= HARDLY_FEWER * here.n:
        smaller = here.aggregate(parts, merged_facts(here, parts))
        inside = _of_parts(inside, parts)
        if here is not graph:
            here.close()
        here = smaller
        parts = sweeps(here, np.arange(here.n, dtype=np.int32), rule, MERGING, inside)
        whole = parts[whole]
    if here is not graph:
        here.close()
    return consecutive_labels(whole)


def _of_parts(values: Numbers, parts: Numbers) -> Numbers:
    """The value that the nodes of each part of a graph in blocks share."""
    if not len(values):
        return values
    found = np.empty(int(parts.max()) + 1, dtype=np.int32)
    found[parts] = values
    return found


def shorten(graph: BlockedDescription, labels: Numbers, times: int, divide: bool) -> Candidate:
    """The candidate that moves in blocks at ever new rates lead to, as long as the description gets shorter.

    With `divide` clusters are first divided where that makes it shorter.
    """
    best = graph.candidate(labels, RateModel.PER_CLUSTER)
    for _ in range(times):
        score = graph.score(best.labels, RateModel.PER_CLUSTER)
        assert score is not None  # each cluster has a rate of its own
        rule, start = graph.rule(score), best.labels.astype(np.int32)
        if divide:
            start = _joined_clusters(graph.blocks, merged_up(graph.blocks, rule, start), rule)
        moved = _joined_clusters(graph.blocks, sweeps(graph.blocks, start, rule, SHORTENING), rule)
        better, before = graph.candidate(moved, RateModel.PER_CLUSTER), best.length
        best = min(best, better, key=lambda candidate: candidate.length)
        if better.length > before - SETTLED * abs(before):
            break
    return best


def _joined_clusters(graph: BlockedGraph, labels: Numbers, rule: Rule) -> Numbers:
    """Labels of a graph in blocks after whole clusters merged while that gains."""
    clusters = graph.aggregate(labels, merged_facts(graph, labels))
    merged = merged_up(clusters, rule)
    clusters.close()
    return merged[labels]
