"""The parts of a page about a partition."""

from __future__ import annotations

import numpy as np

from cvxnmf.display import formatting as words
from cvxnmf.display.page import cluster_drawing, colours, drawing, eigenvalues, sections, steps
from cvxnmf.display.page.payload import COLUMNS, EDGES, GRID, Graph
from cvxnmf.results import Partition


def title(partition: Partition) -> str:
    """Return the title a page has when none is given."""
    return f"Partition of {words.count(len(partition.nodes), 'node')} into {words.count(partition.n_clusters, 'cluster')}"


def body(partition: Partition, graph: Graph, factors: bool = True) -> str:
    """Return the parts in the order they are read."""
    return "".join(
        [
            headline(partition, graph),
            proofs(partition, factors),
            adjacency(partition, graph),
            drawn(partition),
            memberships(partition),
            solve(partition),
            table(graph),
        ]
    )


def headline(partition: Partition, graph: Graph) -> str:
    """Return the headline numbers and the clusters with their sizes."""
    loops = f"{words.count(graph.loops, 'self-loop')} among them" if graph.loops else ""
    facts = [
        ("Nodes", f"{len(partition.nodes):,}", _isolated(graph)),
        ("Edges", f"{len(graph.weights):,}", ", ".join(filter(None, ["weighted" if graph.weighted else "", loops]))),
        ("Clusters", f"{partition.n_clusters:,}", ""),
        ("Modularity", f"{partition.modularity:.4f}", ""),
        ("Performance", f"{partition.performance:.4f}", "pairs that are right"),
        ("Without diagonal", f"{partition.off_diagonal_performance:.4f}", "pairs of different nodes"),
    ]
    return sections.section("overview", "At a glance", sections.tiles(facts) + clusters(partition))


def _isolated(graph: Graph) -> str:
    """Return how many nodes have no neighbours."""
    alone = int(np.count_nonzero(graph.degree == 0))
    return f"{alone:,} without neighbours" if alone else ""


def clusters(partition: Partition) -> str:
    """Return a strip of the clusters' sizes and a button for each."""
    sizes = np.bincount(partition.labels, minlength=partition.n_clusters).tolist()
    strip = "".join(f'<i style="flex-grow:{size};background:{tone(cluster)}"></i>' for cluster, size in enumerate(sizes) if size)
    buttons = "".join(
        f'<li><button type="button" class="chip" data-cluster="{cluster}" aria-pressed="false">{mark(cluster)}'
        f"<b>{cluster}</b> <span>{words.count(size, 'node')}</span></button></li>"
        for cluster, size in enumerate(sizes)
    )
    many = partition.n_clusters > len(colours.LIGHT)
    repeat = " Colours repeat after 12; shapes and numbers tell clusters apart." if many else ""
    return (
        f'<div class="strip" aria-hidden="true">{strip}</div><ul class="chips" aria-label="Clusters">{buttons}</ul>'
        '<p class="note">Clusters are numbered from 0, as in the result. '
        f"Choose one to single it out on the whole page.{repeat}</p>"
    )


def tone(cluster: int) -> str:
    """Return the colour of a cluster as a variable of the page."""
    return f"var(--c{cluster % len(colours.LIGHT)})"


def mark(cluster: int) -> str:
    """Return the small picture of a cluster's mark."""
    return (
        f'<svg class="mark" viewBox="-9 -9 18 18" aria-hidden="true" style="--c:{tone(cluster)}">'
        f'<path d="{colours.mark(cluster, 5.6)}"/></svg>'
    )


def proofs(partition: Partition, factors: bool) -> str:
    """Return the certificates in plain words."""
    columns = words.count(partition.n_clusters, "column")
    first = sections.certificate(partition.certificate, "The model")
    if not factors:
        return sections.section("proof", "What is proved", first)
    second = sections.certificate(partition.rank_certificate, f"Its factors, {columns}")
    return sections.section("proof", "What is proved", f'<div class="pair">{first}{second}</div>')


