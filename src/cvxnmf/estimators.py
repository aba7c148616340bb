"""The scikit-learn face: :class:`NMF` and :class:`SymmetricNMF` over :func:`factorize` and :func:`classical_nmf`.

scikit-learn halves the squared error and scales penalties by the sides of the data; :meth:`NMF._plan` is the one place where
its parameters become ours. Codes of data, ``X ≈ WH`` with H fixed, are a convex problem per row, solved by :func:`encode`,
which `transform` and `fit_transform` share.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import (  # type: ignore[import-untyped]
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]
from sklearn.metrics.pairwise import rbf_kernel  # type: ignore[import-untyped]
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from cvxnmf import validation
from cvxnmf.certificates.rank import factor_loss, rank_certificate
from cvxnmf.checking import Certificate
from cvxnmf.classical import classical_nmf
from cvxnmf.codes import encode
from cvxnmf.factorization import factorize
from cvxnmf.results import Factorization, Iterate, Status

#: scikit-learn's names of the losses.
BETA_LOSSES = {"frobenius": "mse", 2: "mse", "kullback-leibler": "kl", 1: "kl"}
#: scikit-learn's names of the solvers; "auto" with a start of the user's choice descends from there.
METHODS = {"auto": "hals", "cd": "hals", "mu": "multiplicative"}
#: Names of starts; the engine fills the zeros of "nndsvd" itself, by which scikit-learn's three forms differ.
STARTS = {name: name for name in ("nndsvd", "random", "convex", "custom")} | {"nndsvda": "nndsvd", "nndsvdar": "nndsvd"}
#: Singular value decompositions to spend on a bound: "cd" and "mu" are asked for speed, and take the singular values alone.
EFFORTS = {"auto": 150, "cd": 0, "mu": 0}
#: Steps that tell whether a descent was still going when it stopped.
LAST_STEPS = 10


class Plan(NamedTuple):
    """Constructor parameters in the convention of this package: ``loss + l1 sum + l2 ||.||²``, pairs for W and H."""

    loss: str
    start: str
    n_components: int | None
    l1: tuple[float, float]
    l2: tuple[float, float]

    @property
    def penalised(self) -> bool:
        """Whether any penalty is positive."""
        return any(self.l1 + self.l2)


class NMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Nonnegative matrix factorisation ``X ≈ WH`` with scikit-learn's parameters, deterministic and with a certificate.

    The default ``solver="auto"`` runs several deterministic descents and certifies the best, which takes about as long as ten
    random restarts; ``solver="cd"`` is a single one, as fast as scikit-learn's or faster.

    The objective is scikit-learn's: ``d(X, WH) + alpha_W l1_ratio n_features sum(W) + alpha_H l1_ratio n_samples sum(H)
    + alpha_W (1 - l1_ratio) n_features ||W||² / 2 + alpha_H (1 - l1_ratio) n_samples ||H||² / 2`` with d half the squared error
    or the Kullback-Leibler divergence, over the observed entries where X has NaN.

    Parameters
    ----------
    n_components : int, "auto" or None
        Number of components. "auto" takes it from a custom start, else, with ``solver="auto"`` and no start named, from the
        convex problem. None, and "auto" in all other cases, keep all features, as in scikit-learn.
    init : {"nndsvd", "nndsvda", "nndsvdar", "random", "custom", "convex"}, optional
        The start. "convex" is the answer of :func:`factorize`, and what None stands for with ``solver="auto"``; with the other
        solvers None is "nndsvd". The three forms of "nndsvd" are one here: zeros of a start are filled. "custom" takes W and H
        from `fit_transform`.
    solver : {"auto", "cd", "mu"}
        "auto": :func:`factorize`, the best of several deterministic starts; with a start named or with penalties, coordinate
        descent from there. "cd": coordinate descent, "mu": multiplicative updates, each for both losses, from one start; they
        take the bound of the certificate from the singular values alone.
    beta_loss : {"frobenius", "kullback-leibler", 2, 1}
        What to minimise.
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
        Whether to report every iteration on the standard error stream.
    shuffle : bool
        Accepted for compatibility: coordinates have a fixed order.

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
        factorisation with as many components can beat.
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
        n_components: Any = "auto",
        *,
        init: str | None = None,
        solver: str = "auto",
        beta_loss: Any = "frobenius",
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Any = None,
        alpha_W: float = 0.0,
        alpha_H: Any = "same",
        l1_ratio: float = 0.0,
        verbose: int = 0,
        shuffle: bool = False,
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

    def fit(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Self:
        """Find the components of X.

        Parameters
        ----------
        X : array-like or scipy.sparse matrix of shape (n_samples, n_features)
            Nonnegative; NaN stands for missing entries.
        y : ignored
            Present by convention.
        W, H : array-like, optional
            The start for ``init="custom"``, of shapes (n_samples, n_components) and (n_components, n_features).

        Returns
        -------
        self
            The fitted estimator.
        """
        self.fit_transform(X, W=W, H=H)
        return self

    def fit_transform(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Any:
        """Find the components of X and return its codes W.

        Parameters
        ----------
        X : array-like or scipy.sparse matrix of shape (n_samples, n_features)
            Nonnegative; NaN stands for missing entries.
        y : ignored
            Present by convention.
        W, H : array-like, optional
            The start for ``init="custom"``, of shapes (n_samples, n_components) and (n_components, n_features).

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The same as ``transform(X)``.
        """
        X = self._checked(X, reset=True)
        plan = self._plan(X.shape, W)
        if plan.start != "custom" and not (W is None and H is None):
            warnings.warn("W and H are a start for init='custom' and not used otherwise.", RuntimeWarning, stacklevel=2)
        data = validation.partial_matrix(X, "X")
        result, bound = self._factors(data, plan, W, H)
        k = plan.n_components or result.n_components
        components = np.pad(result.V.T, ((0, k - result.n_components), (0, 0))).astype(X.dtype)
        codes = encode(X, components, plan.loss, plan.l1[0], plan.l2[0])
        self.components_, self.n_components_ = components, k
        self.n_iter_ = max(1, len(result.history))
        self.certificate_ = _certified(data, codes, components.T, plan.loss, bound, EFFORTS[self.solver])
        self.reconstruction_err_ = _norm(self.certificate_.value, plan.loss)
        _warn_if_unfinished(result, self.max_iter, self.tol)
        return codes

    def transform(self, X: Any) -> Any:
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
        X = self._checked(X, reset=False)
        plan = self._plan(X.shape, None)
        return encode(X, self.components_, plan.loss, plan.l1[0], plan.l2[0])

    def inverse_transform(self, X: Any) -> Any:
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
        W = X if sp.issparse(X) else np.asarray(X)
        if W.ndim != 2 or W.shape[1] != self.n_components_:
            validation.refuse(f"X must hold codes in {self.n_components_} columns, one per component, not be of shape {W.shape}.")
        return W @ self.components_

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _checked(self, X: Any, reset: bool) -> Any:
        """X as scikit-learn wants it checked; sparse data with missing entries become dense."""
        X = validate_data(
            self, X, reset=reset, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )
        _require_nonnegative(X, type(self).__name__)
        return X.toarray() if sp.issparse(X) and np.isnan(X.data).any() else X

    def _plan(self, shape: tuple[int, int], W: Any) -> Plan:
        """Check the parameters and translate them; twice scikit-learn's objective for the squared error, itself for KL."""
        solver = validation.choice("solver", self.solver, METHODS)
        loss = _loss(self.beta_loss)
        default = "convex" if solver == "auto" else "nndsvd"
        start = STARTS[validation.choice("init", default if self.init is None else self.init, STARTS)]
        validation.number("tol", self.tol, minimum=0.0)
        validation.integer("max_iter", self.max_iter, minimum=1)
        weights = (self.alpha_W, self.alpha_W if isinstance(self.alpha_H, str) and self.alpha_H == "same" else self.alpha_H)
        alpha_W, alpha_H = (validation.number(f"alpha_{name}", a, minimum=0.0) for name, a in zip("WH", weights, strict=True))
        ratio = validation.number("l1_ratio", self.l1_ratio, minimum=0.0)
        if ratio > 1.0:
            validation.refuse(f"l1_ratio must be from 0 to 1, not {self.l1_ratio!r}.")
        factor = 2.0 if loss == "mse" else 1.0
        on_W, on_H = factor * alpha_W * shape[1], factor * alpha_H * shape[0]
        l1, l2 = (ratio * on_W, ratio * on_H), (0.5 * (1.0 - ratio) * on_W, 0.5 * (1.0 - ratio) * on_H)
        return Plan(loss, start, self._number_of_components(shape[1], start, solver, W), l1, l2)

    def _number_of_components(self, n_features: int, start: str, solver: str, W: Any) -> int | None:
        """How many components to fit, None if the convex problem shall tell."""
        if self.n_components is None:
            return n_features
        if not isinstance(self.n_components, str):
            return validation.integer("n_components", self.n_components, minimum=1)
        if self.n_components != "auto":
            validation.refuse(f"n_components must be an integer of at least 1, 'auto' or None, not {self.n_components!r}.")
        if start == "custom" and np.ndim(W) == 2:
            return int(np.shape(W)[1])
        return None if start == "convex" and solver == "auto" else n_features

    def _factors(self, data: Any, plan: Plan, W: Any, H: Any) -> tuple[Factorization, Certificate | None]:
        """Factors from the engine that the plan asks for, and a certificate of the plain loss at their rank if there is one."""
        callback = _progress(type(self).__name__, self.verbose)
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "callback": callback}
        k = None if plan.n_components is None else min(plan.n_components, max(data.shape))
        if plan.start != "convex" or min(data.shape) == 1:  # one row or column is a matter of scale
            return self._descended(data, k or 1, plan, self._start(plan.start, W, H), options), None
        found = factorize(data, k, plan.loss, symmetric=False, effort=EFFORTS[self.solver], **options)
        if self.solver == "auto" and not plan.penalised:
            return found, found.certificate
        return self._descended(data, found.n_components, plan, (found.U, found.V), options), found.certificate

    def _descended(self, data: Any, k: int, plan: Plan, start: Any, options: dict[str, Any]) -> Factorization:
        """Factors that a classical method finds from a start."""
        random = isinstance(start, str) and start == "random"
        rng = int(check_random_state(self.random_state).randint(2**31 - 1)) if random else 0
        return classical_nmf(data, k, METHODS[self.solver], plan.loss, start, l1=plan.l1, l2=plan.l2, rng=rng, **options)

    def _start(self, name: str, W: Any, H: Any) -> Any:
        """The name of a start, or the user's W and H as U and V."""
        if name != "custom":
            return "nndsvd" if name == "convex" else name
        if W is None or H is None:
            validation.refuse("init='custom' needs both W and H; pass them to fit or fit_transform.")
        return np.asarray(W, dtype=np.float64), np.asarray(H, dtype=np.float64).T


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
        callback = _progress(type(self).__name__, self.verbose)
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "callback": callback}
        result = factorize(data, self.n_components, loss, symmetric=True, **options)
        U = result.U.astype(X.dtype)
        self.embedding_, self.components_, self.n_components_ = U, U.T, U.shape[1]
        self.labels_ = np.argmax(U, axis=1)
        self.n_iter_ = max(1, len(result.history))
        self.certificate_ = _certified(data, U, U, loss, result.certificate, EFFORTS["auto"])
        self.reconstruction_err_ = _norm(self.certificate_.value, loss)
        _warn_if_unfinished(result, self.max_iter, self.tol)
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
            gamma = None if self.gamma is None else validation.number("gamma", self.gamma, minimum=0.0)
            return _exactly_symmetric(rbf_kernel(X, gamma=gamma))
        _require_nonnegative(X, type(self).__name__)
        return _exactly_symmetric(X)


