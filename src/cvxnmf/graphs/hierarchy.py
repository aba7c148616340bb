"""How sure a division is: what each cluster saves, and the nested divisions that merging its clusters gives."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cvxnmf.graphs.ascent import aggregate
from cvxnmf.graphs.description_length import describe_graph, merged_lengths
from cvxnmf.graphs.merges import ALL_PAIRS, merge_clusters, merge_order
from cvxnmf.graphs.moves import Labels, renumber
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results.hierarchy import Code, Hierarchy


def hierarchy_of(A: sp.csr_array, labels: Labels, code: Code | None = None) -> Hierarchy:
    """Merges of the clusters of a graph, each the one that lengthens the description least, down to a single cluster.

    The code is the one that the clusters were found by, or else measured on them. Of more than 1,500 clusters many are merged at
    once, until so many are left with which the hierarchy begins.
    """
    kept = np.flatnonzero(np.diff(A.indptr))
    graph = describe_graph(A if len(kept) == A.shape[0] else sp.csr_array(A[kept][:, kept]))
    start = np.ascontiguousarray(labels[kept], dtype=np.int64)
    graph = graph.with_code(code) if code else graph.with_measured_code(start)
    best = graph.candidate(start)
    score = graph.score(best.labels, best.rates) or graph.modularity_score(1.0)
    if best.n_clusters > ALL_PAIRS:
        start = merge_clusters(graph.level, score, graph.logs, start, ALL_PAIRS)
    elif len(np.unique(start)) < int(start.max()) + 1:  # a cluster of nodes without edges only
        start = renumber(start)
    level = aggregate(graph.level, start)
    pairs = merge_order(level, score, graph.logs)
    first = np.zeros(len(labels), dtype=np.int64)
    first[kept] = start
    lengths = merged_lengths(graph, level, pairs)
    return Hierarchy(first, pairs, lengths, _savings(pairs, lengths))


def _savings(pairs: Labels, lengths: FloatArray) -> FloatArray:
    """Savings of clusters in a hierarchy: how much the description grows at the first merge that each takes part in."""
    savings = np.full(len(pairs) + 1, np.nan)
    for (kept, gone), growth in zip(pairs[::-1].tolist(), np.diff(lengths)[::-1].tolist(), strict=True):
        savings[kept] = savings[gone] = growth
    return savings
