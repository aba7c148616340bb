"""Symmetric factors and clusters of similarities."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf import validation
from cvxnmf.estimators.affinity import AffinityEstimator
from cvxnmf.estimators.conventions import ProvedLater, progress_reporter, reconstruction_error, warn_if_unfinished
from cvxnmf.nmf.factorize import factorize
from cvxnmf.nmf.verify import factor_loss
from cvxnmf.typing import MatrixLike


class SymmetricNMF(ProvedLater, AffinityEstimator):
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
        Whether to show progress on the standard error stream: a changing line, or a few.
    certificate : {"later", "now"}
        When `certificate_` is proved: "later", when it is first looked at or the estimator is pickled, until when the estimator
        keeps the data; "now", in `fit`.

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

    _affinities = ("precomputed", "rbf")

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
        certificate: str = "later",
    ) -> None:
        self.n_components = n_components
        self.affinity = affinity
        self.gamma = gamma
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.certificate = certificate

    def fit_transform(self, X: MatrixLike, y: object = None) -> Any:
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

    def _fit_affinities(self, A: Any) -> None:
        loss = validation.choice("loss", self.loss, ("mse", "kl"))
        validation.choice("certificate", self.certificate, ("later", "now"))
        if self.n_components is not None:
            validation.integer("n_components", self.n_components, minimum=1)
        if A.shape[0] != A.shape[1]:
            validation.refuse(f"Similarities must be a square matrix, not {A.shape[0]} by {A.shape[1]}; for features use 'rbf'.")
        data = validation.partial_matrix(validation.symmetrise(A, "X", "for features use 'rbf'", A.dtype), "X")
        with progress_reporter(self) as told:
            options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "callback": told}
            result = factorize(data, self.n_components, loss, symmetric=True, **options)
        U = result.U.astype(A.dtype)
        self.embedding_, self.components_, self.n_components_ = U, U.T, U.shape[1]
        self.labels_ = np.argmax(U, axis=1)
        self.n_iter_ = max(1, len(result.history))
        double = U.astype(np.float64)
        value = factor_loss(data, double, double, loss)
        self._prove_later(data, U.shape[1], value, loss, True, None)
        self.reconstruction_err_ = reconstruction_error(value, loss)
        warn_if_unfinished(result, self.max_iter, self.tol, stacklevel=4)