# What both share ---------------------------------------------------------------------------------------------------------------


def _loss(beta_loss: Any) -> str:
    """Our name of scikit-learn's loss."""
    known = isinstance(beta_loss, str | int | float | np.number) and not isinstance(beta_loss, bool)
    if not known or beta_loss not in BETA_LOSSES:
        validation.refuse(
            f"beta_loss={beta_loss!r} is not supported; choose 'frobenius' (2) or 'kullback-leibler' (1), for which there are "
            "certificates."
        )
    return BETA_LOSSES[beta_loss]


def _require_nonnegative(X: Any, name: str) -> None:
    """Refuse negative entries, missing ones aside."""
    lowest = np.nanmin(X.data if sp.issparse(X) else X, initial=0.0)
    if lowest < 0:
        validation.refuse(f"Negative values in data passed to {name}, down to {lowest:g}; only nonnegative ones can be factored.")


def _exactly_symmetric(A: Any) -> Any:
    """A without the rounding that makes mirrored entries differ; refused if more than that does."""
    if A.shape[0] != A.shape[1]:
        validation.refuse(f"Similarities must be a square matrix, not {A.shape[0]} by {A.shape[1]}; for features use 'rbf'.")
    difference, precision = abs(A - A.T).max(), 8 * float(np.finfo(A.dtype).eps)
    if difference > max(validation.ASYMMETRY, precision) * A.max():
        validation.refuse(f"X is not symmetric: mirrored entries differ by up to {difference:g}; pass (X + X.T) / 2.")
    return (A + A.T) / 2 if difference else A


