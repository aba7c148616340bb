"""Clusters of graphs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin  # type: ignore[import-untyped]
from sklearn.neighbors import kneighbors_graph  # type: ignore[import-untyped]
from sklearn.utils.validation import validate_data  # type: ignore[import-untyped]

from cvxnmf import validation
from cvxnmf.estimators.shared import progress, rbf_similarities, require_nonnegative
from cvxnmf.graphs.partition import partition


class GraphPartitioner(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters of a graph by :func:`partition`: deterministic, with a certificate.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None takes it from the spectrum above the noise.
    affinity : {"precomputed", "rbf", "nearest_neighbors"}
        "precomputed": `fit` takes an adjacency matrix. "rbf": it takes features x, and nodes are joined with the weights
        ``exp(-gamma |x_i - x_j|²)``. "nearest_neighbors": nodes are joined if one is among the nearest of the other.
    gamma : float or None
        For "rbf"; None is one over the number of features.
    n_neighbors : int
        For "nearest_neighbors".
    trace : float or "auto"
        Weight of the penalty, see :func:`partition`.
    tol : float
        Certified relative gap of the convex problem.
    max_iter : int
        Most steps.
    verbose : int
        Whether to report every step on the standard error stream.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each node.
    memberships_ : ndarray of shape (n_samples, n_clusters_)
        Shares of each node in the clusters.
    n_clusters_ : int
        Number of clusters.
    affinity_matrix_ : scipy.sparse.csr_array of shape (n_samples, n_samples)
        The adjacency matrix that was partitioned.
    partition_ : Partition
        The whole result.
    certificate_ : Certificate
        That no model of the kind fits better than the bound.
    n_iter_ : int
        Steps taken.
    n_features_in_ : int
        Number of columns of the data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the data have any.

    Examples
    --------
    >>> import cvxnmf
    >>> A, truth = cvxnmf.block_graph(40, 0.2, 0.8)
    >>> labels = cvxnmf.GraphPartitioner(n_clusters=2).fit_predict(A)
    >>> bool((labels == truth).all() or (labels != truth).all())
    True
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        affinity: str = "precomputed",
        gamma: float | None = None,
        n_neighbors: int = 10,
        trace: Any = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.trace = trace
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Partition a graph.

        Parameters
        ----------
        X : array-like or scipy.sparse matrix of shape (n_samples, n_samples) or (n_samples, n_features)
            Adjacency matrix if it is precomputed, else features.
        y : ignored
            Present by convention.

        Returns
        -------
        self
            The fitted estimator.
        """
        affinity = validation.choice("affinity", self.affinity, ("precomputed", "rbf", "nearest_neighbors"))
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], ensure_min_samples=2)
        callback = progress(type(self).__name__, self.verbose)
        found = partition(
            self._adjacency(X, affinity), self.n_clusters, self.trace, tol=self.tol, max_iter=self.max_iter, callback=callback
        )
        self.partition_, self.certificate_, self.affinity_matrix_ = found, found.certificate, found.A
        self.labels_, self.memberships_, self.n_clusters_ = found.labels, found.memberships, found.n_clusters
        self.n_iter_ = max(1, found.solution.n_iter)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.affinity == "precomputed"
        tags.input_tags.sparse = True
        return tags

    def _adjacency(self, X: Any, affinity: str) -> Any:
        """The adjacency matrix of the user's graph or of the features."""
        if affinity == "precomputed":
            require_nonnegative(X, type(self).__name__)
            return X
        if affinity == "rbf":
            return rbf_similarities(X, self.gamma)
        count = min(validation.integer("n_neighbors", self.n_neighbors, minimum=1), X.shape[0] - 1)
        near = kneighbors_graph(X, count)
        return near.maximum(near.T)
