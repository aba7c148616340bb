"""Clusters of affinities that are given, or computed from features."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import validate_data  # type: ignore[import-untyped]

from cvxnmf import validation
from cvxnmf.estimators.conventions import require_nonnegative
from cvxnmf.typing import MatrixLike


class AffinityEstimator(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator of clusters with the parameters `affinity`, `gamma` and perhaps `n_neighbors`."""

    _affinities: ClassVar[tuple[str, ...]]
    affinity: str
    gamma: float | None
    n_neighbors: int

    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Find the clusters of affinities, given or computed from features.

        Parameters
        ----------
        X : array-like or scipy.sparse matrix of shape (n_samples, n_samples) or (n_samples, n_features)
            Affinities (an adjacency matrix, similarities) if they are precomputed, else features.
        y : ignored
            Present by convention.

        Returns
        -------
        self
            The fitted estimator.
        """
        affinity = validation.choice("affinity", self.affinity, self._affinities)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], ensure_min_samples=2)
        if affinity == "precomputed":
            require_nonnegative(X, type(self).__name__)
            self._fit_affinities(X)
        else:
            self._fit_affinities(self._rbf(X) if affinity == "rbf" else self._nearest_neighbours(X))
        return self

    @abstractmethod
    def _fit_affinities(self, A: Any) -> None:
        """Find the clusters of nonnegative affinities, which have the type of the data."""

    def _rbf(self, X: Any) -> Any:
        """Affinities of features ``exp(-gamma |x_i - x_j|²)``, symmetric to the last bit; gamma None is 1 over their number."""
        from sklearn.metrics.pairwise import rbf_kernel  # type: ignore[import-untyped]

        width = None if self.gamma is None else validation.number("gamma", self.gamma, minimum=0.0)
        largest = float(abs(X).max())
        if largest > np.sqrt(np.finfo(X.dtype).max / (8 * X.shape[1])):
            validation.refuse(f"Squared distances of features as large as {largest:g} overflow; rescale them first.")
        K = rbf_kernel(X, gamma=width)
        return (K + K.T) / 2

    def _nearest_neighbours(self, X: Any) -> Any:
        """Affinities of nearest neighbours: 1 where one of two nodes is among the nearest of the other."""
        from sklearn.neighbors import kneighbors_graph  # type: ignore[import-untyped]

        count = min(validation.integer("n_neighbors", self.n_neighbors, minimum=1), X.shape[0] - 1)
        near = kneighbors_graph(X, count)
        return near.maximum(near.T)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.affinity == "precomputed"
        tags.input_tags.sparse = True
        return tags
