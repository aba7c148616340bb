"""Places for the nodes of a small graph: springs from a fixed start, so that the same graph gives the same drawing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray

ROUNDS = 260
#: How much more edges pull inside a cluster, so that clusters come apart.
INSIDE = 2.5


def places(A: Any, labels: NDArray[np.intp]) -> FloatArray:
    """Return places of nodes in the square [-1, 1], shape (n, 2).

    Nodes push one another away with the inverse of their distance and edges pull with its square, as Fruchterman and Reingold
    have it, with a little gravity for nodes without edges. The start is a circle, cluster by cluster.

    Parameters
    ----------
    A : scipy.sparse array of shape (n, n)
        Symmetric adjacency matrix.
    labels : ndarray of int, shape (n,)
        The cluster of each node.
    """
    n = len(labels)
    if n < 3:
        return np.column_stack([np.linspace(-0.5, 0.5, n) if n == 2 else np.zeros(n), np.zeros(n)])
    pull = _pull(A, labels)
    spots, ideal = _circle(labels), 1.6 / np.sqrt(n)
    for cooling in np.linspace(0.16, 0.0, ROUNDS, endpoint=False):
        apart = spots[:, None, :] - spots[None, :, :]
        distance = np.maximum(np.linalg.norm(apart, axis=2), 1e-4)
        force = ideal**2 / distance**2 - pull * distance / ideal
        np.fill_diagonal(force, 0.0)
        move = np.einsum("ij,ijk->ik", force, apart) - 0.35 * spots
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-12)
        spots = spots + move / length * np.minimum(length, cooling)
    return _separated(_framed(spots))


def _separated(spots: FloatArray) -> FloatArray:
    """Push nodes apart that would cover one another."""
    room = min(0.075, 0.9 / np.sqrt(len(spots)))
    for _ in range(60):
        apart = spots[:, None, :] - spots[None, :, :]
        distance = np.maximum(np.linalg.norm(apart, axis=2), 1e-6)
        overlap = np.maximum(room - distance, 0.0) / distance
        np.fill_diagonal(overlap, 0.0)
        spots = spots + 0.4 * np.einsum("ij,ijk->ik", overlap, apart)
    return np.asarray(spots / max(float(np.abs(spots).max()), 1e-12), dtype=np.float64)


def _pull(A: Any, labels: NDArray[np.intp]) -> FloatArray:
    """Return how strongly pairs are pulled together: weights over their mean, dense graphs damped."""
    weights = np.abs(np.nan_to_num(np.asarray(A.toarray(), dtype=np.float64)))
    np.fill_diagonal(weights, 0.0)
    present = weights > 0
    if not present.any():
        return weights
    weights = np.minimum(weights / weights[present].mean(), 4.0)
    weights *= np.where(labels[:, None] == labels[None, :], INSIDE, 1.0)
    degree = present.sum() / len(labels)
    return np.asarray(weights * min(1.0, 6.0 / degree), dtype=np.float64)


def _circle(labels: NDArray[np.intp]) -> FloatArray:
    """Return places around a circle, one cluster after the other; the radius varies so that no two nodes coincide."""
    n = len(labels)
    rank = np.empty(n)
    rank[np.argsort(labels, kind="stable")] = np.arange(n)
    angle = 2 * np.pi * rank / n
    radius = 0.7 + 0.2 * np.modf(rank * 0.6180339887498949)[0]
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _framed(spots: FloatArray) -> FloatArray:
    """Turn the longer direction level and fill the square in each direction."""
    centred = spots - spots.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes * np.where(axes[np.arange(2), np.argmax(np.abs(axes), axis=1)] < 0, -1.0, 1.0)[:, None]
    turned = centred @ axes.T
    turned = turned - (turned.max(axis=0) + turned.min(axis=0)) / 2
    return np.asarray(turned / np.maximum(np.abs(turned).max(), 1e-12), dtype=np.float64)
