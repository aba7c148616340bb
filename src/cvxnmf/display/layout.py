"""Places for the nodes of a graph: springs from a fixed start, so that the same graph gives the same drawing."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compiled

#: How much more edges pull inside a cluster, so that clusters come apart.
INSIDE = 2.5
#: Steps of the springs, and the work that they may take in pairs of nodes: large graphs take fewer.
STEPS, LEAST_STEPS, PAIRS = 260, 80, 1e9
#: Nodes nearer than this push no harder.
NEAREST = 0.01


def spring_positions(A: Any, labels: NDArray[np.intp]) -> FloatArray:
    """Return places of nodes in the square [-1, 1], shape (n, 2), from a sparse symmetric adjacency matrix and clusters.

    The forces are those of Fruchterman and Reingold, with stronger edges inside clusters; the start is a circle, cluster by
    cluster. Afterwards the longer direction is turned level and nodes that would cover one another are pushed apart.
    """
    n = len(labels)
    if n < 3:
        return np.column_stack([np.linspace(-0.5, 0.5, n) if n == 2 else np.zeros(n), np.zeros(n)])
    return _push_apart(_turn_level(_settle(_attraction(A, labels), _circle(labels))))


def _settle(attraction: Any, places: FloatArray) -> FloatArray:
    """Let the springs of Fruchterman and Reingold move the nodes of the layout by ever shorter steps."""
    n, rest = len(places), 1.6 / np.sqrt(len(places))
    steps = int(np.clip(PAIRS / n**2, LEAST_STEPS, STEPS))
    reach = 0.1 * float(np.max(np.ptp(places, axis=0)))
    for step in range(steps):
        push = _forces(places, attraction.indptr, attraction.indices, attraction.data, rest)
        length = np.maximum(np.linalg.norm(push, axis=1, keepdims=True), NEAREST)
        places = places + push * (reach * (1.0 - step / (steps + 1)) / length)
    return places


@compiled
def _forces(places: FloatArray, indptr: Any, indices: Any, weights: FloatArray, rest: float) -> FloatArray:
    """Forces of the spring layout: all other nodes push by ``rest^2 / d``, and neighbours pull by ``w d^2 / rest``."""
    n = len(places)
    x, y = places[:, 0].copy(), places[:, 1].copy()
    force = np.empty((n, 2))
    for i in range(n):
        across, down = 0.0, 0.0
        for j in range(n):
            dx, dy = x[i] - x[j], y[i] - y[j]
            push = rest * rest / max(dx * dx + dy * dy, NEAREST * NEAREST)
            across += push * dx
            down += push * dy
        for at in range(indptr[i], indptr[i + 1]):
            dx, dy = x[i] - x[indices[at]], y[i] - y[indices[at]]
            pull = weights[at] * max(np.sqrt(dx * dx + dy * dy), NEAREST) / rest
            across -= pull * dx
            down -= pull * dy
        force[i, 0], force[i, 1] = across, down
    return force


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
    """Return places around a circle to start the layout from, one cluster after the other; no two nodes coincide."""
    n = len(labels)
    rank = np.empty(n)
    rank[np.argsort(labels, kind="stable")] = np.arange(n)
    angle = 2 * np.pi * rank / n
    radius = 0.7 + 0.2 * np.modf(rank * 0.6180339887498949)[0]
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _turn_level(places: FloatArray) -> FloatArray:
    """Turn the longer direction of a layout level, and scale to the square [-1, 1]."""
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes * np.where(axes[np.arange(2), np.argmax(np.abs(axes), axis=1)] < 0, -1.0, 1.0)[:, None]
    turned = centred @ axes.T
    turned = turned - (turned.max(axis=0) + turned.min(axis=0)) / 2
    return np.asarray(turned / np.maximum(np.abs(turned).max(), 1e-12), dtype=np.float64)


def _push_apart(places: FloatArray) -> FloatArray:
    """Push nodes of a layout apart that would cover one another."""
    places, room = places.copy(), min(0.075, 0.9 / np.sqrt(len(places)))
    for _ in range(60):
        one, other = cKDTree(places).query_pairs(room, output_type="ndarray").T
        apart = places[one] - places[other]
        distance = np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-6)
        push = 0.4 * (room - distance) / distance * apart
        np.add.at(places, one, push)
        np.subtract.at(places, other, push)
    return np.asarray(places / max(float(np.abs(places).max()), 1e-12), dtype=np.float64)
