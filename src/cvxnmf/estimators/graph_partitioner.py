"""Clusters of graphs as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cvxnmf.estimators.affinity import AffinityEstimator
from cvxnmf.estimators.conventions import progress_reporter
from cvxnmf.linalg.arrays import FloatArray

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate


class GraphPartitioner(AffinityEstimator):
    """Clusters of a graph by :func:`partition`: deterministic, with a certificate.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None takes that of the shortest description, see :func:`partition`.
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
        That no model of the kind fits better than the bound; proved when it is first looked at, unless `verbose`.
    n_iter_ : int
        Steps taken for that.
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

    _affinities = ("precomputed", "rbf", "nearest_neighbors")

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        affinity: str = "precomputed",
        gamma: float | None = None,
        n_neighbors: int = 10,
        trace: float | Literal["auto"] = "auto",
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

    def _fit_affinities(self, A: Any) -> None:
        from cvxnmf.graphs.partition import partition  # a room that the other estimators do not need

        with progress_reporter(self) as callback:
            found = partition(A, self.n_clusters, self.trace, tol=self.tol, max_iter=self.max_iter, callback=callback)
        self.partition_, self.affinity_matrix_ = found, found.A
        self.labels_, self.n_clusters_ = found.labels, found.n_clusters

    @property
    def memberships_(self) -> FloatArray:
        """Shares of each node of the graph in the clusters."""
        return self.partition_.memberships

    @property
    def certificate_(self) -> Certificate:
        """The certificate that no model of this form fits better than the bound."""
        return self.partition_.certificate

    @property
    def n_iter_(self) -> int:
        """Steps taken for the certificate of the graph's clusters."""
        return max(1, self.partition_.solution.n_iter)
