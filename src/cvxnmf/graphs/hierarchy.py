"""How sure a division is: what each cluster saves, and the nested divisions that merging its clusters gives."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cvxnmf.graphs.description_length import DescribedGraph, describe_graph
from cvxnmf.graphs.merges import ALL_PAIRS, join, merge_clusters, merge_order
from cvxnmf.graphs.moves import Labels, Level, aggregate, cluster_sums, renumber
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results.hierarchy import Hierarchy


def hierarchy_of(A: sp.csr_array, labels: Labels) -> Hierarchy:
    """Merges of the clusters of a graph, each the one that lengthens the description least, down to a single cluster.

    Of more than 1,500 clusters many are merged at once, until so many are left with which the hierarchy begins.
    """
    kept = np.flatnonzero(np.diff(A.indptr))
    graph = describe_graph(A if len(kept) == A.shape[0] else sp.csr_array(A[kept][:, kept]))
    start = np.ascontiguousarray(labels[kept], dtype=np.int64)
    best = graph.candidate(start)
    if best.n_clusters > 1:
        graph = graph.with_fitting_degrees(best.labels)
        best = graph.candidate(best.labels)
        graph = graph.with_dispersion(graph.weight_dispersion(best.labels) * graph.tied_edges(best.labels))
    score = graph.score(best.labels, best.rates) or graph.modularity_score(1.0)
    if best.n_clusters > ALL_PAIRS:
        start = merge_clusters(graph.level, score, graph.logs, start, ALL_PAIRS)
    elif len(np.unique(start)) < int(start.max()) + 1:  # a cluster of nodes without edges only
        start = renumber(start)
    level = aggregate(graph.level, start)
    pairs = merge_order(level, score, graph.logs)
    first = np.zeros(len(labels), dtype=np.int64)
    first[kept] = start
    lengths = _lengths(graph, level, pairs)
    return Hierarchy(first, pairs, lengths, _savings(pairs, lengths))


def _lengths(graph: DescribedGraph, level: Level, pairs: Labels) -> FloatArray:
    """Description lengths before the first merge and after each."""
    count = len(level.masses)
    divisions = (join(np.arange(count), pairs[:step]) for step in range(count))
    sums = (cluster_sums(level, labels, int(labels.max()) + 1) for labels in divisions)
    return np.array([graph.shortest(inside)[1] for inside in sums])


def _savings(pairs: Labels, lengths: FloatArray) -> FloatArray:
    """By how much the description grows when a cluster is merged away: by the first merge that it takes part in."""
    savings = np.full(len(pairs) + 1, np.nan)
    for (kept, gone), growth in zip(pairs[::-1].tolist(), np.diff(lengths)[::-1].tolist(), strict=True):
        savings[kept] = savings[gone] = growth
    return savings
