"""The beta divergences as losses of a factorisation: Itakura-Saito at 0, Kullback-Leibler at 1, half the squared error at 2.

    d(a, e) = (a^beta + (beta - 1) e^beta - beta a e^(beta - 1)) / (beta (beta - 1)),   a/e - log(a/e) - 1 at beta = 0.

Every one is a Bregman divergence, so that missing entries are filled with the model's, as for the other losses. Work is done in
blocks of rows: a sparse matrix is filled block by block, since its zeros count one by one for beta other than 1 and 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.products import dense_times
from cvxnmf.linalg.row_chunks import row_chunks
from cvxnmf.linalg.threads import map_in_threads
from cvxnmf.nmf.beta_kernels import CHEAP, SMALLEST_MODEL, slope_parts
from cvxnmf.nmf.losses import NEGLIGIBLE_ENTRY, ColumnSums, NMFLoss, Totals, VObjective, penalty_value
from cvxnmf.nmf.storage import Storage

#: Entries of a block of rows, which fits into a cache, and of data below which one thread is as fast as several.
BLOCK_ENTRIES, ONE_THREAD_BELOW = 1 << 15, 50_000
#: Entries of a factor below this share of its largest are as good as zero for a beta below 1, which compares ratios.
NEGLIGIBLE_RATIO = 1e-30
#: No weights.
EVEN = np.empty((0, 0))


class BetaObjective:
    """``unit sum w d(A, XV') + l1 sum(X) + l2 ||X||²``; `exponent` is that of monotone multiplicative updates."""

    largest: float | None = None

    def __init__(self, loss: BetaDivergence, A: Storage, V: FloatArray, l1: float, l2: float, constant: float) -> None:
        self.loss, self.A, self.V, self.l1, self.l2, self.constant = loss, A, V, l1, l2, constant
        self.exponent, self.negligible = loss.exponent, NEGLIGIBLE_ENTRY if loss.beta >= 1.0 else NEGLIGIBLE_RATIO
        self.varying: tuple[FloatArray, float] | None = None  # what the model changes, at the last X, where it came for free

    def value(self, X: FloatArray) -> float:
        """The beta divergence of ``XV'`` with the penalties on X."""
        if self.varying is None or self.varying[0] is not X:
            self._parts(X)
        assert self.varying is not None
        return self.constant + self.loss.unit * self.varying[1] + penalty_value(X, self.l1, self.l2)

    def gradient(self, X: FloatArray) -> FloatArray:
        """The gradient of a beta divergence in X, ``unit (w E^(beta-2) (E - A)) V``, and of the penalties."""
        negative, positive = self.gradient_parts(X)
        return positive - negative

    def gradient_parts(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The parts of the gradient of a beta divergence, ``(w A E^(beta-2)) V`` and ``(w E^(beta-1)) V`` with the penalties."""
        negative, positive = self._parts(X)
        positive += self.l1 + 2.0 * self.l2 * X if self.l2 else self.l1
        return negative, positive

    def _parts(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both parts of the slope of the beta divergence in X, which also yields the value."""
        negative, positive = np.empty_like(X), np.empty_like(X)

        def work(rows: slice, A: FloatArray, weights: FloatArray) -> float:
            E = np.maximum(X[rows] @ self.V.T, SMALLEST_MODEL)
            N = np.empty_like(E)
            value = slope_parts(A, weights, self.loss.dear_powers(E), E, N, self.loss.beta)
            negative[rows], positive[rows] = dense_times(N, self.V), dense_times(E, self.V)
            return float(value)

        self.varying = X, self.over_blocks(work)
        if self.loss.unit != 1.0:
            negative *= self.loss.unit
            positive *= self.loss.unit
        return negative, positive

    def over_blocks(self, work: Any) -> float:
        """The sum of ``work(rows, A, weights)`` over dense blocks of rows of the beta divergence, many of them in threads."""

        def lane(first_and_last: tuple[int, int]) -> float:
            first, last = first_and_last
            total = 0.0
            for chunk in row_chunks(last - first, self.A.shape[1], BLOCK_ENTRIES):
                rows = slice(first + chunk.start, first + chunk.stop)
                total += work(rows, self.A.dense_rows(rows), EVEN if self.A.weights is None else self.A.weights[rows])
            return total

        return float(sum(map_in_threads(lane, self.A.row_ranges(ONE_THREAD_BELOW))))


class BetaDivergence(NMFLoss):
    """The loss ``unit sum d(A, UV')`` with d the beta divergence, for any real beta."""

    kind, in_chunks, one_pass = "beta", False, False
    compress_below, budget = 0.0, 1 << 17
    step_cost, race_steps, single_above, single_from = 10.0, (120.0, 1.2), np.inf, 1

    def __init__(self, name: str, beta: float, unit: float = 1.0) -> None:
        self.name, self.beta, self.unit, self.needs_positive_data = name, beta, unit, beta <= 0.0
        self.exponent = 1.0 / (2.0 - beta) if beta < 1.0 else 1.0 / (beta - 1.0) if beta > 2.0 else 1.0

    def dear_powers(self, E: FloatArray) -> FloatArray:
        """The powers ``E^(beta - 2)`` of the model where they take a logarithm and an exponential, else an empty array."""
        return EVEN if self.beta in CHEAP else np.exp((self.beta - 2.0) * np.log(E))

    def scale(self, data: Totals) -> float:
        """The scale ``sum A^beta`` of a beta divergence, the number of entries for Itakura-Saito."""
        return self.unit * data.observed_sum(self._powers)

    def constant(self, data: Totals, filled: FloatArray) -> float:
        """The terms of a beta divergence in which the model does not appear, over observed and filled entries."""
        return self.unit * (data.observed_sum(self._constant) + (float(self._constant(filled).sum()) if len(filled) else 0.0))

    def constant_of(self, A: Storage) -> float:
        """The terms of a beta divergence without the model, over rows; zeros that are not stored add nothing."""
        return self.unit * float(self._constant(A.entries).sum())

    def _powers(self, a: FloatArray) -> FloatArray:
        """The powers ``a^beta`` of the data in a beta divergence."""
        return np.asarray(a**self.beta)

    def _constant(self, a: FloatArray) -> FloatArray:
        """The part of the beta divergence of each entry that the model cannot change."""
        if self.beta == 0.0:
            return np.asarray(-np.log(a) - 1.0)
        if self.beta == 1.0:
            return np.asarray(a * np.log(np.where(a > 0, a, 1.0)) - a)
        return np.asarray(a**self.beta / (self.beta * (self.beta - 1.0)))

    def objective(
        self, A: Storage, V: FloatArray, l1: float, l2: float, constant: float, gram: FloatArray | None = None
    ) -> BetaObjective:
        """The beta divergence as an objective in one factor, evaluated from the data themselves."""
        return BetaObjective(self, A, V, l1, l2, constant)

    def column_products(self, A: Storage, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """Never called: beta divergences refuse data in row chunks before."""
        raise NotImplementedError

    def objective_from_sums(self, sums: ColumnSums, V: FloatArray, l1: float, l2: float, constant: float) -> VObjective:
        """Never called: beta divergences have no objective from the sums of row chunks, which are refused before."""
        raise NotImplementedError

    def entrywise(self, a: FloatArray, e: FloatArray) -> FloatArray:
        """The beta divergence ``d(a, e)``, by its series in ``a/e - 1`` where a and e are close and the formula would cancel."""
        e = np.maximum(e, SMALLEST_MODEL)
        x = a / e - 1.0  # d(a, e) = e^beta d(a/e, 1), and log(1 + x) is accurate
        with np.errstate(divide="ignore"):  # where a = 0
            logs = np.log1p(np.maximum(x, -1.0))
        beta = self.beta
        if beta == 0.0:
            parts = x - logs
        elif beta == 1.0:
            parts = np.where(a > 0, (1.0 + x) * np.where(a > 0, logs, 0.0), 0.0) - x
        else:
            powers = np.where(a > 0, np.expm1(beta * np.where(a > 0, logs, 0.0)), -1.0)
            parts = (powers - beta * x) / (beta * (beta - 1.0))
        series = x * x * (0.5 + x * (beta - 2.0) / 6.0 * (1.0 + x * (beta - 3.0) / 4.0 * (1.0 + x * (beta - 4.0) / 5.0)))
        return np.asarray(self.unit * e**beta * np.where(np.abs(x) < 1e-3, series, parts))

    def loss_of_zeros(self, U: FloatArray, V: FloatArray) -> float:
        """Never called: for a beta divergence sparse data are filled block by block."""
        raise NotImplementedError

    def lift_zeros(self, X: FloatArray) -> FloatArray:
        """A factor whose zeros are lifted to a negligible entry, so that the beta divergence is finite."""
        return np.asarray(np.maximum(X, NEGLIGIBLE_ENTRY * X.max()))

    def value(self, A: Storage, U: FloatArray, V: FloatArray) -> float:
        """The beta divergence of ``UV'`` over the observed entries; NaN marks missing ones."""
        total = 0.0
        for rows in row_chunks(*A.shape, self.budget):
            parts = self.entrywise(A.dense_rows(rows), U[rows] @ V.T)
            total += float(np.nansum(parts if A.weights is None else A.weights[rows] * parts))
        return total