def _progress(name: str, verbose: int) -> Callable[[Iterate], None] | None:
    """A callback that reports iterations, None if nobody asked."""
    if not verbose:
        return None

    def report(iterate: Iterate) -> None:
        sys.stderr.write(f"{name}: iteration {iterate.iteration}, value {iterate.value:.8g}\n")

    return report


def _certified(data: Any, U: Any, V: Any, loss: str, earlier: Certificate | None, effort: int) -> Certificate:
    """The certificate of these very factors, with the bound of an earlier one for the same data and rank if there is one."""
    symmetric, k = V is U, U.shape[1]
    U, V = (np.asarray(factor, dtype=np.float64) for factor in (U, V))
    with np.errstate(all="ignore"):
        value = factor_loss(data, U, V, loss)
        if earlier is None or earlier.statement.get("n_components") != k:
            return rank_certificate(data, k, value, loss, symmetric, effort)
    return dataclasses.replace(earlier, value=value, bound=min(earlier.bound, value), digest="")


def _norm(value: float, loss: str) -> float:
    """What scikit-learn calls the reconstruction error."""
    return float(np.sqrt(value if loss == "mse" else 2.0 * max(0.0, value)))


def _warn_if_unfinished(result: Factorization, max_iter: int, tol: float) -> None:
    """Warn if the last steps were still worth more than the tolerance of the first value, scikit-learn's measure."""
    values = [iterate.value for iterate in result.history]
    falling = len(values) < 2 or values[-min(len(values), LAST_STEPS + 1)] - values[-1] > tol * values[0]
    if result.status is Status.MAX_ITER and tol > 0 and falling:
        warnings.warn(f"Stopped after max_iter={max_iter} iterations; increase it for more.", ConvergenceWarning, stacklevel=3)
