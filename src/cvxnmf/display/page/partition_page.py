"""What the page about a partition shows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from cvxnmf.display import charts
from cvxnmf.display.certificate_text import Description, describe
from cvxnmf.display.edges import EdgeList
from cvxnmf.display.formatting import count, number
from cvxnmf.display.page import drawing, figures
from cvxnmf.display.page.payload import COLUMNS, EDGES, GRID, lists_edges
from cvxnmf.results import Partition


def title(partition: Partition) -> str:
    """Return the title that the page about a partition has when none is given."""
    return f"Partition of {count(len(partition.nodes), 'node')} into {count(partition.n_clusters, 'cluster')}"


def context(partition: Partition, edges: EdgeList, with_factors: bool) -> dict[str, Any]:
    """Return everything that the template ``partition.html`` shows on the page about a partition."""
    certificates = [*_label_proof(partition), ("The model behind them", describe(partition.certificate))]
    if with_factors:
        heading = f"Its factors, {count(partition.n_clusters, 'column')}"
        certificates.append((heading, describe(partition.rank_certificate)))
    solution, bound = partition.solution, partition.certificate.bound
    penalty = _penalty(partition)
    spectrum = _spectrum_note(partition, penalty)
    return {
        "headline": _headline(partition),
        "tiles": _tiles(partition, edges),
        "sizes": _sizes(partition),
        "certificates": certificates,
        "matrix_lead": _matrix_lead(partition, edges),
        **_graph(partition, edges),
        "memberships_lead": _memberships_lead(len(partition.nodes)),
        "ending": f"{count(solution.n_iter, 'step')} in {number(solution.seconds, 2)} s. {solution.status.sentence}",
        "gap_figure": figures.gap_figure(solution.history, bound),
        "steps": figures.step_rows(solution.history, bound) if 1 < len(solution.history) <= charts.FEW else [],
        "spectrum_figure": figures.spectrum_figure(partition, penalty, spectrum),
        "spectrum_note": spectrum,
        "columns": ["Node", "Cluster", "Share", "Degree", *(["Strength"] if edges.weighted else [])],
    }


def _label_proof(partition: Partition) -> list[tuple[str, Description]]:
    """Return the certificate of the labels in words for the page about a partition, where there is one."""
    if partition.label_certificate_at_hand is None:
        return []
    text = describe(partition.label_certificate_at_hand)
    return [("The clusters", replace(text, basis=f"{text.basis} {partition.uniqueness}".rstrip()))]


def _headline(partition: Partition) -> str:
    """Return the first sentence of the page about a partition: what is proved of the clusters, or how to prove it."""
    proof = partition.label_certificate_at_hand
    if proof is not None:
        return describe(proof).claim
    ask = "partition(graph, prove=True) and cvxnmf partition --prove do"
    return f"Below is proved how good the model behind these clusters is; {ask} the same for the clusters themselves."


def _sizes(partition: Partition) -> list[tuple[int, int, str]]:
    """Return the clusters with their sizes, and in words what they hold and save, for the page about a partition."""
    sizes = np.bincount(partition.labels, minlength=partition.n_clusters).tolist()
    savings = partition.hierarchy.savings
    known = savings if len(savings) == len(sizes) else np.full(len(sizes), np.nan)  # many clusters are merged before
    words = [f", {'saves' if x >= 0 else 'costs'} {number(abs(x), 3)} nats" if math.isfinite(x) else "" for x in known]
    return [(cluster, size, count(size, "node") + words[cluster]) for cluster, size in enumerate(sizes)]


def _tiles(partition: Partition, edges: EdgeList) -> list[tuple[str, str, str]]:
    """Return the headline numbers of the page about a partition: name, number and a remark."""
    alone = int(np.count_nonzero(edges.degree == 0))
    remarks = ["weighted" if edges.weighted else "", f"{count(edges.loops, 'self-loop')} among them" if edges.loops else ""]
    return [
        ("Nodes", f"{len(partition.nodes):,}", f"{alone:,} without neighbours" if alone else ""),
        ("Edges", f"{len(edges.weights):,}", ", ".join(filter(None, remarks))),
        ("Clusters", f"{partition.n_clusters:,}", _next_best(partition)),
        ("Modularity", f"{partition.modularity:.4f}", ""),
        ("Performance", f"{partition.performance:.4f}", "pairs that are right"),
        ("Without diagonal", f"{partition.off_diagonal_performance:.4f}", "pairs of different nodes"),
    ]


def _next_best(partition: Partition) -> str:
    """Return by how many nats the description of a partition with the next best number of clusters is longer."""
    found = dict(partition.alternatives)
    others = [(length, k) for k, length in found.items() if k != partition.n_clusters]
    if partition.n_clusters not in found or not others:
        return ""
    length, k = min(others)
    longer = length - found[partition.n_clusters]
    if longer >= 0:
        return f"{k:,} would take {longer:,.0f} nats more"
    why = "; the directions above the noise edge decide" if k == 1 else ""
    return f"{k:,} would take {-longer:,.0f} nats less{why}"


def _matrix_lead(partition: Partition, edges: EdgeList) -> str:
    """Return what the dots in the picture of the adjacency matrix are, for the page about a partition."""
    if lists_edges(edges):
        return "A dot is an edge, in the colour of its cluster when both ends share one."
    size = min(len(partition.nodes), GRID)
    return (
        f"There are more than {EDGES:,} edges, so single edges are left out: the pictures count them on a grid of {size} by "
        f"{size} cells, darker where there are more."
    )


def _graph(partition: Partition, edges: EdgeList) -> dict[str, Any]:
    """Return the drawing of a partition's graph, or of the clusters of a large one, with heading and lead."""
    n, k = len(partition.nodes), partition.n_clusters
    if n <= drawing.MOST_NODES and lists_edges(edges):
        lead = "Larger marks have more neighbours. Click a node to pin it in all pictures; names appear where they fit."
        return {"graph_heading": "The graph", "graph_lead": lead, "drawing": drawing.draw_nodes(partition)}
    left_out = f"Single nodes are drawn up to {drawing.MOST_NODES:,} with {EDGES:,} edges; this graph has {n:,}"
    if k > drawing.MOST_CLUSTERS:
        lead = f"{left_out} in {k:,} clusters, so there is no drawing."
        return {"graph_heading": "The graph", "graph_lead": lead, "drawing": None}
    lead = f"{left_out}, so its clusters are: marks grow with their size, lines with the weight of the edges between them."
    return {"graph_heading": "The graph of clusters", "graph_lead": lead, "drawing": drawing.draw_clusters(partition)}


