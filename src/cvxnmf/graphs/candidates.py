"""Candidates for the clusters of a graph, and the one that describes it shortest.

Ascents of the modularity at several resolutions, and of the description length from single nodes, give first partitions; mean
field of the planted partition moves many nodes at once where single moves are stuck; then moves shorten the description, and the
best candidate is recombined with the others. On a large graph nodes are merged, a few visits move each, from averages over
neighbours if they hold too little of the groups, and one ascent shortens the description, which takes about as long as reading
each edge a hundred times; where that finds few clusters, as moves do if clusters are large and blurred, the leading directions of
the graph are another start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.convex.coarsening import LARGEST_WHOLE, MOST_DIRECTIONS, floored_noise_level, leading_positions
from cvxnmf.convex.noise import degree_metric
from cvxnmf.graphs.ascent import aggregate
from cvxnmf.graphs.block_model import RateModel, Stopping
from cvxnmf.graphs.description_length import LEAST_GAIN, Candidate, DescribedGraph, merged_lengths
from cvxnmf.graphs.merges import join, merge_order
from cvxnmf.graphs.moves import Effort, Labels, level_of, renumber
from cvxnmf.graphs.multilevel import Ascent, common_parts, recombine
from cvxnmf.graphs.refinement import refine_labels
from cvxnmf.graphs.score import Score
from cvxnmf.graphs.seeds import quick_seed
from cvxnmf.graphs.smoothing import smoothed_clusters
from cvxnmf.linalg.arrays import with_stored_values

#: Stored entries beyond which a graph of many nodes is large, and any graph.
LARGE, LARGE_AND_DENSE = 400_000, 4_000_000


class Search(NamedTuple):
    """How much is tried in the search for candidates.

    Resolutions of the modularity of first partitions; how many of them are improved, of these how many until nothing moves, in
    at most how many rounds at new rates, and with how many others the best one is recombined.
    """

    resolutions: tuple[float, ...]
    improved: int
    finalists: int
    polishes: int
    recombined: int


#: What is tried on graphs of up to LARGE entries, and on dense ones.
THOROUGH, BRIEF = Search((1.0, 1.5, 2.5, 4.0), 100, 4, 6, 12), Search((1.0, 4.0), 2, 4, 6, 12)
#: What is done with a start.
CONTINUED = Search((), 1, 1, 2, 0)
#: On large graphs: the resolution of first clusters, and of averaged ones; ascents from single nodes, of averaged clusters until
#: these settle, of clusters as they are, by the mass of their nodes or as these stand, and with their parts.
FIRST_RESOLUTION, SMOOTHED_RESOLUTION = 4.0, 2.0
FROM_NODES, UNTIL_SETTLED = Effort(4, largest=50_000), Effort(40, divide=False, by_mass=False, few=0.02)
BY_MASS, AS_THEY_ARE, WITH_PARTS = Effort(3, divide=False), Effort(3, divide=False, by_mass=False), Effort(2, by_mass=False)
#: Nats for each node that merged nodes may cost more than a single cluster; planted groups that moves found cost 1.3 at
#: most, those that they lost 2.5 and more.
LOST = 2.0
#: Where moves find at most so many clusters on a large graph, its directions are looked at: there are few, so that costs little.
FEW = 24
#: Times that rates are measured anew on large graphs, unless the description became shorter by less than this share.
LARGE_POLISHES, SETTLED = 3, 1e-4
#: Entries times clusters up to which mean field is affordable.
MEAN_FIELD_WORK = 40_000_000
#: Clusters of the best candidate that are merged step by step.
MOST_MERGED = 300
#: Mean field of candidates need not settle.
ROUGH = Stopping(40, 1e-3, 1e-3)
#: Times that moves are repeated at new rates, and that the dispersion is measured anew.
POLISHES, DISPERSIONS = 6, 3
#: A change of the dispersion by less than this share is none.
SAME_DISPERSION = 0.02


def search_of(graph: DescribedGraph) -> Search:
    """How much is tried for candidates on a graph that is not large."""
    return THOROUGH if graph.A.nnz <= LARGE else BRIEF


def is_large(graph: DescribedGraph) -> bool:
    """Whether a graph is so large that a full search for candidates would take long."""
    return bool(graph.A.nnz > (LARGE if graph.A.shape[0] > LARGEST_WHOLE else LARGE_AND_DENSE))


def affordable(graph: DescribedGraph, k: int) -> bool:
    """Whether mean field of all nodes in k clusters can be afforded for a candidate."""
    return not is_large(graph) and bool(graph.A.nnz * k <= MEAN_FIELD_WORK)


def best_candidates(
    graph: DescribedGraph, baseline: Labels, start: Labels | None = None, quick: bool | None = None
) -> tuple[DescribedGraph, list[Candidate]]:
    """Candidates by rising description length, none longer than the baseline; the graph with the dispersion that they leave.

    With a start only that is improved. A large graph is searched quickly, others if `quick` says so.
    """
    if is_large(graph) if quick is None else quick:
        return _quick_search(graph, baseline) if start is None else _shortened_start(graph, baseline, start)
    if start is not None:
        return _from_start(graph, baseline, start)
    first = _first_partitions(graph)
    found = _improve(graph, first + _mean_fields(graph, first), baseline)
    for _ in range(DISPERSIONS):
        dispersion = graph.weight_dispersion(found[0].labels)
        if found[0].n_clusters == 1 or abs(dispersion - graph.dispersion) <= SAME_DISPERSION * graph.dispersion:
            break
        graph = graph.with_dispersion(dispersion)
        found = _improve(graph, first + _mean_fields(graph, first), baseline)
    finalists = search_of(graph).finalists
    fitting = graph.with_fitting_degrees(found[0].labels) if found[0].n_clusters > 1 else graph
    if fitting is not graph:
        graph, first = fitting, [candidate.labels for candidate in found[:finalists]]
        first += [split_clusters(graph, first[0]), graph.ascent(graph.first_score())(np.arange(len(first[0])))]
        found = _improve(graph, first, baseline)
    tied = graph.tied_edges(found[0].labels) if found[0].n_clusters > 1 else 1.0
    if tied > 1.0 + SAME_DISPERSION:
        graph = graph.with_dispersion(tied * graph.dispersion)
        best = [candidate.labels for candidate in found[:finalists]]
        found = _improve(graph, first + best + _mean_fields(graph, first[:1] + best[:1]), baseline)
    return graph, found


def _from_start(graph: DescribedGraph, baseline: Labels, start: Labels) -> tuple[DescribedGraph, list[Candidate]]:
    """Candidates from one start: dispersion and degrees are measured on it, and it is improved quickly."""
    graph = graph.with_measured_code(start)
    return graph, _improve(graph, [start, split_clusters(graph, start)], baseline, CONTINUED)


def _quick_search(graph: DescribedGraph, baseline: Labels) -> tuple[DescribedGraph, list[Candidate]]:
    """Candidates of a large graph: moves of merged nodes; with few clusters, leading directions if that is shorter."""
    quick = _shortened_start(graph, baseline, merged_nodes(graph))
    start = direction_clusters(graph) if quick[1][0].n_clusters <= FEW else None
    return quick if start is None else min(quick, _shortened_start(graph, baseline, start), key=lambda found: found[1][0].length)


def merged_nodes(graph: DescribedGraph) -> Labels:
    """First clusters of a large graph: single nodes merged at a fine resolution, then moved.

    Where merged nodes describe the graph far worse than a single cluster, they hold too little of the groups for moves to find
    them; what averages over neighbours make of them is then moved until it settles, if that leads to anything.
    """
    score = graph.modularity_score(FIRST_RESOLUTION)
    merged = graph.ascent(score, FROM_NODES)(np.arange(graph.A.shape[0]))
    order, labels = np.argsort(merged, kind="stable"), np.empty_like(merged)
    labels[order] = _moved_clusters(graph.in_order(order), score, merged[order])
    return np.asarray(renumber(labels))


def _moved_clusters(graph: DescribedGraph, score: Score, merged: Labels) -> Labels:
    """First clusters of a candidate: moves of merged nodes, side by side in memory, or of their averages over neighbours."""
    if graph.excess(merged) > LOST:
        coarse = graph.ascent(graph.modularity_score(SMOOTHED_RESOLUTION), UNTIL_SETTLED)
        settled = coarse(smoothed_clusters(graph.level, merged))
        if graph.excess(settled) < 0.0:
            return settled
    return graph.ascent(score, BY_MASS)(merged)


def direction_clusters(graph: DescribedGraph, k: int | None = None) -> Labels | None:
    """Clusters of a large graph by mean field from its leading directions, as many as stand above the noise and one more.

    With k there are k clusters; None if nothing stands above the noise.
    """
    s, A = degree_metric(graph.model.degrees), with_stored_values(graph.A)
    edge = floored_noise_level(A, s).edge
    values, positions = leading_positions(A, s, edge, k, MOST_DIRECTIONS if k is None else k + 1)
    count = k or 1 + int(np.count_nonzero(values > edge))
    return refine_labels(graph, quick_seed(positions, count), count, lambda share: False).labels if count > 1 else None


def _shortened_start(graph: DescribedGraph, baseline: Labels, start: Labels) -> tuple[DescribedGraph, list[Candidate]]:
    """Candidates from a start improved by one ascent, and by moves at the rates, dispersion and degrees measured after it.

    Meanwhile the nodes of a cluster stand side by side in memory, where most of their neighbours are then near.
    """
    start, rates = common_parts(start, baseline), RateModel.PER_CLUSTER
    order = np.argsort(start, kind="stable")
    near = graph.in_order(order)
    found = shorten(near, start[order], rates, 1, WITH_PARTS)
    near = near.with_measured_code(found.labels)
    found = shorten(near, found.labels, rates, LARGE_POLISHES, AS_THEY_ARE, SETTLED)
    labels = np.empty_like(start)
    labels[order] = found.labels
    both = (
        near.candidate(baseline[order])._replace(labels=baseline),
        near.candidate(found.labels)._replace(labels=renumber(labels)),
    )
    return graph.with_code(near.code), sorted(both, key=lambda candidate: candidate.length)


def _first_partitions(graph: DescribedGraph) -> list[Labels]:
    scores = [graph.modularity_score(resolution) for resolution in search_of(graph).resolutions] + [graph.first_score()]
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
    """Mean field of those first partitions that have several clusters, and not too many, as candidates."""
    rough = [labels for labels in first if 1 < int(labels.max()) + 1 < len(labels) / 2]
    return [mean_field_labels(graph, labels) for labels in rough if affordable(graph, int(labels.max()) + 1)]


def _improve(graph: DescribedGraph, starts: list[Labels], baseline: Labels, search: Search | None = None) -> list[Candidate]:
    """Improve starts to candidates: shortened by moves, the best until nothing moves, and recombined with the others.

    No cluster reaches over several clusters of the baseline: mean field alone could join what no edge does.
    """
    search, length = search or search_of(graph), lambda candidate: candidate.length
    starts = list({(labels := common_parts(start, baseline)).tobytes(): labels for start in starts}.values())
    if len(starts) > search.improved:
        starts = sorted(starts, key=lambda labels: graph.candidate(labels).length)[: search.improved]
    found = sorted(distinct([shorten(graph, labels, rates, 1) for labels in starts for rates in RateModel]), key=length)
    best = found[: search.finalists]
    found[: len(best)] = [shorten(graph, candidate.labels, candidate.rates, search.polishes) for candidate in best]
    found = sorted(distinct(found), key=length)
    if search.recombined:
        found += _recombine(graph, found[: search.recombined], search.polishes)
        found += _merge(graph, min(found, key=length), baseline, search.polishes)
    return sorted([graph.candidate(baseline), *found], key=length)


def distinct(found: list[Candidate]) -> list[Candidate]:
    """Candidates without those that have the labels and the model of another one."""
    return list({(candidate.labels.tobytes(), candidate.rates): candidate for candidate in found}.values())


def _recombine(graph: DescribedGraph, found: list[Candidate], polishes: int) -> list[Candidate]:
    """The best candidate recombined with the others; none if no candidate explains anything."""
    best, score = found[0], graph.score(found[0].labels, found[0].rates)
    if score is None or best.length >= 0:
        return []
    value = lambda labels: -graph.candidate(labels, best.rates).length  # noqa: E731
    labels = recombine(graph.ascent(score), [candidate.labels for candidate in found], value, passes=1, rounds=2)
    return [shorten(graph, labels, best.rates, polishes)]


def _merge(graph: DescribedGraph, best: Candidate, baseline: Labels, polishes: int) -> list[Candidate]:
    """The best candidate after merges that shorten the description at new rates, which moves at given ones cannot see."""
    score = graph.score(best.labels, best.rates)
    if score is None or not 2 < best.n_clusters <= MOST_MERGED:
        return []
    level = aggregate(graph.level, best.labels)
    pairs = merge_order(level, score, graph.logs)
    merges = int(np.argmin(merged_lengths(graph, level, pairs)))
    return [shorten(graph, common_parts(join(best.labels, pairs[:merges]), baseline), best.rates, polishes)] if merges else []


def mean_field_labels(graph: DescribedGraph, labels: Labels) -> Labels:
    """Labels of the largest memberships after a rough mean field, for a candidate; clusters may vanish."""
    q = graph.model.mean_field(labels, int(labels.max()) + 1, ROUGH)
    return np.asarray(renumber(np.argmax(q, axis=1).astype(np.int64)))


def shorten(
    graph: DescribedGraph,
    labels: Labels,
    rates: RateModel,
    times: int,
    effort: Effort = Effort(),  # noqa: B008  # immutable
    settled: float = 0.0,
) -> Candidate:
    """The candidate that moves at ever new rates lead to, as long as the description becomes shorter by this share."""
    best = graph.candidate(labels, rates)
    for _ in range(times):
        score = graph.score(best.labels, rates)
        if score is None:
            break
        better = graph.candidate(graph.ascent(score, effort)(best.labels), rates)
        if better.length > best.length - 1e-6:
            break
        gained, best = best.length - better.length, better
        if gained <= settled * abs(best.length):
            break
    return best
