"""Spectral baselines: the min-max cut that the paper compares with, and scikit-learn's normalised cut."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.centres import farthest_points, nearest_centres
from cvxnmf.linalg.leading import leading_eigenpairs

Labels = NDArray[np.intp]

#: A cluster without inside weight counts as having this share of all weight, so that cuts stay comparable.
LEAST_INSIDE = 1e-9
#: Rounds of moves, per node, after which refinement ends come what may.
MOVES_PER_NODE = 10
#: A move must lower the cut by this share of it, else rounding could go round in circles.
WORTHWHILE = 1e-10


def min_max_cut(A: Any, n_clusters: int = 2, *, refine: bool = True) -> Labels:
    """Cut a graph where little weight crosses and much stays inside (Ding, He, Zha, Gu and Simon, 2001).

    ``minimise sum_k cut(C_k) / within(C_k)``, cut the weight that leaves a cluster and within the weight inside it, both over
    ordered pairs. Two clusters start from the best split along the second eigenvector of ``D^-1/2 A D^-1/2`` and are refined
    by splits along the difference of linkage, ``links(i, C_1) / within(C_1) - links(i, C_2) / within(C_2)``; more start from
    k-means on the leading eigenvectors. Then single nodes move while that lowers the cut. Nothing is random. A node
    without edges touches no cut and joins the smallest cluster. Without `refine` the spectral start is returned.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxnmf.paper.spectral import min_max_cut
    >>> A = np.kron(np.eye(2), np.ones((3, 3)))
    >>> A[2, 3] = A[3, 2] = 1.0
    >>> labels = min_max_cut(A, 2)
    >>> bool(len(set(labels[:3])) == len(set(labels[3:])) == 1), bool(labels[0] != labels[3])
    (True, True)
    """
    matrix, k = _check_arguments(A, n_clusters)
    labels = np.zeros(len(matrix), dtype=np.intp)
    kept = np.flatnonzero(matrix.any(axis=1))
    if k == 1:
        return labels
    if len(kept) < k:
        return np.arange(len(matrix), dtype=np.intp) % k
    part = matrix[np.ix_(kept, kept)]
    start = _best_split(part, _embedding(part, 2)[:, 1]) if k == 2 else _spectral_clusters(part, k)
    labels[kept] = _refine(part, start, k) if refine else start
    labels[np.setdiff1d(np.arange(len(matrix)), kept)] = np.argmin(np.bincount(labels[kept], minlength=k))
    return labels


def min_max_cut_value(A: Any, labels: Any) -> float:
    """The min-max cut of a partition, ``sum_k cut(C_k) / within(C_k)``; labels may be any names."""
    matrix = validation.symmetric_matrix(A)
    clusters = np.asarray(np.unique(np.asarray(labels), return_inverse=True)[1], dtype=np.intp)
    volume, inside, _ = _weights(matrix, clusters, int(clusters.max()) + 1)
    return float(np.sum(_ratio(volume, inside, matrix)) - len(volume))


def normalised_cut(A: Any, n_clusters: int = 2) -> Labels:
    """Partition by scikit-learn's spectral clustering: k-means (`random_state` 0) on eigenvectors of the normalised Laplacian."""
    from sklearn.cluster import SpectralClustering  # type: ignore[import-untyped]

    matrix, k = _check_arguments(A, n_clusters)
    if k == 1:
        return np.zeros(len(matrix), dtype=np.intp)
    method = SpectralClustering(n_clusters=k, affinity="precomputed", assign_labels="kmeans", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of disconnectedness and of k-means with fewer points than clusters
        return np.asarray(method.fit_predict(matrix), dtype=np.intp)


def _check_arguments(A: Any, n_clusters: Any) -> tuple[FloatArray, int]:
    matrix = validation.symmetric_matrix(A)
    k = validation.integer("n_clusters", n_clusters, minimum=1)
    if k > len(matrix):
        validation.refuse(f"n_clusters must be at most the number of nodes, {len(matrix)}, not {k}.")
    return matrix, k


def _embedding(A: FloatArray, k: int) -> FloatArray:
    """The spectral embedding: k leading eigenvectors of ``D^-1/2 A D^-1/2`` over the roots of the degrees, signs fixed."""
    root = np.sqrt(A.sum(axis=1))
    vectors = leading_eigenpairs(A / root[:, None] / root[None, :], k)[1] / root[:, None]
    heaviest = np.argmax(np.abs(vectors), axis=0)
    return np.asarray(vectors * np.sign(vectors[heaviest, np.arange(k)]))


def _refine(A: FloatArray, labels: Labels, k: int) -> Labels:
    """Refine a min-max cut by moves of nodes, for two clusters also by a split in the order of linkage, while it falls."""
    cut = min_max_cut_value(A, labels)
    while True:
        starts = [labels, _linkage_split(A, labels)] if k == 2 else [labels]
        moved = [_move_nodes(A, start, k) for start in starts]
        values = [min_max_cut_value(A, candidate) for candidate in moved]
        best = int(np.argmin(values))
        if not values[best] < cut * (1.0 - WORTHWHILE):
            return labels
        labels, cut = moved[best], values[best]


def _linkage_split(A: FloatArray, labels: Labels) -> Labels:
    """The best min-max cut in the order of the linkage difference of two clusters."""
    _, inside, links = _weights(A, labels, 2)
    linkage = links / np.maximum(inside, LEAST_INSIDE * A.sum())
    return _best_split(A, linkage[:, 0] - linkage[:, 1])


def _best_split(A: FloatArray, along: FloatArray) -> Labels:
    """The best split of a graph in the order of a vector, the one with the least min-max cut."""
    order = np.argsort(along, kind="stable")
    sorted_graph = A[np.ix_(order, order)]
    before = np.tril(sorted_graph, -1).sum(axis=1)
    own = np.diag(sorted_graph)
    inside_first = np.cumsum(2.0 * before + own)[:-1]
    volume_first = np.cumsum(sorted_graph.sum(axis=1))[:-1]
    total = float(A.sum())
    inside_second = total - 2.0 * volume_first + inside_first
    cuts = _ratio(volume_first, inside_first, A) + _ratio(total - volume_first, inside_second, A)
    labels = np.zeros(len(A), dtype=np.intp)
    labels[order[int(np.argmin(cuts)) + 1 :]] = 1
    return labels


def _ratio(volume: FloatArray, inside: FloatArray, A: FloatArray) -> FloatArray:
    """The term ``volume / within`` of a cluster in the min-max cut, which is ``cut / within + 1``."""
    return np.asarray(volume / np.maximum(inside, LEAST_INSIDE * max(float(A.sum()), np.finfo(float).tiny)))


def _weights(A: FloatArray, labels: Labels, k: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Volume and inside weight of each cluster of a cut, and the weight from each node to each cluster."""
    members = (labels[:, None] == np.arange(k)[None, :]).astype(np.float64)
    links = A @ members
    return links.sum(axis=1) @ members, np.sum(links * members, axis=0), links


def _move_nodes(A: FloatArray, labels: Labels, k: int) -> Labels:
    """Move one node at a time, always the one that lowers the min-max cut most, until none does."""
    labels, nodes = labels.copy(), np.arange(len(A))
    degrees, own = A.sum(axis=1)[:, None], np.diag(A)[:, None]
    for _ in range(MOVES_PER_NODE * len(A)):
        volume, inside, links = _weights(A, labels, k)
        terms = _ratio(volume, inside, A)
        home = links[nodes, labels][:, None]
        left = _ratio(volume[labels][:, None] - degrees, inside[labels][:, None] - 2.0 * home + own, A) - terms[labels][:, None]
        joined = _ratio(volume + degrees, inside + 2.0 * links + own, A) - terms
        change = left + joined
        change[nodes, labels] = 0.0
        change[np.bincount(labels, minlength=k)[labels] == 1] = np.inf  # no cluster may vanish
        node, cluster = np.unravel_index(int(np.argmin(change)), change.shape)
        if not change[node, cluster] < -WORTHWHILE * terms.sum():
            break
        labels[node] = cluster
    return labels


def _spectral_clusters(A: FloatArray, k: int) -> Labels:
    """Deterministic k-means on the rows of the leading eigenvectors, scaled to length one."""
    rows = _embedding(A, k)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
    rows = rows - rows.mean(axis=0)
    labels = nearest_centres(rows, farthest_points(rows, k))
    for empty in np.setdiff1d(np.arange(k), labels):  # equal rows: every cluster gets a node of the largest one
        labels[np.flatnonzero(labels == np.argmax(np.bincount(labels)))[-1]] = empty
    return labels
