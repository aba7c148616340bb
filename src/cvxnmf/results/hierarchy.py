"""Nested divisions of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray


class Code(NamedTuple):
    """The code of a graph's description length: the dispersion, and whether nodes have even degrees."""

    dispersion: float
    even: bool


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A hierarchy of nested divisions: clusters of a partition merged two by two, first where the description grows least.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        The division that merges begin with.
    pairs : ndarray of int, shape (n_clusters - 1, 2)
        The merges in their order: the cluster that stays, and the one that goes into it.
    lengths : ndarray of shape (n_clusters,)
        Description length in nats, less that of a single cluster, before the first merge and after each.
    savings : ndarray of shape (n_clusters,)
        By how many nats the description grows when a cluster is merged with the one nearest to it; NaN for a single one.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.1, 0.9)
    >>> hierarchy = cvxnmf.partition(A).hierarchy
    >>> hierarchy.n_clusters, set(hierarchy.at(1).tolist())
    (2, {0})
    """

    labels: NDArray[np.int64]
    pairs: NDArray[np.int64]
    lengths: FloatArray
    savings: FloatArray

    @property
    def n_clusters(self) -> int:
        """Number of clusters that the merges of the hierarchy begin with."""
        return len(self.lengths)

    def at(self, n_clusters: int) -> NDArray[np.intp]:
        """Labels of the hierarchy's division into so many clusters, by decreasing size."""
        if not 1 <= n_clusters <= self.n_clusters:
            raise ValueError(
                f"The hierarchy has divisions into 1 to {self.n_clusters} clusters, not {n_clusters}; "
                f"for more, call partition with n_clusters={n_clusters}."
            )
        names = np.arange(self.n_clusters)
        for kept, gone in self.pairs[: self.n_clusters - n_clusters][::-1]:  # what is merged last has its final name first
            names[gone] = names[kept]
        labels = np.unique(names[self.labels], return_inverse=True)[1]
        return np.argsort(np.argsort(-np.bincount(labels), kind="stable"), kind="stable")[labels].astype(np.intp)

    def __repr__(self) -> str:
        return f"<Hierarchy: 1 to {self.n_clusters} clusters, {self.lengths[0]:.6g} nats at {self.n_clusters}>"
