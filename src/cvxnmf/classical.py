"""Classical rank-k factorisation ``A ≈ UV'``, U and V nonnegative: update rules, and the one loop that drives them.

With one factor fixed, the objective in the other is a *half*: :class:`Quadratic` for the squared error, :class:`Entropy` for
Kullback-Leibler. A rule takes a half and a factor to a better factor. :class:`Alternating` applies one rule to U and one to V;
:class:`Symmetric` moves U = V together. Missing entries are filled with the model's own values before each half, which lies
above the loss of the observed entries and touches it at the current point, so that every descent is one on the true loss.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf import kernels, spectra, starts, validation
from cvxnmf.checking import Certificate
from cvxnmf.results import Factorization, FloatArray, Interrupted, Iterate, Status

#: Steps whose common progress decides about stopping.
WINDOW = 10
#: Entries of a factor below this share of its largest are as good as zero: they are lifted to it when they want to leave.
TINY = 1e-10
#: Values below this share of the data's scale are recomputed entry by entry, since the short formula cancels.
CANCELLING = 1e-5
#: Products of at most this many entries are formed, block by block, where the short formula cancels on sparse data.
AFFORDABLE = 5e7
#: Share of nonzero entries up to which Kullback-Leibler works on compressed rows: zeros of A only enter through sums.
MOSTLY_ZERO = 0.6
#: Columns up to which a compiled loop beats the library's matrix product.
THIN = 4
#: Shares of the scale, as in a certificate: a value this small is zero.
NEGLIGIBLE = 1e-9


def classical_nmf(
    A: Any,
    n_components: int,
    method: str = "hals",
    loss: str = "mse",
    init: Any = "nndsvd",
    symmetric: bool = False,
    *,
    max_iter: int = 200,
    tol: float = 1e-4,
    l1: Any = 0.0,
    l2: Any = 0.0,
    sparseness: Any = None,
    rng: Any = 0,
    callback: Callable[[Iterate], Any] | None = None,
) -> Factorization:
    """Factor a nonnegative matrix, ``A ≈ UV'`` or ``A ≈ UU'``, by a classical local method.

    The objective, which no method ever lets rise, is ``loss + l1_U sum(U) + l1_V sum(V) + l2_U ||U||² + l2_V ||V||²`` with the
    loss ``||A - UV'||²`` ("mse") or ``sum A log(A/UV') - A + UV'`` ("kl") over the observed entries.

    Parameters
    ----------
    A : array-like or scipy.sparse matrix of shape (m, n)
        Nonnegative; NaN marks missing entries. Sparse matrices stay sparse.
    n_components : int
        Number of columns of U and V, at most the larger side of A.
    method : {"hals", "multiplicative", "gradient", "als", "quasi-newton", "sparse"}
        "hals": coordinate descent, extrapolated and restarted; for "kl" with a scalar Newton step per coordinate. "multiplicative":
        Lee & Seung. "gradient": projected gradient with backtracking. "als": exact alternating least squares by block
        principal pivoting. "quasi-newton": Zdunek & Cichocki's projected step with a regularised Hessian. "sparse": Hoyer's
        constraint on the columns by projection. "als", "quasi-newton" and "sparse" are for "mse".
    loss : {"mse", "kl"}
        Squared error or Kullback-Leibler divergence.
    init : {"nndsvd", "random"} or pair of arrays (U, V)
        The start; for a symmetric factorisation an array U. Arrays are not changed.
    symmetric : bool
        Factor a symmetric A as ``UU'``: "multiplicative" (Ding, He & Simon; for "kl" expectation maximisation) or "hals" (exact
        coordinate descent). V is U, so that both penalties fall on it.
    max_iter : int
        Most steps; one step updates U and V once.
    tol : float
        Stop when the last ten steps together lowered the objective by less than `tol` times its value.
    l1, l2 : float or pair of floats
        Weights of the penalties on U and V. Without them columns are scaled so that ``|u_l| = |v_l|``.
    sparseness : pair of floats or None, optional
        For method "sparse": Hoyer's ``(sqrt(n) - |x|_1/|x|_2) / (sqrt(n) - 1)`` that every column of U and of V shall have, from
        0 to 1; None leaves a factor free.
    rng : int or numpy.random.Generator
        For ``init="random"``.
    callback : callable, optional
        Called with an :class:`Iterate` after every step; a true answer stops.

    Returns
    -------
    Factorization
        Columns by decreasing weight. The certificate holds the value and the bound 0.

    Raises
    ------
    Interrupted
        On Ctrl-C; a KeyboardInterrupt whose `solution` is the best Factorization so far.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxnmf.classical import classical_nmf
    >>> A = np.kron(np.array([[2.0, 0.0], [1.0, 3.0]]), np.ones((3, 4)))
    >>> result = classical_nmf(A, n_components=2, max_iter=1000, tol=1e-10)
    >>> bool(result.value < 1e-9), result.U.shape, result.V.shape
    (True, (6, 2), (8, 2))
    """
    validation.choice("method", method, METHODS)
    validation.choice("loss", loss, LOSSES)
    validation.callback(callback)
    if not isinstance(symmetric, bool | np.bool_):
        validation.refuse(f"symmetric must be True or False, not {symmetric!r}.")
    max_iter = validation.integer("max_iter", max_iter, minimum=1)
    tol = validation.number("tol", tol, minimum=0.0)
    penalty = Penalty(_pair("l1", l1), _pair("l2", l2))
    kind = METHODS[method]
    kind.accept(method, loss, bool(symmetric), sparseness)
    data = Data.from_user(A, bool(symmetric), loss)
    k = _components(n_components, data.shape)
    with spectra.single_thread(), np.errstate(all="ignore"):  # values are tested for being finite
        U, V = _start(data, k, init, bool(symmetric), rng)
        problem = LOSSES[loss](data, penalty)
        mover: Mover
        if symmetric:
            mover = Symmetric(problem, kind.symmetric_rules[loss], U)
        else:
            mover = Alternating(problem, kind.rules(loss, sparseness), U, V)
        run = _Run(problem, mover, max_iter, tol, callback)
        try:
            status = run.loop()
        except KeyboardInterrupt:
            raise Interrupted(run.result(Status.INTERRUPTED)) from None  # type: ignore[arg-type]
        return run.result(status)


# The data ------------------------------------------------------------------------------------------------------------------


class Data:
    """A and its transpose, dense or in compressed rows, with places for missing entries.

    Attributes
    ----------
    A, At : ndarray or scipy.sparse.csr_array
        Missing entries hold the fill.
    rows, columns : ndarray
        Where entries are missing.
    """

    def __init__(self, A: Any, rows: Any, columns: Any, single: bool, symmetric: bool) -> None:
        self.A, self.rows, self.columns, self.single = A, rows, columns, single
        self.shape: tuple[int, int] = A.shape
        self.sparse = sp.issparse(A)
        self.missing = len(rows) > 0
        self._symmetric = symmetric
        self._fill_places()

    def _fill_places(self) -> None:
        """Find the missing entries in the storage of A and of its transpose."""
        if not self.sparse:
            self.At = self.A if self._symmetric else np.ascontiguousarray(self.A.T)
            self._places, self._places_t = (self.rows, self.columns), (self.columns, self.rows)
            return
        tags = sp.csr_array((np.arange(1, self.A.nnz + 1), self.A.indices, self.A.indptr), shape=self.shape)
        turned = tags.T.tocsr()
        order = turned.data - 1
        self.At = sp.csr_array((self.A.data[order], turned.indices, turned.indptr), shape=self.shape[::-1])
        inverse = np.empty(len(order), dtype=np.intp)
        inverse[order] = np.arange(len(order))
        wanted = np.asarray(tags[self.rows, self.columns]).ravel().astype(np.intp) - 1 if self.missing else self.rows
        self._places, self._places_t = wanted, inverse[wanted]

    @classmethod
    def from_user(cls, A: Any, symmetric: bool, loss: str) -> Data:
        """Check a user's matrix: nonnegative, finite, no row or column without an observed entry."""
        if sp.issparse(A):
            data = cls._from_sparse(A, symmetric)
        else:
            data = cls._from_dense(A, symmetric)
        counts = [np.bincount(places, minlength=size) for places, size in zip((data.rows, data.columns), data.shape, strict=True)]
        for name, count, other in zip(("Row", "Column"), counts, data.shape[::-1], strict=True):
            if (count == other).any():
                validation.refuse(f"{name} {int(np.argmax(count == other))} of A has only NaN; drop it before factoring.")
        if symmetric:
            _require_symmetry(data)
        observed = data.observed()
        validation.magnitude(observed if len(observed) else np.zeros(1), loss)
        data.fill(_typical_values(data))
        return data.compressed() if loss == "kl" else data

    @classmethod
    def _from_dense(cls, A: Any, symmetric: bool) -> Data:
        raw = A
        try:
            raw = np.asarray(A)
            missing = np.isnan(raw) if raw.dtype.kind == "f" else np.zeros(raw.shape, dtype=bool)
        except (TypeError, ValueError):
            missing = np.zeros((1, 1), dtype=bool)
        if missing.any() and not missing.all():
            raw = np.where(missing, 0.0, raw)
        dense, precision = validation.nonnegative_matrix(raw if missing.any() else A)
        return cls(dense, *np.nonzero(missing), precision > 1e-10, symmetric)

    @classmethod
    def _from_sparse(cls, A: Any, symmetric: bool) -> Data:
        if A.ndim != 2 or 0 in A.shape or A.dtype.kind not in "fiub":
            validation.nonnegative_matrix(A)  # says what is wrong
        single = A.dtype.kind == "f" and A.dtype.itemsize <= 4
        matrix = sp.csr_array(A, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        values, missing = matrix.data, np.isnan(matrix.data)
        for wrong, words in ((np.isinf(values), "an infinite entry"), (values < 0, "a negative entry")):
            if wrong.any():
                e = int(np.argmax(wrong))
                start = "Negative values in data: " if values[e] < 0 else ""
                validation.refuse(f"{start}A has {words} at row {rows[e]}, column {matrix.indices[e]}; only nonnegative finite "
                                  "entries can be factored.")
        if not (values[~missing] > 0).any():
            validation.refuse("A is all zeros; there is nothing to fit.")
        keep = missing | (values > 0)
        if not keep.all():
            places = (rows[keep], matrix.indices[keep])
            matrix = sp.csr_array((np.where(missing, 1.0, values)[keep], places), shape=matrix.shape)
            matrix.sort_indices()
            return cls(matrix, rows[missing], places[1][missing[keep]], single, symmetric)
        columns = matrix.indices[missing]
        matrix.data[missing] = 1.0
        return cls(matrix, rows[missing], columns, single, symmetric)

    def compressed(self) -> Data:
        """The same data in compressed rows if that saves work."""
        if self.sparse or np.count_nonzero(self.A) > MOSTLY_ZERO * self.A.size:
            return self
        matrix = sp.csr_array(self.A)
        return Data(matrix, self.rows, self.columns, self.single, self._symmetric)

    def observed(self) -> FloatArray:
        """The stored observed entries (of sparse data the nonzero ones)."""
        values: FloatArray = self.A.data if self.sparse else self.A
        if not self.missing:
            return values.ravel()
        hidden = np.zeros(values.shape, dtype=bool)
        hidden[self._places] = True
        return values[~hidden]

    def fill(self, values: FloatArray) -> None:
        """Put values where entries are missing."""
        if self.missing:
            (self.A.data if self.sparse else self.A)[self._places] = values
            (self.At.data if self.sparse else self.At)[self._places_t] = values

    @property
    def filled(self) -> FloatArray:
        """The values where entries are missing."""
        return np.asarray((self.A.data if self.sparse else self.A)[self._places])

    def model(self, U: FloatArray, V: FloatArray) -> FloatArray:
        """``UV'`` where entries are missing."""
        return np.asarray(kernels.entries(self.rows, self.columns, U, V))


def product(A: Any, V: FloatArray) -> FloatArray:
    """``A V`` for either storage."""
    if sp.issparse(A):
        return np.asarray(kernels.csr_product(A.indptr, A.indices, A.data, V))
    if V.shape[1] <= THIN:
        return np.asarray(kernels.thin_product(A, np.ascontiguousarray(V.T)))
    return np.asarray(A @ V)


def _typical_values(data: Data) -> FloatArray:
    """First guess of missing entries: the product of the row's and the column's mean over the mean."""
    if not data.missing:
        return np.empty(0)
    data.fill(np.zeros(len(data.rows)))
    m, n = data.shape
    row = np.asarray(data.A.sum(axis=1)).ravel() / (n - np.bincount(data.rows, minlength=m))
    column = np.asarray(data.A.sum(axis=0)).ravel() / (m - np.bincount(data.columns, minlength=n))
    mean = float(data.A.sum()) / (m * n - len(data.rows))
    return row[data.rows] * column[data.columns] / mean


def _require_symmetry(data: Data) -> None:
    """Refuse data that are not symmetric, and average what differs by rounding."""
    m, n = data.shape
    if m != n:
        validation.refuse(f"A must be square for a symmetric factorisation, not {m} by {n}; use symmetric=False.")
    places = set(zip(data.rows.tolist(), data.columns.tolist(), strict=True))
    if any((j, i) not in places for i, j in places):
        validation.refuse("A has NaN at an entry but not at its mirror image; make both missing or give both.")
    data.fill(np.ones(len(data.rows)))
    difference = abs(data.A - data.A.T)
    precision = float(np.finfo(np.float32).eps) if data.single else 0.0
    if difference.max() > max(validation.ASYMMETRY, 8 * precision) * data.A.max():
        validation.refuse(f"A is not symmetric: mirrored entries differ by up to {difference.max():g}; pass (A + A.T) / 2.")
    if difference.max():
        mean = (data.A + data.A.T) / 2
        data.A = sp.csr_array(mean) if data.sparse else mean
        data._fill_places()


# What to minimise ------------------------------------------------------------------------------------------------------------


class Penalty(NamedTuple):
    """Weights of the penalties on U and on V."""

    l1: tuple[float, float]
    l2: tuple[float, float]

    def value(self, X: FloatArray, side: int) -> float:
        """The penalty on one factor."""
        total = self.l1[side] * float(X.sum()) if self.l1[side] else 0.0
        return total + (self.l2[side] * float(np.vdot(X, X)) if self.l2[side] else 0.0)

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return any(self.l1) or any(self.l2)


class Half(Protocol):
    """The objective in one factor X, the other fixed; constant penalties on the other left out."""

    def value(self, X: FloatArray) -> float:
        """The objective."""

    def gradient(self, X: FloatArray) -> FloatArray:
        """Its gradient."""

    def ratio(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Negative and positive part of the gradient, up to a common factor."""


class Quadratic:
    """``||A - XV'||² + l1 sum(X) + l2 ||X||² = ||A||² - 2 <P, X> + <XQ, X>``, ``P = AV - l1/2``, ``Q = V'V + l2 I``."""

    def __init__(self, A: Any, V: FloatArray, l1: float, l2: float, constant: float) -> None:
        self.P, self.Q, self.l1, self.constant = product(A, V), V.T @ V, l1, constant
        if l2:
            self.Q[np.diag_indices_from(self.Q)] += l2
        if l1:
            self.P -= l1 / 2

    def value(self, X: FloatArray) -> float:
        """The objective; Gram matrices keep it cheap."""
        return self.constant - 2.0 * float(np.vdot(self.P, X)) + float(np.vdot(X.T @ X, self.Q))

    def gradient(self, X: FloatArray) -> FloatArray:
        """``2 (XQ - P)``."""
        return 2.0 * (X @ self.Q - self.P)

    def ratio(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``AV`` and ``XQ + l1/2``."""
        return self.P + self.l1 / 2, X @ self.Q + self.l1 / 2


class Entropy:
    """``sum A log(A/XV') - A + XV' + l1 sum(X) + l2 ||X||²``."""

    def __init__(self, A: Any, V: FloatArray, l1: float, l2: float, constant: float) -> None:
        self.A, self.V, self.l1, self.l2, self.constant = A, V, l1, l2, constant
        self.sums = V.sum(axis=0)
        self.logarithms: tuple[FloatArray, float] | None = None  # sum A log(XV') at the last X, where it came for free

    def value(self, X: FloatArray) -> float:
        """The objective, infinite where the model misses an entry."""
        if self.logarithms is None or self.logarithms[0] is not X:
            self._pass(X)
        assert self.logarithms is not None
        penalty = (self.l1 * float(X.sum()) if self.l1 else 0.0) + (self.l2 * float(np.vdot(X, X)) if self.l2 else 0.0)
        return self.constant + float(X.sum(axis=0) @ self.sums) - self.logarithms[1] + penalty

    def gradient(self, X: FloatArray) -> FloatArray:
        """``1 sum(V)' - (A / XV') V`` and the penalties'."""
        negative, positive = self.ratio(X)
        return positive - negative

    def ratio(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``(A / XV') V`` and ``sum(V) + l1 + 2 l2 X``."""
        return self._pass(X), np.asarray(self.sums + self.l1 + 2.0 * self.l2 * X if self.l2 else self.sums + self.l1)

    def _pass(self, X: FloatArray) -> FloatArray:
        """``(A / XV') V``, the logarithms on the way."""
        if sp.issparse(self.A):
            product, total = kernels.kl_ratio_product(self.A.indptr, self.A.indices, self.A.data, X, self.V)
        else:
            W = np.maximum(X @ self.V.T, np.finfo(np.float64).tiny)
            total = kernels.weighted_logarithms(self.A, W)
            product = np.divide(self.A, W, out=W) @ self.V
        self.logarithms = X, total
        return np.asarray(product)


class Problem:
    """Data, loss and penalties: halves, and values at points."""

    name: str
    half_of: type[Quadratic] | type[Entropy]

    def __init__(self, data: Data, penalty: Penalty) -> None:
        self.data, self.penalty = data, penalty

    def positive(self, X: FloatArray) -> FloatArray:
        """A start the loss is finite at."""
        return X

    def fill(self, U: FloatArray, V: FloatArray) -> None:
        """Fill missing entries with the model's."""
        if self.data.missing:
            self.data.fill(self.data.model(U, V))

    def half(self, side: int, other: FloatArray) -> Any:
        """The half in U (side 0) or V (side 1) with the other factor fixed."""
        A = self.data.At if side else self.data.A
        return self.half_of(A, other, self.penalty.l1[side], self.penalty.l2[side], self.constant())

    def value(self, half: Half, side: int, X: FloatArray, other: FloatArray) -> float:
        """The objective over observed entries, from a half at hand; exact where that would cancel."""
        rest = self.penalty.value(other, 1 - side)
        value = half.value(X)
        U, V = (other, X) if side else (X, other)
        if self.data.missing:
            value -= self.excess(self.data.filled, self.data.model(U, V))
        if value - self.penalty.value(X, side) < CANCELLING * self.scale:
            return self.evaluate(U, V)
        return value + rest

    def evaluate(self, U: FloatArray, V: FloatArray) -> float:
        """The objective, computed entry by entry where affordable."""
        return self.loss(U, V) + self.penalty.value(U, 0) + self.penalty.value(V, 1)

    scale: float

    def constant(self) -> float:
        """The part of the loss that the factors cannot change, with the fill of missing entries."""
        raise NotImplementedError

    def excess(self, filled: FloatArray, model: FloatArray) -> float:
        """The loss of the filled entries."""
        raise NotImplementedError

    def loss(self, U: FloatArray, V: FloatArray) -> float:
        """The loss over observed entries."""
        raise NotImplementedError


class SquaredError(Problem):
    """``||A - UV'||²``."""

    name, half_of = "mse", Quadratic

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        """``||A||²`` over observed entries."""
        observed = self.data.observed()
        return float(np.vdot(observed, observed))

    def constant(self) -> float:
        """``||A||²``, fill included."""
        return self.scale + (float(np.vdot(self.data.filled, self.data.filled)) if self.data.missing else 0.0)

    def excess(self, filled: FloatArray, model: FloatArray) -> float:
        """Squared distance."""
        return float(np.sum((filled - model) ** 2))

    def loss(self, U: FloatArray, V: FloatArray) -> float:
        """Entry by entry, in blocks of rows; for sparse data by Gram matrices unless that cancels."""
        A, (m, n) = self.data.A, self.data.shape
        self.fill(U, V)
        if self.data.sparse:
            short = self.constant() - 2.0 * float(np.vdot(product(A, V), U)) + float(np.vdot(U.T @ U, V.T @ V))
            if short > CANCELLING * self.scale or m * n > AFFORDABLE:
                return max(0.0, short)
        total, height = 0.0, max(1, (1 << 20) // n)
        for first in range(0, m, height):
            block = A[first : first + height]
            R = (block.toarray() if self.data.sparse else block) - U[first : first + height] @ V.T
            total += float(np.vdot(R, R))
        if self.data.missing:
            total -= self.excess(self.data.filled, self.data.model(U, V))
        return max(0.0, total)


class KullbackLeibler(Problem):
    """``sum A log(A/UV') - A + UV'``."""

    name, half_of = "kl", Entropy

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        """Sum of A over observed entries."""
        return float(self.data.observed().sum())

    @cached_property
    def _entropy(self) -> float:
        return _entropy(self.data.observed())

    def constant(self) -> float:
        """``sum A log A - A``, fill included."""
        return self._entropy + (_entropy(self.data.filled) if self.data.missing else 0.0)

    def positive(self, X: FloatArray) -> FloatArray:
        """Lifted off zero."""
        return np.maximum(X, TINY * X.max())

    def excess(self, filled: FloatArray, model: FloatArray) -> float:
        """Divergence of the fill from the model."""
        return _divergence(filled, model)

    def loss(self, U: FloatArray, V: FloatArray) -> float:
        """By entries, the sum over the zeros of sparse data by difference."""
        A = self.data.A
        self.fill(U, V)
        if not self.data.sparse:
            total = _divergence(A, U @ V.T)
        else:
            rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
            model = kernels.entries(rows, A.indices, U, V)
            zeros = float(U.sum(axis=0) @ V.sum(axis=0)) - float(model.sum())
            total = _divergence(A.data, model) + (max(0.0, zeros) if A.nnz < A.shape[0] * A.shape[1] else 0.0)
        return total  # filled entries add nothing


def _entropy(a: FloatArray) -> float:
    a = a[a > 0]
    return float(np.sum(a * np.log(a)) - np.sum(a))


def _divergence(a: FloatArray, w: FloatArray) -> float:
    """``sum a log(a/w) - a + w``, accurate where a and w are close."""
    step = (w - a) / np.where(a > 0, a, 1.0)
    return float(np.sum(np.where(a > 0, a * (step - np.log1p(step)), w)))


LOSSES: dict[str, type[Problem]] = {"mse": SquaredError, "kl": KullbackLeibler}


# Rules: a half and a factor to a better factor ---------------------------------------------------------------------------------


class Rule(Protocol):
    """One update of one factor."""

    def update(self, half: Any, X: FloatArray) -> FloatArray:
        """A new factor at which the half is not larger."""


class Multiplicative:
    """Lee & Seung: ``X * negative / positive`` part of the gradient; entries near zero that want to leave are lifted."""

    def update(self, half: Half, X: FloatArray) -> FloatArray:
        """One multiplication."""
        negative, positive = half.ratio(X)
        lift = TINY * float(X.max())
        new = X * (negative / np.where(positive > 0, positive, np.finfo(np.float64).tiny))
        new[~np.isfinite(new)] = 0.0
        return np.where((new < lift) & (negative > positive), lift, new)


class Gradient:
    """Projected gradient; the step is the last one doubled, then halved until the half has fallen enough."""

    def __init__(self, steps: int = 4, enough: float = 0.01) -> None:
        self.steps, self.enough, self.length = steps, enough, 0.0

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """On the nonnegative factors; near zero counts as zero."""
        return np.maximum(new, 0.0)

    def update(self, half: Half, X: FloatArray) -> FloatArray:
        """A few steps."""
        value = half.value(X)
        for _ in range(self.steps):
            G = half.gradient(X)
            size = float(np.linalg.norm(G))
            if not size > 0:
                break
            length = 2.0 * self.length or float(np.linalg.norm(X)) / size
            for _ in range(60):
                new = self.project(X - length * G, X)
                new_value = half.value(new)
                if new_value < value and new_value <= value + self.enough * float(np.vdot(G, new - X)):
                    X, value, self.length = new, new_value, length
                    break
                length /= 2.0
            else:
                break
        return X


class PositiveGradient(Gradient):
    """The same for Kullback-Leibler, which must not reach zero: an entry falls to a tenth at most."""

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """Off zero."""
        return np.maximum(np.maximum(new, X / 10.0), TINY * X.max())


class Sparseness(Gradient):
    """Hoyer: a gradient step, then every column on the set of its sparseness, its norm kept if `keep`."""

    def __init__(self, sparseness: float, keep: bool) -> None:
        super().__init__(steps=1, enough=0.0)
        self.sparseness, self.keep = sparseness, keep

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """Column by column."""
        norms = np.linalg.norm(X if self.keep else new, axis=0)
        return np.stack([_with_sparseness(x, self.sparseness, float(norm)) for x, norm in zip(new.T, norms, strict=True)], axis=1)

    def update(self, half: Half, X: FloatArray) -> FloatArray:
        """One step that lowers the half; the set is not convex, so any decrease is taken."""
        value, G = half.value(X), half.gradient(X)
        length = 2.0 * self.length or float(np.linalg.norm(X)) / max(float(np.linalg.norm(G)), np.finfo(np.float64).tiny)
        for _ in range(60):
            new = self.project(X - length * G, X)
            if half.value(new) < value:
                self.length = length
                return new
            length /= 2.0
        return X


def _with_sparseness(x: FloatArray, sparseness: float, norm: float) -> FloatArray:
    """The nearest nonnegative vector of this norm and sparseness (Hoyer 2004): project on the plane of the sum, move along
    it to the sphere, drop what is negative, again."""
    n = len(x)
    if not norm > 0 or n == 1:
        return np.maximum(x, 0.0)
    total = norm * (np.sqrt(n) - sparseness * (np.sqrt(n) - 1.0))
    free = np.ones(n, dtype=bool)
    y = x + (total - x.sum()) / n
    while True:
        count = int(free.sum())
        middle = np.where(free, total / count, 0.0)
        away = np.where(free, y - middle, 0.0)
        room = max(0.0, norm**2 - total**2 / count)
        size = float(away @ away)
        if size <= 1e-30 * norm**2 and room > 0:  # all equal: any direction in the plane is as near
            away = np.where(free, -1.0 / count, 0.0)
            away[int(np.argmax(np.where(free, x, -np.inf)))] += 1.0
            size = float(away @ away)
        y = middle + np.sqrt(room / size) * away if size > 0 else middle
        negative = y < 0
        if not negative.any():
            return y
        free &= ~negative
        y = np.where(free, y, 0.0)
        y = np.where(free, y + (total - y.sum()) / int(free.sum()), 0.0)


class Hals:
    """Coordinate descent: columns one after the other, in up to `sweeps` sweeps per row."""

    def __init__(self, sweeps: int = 1) -> None:
        self.sweeps = sweeps

    def update(self, half: Quadratic, X: FloatArray) -> FloatArray:
        """Sweep."""
        return np.asarray(kernels.hals_sweeps(X, half.P, half.Q, self.sweeps))


class Newton:
    """Kullback-Leibler coordinate by coordinate, a scalar Newton step each; a multiplicative step if that should not descend."""

    def update(self, half: Entropy, X: FloatArray) -> FloatArray:
        """One pass over the coordinates."""
        S, extra, lift = half.sums + half.l1, 2.0 * half.l2, TINY * float(X.max())
        if sp.issparse(half.A):
            new, total = kernels.kl_newton_csr(half.A.indptr, half.A.indices, half.A.data, X, half.V, S, extra, lift)
        else:
            new, total = kernels.kl_newton_dense(half.A, X, np.ascontiguousarray(half.V.T), S, extra, lift)
        half.logarithms = new, total
        return np.asarray(new)


class LeastSquares:
    """The half's exact minimiser, by block principal pivoting (Kim & Park); rows with one passive set share a factorisation."""

    def update(self, half: Quadratic, X: FloatArray) -> FloatArray:
        """Exchange all infeasible variables of a row at once, or only the last one when that does not help."""
        P, Q = half.P, half.Q
        m, k = P.shape
        ridge = 1e-14 * float(np.trace(Q)) / k
        passive = X > 0
        new, dual = self._solve(P, Q, passive, ridge)
        best, patience = np.full(m, k + 1), np.full(m, 3)
        size = np.abs(P).max(axis=1, keepdims=True) * 1e-12
        for _ in range(5 * k + 20):
            wrong = (passive & (new < 0)) | (~passive & (dual < -size))
            count = wrong.sum(axis=1)
            rows = np.flatnonzero(count)
            if not len(rows):
                break
            better = count[rows] < best[rows]
            best[rows] = np.minimum(best[rows], count[rows])
            patience[rows] = np.where(better, 3, patience[rows] - 1)
            flip = wrong[rows]
            single = patience[rows] < 0
            last = k - 1 - np.argmax(flip[:, ::-1], axis=1)
            flip[single] = np.arange(k) == last[single, None]
            passive[rows] ^= flip
            new[rows], dual[rows] = self._solve(P[rows], Q, passive[rows], ridge)
        new = np.maximum(new, 0.0)
        worse = _row_values(half, new) > _row_values(half, X)
        new[worse] = X[worse]
        return new

    @staticmethod
    def _solve(P: FloatArray, Q: FloatArray, passive: NDArray[np.bool_], ridge: float) -> tuple[FloatArray, FloatArray]:
        """Primal and dual variables of all rows, rows grouped by their passive sets."""
        _, group = np.unique(np.packbits(passive, axis=1), axis=0, return_inverse=True)
        group = group.ravel()
        order = np.argsort(group, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(group))])
        X = kernels.solve_groups(Q, P, passive, order, bounds, ridge)
        return X, np.where(passive, 0.0, X @ Q - P)


class QuasiNewton:
    """Zdunek & Cichocki: ``X - t G (Q + lambda I)^-1`` projected, entries held at zero left out, t by row; else a gradient step."""

    def __init__(self, steps: int = 2, regularisation: float = 1e-3) -> None:
        self.steps, self.regularisation = steps, regularisation

    def update(self, half: Quadratic, X: FloatArray) -> FloatArray:
        """A few steps."""
        Q, k = half.Q, len(half.Q)
        curvature = float(np.trace(Q))
        if not curvature > 0:
            return X
        factor = sl.cho_factor(Q + self.regularisation * curvature / k * np.eye(k), check_finite=False)
        for _ in range(self.steps):
            G = X @ Q - half.P
            G[(X <= 0) & (G > 0)] = 0.0
            step = sl.cho_solve(factor, G.T, check_finite=False).T
            best = np.maximum(X - G / curvature, 0.0)  # the trace bounds the largest eigenvalue: always a descent
            values = _row_values(half, best)
            for t in (1.0, 0.5, 0.25, 0.1):
                new = np.maximum(X - t * step, 0.0)
                new_values = _row_values(half, new)
                better = new_values < values
                best[better], values[better] = new[better], new_values[better]
            X = best
        return X


def _row_values(half: Quadratic, X: FloatArray) -> FloatArray:
    """The half row by row, without its constant."""
    return np.einsum("ij,ij->i", X, X @ half.Q - 2.0 * half.P)


# Movers: the whole point, one step ---------------------------------------------------------------------------------------------


class Mover(Protocol):
    """A point and its value, moved by steps."""

    U: FloatArray
    V: FloatArray
    value: float

    def step(self) -> None:
        """Move; the value does not rise beyond rounding."""


@dataclass
class Ahead:
    """Extrapolation: updates start a little ahead of the last factor, and fall back when the value rises.

    `wait` plain steps first keep the start's basin; `keep` is the share of an entry that extrapolation must leave.
    """

    wait: int
    weight: float
    keep: float = 0.0
    most: float = 1.0

    def point(self, new: FloatArray, old: FloatArray) -> FloatArray:
        """``(new + weight (new - old))``, not below ``keep * new``."""
        return np.maximum(new + self.weight * (new - old), self.keep * new)

    def slower(self) -> None:
        """After a rise."""
        self.most = self.weight
        self.weight /= 1.5

    def faster(self) -> None:
        """After a descent."""
        self.weight = min(self.most, 1.05 * self.weight)
        self.most = min(1.0, 1.01 * self.most)


class Rules(NamedTuple):
    """What an alternating method does: a rule for U, one for V; `later` ones together with extrapolation."""

    U: Rule
    V: Rule
    ahead: Ahead | None = None
    later: tuple[Rule, Rule] | None = None


class Alternating:
    """U by its rule, then V by its rule; extrapolated if the method asks for it."""

    def __init__(self, problem: Problem, rules: Rules, U: FloatArray, V: FloatArray) -> None:
        self.problem, self.rules, self.ahead = problem, rules, rules.ahead
        self.U, self.V = problem.positive(U), problem.positive(V)
        for side, rule in enumerate((rules.U, rules.V)):
            if isinstance(rule, Sparseness):
                X = (self.U, self.V)[side]
                setattr(self, "UV"[side], rule.project(X, X))
        self.value = problem.evaluate(self.U, self.V)
        self.steps = 0
        self._reset()

    def _reset(self) -> None:
        """Start anew from the point: nothing is extrapolated."""
        self.last_U, self.last_V, self.next_V, self.next_U = self.U, self.V, self.V, self.U

    def step(self) -> None:
        """One update of both factors; where extrapolation made the value rise, a plain one instead."""
        self.steps += 1
        ahead = self.ahead if self.ahead is not None and self.steps > self.ahead.wait else None
        rules = self.rules.later if ahead is not None and self.rules.later is not None else (self.rules.U, self.rules.V)
        moved = self._move(rules, ahead)
        if ahead is not None and not moved <= self.value:
            ahead.slower()
            self._reset()
            moved = self._move(rules, None)
        elif ahead is not None:
            ahead.faster()
        if self.ahead is not None and self.ahead.keep and not moved <= self.value:
            self._reset()
            moved = self._move((Multiplicative(), Multiplicative()), None)
        self.U, self.V, self.value = self.candidate[0], self.candidate[1], moved

    def _move(self, rules: Any, ahead: Ahead | None) -> float:
        """Put the next point in `candidate`, and return its value."""
        problem = self.problem
        problem.fill(self.next_U, self.next_V)
        new_U = rules[0].update(problem.half(0, self.next_V), self.next_U)
        U = new_U if ahead is None else ahead.point(new_U, self.last_U)
        problem.fill(U, self.next_V)
        half = problem.half(1, U)
        V = rules[1].update(half, self.next_V)
        value = problem.value(half, 1, V, U)
        self.candidate = U, V
        self.next_U, self.next_V = U, V if ahead is None else ahead.point(V, self.last_V)
        self.last_U, self.last_V = new_U, V
        return value


class Symmetric:
    """U = V, moved by a symmetric rule; a rule that lets the value rise is asked for a smaller step."""

    def __init__(self, problem: Problem, rule: Callable[[Problem, FloatArray, float], FloatArray], U: FloatArray) -> None:
        self.problem, self.rule = problem, rule
        self.U = problem.positive(U)
        self.value = problem.evaluate(self.U, self.U)
        self.share = 0.5

    @property
    def V(self) -> FloatArray:  # type: ignore[override]
        """U itself."""
        return self.U

    def step(self) -> None:
        """One update."""
        self.problem.fill(self.U, self.U)
        for _ in range(20):
            U = self.rule(self.problem, self.U, self.share)
            half = self.problem.half(0, U)
            value = self.problem.value(half, 0, U, U)
            if value <= self.value:
                break
            self.share /= 2.0
        self.U, self.value = U, value


def symmetric_multiplicative(problem: Problem, U: FloatArray, share: float) -> FloatArray:
    """Ding, He & Simon: ``U * (1/2 + 1/2 (AU) / (UU'U))``, the share 1/2 made smaller where that should not descend."""
    l1, l2 = sum(problem.penalty.l1), sum(problem.penalty.l2)
    negative = product(problem.data.A, U)
    positive = U @ (U.T @ U) + l1 / 4 + l2 / 2 * U
    new = U * (1.0 - share + share * negative / np.where(positive > 0, positive, np.finfo(np.float64).tiny))
    new[~np.isfinite(new)] = 0.0
    lift = TINY * float(U.max())
    return np.where((new < lift) & (negative > positive), lift, new)


def symmetric_coordinates(problem: Problem, U: FloatArray, share: float) -> FloatArray:
    """Exact minimisation over one entry of U after the other."""
    A, l1, l2 = problem.data.A, sum(problem.penalty.l1), sum(problem.penalty.l2)
    if problem.data.sparse:
        return np.asarray(kernels.symmetric_sweep_csr(A.indptr, A.indices, A.data, U, l1, l2))
    return np.asarray(kernels.symmetric_sweep_dense(A, U, l1, l2))


def symmetric_expectation(problem: Problem, U: FloatArray, share: float) -> FloatArray:
    """Expectation maximisation: ``n_il = U_il ((A / UU') U)_il``, ``U_il = n_il / sqrt(sum_i n_il)``.

    With penalties ``(sum_i u_il)²`` is bounded by ``S sum_i u_il² / U_il``, S the sum so far, and the minimiser is a root of a
    quadratic.
    """
    l1, l2 = sum(problem.penalty.l1), sum(problem.penalty.l2)
    negative, positive = Entropy(problem.data.A, U, 0.0, 0.0, 0.0).ratio(U)
    counts = U * negative
    if l1 or l2:
        square = positive / U + l2
        new = (np.sqrt(l1 * l1 + 16.0 * square * counts) - l1) / (4.0 * square)
    else:
        new = counts / np.sqrt(np.maximum(counts.sum(axis=0), np.finfo(np.float64).tiny))
    return np.maximum(new, TINY * new.max())


# Methods by name -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """What a name stands for: rules for each loss, and symmetric rules where there are any."""

    make: dict[str, Callable[[Any], Rules]]
    symmetric_rules: dict[str, Any]
    constrained: bool = False

    def accept(self, name: str, loss: str, symmetric: bool, sparseness: Any) -> None:
        """Refuse what the method cannot do, in one sentence."""
        if symmetric and not self.symmetric_rules:
            validation.refuse(f"method={name!r} has no symmetric form; use 'hals' or 'multiplicative', or symmetric=False.")
        if not symmetric and loss not in self.make:
            validation.refuse(f"method={name!r} is for loss='mse' only; use 'hals', 'multiplicative' or 'gradient' for 'kl'.")
        if sparseness is not None and not self.constrained:
            validation.refuse(f"sparseness is a constraint of method='sparse', not of {name!r}; l1 works with every method.")

    def rules(self, loss: str, sparseness: Any) -> Rules:
        """Fresh rules: some keep a step length."""
        return self.make[loss](sparseness)


def _both(rule: Callable[[], Rule]) -> Callable[[Any], Rules]:
    return lambda sparseness: Rules(rule(), rule())


def _hals(sparseness: Any) -> Rules:
    return Rules(Hals(1), Hals(1), Ahead(wait=10, weight=0.7), (Hals(4), Hals(4)))


def _newton(sparseness: Any) -> Rules:
    return Rules(Newton(), Newton(), Ahead(wait=3, weight=0.3, keep=0.1))


def _hoyer(sparseness: Any) -> Rules:
    wanted = (None, None) if sparseness is None else sparseness
    if isinstance(wanted, str) or not isinstance(wanted, tuple | list) or len(wanted) != 2:
        validation.refuse(f"sparseness must be a pair (for U, for V) of numbers from 0 to 1 or None, not {sparseness!r}.")
    for value in wanted:
        if value is not None and validation.number("sparseness", value, minimum=0.0) > 1.0:
            validation.refuse(f"sparseness must be from 0 to 1, not {value!r}.")
    U, V = wanted  # one side keeps its norms, or a penalty on the other could be escaped by scaling
    return Rules(
        Hals(1) if U is None else Sparseness(float(U), keep=V is None),
        Hals(1) if V is None else Sparseness(float(V), keep=True),
    )


METHODS: dict[str, Method] = {
    "hals": Method({"mse": _hals, "kl": _newton}, {"mse": symmetric_coordinates, "kl": symmetric_expectation}),
    "multiplicative": Method(
        {"mse": _both(Multiplicative), "kl": _both(Multiplicative)},
        {"mse": symmetric_multiplicative, "kl": symmetric_expectation},
    ),
    "gradient": Method({"mse": _both(Gradient), "kl": _both(PositiveGradient)}, {}),
    "als": Method({"mse": _both(LeastSquares)}, {}),
    "quasi-newton": Method({"mse": _both(QuasiNewton)}, {}),
    "sparse": Method({"mse": _hoyer}, {}, constrained=True),
}


# Starts ----------------------------------------------------------------------------------------------------------------------


class StartOptions(NamedTuple):
    """What a start may want to know beside the data."""

    symmetric: bool
    rng: Any


def _nndsvd(A: Any, k: int, options: StartOptions) -> tuple[FloatArray, FloatArray]:
    return starts.eigen_nndsvd(A, k) if options.symmetric else starts.nndsvd(A, k)


def _random(A: Any, k: int, options: StartOptions) -> tuple[FloatArray, FloatArray]:
    U, V = starts.random(A, k, validation.generator(options.rng))
    return (U, U) if options.symmetric else (U, V)


#: Starts by name: ``start(A, k, options) -> (U, V)``, A without missing entries; the same U twice for a symmetric one.
STARTS: dict[str, Callable[[Any, int, StartOptions], tuple[FloatArray, FloatArray]]] = {"nndsvd": _nndsvd, "random": _random}


def _start(data: Data, k: int, init: Any, symmetric: bool, rng: Any) -> tuple[FloatArray, FloatArray]:
    """A start by name, or the user's own, copied."""
    if isinstance(init, str):
        U, V = STARTS[validation.choice("init", init, STARTS)](data.A, k, StartOptions(symmetric, rng))
    elif symmetric:
        own = init[0] if isinstance(init, tuple | list) and len(init) == 2 and np.ndim(init[0]) == 2 else init
        U = V = _own_start("U", own, (data.shape[0], k))
    elif isinstance(init, tuple | list) and len(init) == 2:
        U, V = (_own_start(name, X, (side, k)) for name, X, side in zip("UV", init, data.shape, strict=True))
    else:
        validation.refuse(f"init must be one of {', '.join(map(repr, STARTS))} or a pair of arrays (U, V), not {type(init).__name__}.")
    return np.ascontiguousarray(U, dtype=np.float64), np.ascontiguousarray(V, dtype=np.float64)


def _own_start(name: str, X: Any, shape: tuple[int, int]) -> FloatArray:
    try:
        start: FloatArray = np.array(X, dtype=np.float64)
    except (TypeError, ValueError):
        validation.refuse(f"The start {name} must be a matrix of numbers of shape {shape}.")
    if start.shape != shape:
        validation.refuse(f"The start {name} has shape {start.shape}, but it must be {shape}.")
    if not np.isfinite(start).all() or (start < 0).any():
        validation.refuse(f"The start {name} has negative or non-finite entries; only nonnegative ones are allowed.")
    if not start.any():
        validation.refuse(f"The start {name} is all zeros, from where no method can leave; give it positive entries.")
    return start


def _components(n_components: Any, shape: tuple[int, int]) -> int:
    k = validation.integer("n_components", n_components, minimum=1)
    if k > max(shape):
        validation.refuse(f"n_components={k} is larger than both sides of A ({shape[0]} by {shape[1]}); choose at most {max(shape)}.")
    return k


def _pair(name: str, value: Any) -> tuple[float, float]:
    """A number for both factors, or a pair of numbers."""
    parts = value if isinstance(value, tuple | list) else (value, value)
    if len(parts) != 2:
        validation.refuse(f"{name} must be a number or a pair of numbers (for U, for V), not {value!r}.")
    return validation.number(name, parts[0], minimum=0.0), validation.number(name, parts[1], minimum=0.0)


# The loop --------------------------------------------------------------------------------------------------------------------


class _Run:
    """One factorisation: the loop, its clock and history, and the last point that did not rise."""

    def __init__(
        self, problem: Problem, mover: Mover, max_iter: int, tol: float, callback: Callable[[Iterate], Any] | None
    ) -> None:
        self.problem, self.mover, self.max_iter, self.tol, self.callback = problem, mover, max_iter, tol, callback
        self.began, self.history = time.perf_counter(), list[Iterate]()
        self.point, self.values = (mover.U, mover.V), [mover.value]
        self.symmetric = mover.V is mover.U

    def loop(self) -> Status:
        """The one loop: step, guard, record, stop."""
        for iteration in range(1, self.max_iter + 1):
            self.mover.step()
            value, before = self.mover.value, self.values[-1]
            if not np.isfinite(value):
                return Status.NONFINITE
            if value <= before:
                self.point = self.mover.U, self.mover.V
            self.values.append(min(value, before))
            if self._record(iteration):
                return Status.INTERRUPTED
            if value > before:  # a rise by rounding: nothing is left to gain
                return Status.STALLED
            if self.values[-1] <= self.tol * NEGLIGIBLE * self.problem.scale:
                return Status.OPTIMAL
            if iteration >= WINDOW and self.values[-1 - WINDOW] - self.values[-1] <= self.tol * self.values[-1]:
                return Status.STALLED
        return Status.MAX_ITER

    def _record(self, iteration: int) -> bool:
        """Add a line to the history and tell the callback; a true answer stops the loop."""
        rank = self.point[0].shape[1]
        self.history.append(Iterate(iteration, time.perf_counter() - self.began, self.values[-1], 0.0, rank))
        return self.callback is not None and bool(self.callback(self.history[-1]))

    def result(self, status: Status) -> Factorization:
        """The point in tidy columns, its value computed there."""
        U, V = _tidy(*self.point, balance=not self.problem.penalty.any)
        if self.problem.data.single:
            U, V = U.astype(np.float32), (V if V is U else V.astype(np.float32))  # type: ignore[assignment]
        V = U if self.symmetric else V
        value = self.problem.evaluate(*(np.ascontiguousarray(X, dtype=np.float64) for X in (U, V)))
        statement = {"form": "rank", "loss": self.problem.name, "n_components": U.shape[1], "symmetric": self.symmetric}
        certificate = Certificate(value, 0.0, "rank-k", "zero", True, False, self.problem.scale, statement, {})
        return Factorization(U, V, value, certificate, tuple(self.history), status, self._message(status))

    def _message(self, status: Status) -> str:
        steps = f"{len(self.history)} step{'s' if len(self.history) != 1 else ''}"
        endings = {
            Status.OPTIMAL: "the data are reproduced up to rounding",
            Status.STALLED: "the objective no longer falls by more than the tolerance",
            Status.MAX_ITER: "the limit of steps was reached while the objective was still falling",
            Status.INTERRUPTED: "stopped on request",
            Status.NONFINITE: "a value stopped being finite, and the last finite point is kept",
        }
        return f"After {steps} {endings[status]}; a local method, so that better factors may exist."


def _tidy(U: FloatArray, V: FloatArray, balance: bool) -> tuple[FloatArray, FloatArray]:
    """Columns by decreasing weight, of equal norms on both sides if `balance`."""
    u, v = np.linalg.norm(U, axis=0), np.linalg.norm(V, axis=0)
    order = np.argsort(-(u * v), kind="stable")
    if V is U:
        U = np.ascontiguousarray(U[:, order])
        return U, U
    alive = (u > 0) & (v > 0) & balance
    ratio = np.sqrt(np.where(alive, v, 1.0) / np.where(alive, u, 1.0))
    return np.ascontiguousarray((U * ratio)[:, order]), np.ascontiguousarray((V / ratio)[:, order])
