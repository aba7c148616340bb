"""What is measured on a partition: the paper's performance, and modularity."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from cvxnmf import validation
from cvxnmf.typing import MatrixLike


def performance(A: MatrixLike, labels: ArrayLike, diagonal: bool = True) -> float:
    """The share of pairs of nodes that a partition gets right: joined inside a cluster, not joined across.

    ``1 - #{(i, j) : A_ij != [same cluster]} / n^2`` over ordered pairs, the diagonal counted, as the paper has it; with
    ``diagonal=False`` over the ``n (n - 1)`` ordered pairs of different nodes. Entries count as edges where they are not 0.

    Parameters
    ----------
    A : array-like or scipy.sparse matrix of shape (n, n)
        Adjacency matrix.
    labels : array-like of shape (n,)
        The cluster of each node, under any names.
    diagonal : bool
        Whether pairs of a node with itself count.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> A = np.kron(np.eye(2), np.ones((3, 3)))
    >>> cvxnmf.performance(A, [0, 0, 0, 1, 1, 1])
    1.0
    """
    matrix = validation.adjacency_matrix(A, signed=True)
    clusters, n = _clusters(matrix, labels), matrix.shape[0]
    sizes = np.bincount(clusters).astype(np.int64)
    rows, columns = matrix.nonzero()
    if not diagonal:
        rows, columns = rows[rows != columns], columns[rows != columns]
    inside = int(np.count_nonzero(clusters[rows] == clusters[columns]))
    pairs_inside = int(np.sum(sizes * sizes)) - (0 if diagonal else n)
    wrong = (pairs_inside - inside) + (len(rows) - inside)
    pairs = n * n if diagonal else n * (n - 1)
    return 1.0 - wrong / pairs if pairs else 1.0


def modularity(A: MatrixLike, labels: ArrayLike) -> float:
    """Newman's modularity, ``sum_ij (A_ij - d_i d_j / 2m) [same cluster] / 2m``; a self-loop counts once in its degree.

    The adjacency matrix is symmetric with nonnegative weights; clusters may have any names.
    """
    matrix = sp.csr_array(A, dtype=np.float64)
    clusters, total = _clusters(matrix, labels), float(matrix.sum())
    if total == 0:
        return 0.0
    coo = matrix.tocoo()
    inside = float(coo.data[clusters[coo.row] == clusters[coo.col]].sum())
    weights = np.bincount(clusters, weights=np.asarray(matrix.sum(axis=1)).ravel()) / total
    return inside / total - float(weights @ weights)


def _clusters(A: Any, labels: Any) -> NDArray[np.intp]:
    """Labels of a partition whose quality is measured, as numbers from 0."""
    given = np.asarray(labels)
    if given.shape != A.shape[:1]:
        validation.refuse(f"labels must name a cluster for each of the {A.shape[0]} nodes, not be of shape {given.shape}.")
    if any(label is None or label != label for label in given.tolist()):  # NaN differs from itself
        validation.refuse("labels must name a cluster for each node; some are missing (None or NaN).")
    try:
        return np.asarray(np.unique(given, return_inverse=True)[1], dtype=np.intp)
    except TypeError:
        validation.refuse("labels must be names of one type, all numbers or all strings.")