def adjacency(partition: Partition, graph: Graph) -> str:
    """Return the adjacency matrix before and after the permutation."""
    shown = "A dot is an edge, in the colour of its cluster when both ends share one."
    if not graph.listed:
        size = min(len(partition.nodes), GRID)
        shown = (
            f"There are more than {EDGES:,} edges, so single edges are left out: the pictures count them on a grid of {size} by "
            f"{size} cells, darker where there are more."
        )
    figures = "".join(
        f"<figure><figcaption>{caption}</figcaption>{sections.plot(f'matrix-{name}', caption + '.', 'square')}"
        f"{sections.READOUT}</figure>"
        for name, caption in (("before", "As given"), ("after", "Cluster by cluster"))
    )
    return sections.section("adjacency", "The adjacency matrix", f'<div class="pair">{figures}</div>', shown)


def drawn(partition: Partition) -> str:
    """Return the drawing of a small graph, or of the clusters of a larger one."""
    n, k = len(partition.nodes), partition.n_clusters
    if n <= drawing.LIMIT:
        lead = "Larger marks have more neighbours; the layout is always the same."
        return sections.section("graph", "The graph", _walkable(drawing.graph(partition)), lead)
    left_out = f"Single nodes are drawn up to {drawing.LIMIT}; this graph has {n:,}"
    if k > cluster_drawing.LIMIT:
        return sections.section("graph", "The graph", "", f"{left_out} in {k:,} clusters, so there is no drawing.")
    lead = f"{left_out}, so its clusters are: marks grow with their size, lines with the weight of the edges between them."
    return sections.section("graph", "The graph of clusters", cluster_drawing.clusters(partition), lead)


def _walkable(picture: str) -> str:
    """Return a drawing of nodes that arrow keys walk through."""
    label = "Drawing of the graph. Left and right arrow keys walk through the nodes."
    host = f'<div class="canvas" data-plot="graph" tabindex="0" role="application" aria-label="{label}">{picture}</div>'
    return f"<figure>{host}{sections.READOUT}</figure>"


def memberships(partition: Partition) -> str:
    """Return the heat map of memberships."""
    n = len(partition.nodes)
    rows = [(str(cluster), mark(cluster)) for cluster in range(partition.n_clusters)]
    lead = "Each column is a node, cluster by cluster; the stronger the colour, the larger its share in the cluster of that row."
    if n > COLUMNS:
        lead += f" {n:,} nodes share {COLUMNS:,} columns, which show means; the table lists every node's own share."
    figure = sections.heat(0, "", rows, "Shares of the nodes in the clusters.")
    return sections.section("memberships", "Memberships", figure, lead)


def solve(partition: Partition) -> str:
    """Return how the gap closed, and the spectrum beside it."""
    solution = partition.solution
    count = words.count(solution.n_iter, "step")
    told = f"{count} in {words.number(solution.seconds, 2)} s. {solution.status.sentence}"
    first = f'<article><h3>The gap closing</h3><p class="note">{told}</p>'
    first += f"{steps.closing(solution.history, partition.certificate.bound)}</article>"
    second = f"<article><h3>The spectrum</h3>{eigenvalues.spectrum(partition)}</article>"
    return sections.section("solve", "How it was found", f'<div class="pair">{first}{second}</div>')


def table(graph: Graph) -> str:
    """Return the table of nodes, which the script fills."""
    columns = [("name", "Node"), ("cluster", "Cluster"), ("share", "Share"), ("degree", "Degree")]
    if graph.weighted:
        columns.append(("strength", "Strength"))
    head = "".join(_sortable(key, name) for key, name in columns)
    field = '<input id="search" type="search" autocomplete="off" spellcheck="false">'
    body = (
        f'<div class="tools"><label for="search">Search nodes {field}</label>'
        '<button type="button" id="download">Download labels (CSV)</button></div><p class="note" id="shown" role="status"></p>'
        '<div class="scroll"><table class="nodes"><caption class="unseen">Nodes with cluster, share in it and degree</caption>'
        f"<thead><tr>{head}</tr></thead><tbody></tbody></table></div>"
        '<p><button type="button" id="more" hidden>Show more</button></p>'
    )
    return sections.section("nodes", "The nodes", body)


def _sortable(key: str, name: str) -> str:
    """Return the head of a column that sorts when pressed."""
    button = f'<button type="button" data-sort="{key}">{name}<span aria-hidden="true"></span></button>'
    return f'<th scope="col" aria-sort="none">{button}</th>'
