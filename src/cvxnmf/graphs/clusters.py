"""The clusters of a graph whose nodes are in canonical order, their number found or given.

Left open, the number is that of the candidate with the shortest description; where no division of a graph that is not large makes
it shorter, as many as directions stand above the noise, and one more. Given, candidates with that many clusters compete by
description length: those of the leading directions, in which positions of the convex model grow first, and merged or split ones
(`given_number`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.convex.coarsening import LARGEST_WHOLE
from cvxnmf.graphs.block_model import Clusters, RateModel, size_order
from cvxnmf.graphs.candidates import FEW, ROUGH, affordable, best_candidates, direction_clusters, is_large
from cvxnmf.graphs.components import separate_parts, subgraph
from cvxnmf.graphs.description_length import Candidate, DescribedGraph, describe_graph
from cvxnmf.graphs.embedding import NodeEmbedding, directions_above_noise
from cvxnmf.graphs.given_number import divide_further, divisions
from cvxnmf.graphs.moves import Labels, renumber
from cvxnmf.graphs.multilevel import common_parts
from cvxnmf.graphs.order import canonical_order, in_order
from cvxnmf.graphs.refinement import Refinement, cluster_positions, refine_seeds
from cvxnmf.graphs.seeds import seeds
from cvxnmf.linalg.arrays import LARGE_SPARSE, FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results.hierarchy import Code

#: Settled clusters may lengthen the description by this share: the likeliest cluster of each node is not the likeliest division.
SETTLING = 0.02
#: Divisions into a given number of clusters that mean field is tried on.
FINALISTS = 5


class Division(NamedTuple):
    """Division of a graph: labels by decreasing size of clusters, memberships, numbers of clusters with lengths, and the code."""

    labels: Labels
    memberships: Callable[[], FloatArray]
    alternatives: tuple[tuple[int, float], ...] = ()
    code: Code | None = None


def in_any_order(A: sp.csr_array, find: Callable[..., Division], start: Labels | None = None) -> Division:
    """Clusters found on a graph in an order of nodes that does not depend on their numbers, put back into their first order."""
    order = canonical_order(A, np.asarray(A.sum(axis=1)).ravel())
    if start is not None and A.nnz >= LARGE_SPARSE:  # nodes of a cluster side by side, as their moves want them
        order = order[np.argsort(start[order], kind="stable")]
    ordered = in_order(A, order, lean=True)
    found = find(ordered) if start is None else find(ordered, start=start[order])
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = found.labels
    return found._replace(labels=labels, memberships=partial(_in_first_order, found.memberships, order))


def _in_first_order(memberships: Callable[[], FloatArray], order: Labels) -> FloatArray:
    q = memberships()
    first = np.empty_like(q)
    first[order] = q
    return first


def find_clusters(A: sp.csr_array, above_noise: Callable[[], int] | None = None, start: Labels | None = None) -> Division:
    """The division that describes the graph shortest, of those that are found from a start if there is one.

    Where none is shorter than a single cluster, `above_noise` says in how many directions the graph differs from noise; of a
    large graph they have been tried.
    """
    above_noise = above_noise or partial(directions_above_noise, A)
    with single_thread():
        core, parts, inner = _core(A)
        graph, found = best_candidates(
            describe_graph(inner), renumber(parts), None if start is None else alone_where_new(start[core])
        )
        if found[0].n_clusters == 1 and not is_large(graph) and (above := above_noise()):
            return divide_into(A, 1 + above)  # on all nodes with edges: what is beside a giant component counts as well
        best = _settle(graph, found[0])
        if int(common_parts(best.labels, parts).max()) + 1 > found[0].n_clusters:  # parts that no edge joins
            best = Clusters(found[0].labels, np.empty((0, found[0].n_clusters)))
    return _on_all_nodes(A, core, graph, best)._replace(alternatives=_alternatives(found), code=graph.code)


def _core(A: sp.csr_array) -> tuple[Labels, Labels, sp.csr_array]:
    """Core of a graph: nodes not alone or in small trees that noise explains, their components, and the graph on them."""
    kept = np.flatnonzero(np.diff(A.indptr))
    part = subgraph(A, kept)
    parts = separate_parts(part)
    core = np.flatnonzero(parts >= 0)
    return kept[core], parts[core], subgraph(part, core)


def alone_where_new(start: Labels) -> Labels:
    """Labels of clusters to start from, numbered; nodes that have none, -1, start alone."""
    labels, new = start.copy(), start < 0
    labels[new] = start.max() + 1 + np.arange(np.count_nonzero(new))
    return np.asarray(renumber(labels))


def divide_into(A: sp.csr_array, k: int, start: Labels | None = None) -> Division:
    """The best division into exactly k clusters that is found, from a start if there is one."""
    if k == 1:
        return Division(np.zeros(A.shape[0], dtype=np.int64), partial(np.ones, (A.shape[0], 1)))
    kept = np.flatnonzero(np.diff(A.indptr))
    with single_thread():
        described = describe_graph(subgraph(A, kept))
        graph, found = best_candidates(
            described, np.zeros(len(kept), dtype=np.int64), None if start is None else alone_where_new(start[kept])
        )
        code, graph = graph.code, graph.with_dispersion(described.dispersion) if described.simple else graph
        embedding = NodeEmbedding(A, k, _most_directions(graph, k)) if A.shape[0] <= LARGEST_WHOLE and start is None else None
        starts = _large_seeds(graph, found, k) if embedding is None else _seeds(embedding, kept, k)
        graph, given = _given(graph, found, starts, k)
        best = _best_of(graph, given) if given else None
        if best is None or (embedding is not None and graph.candidate(best.labels).length >= 0.0):  # only directions tell
            spectral = _by_directions(A, embedding or NodeEmbedding(A, k), graph, k)
            order = size_order(spectral.labels)
            memberships = partial(np.take, spectral.memberships, order, axis=1)
            return Division(np.argsort(order)[spectral.labels], memberships, _alternatives(found), code)
    return _on_all_nodes(A, kept, graph, best)._replace(alternatives=_alternatives(found), code=code)


def _most_directions(graph: DescribedGraph, k: int) -> int | None:
    """How many directions are looked at for clusters; of dense similarities, which may be smooth, all tell what is noise."""
    return None if graph.is_dense else 2 * k


def _widths(embedding: NodeEmbedding, k: int) -> tuple[int, ...]:
    """Numbers of leading directions that clusters are looked for in: k - 1, and all above the noise up to 2k."""
    return tuple(dict.fromkeys((k - 1, min(2 * k, max(k - 1, embedding.above_noise)))))


def _seeds(embedding: NodeEmbedding, kept: Labels, k: int) -> list[Labels]:
    """First clusters of the nodes with edges, by their positions in the leading directions."""
    return [labels for width in _widths(embedding, k) for labels in seeds(embedding.directions[kept, :width], k)]


def _large_seeds(graph: DescribedGraph, found: list[Candidate], k: int) -> list[Labels]:
    """First clusters of a large graph in which moves found none: its directions, where they are not too many."""
    labels = direction_clusters(graph, k) if found[0].n_clusters == 1 and k <= FEW else None
    return [] if labels is None else [labels]


def _by_directions(A: sp.csr_array, embedding: NodeEmbedding, graph: DescribedGraph, k: int) -> Clusters:
    """Clusters of all nodes by their positions in the leading directions."""
    kept, above = embedding.kept, embedding.above_noise
    whole = graph if len(kept) == A.shape[0] else describe_graph(A).with_dispersion(graph.dispersion)
    found = [
        cluster_positions(whole, embedding.directions[:, :width], k, above, Refinement.LIKELIHOOD)
        for width in _widths(embedding, k)
    ]
    return min(found, key=lambda clusters: graph.candidate(clusters.labels[kept]).length)


def _given(graph: DescribedGraph, found: list[Candidate], starts: list[Labels], k: int) -> tuple[DescribedGraph, list[Candidate]]:
    """Divisions into k given clusters, and the graph they describe: more clusters may explain degrees where k do not."""
    graphs = [graph, graph.with_own_degrees()] if graph.even else [graph]
    both = [(graph, divisions(graph, found, starts, k)) for graph in graphs]
    return min(both, key=lambda pair: pair[1][0].length + pair[0].degree_cost if pair[1] else np.inf)


def _best_of(graph: DescribedGraph, given: list[Candidate]) -> Clusters:
    """Of the shortest divisions into k clusters the one from which mean field reaches the least free energy.

    Mean field may leave fewer than k clusters; if they describe the graph in fewer nats, it has no more, and they are divided
    further. Edges of dense graphs are no Poisson numbers, as mean field has them: there the shortest division counts.
    """
    k = given[0].n_clusters
    if graph.is_dense or not affordable(graph, k):
        return _settle(graph, given[0])
    fields = [graph.model.mean_field(division.labels, k, ROUGH) for division in given[:FINALISTS]]
    best = int(np.argmin([graph.model.free_energy(q) for q in fields]))
    left = graph.candidate(np.argmax(fields[best], axis=1))
    if left.n_clusters < k and left.length < given[0].length:
        further = divide_further(graph, left.labels, k)
        if further is not None:
            return Clusters(further.labels, np.empty((0, k)))
    return _settle(graph, given[best])


def _settle(graph: DescribedGraph, best: Candidate) -> Clusters:
    """Settle a candidate: clusters with mean-field memberships, if affordable and the description stays about as short."""
    k = best.n_clusters
    if k == 1 or not affordable(graph, k):
        return Clusters(best.labels, np.empty((0, k)))
    settled = refine_seeds(graph, [best.labels], k, RateModel.PER_CLUSTER, compete=False)
    length = graph.candidate(settled.labels).length
    if settled.n_filled or length > best.length + SETTLING * abs(best.length):
        return Clusters(best.labels, np.empty((0, k)))
    return settled


def _alternatives(found: list[Candidate]) -> tuple[tuple[int, float], ...]:
    """Numbers of clusters among the candidates, each with its shortest length, by rising length."""
    shortest: dict[int, float] = {}
    for candidate in found:
        shortest.setdefault(candidate.n_clusters, candidate.length)
    return tuple(shortest.items())


def _on_all_nodes(A: sp.csr_array, core: Labels, graph: DescribedGraph, found: Clusters) -> Division:
    """Clusters of all nodes: those outside the core go with the largest, and belong to all in proportion to their sizes."""
    k = int(found.labels.max()) + 1
    sizes = np.bincount(found.labels, minlength=k)
    labels = np.full(A.shape[0], int(np.argmax(sizes)), dtype=np.int64)
    labels[core] = found.labels
    memberships = partial(_spread_memberships, A.shape[0], core, graph, found, sizes)
    return in_number_order(Division(labels, memberships), size_order(labels))


def _spread_memberships(n: int, core: Labels, graph: DescribedGraph, found: Clusters, sizes: Labels) -> FloatArray:
    q = np.tile(sizes / sizes.sum(), (n, 1))
    settled = len(found.memberships) > 0
    own = found if settled else graph.model.with_posterior(found.labels, len(sizes), RateModel.PER_CLUSTER)
    q[core] = own.memberships
    return q


def in_number_order(division: Division, order: Labels) -> Division:
    """The division of a graph with its clusters in this order."""
    return division._replace(
        labels=np.argsort(order)[division.labels], memberships=partial(_columns, division.memberships, order)
    )


def _columns(memberships: Callable[[], FloatArray], rank: Labels) -> FloatArray:
    return memberships()[:, rank]
