"""NMF of rows that come batch by batch, with scikit-learn's parameters."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]
from sklearn.utils import check_random_state, gen_batches  # type: ignore[import-untyped]
from sklearn.utils.validation import validate_data  # type: ignore[import-untyped]

from cvxnmf import validation
from cvxnmf.estimators.callbacks import FitTasks, with_callbacks
from cvxnmf.estimators.conventions import (
    convergence_message,
    progress_reporter,
    reconstruction_error,
    require_nonnegative,
    require_positive,
)
from cvxnmf.estimators.nmf import NMF
from cvxnmf.estimators.plan import Plan, make_plan
from cvxnmf.estimators.rows import FittedRows, fitted_rows, sample_weights
from cvxnmf.nmf.loss_names import find_loss
from cvxnmf.nmf.open import data_in_memory
from cvxnmf.nmf.starts import starting_point
from cvxnmf.nmf.streaming import Streaming
from cvxnmf.results import Iterate
from cvxnmf.typing import MatrixLike


class MiniBatchNMF(NMF):
    """Nonnegative matrix factorisation ``X ≈ WH`` from batches of rows, with scikit-learn's parameters.

    `fit` goes over the rows in batches, again and again; `partial_fit` takes one batch of a stream, and `fit` a whole stream, an
    iterator of batches, once. For the squared error the components are swept on sums over the batches, for other losses
    they are multiplied as in scikit-learn. Codes of `transform` are those of :class:`NMF`.

    Parameters
    ----------
    n_components : int, "auto" or None
        Number of components; "auto" takes it from a custom start. None, and "auto" without one, keep all features.
    init : {"nndsvd", "nndsvda", "nndsvdar", "random", "custom"}, optional
        The start, from all rows in `fit` and from the first batch of a stream; None is "nndsvd".
    batch_size : int
        Rows of a batch in `fit`.
    beta_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        What to minimise, as in :class:`NMF`.
    tol : float
        Stop when a batch moves the components by less than this share of their norm.
    max_no_improvement : int or None
        Stop after so many batches in a row that did not lower the smoothed objective; None never does.
    max_iter : int
        Most passes over the rows.
    alpha_W, alpha_H, l1_ratio : float
        Penalties as in :class:`NMF`, those on H per batch.
    forget_factor : float
        Share with which what was seen counts after a pass over all rows, or, in a stream, after a batch; from 0 to 1.
    fresh_restarts : bool
        Whether codes of a batch are found anew each time it comes; in a stream they always are.
    fresh_restarts_max_iter : int
        Most sweeps for codes that are found anew.
    transform_max_iter : int or None
        Accepted for compatibility: codes are the best ones.
    random_state : int, RandomState or None
        For ``init="random"``; nothing else is random.
    verbose : int
        Whether to show progress of `fit` on the standard error stream, the loss per row: a changing line, or a few.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        H.
    n_components_ : int
        Number of components.
    reconstruction_err_ : float
        As of :class:`NMF`; not known after a stream.
    n_iter_, n_steps_ : int
        Passes over the rows that were begun, and batches.
    certificate_ : Certificate
        As of :class:`NMF`; not known after a stream.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has any.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxnmf import MiniBatchNMF
    >>> X = np.kron(np.ones((50, 1)), np.kron([[2.0, 0.0], [1.0, 3.0]], np.ones((3, 4))))
    >>> model = MiniBatchNMF(n_components=2, batch_size=60).fit(X)
    >>> model.components_.shape, bool(model.reconstruction_err_ < 1e-2 * np.linalg.norm(X))
    ((2, 8), True)
    >>> stream = (X[first : first + 60] for first in range(0, 300, 60))
    >>> MiniBatchNMF(n_components=2).fit(stream).n_steps_
    5
    """

    solver, shuffle, memory_limit, certificate = "mu", False, None, "later"

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        batch_size: int = 1024,
        beta_loss: str | float = "frobenius",
        tol: float = 1e-4,
        max_no_improvement: int | None = 10,
        max_iter: int = 200,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        forget_factor: float = 0.7,
        fresh_restarts: bool = False,
        fresh_restarts_max_iter: int = 30,
        transform_max_iter: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.batch_size = batch_size
        self.beta_loss = beta_loss
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.max_iter = max_iter
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.forget_factor = forget_factor
        self.fresh_restarts = fresh_restarts
        self.fresh_restarts_max_iter = fresh_restarts_max_iter
        self.transform_max_iter = transform_max_iter
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: MatrixLike | Iterator[MatrixLike],
        y: object = None,
        W: ArrayLike | None = None,
        H: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the components of X, or of a stream of batches.

        Parameters
        ----------
        X : array-like or scipy.sparse matrix of shape (n_samples, n_features), or iterator of such
            Nonnegative. An iterator is gone through once, a batch for each of its elements.
        y : ignored
            Present by convention.
        W, H : array-like, optional
            The start for ``init="custom"``.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, 0 or more; those of a stream go with its batches, to `partial_fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        if not isinstance(X, Iterator):
            self._fit(X, W, H, sample_weight)
            return self
        if sample_weight is not None:
            validation.refuse("sample_weight of a stream goes with each of its batches; pass both to partial_fit.")
        self._forget()
        for batch in X:
            self.partial_fit(batch, W=W, H=H)
        if not hasattr(self, "_stream"):
            validation.refuse("The stream has no batches; an iterator can be gone through only once.")
        return self

    def partial_fit(
        self,
        X: MatrixLike,
        y: object = None,
        W: ArrayLike | None = None,
        H: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Take in one more batch of a stream.

        Parameters
        ----------
        X, y, W, H, sample_weight
            As in :meth:`fit`, of one batch; of a custom start the first batch takes H.

        Returns
        -------
        self
            The estimator.
        """
        first = not hasattr(self, "_stream")
        data = self._data_in_memory(X, reset=first)
        weights = sample_weights(sample_weight, data.shape[0])
        if first:
            if not data.max() > 0:
                validation.refuse("The first batch of a stream is all zeros and tells nothing of components; begin with another.")
            self.n_steps_ = 0
            self._begin(data, make_plan(self, data.shape, W, H, in_memory=True), W, H)
        self._stream.step(data, self._forget_share(1.0), None, self.fresh_restarts_max_iter, self.tol, weights)
        self._publish(data.dtype, self.n_steps_ + 1, 1)
        for name in ("reconstruction_err_", "_proof"):
            self.__dict__.pop(name, None)
        return self

    def _fit(self, X: Any, W: Any, H: Any, sample_weight: Any) -> Any:
        """Pass over the rows in batches until the components hardly change, and return the codes."""
        self._forget()
        X = self._data_in_memory(X, reset=True)
        weights, plan = sample_weights(sample_weight, X.shape[0]), make_plan(self, X.shape, W, H, in_memory=True)
        tasks = FitTasks(self, X, sample_weight)
        if not X.max() > 0:
            self.n_steps_, codes = 1, self._fit_zeros(X, plan)
        else:
            with progress_reporter(self) as show:
                codes = self._pass_over(X, self._begin(X, plan, W, H), weights, tasks, show)
            codes = self._encode(X, self.components_, plan, codes)
            rows = fitted_rows(X, plan._replace(l1=(0.0, 0.0), l2=(0.0, 0.0)), weights)
            value = rows.value(codes, self.components_)
            self.reconstruction_err_ = reconstruction_error(value, plan.loss)
            self._prove_later(rows.data, self.n_components_, value, rows.loss, False, 0)
        tasks.end()
        return codes

    def _pass_over(self, X: Any, codes: Any, weights: Any, tasks: FitTasks, show: Any) -> Any:
        """Go over the mini-batches until little changes, and return the last codes of each."""
        m = X.shape[0]
        size = min(validation.integer("batch_size", self.batch_size, minimum=1), m)
        keep, progress, per_pass = self._forget_share(size / m), _Improvement(size, m, self.max_no_improvement), -(-m // size)
        self.n_steps_, most, constants = 0, self.max_iter * per_pass, dict[int, float]()
        for rows in itertools.islice(itertools.cycle(list(gen_batches(m, size))), most):
            U, some = None if self.fresh_restarts else codes[rows], None if weights is None else weights[rows]
            codes[rows], value, moved = self._stream.step(X[rows], keep, U, self.fresh_restarts_max_iter, self.tol, some)
            if rows.start not in constants:
                constants[rows.start] = self._stream.constant(X[rows], some)
            cost = (value + constants[rows.start]) / (rows.stop - rows.start)
            self.n_steps_ += 1
            if show is not None:
                show(Iterate(self.n_steps_, 0.0, cost, 0.0, codes.shape[1], share=self.n_steps_ / most))
            asked = tasks.iteration(lambda: {"components_": self._stream.V.T.astype(X.dtype), "n_components_": codes.shape[1]})
            if asked or (self.n_steps_ > 1 and (moved <= self.tol > 0 or progress.has_ended(cost))):
                break
        else:
            if self.tol > 0:
                warnings.warn(convergence_message(self.max_iter), ConvergenceWarning, stacklevel=5)
        self._publish(X.dtype, self.n_steps_, -(-self.n_steps_ // per_pass))
        return codes

    def _forget(self) -> None:
        """Discard the stream of mini-batches of an earlier fit."""
        for name in ("_stream", "n_steps_"):
            self.__dict__.pop(name, None)

    def _forget_share(self, passes: float) -> float:
        """The weight of earlier mini-batches after so many passes over the rows: a power of the forget factor."""
        factor = validation.number("forget_factor", self.forget_factor, minimum=0.0)
        if factor > 1.0:
            validation.refuse(f"forget_factor must be from 0 to 1, not {self.forget_factor!r}.")
        return float(factor**passes)

    def _begin(self, X: Any, plan: Plan, W: Any, H: Any) -> Any:
        """Start mini-batches from all rows or from the first batch, and return the codes of the start."""
        loss, k = find_loss(plan.loss), plan.n_components or X.shape[1]
        start = self._start(plan, FittedRows(X, plan.loss), W, H)
        rng = int(check_random_state(self.random_state).randint(2**31 - 1)) if isinstance(start, str) and start == "random" else 0
        if isinstance(start, str) and k > max(X.shape):
            start, rng = "random", 0
        _, data = data_in_memory(X, loss, keep_given=False)
        U, V = starting_point(data, k, start, False, rng)
        l1, l2 = ((on_W, on_H / X.shape[0]) for on_W, on_H in (plan.l1, plan.l2))
        self._stream = Streaming(V, loss, l1, l2)
        return loss.lift_zeros(U)

    def _publish(self, dtype: Any, n_steps: int, n_iter: int) -> None:
        """Set the fitted attributes of MiniBatchNMF from the stream."""
        self.components_ = self._stream.V.T.astype(dtype)
        self.n_components_, self.n_steps_, self.n_iter_ = len(self.components_), n_steps, n_iter

    def _data_in_memory(self, X: Any, reset: bool) -> Any:
        """Check a mini-batch X as scikit-learn does, and that the loss can be computed."""
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        require_nonnegative(X, f"{type(self).__name__} (input X)")
        require_positive(X, self.beta_loss)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


class _Improvement:
    """Stopping rule of mini-batches: whether the objective per row, smoothed over about a pass, still falls."""

    def __init__(self, batch_size: int, n_samples: int, patience: Any) -> None:
        self.weight = min(1.0, batch_size / (n_samples + 1))
        self.patience = None if patience is None else validation.integer("max_no_improvement", patience, minimum=1)
        self.smoothed: float | None = None
        self.least, self.in_vain = np.inf, 0

    def has_ended(self, cost: float) -> bool:
        """Take in the objective of a mini-batch, and return whether the smoothed one has stopped falling."""
        self.smoothed = cost if self.smoothed is None else (1.0 - self.weight) * self.smoothed + self.weight * cost
        self.in_vain = 0 if self.smoothed < self.least else self.in_vain + 1
        self.least = min(self.least, self.smoothed)
        return self.patience is not None and self.in_vain >= self.patience
