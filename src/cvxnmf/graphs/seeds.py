"""Seeds: first clusters from the embedding of the nodes, the same whatever the order of the nodes."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from cvxnmf.graphs.block_model import fill_empty_clusters
from cvxnmf.graphs.moves import Labels
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.centres import farthest_points, nearest_centres

#: How much longer than others the direction of the heaviest node is, so that no rounding decides which comes first.
HEAVIER = 1e-3
#: Lloyd's iterations of the quick seeds.
QUICK_ROUNDS = 5
#: Nodes, evenly spaced, that may become first centres by how many others they are near to; more if clusters are many.
CANDIDATES = 300


def quick_seed(W: FloatArray, k: int) -> Labels:
    """Quick seed: labels of the nearest of k centres after a few of Lloyd's iterations from farthest points; none is empty."""
    return _fill(W, nearest_centres(W, farthest_points(W, k), QUICK_ROUNDS), k)


def seeds(W: FloatArray, k: int) -> list[Labels]:
    """Seeds: several labellings by nearest centres (Lloyd) of the positions or of their directions; no cluster is empty.

    W holds the positions, of shape (n, r), with the nodes in canonical order.
    """
    n = len(W)
    if W.shape[1] == 0 or not np.ptp(W, axis=0).any():  # nothing tells the nodes apart but their degrees
        return [np.arange(n) * k // n]
    lengths = np.linalg.norm(W, axis=1, keepdims=True)
    unit = W / np.maximum(lengths, 1e-12 * lengths.max())  # of weak nodes only the direction tells much
    embeddings = W, unit * (1.0 + HEAVIER * lengths / lengths.max())
    first_centres = farthest_points, _pivots, _most_covering
    return [_fill(X, nearest_centres(X, first(X, k)), k) for X in embeddings for first in first_centres]


def _pivots(W: FloatArray, k: int) -> FloatArray:
    """Seed points: k that span the positions and a constant best, the pivots of a QR decomposition."""
    spread = np.sqrt(float(np.sum(W * W)) / W.size)
    _, _, pivots = sl.qr(np.column_stack([np.full(len(W), spread), W]).T, mode="economic", pivoting=True)
    first = W[pivots[: min(k, W.shape[1] + 1)]]
    return first if len(first) == k else np.vstack([first, farthest_points(W, k)[: k - len(first)]])


def _most_covering(W: FloatArray, k: int) -> FloatArray:
    """Seed points: k, each the candidate that lowers the sum of squared distances to the nearest chosen point most."""
    candidates = W[:: -(-len(W) // max(CANDIDATES, 2 * k))]
    squares = np.sum(W * W, axis=1)
    distances = squares[:, None] + np.sum(candidates**2, axis=1)[None, :] - 2.0 * (W @ candidates.T)
    nearest, chosen = np.sum((W - W.mean(axis=0)) ** 2, axis=1), []
    for _ in range(k):
        chosen.append(int(np.argmax(np.maximum(nearest[:, None] - distances, 0.0).sum(axis=0))))
        nearest = np.minimum(nearest, distances[:, chosen[-1]])
    return np.asarray(candidates[chosen])


def _fill(W: FloatArray, labels: Labels, k: int) -> Labels:
    """Fill empty clusters of a seed: each takes the node farthest from its centre."""

    def distances(labels: Labels) -> FloatArray:
        centres = np.eye(k)[labels].T @ W / np.maximum(np.bincount(labels, minlength=k), 1)[:, None]
        return np.asarray(np.sum((W - centres[labels]) ** 2, axis=1))

    return fill_empty_clusters(labels, k, distances)[0]
