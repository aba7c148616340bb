"""Symmetric factors and clusters of similarities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import validate_data  # type: ignore[import-untyped]

from cvxnmf import validation
from cvxnmf.estimators.shared import (
    certified,
    norm,
    progress,
    rbf_similarities,
    require_nonnegative,
    warn_if_unfinished,
)
from cvxnmf.nmf.factorize import factorize


class SymmetricNMF(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Symmetric nonnegative factorisation of similarities, ``A ≈ UU'``, and its clusters: deterministic, with a certificate.

    Parameters
    ----------
    n_components : int or None
        Number of columns of U; None takes the rank that the convex problem finds.
    affinity : {"precomputed", "rbf"}
        "precomputed": `fit` takes A itself, symmetric and nonnegative. "rbf": it takes features x, and A_ij is
        ``exp(-gamma |x_i - x_j|²)``.
    gamma : float or None
        For "rbf"; None is one over the number of features.
    loss : {"mse", "kl"}
        ``||A - UU'||²`` or the Kullback-Leibler divergence.
    tol : float
        Tolerance of the stopping rule.
    max_iter : int
        Most iterations.
    verbose : int
        Whether to report every iteration on the standard error stream.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        U.
    components_ : ndarray of shape (n_components, n_samples)
        ``U'``.
    labels_ : ndarray of shape (n_samples,)
        The column in which the row of U is largest.
    n_components_ : int
        Number of columns of U.
    reconstruction_err_ : float
        ``||A - UU'||``, or the square root of twice the divergence.
    n_iter_ : int
        Iterations taken.
    certificate_ : Certificate
        The loss at U and a bound that no symmetric nonnegative factorisation with as many columns can beat.
    n_features_in_ : int
        Number of columns of the data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the data have any.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxnmf.estimators import SymmetricNMF
    >>> A = np.kron(np.diag([3.0, 2.0]), np.ones((4, 4)))
    >>> SymmetricNMF(n_components=2).fit_predict(A)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        affinity: str = "precomputed",
        gamma: float | None = None,
        loss: str = "mse",
        tol: float = 1e-6,
        max_iter: int = 1000,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.affinity = affinity
        self.gamma = gamma
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Factor similarities.

        Parameters
        ----------
        X : array-like or scipy.sparse matrix of shape (n_samples, n_samples) or (n_samples, n_features)
            Similarities if they are precomputed, else features.
        y : ignored
            Present by convention.

        Returns
        -------
        self
            The fitted estimator.
        """
        affinity = validation.choice("affinity", self.affinity, ("precomputed", "rbf"))
        loss = validation.choice("loss", self.loss, ("mse", "kl"))
        if self.n_components is not None:
            validation.integer("n_components", self.n_components, minimum=1)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], ensure_min_samples=2)
        data = validation.partial_matrix(self._similarities(X, affinity), "X")
        callback = progress(type(self).__name__, self.verbose)
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "callback": callback}
        result = factorize(data, self.n_components, loss, symmetric=True, **options)
        U = result.U.astype(X.dtype)
        self.embedding_, self.components_, self.n_components_ = U, U.T, U.shape[1]
        self.labels_ = np.argmax(U, axis=1)
        self.n_iter_ = max(1, len(result.history))
        self.certificate_ = certified(data, U, U, loss, result.certificate, 150)
        self.reconstruction_err_ = norm(self.certificate_.value, loss)
        warn_if_unfinished(result, self.max_iter, self.tol)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Factor similarities and return U.

        Parameters
        ----------
        X : array-like or scipy.sparse matrix of shape (n_samples, n_samples) or (n_samples, n_features)
            Similarities if they are precomputed, else features.
        y : ignored
            Present by convention.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            `embedding_`.
        """
        return self.fit(X).embedding_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = self.affinity == "precomputed"
        tags.input_tags.pairwise = tags.input_tags.positive_only = precomputed
        tags.input_tags.sparse = True
        return tags

    def _similarities(self, X: Any, affinity: str) -> Any:
        """A, checked if it is the user's."""
        if affinity == "rbf":
            return rbf_similarities(X, self.gamma)
        require_nonnegative(X, type(self).__name__)
        if X.shape[0] != X.shape[1]:
            validation.refuse(f"Similarities must be a square matrix, not {X.shape[0]} by {X.shape[1]}; for features use 'rbf'.")
        return validation.symmetrise(X, "X", "for features use 'rbf'", X.dtype)
