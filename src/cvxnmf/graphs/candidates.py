"""Candidates for the clusters of a graph, and the one that describes it shortest.

Ascents of the modularity at several resolutions, and of the description length from single nodes, give first partitions; mean
field of the planted partition moves many nodes at once where single moves are stuck; then moves shorten the description, and the
best candidate is recombined with the others.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cvxnmf.graphs.block_model import RateModel, Stopping
from cvxnmf.graphs.description_length import LEAST_GAIN, Candidate, DescribedGraph
from cvxnmf.graphs.moves import Labels, level_of, renumber
from cvxnmf.graphs.multilevel import Ascent, common_parts, recombine
from cvxnmf.graphs.score import Score

#: Resolutions of the modularity at which first partitions are looked for; those of large graphs.
RESOLUTIONS, FEWER_RESOLUTIONS = (1.0, 1.5, 2.5, 4.0), (1.0, 4.0)
#: Graphs with more stored entries are large: fewer candidates, and only the best of them are improved.
LARGE, IMPROVED = 400_000, 2
#: Entries times clusters up to which mean field is affordable.
MEAN_FIELD_WORK = 40_000_000
#: Mean field of candidates need not settle.
ROUGH = Stopping(40, 1e-3, 1e-3)
#: Candidates that are shortened until nothing moves, and those that the best one is recombined with.
FINALISTS, RECOMBINED = 4, 12
#: Times that moves are repeated at new rates, and that the dispersion is measured anew.
POLISHES, DISPERSIONS = 6, 3
#: A change of the dispersion by less than this share is none.
SAME_DISPERSION = 0.02


def affordable(graph: DescribedGraph, k: int) -> bool:
    """Whether memberships of all nodes in k clusters can be worked with."""
    return bool(graph.A.nnz * k <= MEAN_FIELD_WORK)


def best_candidates(graph: DescribedGraph, baseline: Labels) -> tuple[DescribedGraph, list[Candidate]]:
    """Candidates by rising description length, none longer than the baseline; the graph with the dispersion that they leave."""
    first = _first_partitions(graph)
    found = _improve(graph, first + _mean_fields(graph, first), baseline)
    for _ in range(DISPERSIONS):
        dispersion = graph.weight_dispersion(found[0].labels)
        if found[0].n_clusters == 1 or abs(dispersion - graph.dispersion) <= SAME_DISPERSION * graph.dispersion:
            break
        graph = graph.with_dispersion(dispersion)
        found = _improve(graph, first + _mean_fields(graph, first), baseline)
    fitting = graph.with_fitting_degrees(found[0].labels) if found[0].n_clusters > 1 else graph
    if fitting is not graph:
        graph, first = fitting, [candidate.labels for candidate in found[:FINALISTS]]
        first += [split_clusters(graph, first[0]), graph.ascent(graph.first_score())(np.arange(len(first[0])))]
        found = _improve(graph, first, baseline)
    tied = graph.tied_edges(found[0].labels) if found[0].n_clusters > 1 else 1.0
    if tied > 1.0 + SAME_DISPERSION:
        graph = graph.with_dispersion(tied * graph.dispersion)
        finalists = [candidate.labels for candidate in found[:FINALISTS]]
        found = _improve(graph, first + finalists + _mean_fields(graph, first[:1] + finalists[:1]), baseline)
    return graph, found


def _first_partitions(graph: DescribedGraph) -> list[Labels]:
    resolutions = FEWER_RESOLUTIONS if graph.A.nnz > LARGE else RESOLUTIONS
    scores = [graph.modularity_score(resolution) for resolution in resolutions] + [graph.first_score()]
    alone = np.arange(graph.A.shape[0])
    return [graph.ascent(score)(alone) for score in scores]


def split_clusters(graph: DescribedGraph, labels: Labels) -> Labels:
    """Parts of the clusters, by an ascent of the modularity of each cluster as a graph of its own."""
    rows, A = graph.model.rows, graph.A
    inside = labels[rows] == labels[A.indices]
    within = sp.csr_array((A.data[inside], (rows[inside], A.indices[inside])), shape=A.shape)
    degrees = np.asarray(within.sum(axis=1)).ravel()
    totals = np.bincount(labels, degrees)[labels]
    level = level_of(within, degrees / np.sqrt(np.maximum(totals, graph.unit)))  # no edge leaves a cluster: one ascent serves all
    return Ascent(level, Score(1.0 / graph.unit, 1.0 / graph.unit), graph.logs, LEAST_GAIN)(np.arange(len(labels)))


def _mean_fields(graph: DescribedGraph, first: list[Labels]) -> list[Labels]:
    """What mean field makes of those partitions that have several clusters, and not too many."""
    rough = [labels for labels in first if 1 < int(labels.max()) + 1 < len(labels) / 2]
    return [mean_field_labels(graph, labels) for labels in rough if affordable(graph, int(labels.max()) + 1)]


def _improve(graph: DescribedGraph, starts: list[Labels], baseline: Labels) -> list[Candidate]:
    """The starts shortened by moves, the best of them until nothing moves, and recombined with the others.

    No cluster reaches over several clusters of the baseline: mean field alone could join what no edge does.
    """
    starts = [common_parts(labels, baseline) for labels in starts]
    if graph.A.nnz > LARGE:
        starts = sorted(starts, key=lambda labels: graph.candidate(labels).length)[:IMPROVED]
    found = [shorten(graph, labels, rates, 1) for labels in starts for rates in RateModel]
    found.sort(key=lambda candidate: candidate.length)
    found[:FINALISTS] = [shorten(graph, candidate.labels, candidate.rates, POLISHES) for candidate in found[:FINALISTS]]
    found.sort(key=lambda candidate: candidate.length)
    best = found[0]
    score = graph.score(best.labels, best.rates)
    if score is not None and best.length < 0:
        value = lambda labels: -graph.candidate(labels, best.rates).length  # noqa: E731
        others = [candidate.labels for candidate in found[:RECOMBINED]]
        labels = recombine(graph.ascent(score), others, value, passes=1, rounds=2)
        found.insert(0, shorten(graph, labels, best.rates, POLISHES))
    return sorted([graph.candidate(baseline), *found], key=lambda candidate: candidate.length)


def mean_field_labels(graph: DescribedGraph, labels: Labels) -> Labels:
    """Labels of the largest memberships after a rough mean field; clusters may vanish."""
    q = graph.model.mean_field(labels, int(labels.max()) + 1, ROUGH)
    return np.asarray(renumber(np.argmax(q, axis=1).astype(np.int64)))


def shorten(graph: DescribedGraph, labels: Labels, rates: RateModel, times: int) -> Candidate:
    """The candidate that moves at ever new rates lead to, as long as the description becomes shorter."""
    best = graph.candidate(labels, rates)
    for _ in range(times):
        score = graph.score(best.labels, rates)
        if score is None:
            break
        better = graph.candidate(graph.ascent(score)(best.labels), rates)
        if better.length > best.length - 1e-6:
            break
        best = better
    return best
