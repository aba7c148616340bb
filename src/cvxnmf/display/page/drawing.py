"""Drawings of a graph for the page's template: its nodes when they are few, its clusters when they are many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from cvxnmf.display.formatting import count, number
from cvxnmf.display.layout import spring_positions
from cvxnmf.display.page.payload import encodable
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Partition

#: Larger graphs, and larger numbers of clusters, are not drawn.
MOST_NODES, MOST_CLUSTERS = 2000, 60
#: Names are written inside the marks when the nodes are this few and the names this short; the page's script writes all others.
NAMED, SHORT = 60, 3
#: Radius of a mark in a small graph and in a large one, in a picture of the width below.
LARGEST, SMALLEST = 15.0, 3.5
WIDTH = 1000
#: Edges fall into so many paths, which lets crossings darken without an element for each edge.
PATHS = 24


@dataclass(frozen=True)
class Line:
    """Edges of a drawing in one path: where, of which cluster (None between clusters), how wide, and what the pointer says."""

    path: str
    cluster: int | None = None
    width: float | None = None
    title: str = ""


@dataclass(frozen=True)
class Mark:
    """A node or a cluster in a drawing: where, how large, its text, and what the pointer says."""

    cluster: int
    x: float
    y: float
    radius: float
    text: str
    title: str = ""


@dataclass(frozen=True)
class Drawing:
    """A drawing of a graph for the page, lines below marks; `of_nodes` says that marks are single nodes, in order."""

    label: str
    height: int
    opacity: float
    lines: list[Line]
    marks: list[Mark]
    of_nodes: bool
    width: int = WIDTH


def draw_nodes(partition: Partition) -> Drawing:
    """Return the page's drawing of a graph's nodes; the script adds names where they fit."""
    places, height = _scale_to_frame(spring_positions(partition.A, partition.labels))
    n, degree = len(partition.nodes), np.diff(sp.csr_array(partition.A).indptr)
    largest = float(np.clip(LARGEST * np.sqrt(NAMED / n), SMALLEST, LARGEST))
    radius = largest * (0.7 + 0.5 * np.sqrt(degree / max(int(degree.max(initial=0)), 1)))
    names = [encodable(name) if n <= NAMED and len(encodable(name)) <= SHORT else "" for name in partition.nodes]
    rows = zip(partition.labels.tolist(), places.tolist(), radius.tolist(), names, strict=True)
    marks = [Mark(cluster, x, y, size, name) for cluster, (x, y), size, name in rows]
    edges = sp.coo_array(sp.triu(partition.A, 1))
    opacity = float(np.clip(14.0 / np.sqrt(max(edges.nnz, 1)), 0.08, 0.55))
    label = f"The graph: {count(n, 'node')}, coloured by cluster. The table lists them all."
    return Drawing(label, height, opacity, list(_edge_lines(edges, partition, places)), marks, of_nodes=True)


def _edge_lines(edges: sp.coo_array, partition: Partition, places: FloatArray) -> Iterator[Line]:
    """Yield the edges of a drawing in a few paths for each cluster and for those that run between clusters."""
    first, second = partition.labels[edges.row], partition.labels[edges.col]
    owner = np.where(first == second, first, -1)
    pairs, whole = np.column_stack([edges.row, edges.col]), places.astype(int)
    for cluster in np.unique(owner).tolist():
        inside = pairs[owner == cluster]
        paths = min(PATHS, len(inside))
        for part in range(paths):
            ends = (f"M{whole[i, 0]} {whole[i, 1]}L{whole[j, 0]} {whole[j, 1]}" for i, j in inside[part::paths])
            yield Line("".join(ends), None if cluster < 0 else cluster)


def draw_clusters(partition: Partition) -> Drawing:
    """Return the page's drawing of the clusters of a large graph, with lines for the edges between them."""
    k = partition.n_clusters
    weights, sizes = _cluster_weights(partition), np.bincount(partition.labels, minlength=k)
    spread = np.where(np.eye(k) > 0, 0.0, weights / np.sqrt(np.maximum(np.outer(sizes, sizes), 1)))
    places, height = _scale_to_frame(spring_positions(sp.csr_array(spread), np.arange(k)), margin=80.0)
    radius = 16.0 + 34.0 * np.sqrt(sizes / max(int(sizes.max(initial=0)), 1))
    titles = [
        f"cluster {c}: {count(int(sizes[c]), 'node')}, edges of weight {number(float(weights[c, c]), 4)} inside" for c in range(k)
    ]
    marks = [Mark(c, float(places[c, 0]), float(places[c, 1]), float(radius[c]), str(c), titles[c]) for c in range(k)]
    label = f"The {count(k, 'cluster')} of the graph and the edges between them."
    return Drawing(label, height, 0.45, list(_cluster_lines(weights, places)), marks, of_nodes=False)


def _cluster_weights(partition: Partition) -> FloatArray:
    """Return the weight of the edges between and, once each, inside clusters, shape (k, k), for a drawing."""
    upper = sp.coo_array(sp.triu(partition.A))
    first, second, k = partition.labels[upper.row], partition.labels[upper.col], partition.n_clusters
    total = np.bincount(first * k + second, weights=np.nan_to_num(upper.data), minlength=k * k).reshape(k, k)
    return np.asarray(total + total.T - np.diag(np.diag(total)), dtype=np.float64)


def _cluster_lines(weights: FloatArray, places: FloatArray) -> Iterator[Line]:
    """Yield a line of the drawing for each pair of joined clusters, as wide as the root of its weight."""
    first, second = np.nonzero(np.triu(weights, 1) > 0)
    most = float(weights[first, second].max(initial=0.0)) or 1.0
    widest = float(np.clip(70.0 / len(weights), 3.0, 14.0))
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        path = f"M{places[i, 0]:.0f} {places[i, 1]:.0f}L{places[j, 0]:.0f} {places[j, 1]:.0f}"
        width = max(1.0, widest * float(np.sqrt(weights[i, j] / most)))
        title = f"clusters {i} and {j}: edges of weight {number(float(weights[i, j]), 4)} between them"
        yield Line(path, None, width, title)


def _scale_to_frame(places: FloatArray, margin: float = 40.0) -> tuple[FloatArray, int]:
    """Return places of a drawing scaled to a picture of the fixed width, and its height."""
    height = int(np.clip(WIDTH * np.ptp(places[:, 1]) / max(np.ptp(places[:, 0]), 1e-9), 480, 900))
    reach = np.array([WIDTH / 2 - margin, height / 2 - margin])
    scale = float(np.min(reach / np.maximum(np.abs(places).max(axis=0), 1e-9)))
    return np.round(np.array([WIDTH / 2, height / 2]) + places * scale, 1), height
