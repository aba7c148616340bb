"""What a rank-k factorisation minimises: a loss over the observed entries and penalties on the factors.

With one factor fixed, the objective in the other is a *half*: :class:`Quadratic` for the squared error, :class:`Entropy` for
Kullback-Leibler. Missing entries are filled with the model's own values before each half, which then lies above the objective
of the observed entries and touches it at the current point, so that every descent is one on the true objective.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.sparse import ratio_product
from cvxnmf.nmf import kernels
from cvxnmf.nmf.data import Data, product

#: Entries of a factor below this share of its largest are as good as zero: they are lifted to it when they want to leave.
TINY = 1e-10
#: Values below this share of the data's scale are recomputed entry by entry, since the short formula cancels.
CANCELLING = 1e-5
#: Products of at most this many entries are formed, block by block, where the short formula cancels on sparse data.
AFFORDABLE = 5e7


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

    constant: float
    #: Maximum entry of the whole factor, where X is a part of its rows.
    top: float | None

    def value(self, X: FloatArray) -> float:
        """The objective."""

    def gradient(self, X: FloatArray) -> FloatArray:
        """Its gradient."""

    def ratio(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Negative and positive part of the gradient, up to a common factor."""


class Quadratic:
    """``||A - XV'||² + l1 sum(X) + l2 ||X||² = ||A||² - 2 <P, X> + <XQ, X>``, ``P = AV - l1/2``, ``Q = V'V + l2 I``."""

    top: float | None = None

    def __init__(self, A: Any, V: FloatArray, l1: float, l2: float, constant: float) -> None:
        self._take(product(A, V), V.T @ V, l1, l2, constant)

    @classmethod
    def of_products(cls, AV: FloatArray, VV: FloatArray, l1: float, l2: float, constant: float) -> Quadratic:
        """The same from ``AV`` and ``V'V``, which are taken over."""
        half = cls.__new__(cls)
        half._take(AV, VV, l1, l2, constant)
        return half

    def _take(self, AV: FloatArray, VV: FloatArray, l1: float, l2: float, constant: float) -> None:
        self.P, self.Q, self.l1, self.constant = AV, VV, l1, constant
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

    top: float | None = None

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
            product, total = ratio_product(self.A, X, self.V)
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

    def whole(self, U: Any) -> FloatArray:
        """A factor as one array."""
        return np.asarray(U)

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
        if value - self.penalty.value(X, side) < CANCELLING * max(self.scale, abs(half.constant)):
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
            if short > CANCELLING * self.constant() or m * n > AFFORDABLE:
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
        return np.asarray(np.maximum(X, TINY * X.max()))

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
    """``sum a log(a/w) - a + w``, accurate where a and w are close and where w nearly vanishes."""
    unit = np.where(a > 0, a, 1.0)
    step = (w - a) / unit
    logarithm = np.where(np.abs(step) < 0.5, np.log1p(step), np.log(w) - np.log(unit))
    return float(np.sum(np.where(a > 0, a * (step - logarithm), w)))


LOSSES: dict[str, type[Problem]] = {"mse": SquaredError, "kl": KullbackLeibler}
