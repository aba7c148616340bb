"""Places for the nodes of a graph: networkx's springs from a fixed start, so that the same graph gives the same drawing."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from cvxnmf.linalg.arrays import FloatArray

#: How much more edges pull inside a cluster, so that clusters come apart.
INSIDE = 2.5
#: From so many nodes on networkx minimises an energy instead, whose steps are longer and dearer.
LARGE = 500


def spring_positions(A: Any, labels: NDArray[np.intp]) -> FloatArray:
    """Return places of nodes in the square [-1, 1], shape (n, 2), from a sparse symmetric adjacency matrix and clusters.

    The forces are those of Fruchterman and Reingold, with stronger edges inside clusters; the start is a circle, cluster by
    cluster. Afterwards the longer direction is turned level and nodes that would cover one another are pushed apart.
    """
    n = len(labels)
    if n < 3:
        return np.column_stack([np.linspace(-0.5, 0.5, n) if n == 2 else np.zeros(n), np.zeros(n)])
    try:
        import networkx
    except ImportError:
        raise ImportError("drawings of graphs need networkx; install it with: pip install networkx.") from None
    graph = networkx.from_scipy_sparse_array(_attraction(A, labels))
    start, steps = dict(enumerate(_circle(labels))), 260 if n < LARGE else 50
    found = networkx.spring_layout(graph, k=1.6 / np.sqrt(n), pos=start, iterations=steps, seed=0)
    return _push_apart(_turn_level(np.array([found[node] for node in range(n)])))


def _attraction(A: Any, labels: NDArray[np.intp]) -> Any:
    """Return how strongly edges pull: weights over their mean, inside clusters more, in dense graphs less; shape (n, n)."""
    edges = sp.coo_array(A, dtype=np.float64)
    weights = np.abs(np.nan_to_num(edges.data))
    kept = (weights > 0) & (edges.row != edges.col)
    row, column, weights = edges.row[kept], edges.col[kept], weights[kept]
    if len(weights):
        weights = np.minimum(weights / weights.mean(), 4.0) * np.where(labels[row] == labels[column], INSIDE, 1.0)
        weights *= min(1.0, 6.0 * len(labels) / len(weights))
    return sp.csr_array((weights, (row, column)), shape=edges.shape)


def _circle(labels: NDArray[np.intp]) -> FloatArray:
    """Return places around a circle, one cluster after the other; the radius varies so that no two nodes coincide."""
    n = len(labels)
    rank = np.empty(n)
    rank[np.argsort(labels, kind="stable")] = np.arange(n)
    angle = 2 * np.pi * rank / n
    radius = 0.7 + 0.2 * np.modf(rank * 0.6180339887498949)[0]
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _turn_level(places: FloatArray) -> FloatArray:
    """Turn the longer direction level, and scale to the square [-1, 1]."""
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes * np.where(axes[np.arange(2), np.argmax(np.abs(axes), axis=1)] < 0, -1.0, 1.0)[:, None]
    turned = centred @ axes.T
    turned = turned - (turned.max(axis=0) + turned.min(axis=0)) / 2
    return np.asarray(turned / np.maximum(np.abs(turned).max(), 1e-12), dtype=np.float64)


def _push_apart(places: FloatArray) -> FloatArray:
    """Push nodes apart that would cover one another."""
    places, room = places.copy(), min(0.075, 0.9 / np.sqrt(len(places)))
    for _ in range(60):
        one, other = cKDTree(places).query_pairs(room, output_type="ndarray").T
        apart = places[one] - places[other]
        distance = np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-6)
        push = 0.4 * (room - distance) / distance * apart
        np.add.at(places, one, push)
        np.subtract.at(places, other, push)
    return np.asarray(places / max(float(np.abs(places).max()), 1e-12), dtype=np.float64)