def _memberships_lead(n: int) -> str:
    """Return how the heat map of memberships on the page about a partition is to be read."""
    lead = "Each column is a node, cluster by cluster; the stronger the colour, the larger its share in the cluster of that row."
    if n > COLUMNS:
        lead += f" {n:,} nodes share {COLUMNS:,} columns, which show means; the table lists every node's own share."
    return lead


def _penalty(partition: Partition) -> float:
    """Return the trace weight for the picture of the spectrum, NaN if in another scale or at the noise edge."""
    terms = partition.certificate.statement
    if (terms.get("loss"), terms.get("cone"), terms.get("metric")) != ("kl", "conditional", "degree"):
        return math.nan
    trace = float(terms.get("trace", math.nan))
    return math.nan if abs(trace - partition.noise_edge) <= 0.02 * partition.noise_edge else trace


def _spectrum_note(partition: Partition, penalty: float) -> str:
    """Return what the picture of the spectrum on the page about a partition shows, and what it leaves out."""
    rank, drawn = partition.solution.rank, len(charts.shown_eigenvalues(partition))
    known = int(np.count_nonzero(np.isfinite(partition.spectrum)))
    if not known:
        return "No spectrum was computed."
    entered = f"{count(rank, 'direction')} entered the model X" if rank else "No direction entered the model X"
    rest = f" The {drawn:,} largest of {known:,} are drawn." if drawn < known else ""
    if not math.isfinite(partition.noise_edge):
        return f"{entered}. No noise edge is known.{rest}"
    above = int(np.count_nonzero(np.asarray(partition.spectrum) > partition.noise_edge))
    stand = "1 eigenvalue stands" if above == 1 else f"{above:,} eigenvalues stand"
    why = f", past a penalty of {number(penalty, 4)}" if math.isfinite(penalty) else ""
    return f"{stand} out of the noise, whose edge is at {number(partition.noise_edge, 4)}. {entered}{why}.{rest}"
