"""Divisions of a graph into a given number of clusters, those that describe it shortest.

Finer partitions are merged, where there are none clusters are split first, and single nodes move between the clusters while that
shortens the description, none being emptied. The best divisions are recombined: the parts that two have in common are merged
again.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from cvxnmf.graphs.block_model import RateModel
from cvxnmf.graphs.candidates import POLISHES, distinct, is_large, merged_nodes, search_of, split_clusters
from cvxnmf.graphs.description_length import LEAST_GAIN, Candidate, DescribedGraph
from cvxnmf.graphs.merges import merge_clusters
from cvxnmf.graphs.moves import KEEP, Labels, move_nodes, visiting_order
from cvxnmf.graphs.multilevel import common_parts

#: A resolution of partitions that are merged, beyond those of the search, and the finest one where all are too coarse.
FINE, FINEST = 8.0, 1000.0
#: Candidates with any number of clusters that are merged or split, and merged divisions that are improved.
MERGED, IMPROVED = 4, 6
#: Divisions that are recombined with each other, and how often.
RECOMBINED, GENERATIONS = 5, 2
#: Times that clusters are split to have enough of them.
SPLITS = 8


def divisions(graph: DescribedGraph, found: list[Candidate], starts: list[Labels], k: int) -> list[Candidate]:
    """Divisions into a given number k of clusters by rising length, from candidates with any number and starts with k."""
    merged = [division for labels in _finer_partitions(graph, found, k) for division in _merge(graph, labels, k)]
    merged = sorted(merged, key=lambda candidate: candidate.length)[:IMPROVED]
    merged = distinct([*merged, *(graph.candidate(labels) for labels in starts)])
    improved = [_move(graph, candidate) for candidate in merged if candidate.n_clusters == k]
    improved = sorted(distinct(improved), key=lambda candidate: candidate.length)
    return distinct([*_recombine(graph, improved)[:1], *improved])


def divide_further(graph: DescribedGraph, labels: Labels, k: int) -> Candidate | None:
    """Clusters split, and merged to the given number k as if all had one rate, as nothing has its own; None if that fails."""
    parts = _split_until(graph, labels, k)
    score = graph.score(parts, RateModel.COMMON)
    if score is None or int(parts.max()) + 1 < k:
        return None
    return _move(graph, graph.candidate(merge_clusters(graph.level, score, graph.logs, parts, k), RateModel.COMMON))


def _finer_partitions(graph: DescribedGraph, found: list[Candidate], k: int) -> list[Labels]:
    """Partitions with at least the given number k of clusters, not many times as many; else the coarsest with at least k."""
    alone = np.arange(graph.A.shape[0])
    pool = [candidate.labels for candidate in found[:MERGED]]
    if is_large(graph):
        pool.append(merged_nodes(graph))
    else:
        pool += [graph.ascent(graph.modularity_score(resolution))(alone) for resolution in (*search_of(graph).resolutions, FINE)]
    finest = FINE
    while int(pool[-1].max()) + 1 < k and finest < FINEST:
        finest *= 4.0
        pool.append(graph.ascent(graph.modularity_score(finest))(alone))
    pool.append(_split_until(graph, found[0].labels, k))
    counts = sorted((int(labels.max()) + 1, place) for place, labels in enumerate(pool))
    finer = [(count, place) for count, place in counts if count >= k]
    near = [place for count, place in finer if count <= max(4 * k, 50)] or [place for _, place in finer[:1]]
    return [pool[place] for place in near]


def _split_until(graph: DescribedGraph, labels: Labels, k: int) -> Labels:
    """The clusters split again and again, until there are the given number k of them or none can be split."""
    for _ in range(SPLITS):
        if int(labels.max()) + 1 >= k:
            break
        labels = split_clusters(graph, labels)
    return labels


def _merge(graph: DescribedGraph, labels: Labels, k: int) -> list[Candidate]:
    """The partition merged to the given number k of clusters, under both models, where that lengthens the description least."""
    scores = [score for rates in RateModel if (score := graph.score(labels, rates)) is not None]
    merged = [graph.candidate(merge_clusters(graph.level, score, graph.logs, labels, k)) for score in scores]
    return [candidate for candidate in merged if candidate.n_clusters == k]


def _move(graph: DescribedGraph, start: Candidate) -> Candidate:
    """The division, its number of clusters given, that moves of nodes at ever new rates lead to while it becomes shorter."""
    best, order = start, visiting_order(graph.level, False)
    for _ in range(POLISHES):
        score = graph.score(best.labels, best.rates)
        if score is None:
            break
        labels = move_nodes(
            graph.level, score, graph.logs, best.labels.astype(np.int32), order, LEAST_GAIN, best.n_clusters, KEEP
        )
        better = graph.candidate(labels)
        if better.length > best.length - 1e-6:
            break
        best = better
    return best


def _recombine(graph: DescribedGraph, improved: list[Candidate]) -> list[Candidate]:
    """Divisions into a given number of clusters from what the best have in common, two by two, as long as that is shorter."""
    best, tried = improved[:RECOMBINED], set[bytes]()
    for _ in range(GENERATIONS):
        pairs = {a.labels.tobytes() + b.labels.tobytes(): (a, b) for a, b in combinations(best, 2)}
        children = [child for name, pair in pairs.items() if name not in tried for child in _common(graph, *pair)]
        shortest, tried = min(children, key=lambda child: child.length, default=None), tried | set(pairs)
        if shortest is None or shortest.length > best[0].length - 1e-6:
            break
        best = sorted(distinct([*best, *children]), key=lambda candidate: candidate.length)[:RECOMBINED]
    return best


def _common(graph: DescribedGraph, first: Candidate, second: Candidate) -> list[Candidate]:
    """The parts that two divisions have in common, merged again to their given number of clusters."""
    common = common_parts(first.labels, second.labels)
    more = int(common.max()) + 1 > first.n_clusters
    return [_move(graph, division) for division in _merge(graph, common, first.n_clusters)] if more else []
