"""NMF with scikit-learn's parameters over :func:`factorize` and :func:`classical_nmf`.

scikit-learn halves the squared error and scales penalties by the sides of the data; :func:`make_plan` is the one place where
its parameters become ours. Codes of data, ``X ≈ WH`` with H fixed, are a convex problem per row, solved by :func:`encode`,
which `transform` and `fit_transform` share.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin  # type: ignore[import-untyped]
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from cvxnmf import chunked, validation
from cvxnmf.estimators.callbacks import CallbackSupportMixin, FitTasks, with_callbacks
from cvxnmf.estimators.conventions import (
    ProvedLater,
    check_start,
    progress_reporter,
    reconstruction_error,
    require_nonnegative,
    require_positive,
    warn_if_unfinished,
    zero_certificate,
)
from cvxnmf.estimators.plan import EFFORTS, METHODS, Plan, make_plan
from cvxnmf.estimators.rows import FittedRows, fitted_rows, sample_weights
from cvxnmf.nmf.descent import classical_nmf
from cvxnmf.nmf.encoding import encode
from cvxnmf.nmf.factorize import factorize
from cvxnmf.results import Factorization, Top
from cvxnmf.results.top import top_features
from cvxnmf.typing import MatrixLike, MemoryLimit


class NMF(ProvedLater, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Nonnegative matrix factorisation ``X ≈ WH`` with scikit-learn's parameters, deterministic and with a certificate.

    The default ``solver="auto"`` lets several deterministic starts race, which takes about as long as one to three fits of
    scikit-learn; ``solver="cd"`` is a single descent, faster than scikit-learn's.

    The objective is scikit-learn's: ``d(X, WH) + alpha_W l1_ratio n_features sum(W) + alpha_H l1_ratio n_samples sum(H)
    + alpha_W (1 - l1_ratio) n_features ||W||² / 2 + alpha_H (1 - l1_ratio) n_samples ||H||² / 2`` with d half the squared error
    or another beta divergence, over the observed entries where X has NaN.

    Parameters
    ----------
    n_components : int, "auto", "convex" or None
        Number of components. "auto" takes it from a custom start; without one it keeps all features, as None does, as in
        scikit-learn. "convex", with ``solver="auto"`` and no start named, takes it from the convex problem.
    init : {"nndsvd", "nndsvda", "nndsvdar", "random", "custom", "convex"}, optional
        The start. "convex" is the answer of :func:`factorize`, and what None stands for with ``solver="auto"``; with the other
        solvers None is "nndsvd". The three forms of "nndsvd" are one here: zeros of a start are filled. "custom" takes W and H
        from `fit_transform`.
    solver : {"auto", "cd", "mu"}
        "auto": :func:`factorize`, the winner of a race of deterministic starts; with a start named or with penalties, coordinate
        descent from there. "cd": coordinate descent, "mu": multiplicative updates, each for every loss, from one start; they
        take the bound of the certificate from the singular values alone.
    beta_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        What to minimise: a beta divergence, of which the three with names are 2, 1 and 0. A beta of 0 or below needs
        positive data; for others than 1 and 2 no bound better than 0 is known.
    tol : float
        Tolerance of the stopping rule.
    max_iter : int
        Most iterations.
    random_state : int, RandomState or None
        For ``init="random"``; nothing else is random.
    alpha_W, alpha_H : float
        Weights of the penalties on W and H; ``alpha_H="same"`` is `alpha_W`.
    l1_ratio : float
        Share of the penalties that is absolute, from 0 (squares) to 1.
    verbose : int
        Whether to show progress on the standard error stream: a changing line, or a few.
    shuffle : bool
        Accepted for compatibility: coordinates have a fixed order.
    memory_limit : int, str or None
        Most memory that the whole process may use, in bytes or in words such as ``"2 GB"``: X, which may be a file opened with
        ``numpy.load(path, mmap_mode="r")``, is then read in blocks of rows. A dask array is always worked on in blocks, by the
        current Dask client if there is one. Data in blocks need `n_components` and cannot have missing entries.
    certificate : {"later", "now"}
        When `certificate_` is proved: "later", when it is first looked at or the estimator is pickled, until when the estimator
        keeps the data; "now", in `fit`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        H.
    n_components_ : int
        Number of components.
    reconstruction_err_ : float
        ``||X - WH||``, or the square root of twice the divergence, on the training data.
    n_iter_ : int
        Iterations taken.
    certificate_ : Certificate
        The loss at W and H without penalties, ``||X - WH||²`` (no half) or the divergence, and a bound that no nonnegative
        factorisation with as many components can beat; proved when first looked at. With `sample_weight` of the weighted loss,
        which is that of rows times ``w ** (1 / beta)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has any.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxnmf.estimators import NMF
    >>> X = np.kron([[2.0, 0.0], [1.0, 3.0]], np.ones((3, 4)))
    >>> model = NMF(n_components=2, tol=1e-10, max_iter=1000)
    >>> W = model.fit_transform(X)
    >>> W.shape, model.components_.shape, bool(model.reconstruction_err_ < 1e-4)
    ((6, 2), (2, 8), True)
    >>> bool(np.allclose(model.transform(X), W))
    True
    """

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        solver: str = "auto",
        beta_loss: str | float = "frobenius",
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: int | np.random.RandomState | None = None,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        verbose: int = 0,
        shuffle: bool = False,
        memory_limit: MemoryLimit = None,
        certificate: str = "later",
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.beta_loss = beta_loss
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.verbose = verbose
        self.shuffle = shuffle
        self.memory_limit = memory_limit
        self.certificate = certificate

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        W: ArrayLike | None = None,
        H: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the components of X.

        Parameters
        ----------
        X : array-like or scipy.sparse matrix of shape (n_samples, n_features)
            Nonnegative; NaN stands for missing entries.
        y : ignored
            Present by convention.
        W, H : array-like, optional
            The start for ``init="custom"``, of shapes (n_samples, n_components) and (n_components, n_features).
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, 0 or more; a weight of 2 is the same as a sample given twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._fit(X, W, H, sample_weight)
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit_transform(
        self,
        X: MatrixLike,
        y: object = None,
        W: ArrayLike | None = None,
        H: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Find the components of X and return its codes W.

        Parameters
        ----------
        X, y, W, H, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The same as ``transform(X)``.
        """
        return self._fit(X, W, H, sample_weight)

    def _fit(self, X: Any, W: Any, H: Any, sample_weight: Any) -> Any:
        """Find the components of the NMF estimator and return the codes."""
        validation.choice("certificate", self.certificate, ("later", "now"))
        with self._open_data(X, True, W, H, sample_weight) as (data, plan, weights):
            if plan.start != "custom" and not (W is None and H is None):
                words = "When init!='custom', provided W or H are ignored; they are a start for init='custom'."
                warnings.warn(words, RuntimeWarning, stacklevel=4)
            tasks, rows = FitTasks(self, X, sample_weight), fitted_rows(data, plan, weights)
            if plan.in_memory and not _any_positive(rows.data):
                codes = self._fit_zeros(data, plan)
            else:
                codes = self._fit_rows(data, rows, plan, W, H, tasks)
        tasks.end()
        return codes

    def _fit_rows(self, data: Any, rows: FittedRows, plan: Plan, W: Any, H: Any, tasks: FitTasks) -> Any:
        """Fit the components of the NMF estimator to rows, and find the codes of the data."""
        with progress_reporter(self, tasks.listener) as callback:
            result = self._factors(rows, plan, W, H, callback)
        k, (U, V) = plan.n_components or result.n_components, (result.U, result.V)
        if k > result.n_components:
            U, V = (np.pad(side, ((0, 0), (0, k - result.n_components))) for side in (U, V))
        components = V.T.astype(_dtype(data))
        codes = self._encode(data, components, plan, U if rows.data is data else None)
        value = rows.value(codes, components)
        self._prove_later(rows.data, k, value, rows.loss, False, EFFORTS[self.solver], plan.in_memory)
        self.components_, self.n_components_, self.n_iter_ = components, k, max(1, len(result.history))
        self.reconstruction_err_ = reconstruction_error(value, plan.loss)
        warn_if_unfinished(result, self.max_iter, self.tol, stacklevel=6)
        return codes

    def _fit_zeros(self, data: Any, plan: Plan) -> Any:
        """Zero components and codes of data that are all zero, as in scikit-learn."""
        k = plan.n_components or 1
        self.components_, self.n_components_, self.n_iter_ = np.zeros((k, data.shape[1]), data.dtype), k, 1
        self.reconstruction_err_, self._proof = 0.0, zero_certificate(k, plan.loss)
        return np.zeros((data.shape[0], k), data.dtype)

    def _fix_components(self, X: Any, H: Any) -> Self:
        """Take H as the components of the NMF estimator, for `transform`; X tells the number and the names of features."""
        self._data_in_memory(X, reset=True)
        if H.shape[1] != self.n_features_in_:
            validation.refuse(f"H has {H.shape[1]} columns, but X has {self.n_features_in_} features; give one for each.")
        self.components_, self.n_components_ = H, len(H)
        return self

    def transform(self, X: MatrixLike) -> Any:
        """Return the codes of data: the best W for the fitted components, each row on its own and over its observed entries.

        Parameters
        ----------
        X : array-like or scipy.sparse matrix of shape (n_samples, n_features)
            Nonnegative; NaN stands for missing entries. A row without any observed entry has zero codes.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            W.
        """
        check_is_fitted(self)
        with self._open_data(X, False) as (data, plan, _):
            return self._encode(data, self.components_, plan)

    def inverse_transform(self, X: MatrixLike) -> Any:
        """Return the data that codes stand for, ``WH``.

        Parameters
        ----------
        X : array-like or scipy.sparse matrix of shape (n_samples, n_components)
            Codes W.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The model of the data.
        """
        check_is_fitted(self)
        W: Any = X if sp.issparse(X) else np.asarray(X)
        if W.ndim != 2 or W.shape[1] != self.n_components_:
            validation.refuse(f"X must hold codes in {self.n_components_} columns, one per component, not be of shape {W.shape}.")
        return W @ self.components_

    def top(self, n: int = 10, by: Literal["weight", "distinct"] = "weight") -> Top:
        """Return the strongest features of every component, by name where X had names.

        Parameters
        ----------
        n, by
            As in :meth:`cvxnmf.Factorization.top`.

        Returns
        -------
        Top
            A sequence with the strongest features of each component as `columns`.
        """
        check_is_fitted(self)
        return top_features(self.components_, getattr(self, "feature_names_in_", None), n, by)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @contextmanager
    def _open_data(self, X: Any, reset: bool, W: Any = None, H: Any = None, sample_weight: Any = None) -> Iterator[Any]:
        """X of the NMF estimator, checked or opened in row chunks, a plan for data of this shape, and weights of samples."""
        in_memory = not chunked.needs_chunks(X, self.memory_limit)
        X = self._data_in_memory(X, reset) if in_memory else validate_data(self, X, reset=reset, skip_check_array=True)
        m, n = X.shape if in_memory else chunked.matrix_shape(X)
        weights = sample_weights(sample_weight, m)
        plan = make_plan(self, (m if weights is None else float(weights.sum()), n), W, H, in_memory)
        if in_memory:
            yield X, plan, weights
            return
        k = plan.n_components if reset else self.n_components_
        if k is None:
            validation.refuse("The number of components of data in blocks must be given; set n_components.")
        with chunked.open_chunked(X, k, self.memory_limit) as data:
            yield data, plan, weights

    def _encode(self, X: Any, components: Any, plan: Plan, start: Any = None) -> Any:
        """The best codes of the rows of X for the components of the NMF estimator, from a start if there is one."""
        return encode(X, components, plan.loss, plan.l1[0], plan.l2[0], start)

    def _data_in_memory(self, X: Any, reset: bool) -> Any:
        """X of the NMF estimator as scikit-learn wants it checked; sparse data with missing entries become dense."""
        X = validate_data(
            self, X, reset=reset, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )
        require_nonnegative(X, type(self).__name__)
        if reset:
            require_positive(X, self.beta_loss)
        return X.toarray() if sp.issparse(X) and np.isnan(X.data).any() else X

    def _factors(self, rows: FittedRows, plan: Plan, W: Any, H: Any, callback: Any) -> Factorization:
        """Factors for the NMF estimator from `factorize` or a classical descent, as the plan asks for."""
        data, options = rows.data, {"tol": self.tol, "max_iter": self.max_iter, "callback": callback, "weights": rows.weights}
        k = None if plan.n_components is None else min(plan.n_components, max(data.shape))
        if plan.start != "convex" or min(data.shape) == 1:  # one row or column is a matter of scale
            return self._descend(data, k or 1, plan, self._start(plan, rows, W, H), options)
        found = factorize(data, k, plan.loss, symmetric=False, **options)
        if self.solver == "auto" and not plan.penalised:
            return found
        return self._descend(data, found.n_components, plan, (found.U, found.V), options)

    def _descend(self, data: Any, k: int, plan: Plan, start: Any, options: dict[str, Any]) -> Factorization:
        """Factors for the NMF estimator that a classical method finds from a start."""
        random = isinstance(start, str) and start == "random"
        rng = int(check_random_state(self.random_state).randint(2**31 - 1)) if random else 0
        return classical_nmf(data, k, METHODS[self.solver], plan.loss, start, l1=plan.l1, l2=plan.l2, rng=rng, **options)

    def _start(self, plan: Plan, rows: FittedRows, W: Any, H: Any) -> Any:
        """The start of the NMF estimator: a name, or the user's W and H as U and V."""
        if plan.start != "custom":
            return "nndsvd" if plan.start == "convex" else plan.start
        if W is None or H is None:
            validation.refuse("init='custom' needs both W and H; pass them to fit or fit_transform.")
        check_start(H, (plan.n_components, rows.data.shape[1]), "H")
        check_start(W, (rows.n_samples, plan.n_components), "W")
        return rows.fitted_codes(np.asarray(W, dtype=np.float64)), np.asarray(H, dtype=np.float64).T


def _any_positive(X: Any) -> bool:
    """Whether any entry of the estimator's data is above 0; missing ones are not."""
    return bool((X.data if sp.issparse(X) else X).max(initial=0.0, where=~np.isnan(X.data if sp.issparse(X) else X)) > 0)


def _dtype(data: Any) -> Any:
    """The precision of the estimator's data, which components and codes share."""
    return data.dtype if hasattr(data, "dtype") else np.float32 if data.single else np.float64
