"""What a loss of a rank-k factorisation is, the squared error and Kullback-Leibler.

A loss knows its value at factors, and the objective in one factor with the other fixed: :class:`QuadraticObjective` for the
squared error, :class:`DivergenceObjective` for Kullback-Leibler. Missing entries are filled with the model's own values before
each update, by which the objective of the filled data lies above the one of the observed entries and touches it at the current
point: every descent on the former is one on the latter (expectation maximisation).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple, Protocol

import numpy as np

from cvxnmf.linalg.arrays import FloatArray, column_sums, energy
from cvxnmf.linalg.logarithm import weighted_logarithms
from cvxnmf.linalg.products import THIN_SINGLE
from cvxnmf.linalg.row_chunks import row_chunks
from cvxnmf.linalg.threads import map_in_threads, single_thread
from cvxnmf.nmf.storage import Storage

#: Data whose largest entry is above this, or below its inverse, are not worked on in single precision.
LARGEST_SINGLE = 1e9
#: Entries of a factor below this share of its largest are as good as zero: they are lifted to it when they want to leave.
NEGLIGIBLE_ENTRY = 1e-10
#: Values below this share of the data's scale are recomputed entry by entry, since the short formula cancels.
CANCELLING = 1e-5
#: Values of sparse data above this share are computed from products alone.
ACCURATE = 1e-3
#: Products of at most this many entries are formed, chunk by chunk, where the short formula cancels on sparse data.
AFFORDABLE = 5e7


class Totals(Protocol):
    """Sums over the observed entries of the data that losses need."""

    @property
    def energy(self) -> float:
        """The energy ``||A||²`` of the data, for the squared error."""

    @property
    def total(self) -> float:
        """The sum of A, for the Kullback-Leibler loss."""

    @property
    def entropy(self) -> float:
        """The entropy ``sum A log A - A`` of the data, for the Kullback-Leibler loss."""

    def observed_sum(self, function: Callable[[FloatArray], FloatArray]) -> float:
        """Sum of a function of the entries for a loss, times their weights if any; 0 at entries that are not stored."""


class ColumnSums(NamedTuple):
    """Sums over row chunks for a loss in V: ``A'U`` or ``(A / UV')'U``, ``U'U``, sums and maximum of U, ``sum A log UV'``."""

    products: FloatArray
    gram: FloatArray
    sums: FloatArray
    largest: float
    logarithms: float


class VObjective(Protocol):
    """The loss in V with U fixed and its penalties, as far as a pass over row chunks tells."""

    constant: float
    #: Of the multiplicative update that never lets the objective rise.
    exponent: float
    #: Share of the largest entry of the factor that is as good as zero.
    negligible: float
    #: Largest entry of the whole factor, where X is a part of its rows.
    largest: float | None

    def value(self, X: FloatArray) -> float:
        """The value of the objective in one factor, loss and penalties."""

    def gradient_parts(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Negative and positive part of the gradient of a loss in one factor, up to a common factor."""


class FactorObjective(VObjective, Protocol):
    """The loss and penalty as an objective in one factor X, the other fixed; penalties on the other left out."""

    def gradient(self, X: FloatArray) -> FloatArray:
        """The gradient of the loss and penalty in one factor X."""


class QuadraticObjective:
    """``||A - XV'||² + l1 sum(X) + l2 ||X||² = ||A||² - 2 <P, X> + <XQ, X>``, ``P = AV - l1/2``, ``Q = V'V + l2 I``.

    `AV` and `VV` are taken over; `constant` is ``||A||²``.
    """

    exponent, negligible = 1.0, NEGLIGIBLE_ENTRY
    largest: float | None = None

    def __init__(self, AV: FloatArray, VV: FloatArray, l1: float, l2: float, constant: float) -> None:
        self.P, self.Q, self.l1, self.constant = AV, VV, l1, constant
        if l2:
            self.Q[np.diag_indices_from(self.Q)] += l2
        if l1:
            self.P -= l1 / 2

    def value(self, X: FloatArray) -> float:
        """The squared error in one factor with penalties, from Gram matrices, which keep it cheap."""
        return self.constant - 2.0 * float(np.vdot(self.P, X)) + float(np.vdot(X.T @ X, self.Q))

    def gradient(self, X: FloatArray) -> FloatArray:
        """The gradient ``2 (XQ - P)`` of the squared error in one factor."""
        return 2.0 * (X @ self.Q - self.P)

    def gradient_parts(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The parts ``AV`` and ``XQ + l1/2`` of the gradient of the squared error in one factor."""
        return self.P + self.l1 / 2, X @ self.Q + self.l1 / 2


class DivergenceObjective:
    """The Kullback-Leibler loss in one factor, ``sum A log(A/XV') - A + XV' + l1 sum(X) + l2 ||X||²``."""

    exponent, negligible = 1.0, NEGLIGIBLE_ENTRY
    largest: float | None = None

    def __init__(self, A: Storage, V: FloatArray, l1: float, l2: float, constant: float) -> None:
        self.A, self.V, self.l1, self.l2, self.constant = A, V, l1, l2, constant
        self.sums = column_sums(V)
        self.logarithms: tuple[FloatArray, float] | None = None  # sum A log(XV') at the last X, where it came for free

    def value(self, X: FloatArray) -> float:
        """The Kullback-Leibler loss in one factor with penalties, infinite where the model misses an entry."""
        if self.logarithms is None or self.logarithms[0] is not X:
            self._ratio_times(X)
        assert self.logarithms is not None
        return self.constant + float(column_sums(X) @ self.sums) - self.logarithms[1] + penalty_value(X, self.l1, self.l2)

    def gradient(self, X: FloatArray) -> FloatArray:
        """The gradient ``1 sum(V)' - (A / XV') V`` of the Kullback-Leibler loss in one factor, and the penalties'."""
        negative, positive = self.gradient_parts(X)
        return positive - negative

    def gradient_parts(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The parts ``(A / XV') V`` and ``sum(V) + l1 + 2 l2 X`` of the gradient of the Kullback-Leibler loss."""
        return self._ratio_times(X), np.asarray(self.sums + self.l1 + 2.0 * self.l2 * X if self.l2 else self.sums + self.l1)

    def _ratio_times(self, X: FloatArray) -> FloatArray:
        """The product ``(A / XV') V``, and ``sum A log XV'`` kept for the Kullback-Leibler loss."""
        product, total = self.A.ratio_times(X, self.V)
        self.logarithms = X, total
        return product


class DivergenceObjectiveAtV:
    """The Kullback-Leibler loss in V with U fixed, known only at the V of the last pass over row chunks.

    Its value is that at this V, whichever V is asked for: an upper bound after a multiplicative update.
    """

    exponent, negligible = 1.0, NEGLIGIBLE_ENTRY
    largest: float | None = None

    def __init__(self, sums: ColumnSums, V: FloatArray, l1: float, l2: float, constant: float) -> None:
        self.sums, self.V, self.l1, self.l2, self.constant = sums, V, l1, l2, constant

    def value(self, X: FloatArray) -> float:
        """The Kullback-Leibler loss at the V of the last pass over row chunks, with penalties."""
        model = float(self.sums.sums @ self.V.sum(axis=0))
        return self.constant + model - self.sums.logarithms + penalty_value(self.V, self.l1, self.l2)

    def gradient_parts(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The parts ``(A / UV')' U`` and ``sum(U) + l1 + 2 l2 V`` of the Kullback-Leibler gradient in V."""
        return self.sums.products, np.asarray(self.sums.sums + self.l1 + 2.0 * self.l2 * X)


class NMFLoss(ABC):
    """A loss between the data and the model ``UV'``, entry by entry."""

    name: str
    #: Which rules, bounds and encoders it has: its own name, or "beta".
    kind: str
    #: Of the beta divergence that, times the unit, is the loss; without one the loss takes no weights.
    beta: float = math.nan
    unit: float = 1.0
    #: Of the multiplicative update that never lets it rise.
    exponent = 1.0
    #: Whether data may not have zeros.
    needs_positive_data = False
    #: Whether data in row chunks are known to it.
    in_chunks = True
    #: Dense data with at most this share of nonzero entries are worked on in compressed rows.
    compress_below: float
    #: Entries of the data whose loss is computed at a time.
    budget: int
    #: What a step costs, in units of one on the squared error, and the steps of a race, and more of them for each component: a
    #: step on a divergence is dearer and gets further.
    step_cost: float
    race_steps: tuple[float, float]
    #: Share of the energy beyond the leading directions from which starts race in single precision: values cancel below it.
    single_above: float
    #: Components from which that is faster: loops for few of them are as fast in double precision.
    single_from: int
    #: Whether products with the new U are all that the objective in V needs, so that one pass over the rows updates both.
    one_pass: bool

    def in_single_precision(self, A: FloatArray) -> bool:
        """Whether data of single precision can be worked on as they are: products of three entries stay within its range."""
        return math.isfinite(self.single_above) and 1 / LARGEST_SINGLE <= float(A.max()) <= LARGEST_SINGLE

    @abstractmethod
    def scale(self, data: Totals) -> float:
        """Size of the observed data in a loss, against which rounding is judged."""

    @abstractmethod
    def constant(self, data: Totals, filled: FloatArray) -> float:
        """The part of the loss that the factors cannot change, with values filled in for missing entries."""

    @abstractmethod
    def constant_of(self, A: Storage) -> float:
        """The part of the loss that the factors cannot change, for rows without missing entries."""

    @abstractmethod
    def objective(
        self, A: Storage, V: FloatArray, l1: float, l2: float, constant: float, gram: FloatArray | None = None
    ) -> FactorObjective:
        """The objective in a factor of the rows of A with V fixed; `gram` is ``V'V`` where it is at hand."""

    @abstractmethod
    def column_products(self, A: Storage, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The share of a row chunk in the loss as an objective in V: products and logarithms of :class:`ColumnSums`."""

    @abstractmethod
    def objective_from_sums(self, sums: ColumnSums, V: FloatArray, l1: float, l2: float, constant: float) -> VObjective:
        """The loss as an objective in V after a pass over row chunks, from their sums."""

    def filled_part(self, a: FloatArray, e: FloatArray) -> float:
        """What values a filled in for missing entries add to the objective at model entries e, the constant included."""
        return float(self.entrywise(a, e).sum())

    @abstractmethod
    def entrywise(self, a: FloatArray, e: FloatArray) -> FloatArray:
        """The loss of each entry, NaN where that of the data is; e may be overwritten."""

    @abstractmethod
    def loss_of_zeros(self, U: FloatArray, V: FloatArray) -> float:
        """The loss of ``UV'`` if A were all zeros, from which that at the stored entries of sparse data is taken away."""

    def lift_zeros(self, X: FloatArray) -> FloatArray:
        """A factor at which the loss is finite: its zeros are lifted where the loss needs it."""
        return X

    def value(self, A: Storage, U: FloatArray, V: FloatArray) -> float:
        """The loss of ``UV'`` over the observed entries; NaN marks missing ones."""
        partial = A.sparse and len(A.entries) < A.shape[0] * A.shape[1]

        def of_rows(rows: slice) -> tuple[float, float]:
            """The loss of the stored entries of some rows, and the loss they would have if they were zero."""
            a, e = A.entries_and_model(U, V, rows)
            zeros = float(self.entrywise(np.zeros(()), e.copy()).sum()) if partial else 0.0
            parts = self.entrywise(a, e)
            total = float(parts.sum())
            return float(np.nansum(parts)) if np.isnan(total) else total, zeros

        parts = A.row_parts(self.budget)
        with single_thread() if len(parts) > 1 else nullcontext():
            found = map_in_threads(of_rows, parts)
        unstored = self.loss_of_zeros(U, V) - sum(zeros for _, zeros in found) if partial else 0.0
        return sum(total for total, _ in found) + max(0.0, unstored)


class SquaredError(NMFLoss):
    """The loss ``||A - UV'||²``, squared error."""

    name = kind = "mse"
    beta, unit = 2.0, 2.0
    compress_below, budget, one_pass = 0.0, 1 << 16, True
    step_cost, race_steps, single_above, single_from = 1.0, (650.0, 4.0), 3e-3, THIN_SINGLE + 1

    def scale(self, data: Totals) -> float:
        """The scale ``||A||²`` of the squared error."""
        return data.energy

    def constant(self, data: Totals, filled: FloatArray) -> float:
        """The part ``||A||²`` of the squared error that factors cannot change, with filled entries."""
        return data.energy + (float(np.vdot(filled, filled)) if len(filled) else 0.0)

    def constant_of(self, A: Storage) -> float:
        """The part ``||A||²`` of the squared error of some rows that factors cannot change."""
        return energy(A.entries)

    def objective(
        self, A: Storage, V: FloatArray, l1: float, l2: float, constant: float, gram: FloatArray | None = None
    ) -> QuadraticObjective:
        """The squared error as an objective in one factor, from ``AV`` and ``V'V``."""
        return QuadraticObjective(A.times(V), V.T @ V if gram is None else gram.copy(), l1, l2, constant)

    def column_products(self, A: Storage, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The product ``A'U`` of a row chunk for the squared error in V."""
        return A.transposed_times(U), 0.0

    def objective_from_sums(self, sums: ColumnSums, V: FloatArray, l1: float, l2: float, constant: float) -> QuadraticObjective:
        """The squared error as an objective in V, from ``A'U`` and ``U'U`` of row chunks."""
        return QuadraticObjective(sums.products, sums.gram, l1, l2, constant)

    def entrywise(self, a: FloatArray, e: FloatArray) -> FloatArray:
        """The squared error ``(a - e)²`` of each entry."""
        np.subtract(a, e, out=e)
        return np.multiply(e, e, out=e)

    def loss_of_zeros(self, U: FloatArray, V: FloatArray) -> float:
        """The squared error ``||UV'||²`` of zero data."""
        return float(np.vdot(U.T @ U, V.T @ V))

    def value(self, A: Storage, U: FloatArray, V: FloatArray) -> float:
        """The squared error; of sparse data from products where accurate, of all entries where the share of zeros cancels."""
        if A.sparse:
            energy = float(np.vdot(A.entries, A.entries))
            short = energy - 2.0 * float(np.vdot(A.times(V), U)) + self.loss_of_zeros(U, V)
            if short > ACCURATE * energy:
                return short
        total = super().value(A, U, V)
        if not A.sparse or total > CANCELLING * float(np.vdot(A.entries, A.entries)) or A.shape[0] * A.shape[1] > AFFORDABLE:
            return total
        return float(sum(self.entrywise(A.dense_rows(rows), U[rows] @ V.T).sum() for rows in row_chunks(*A.shape, self.budget)))


class KullbackLeibler(NMFLoss):
    """The loss ``sum A log(A/UV') - A + UV'``, Kullback-Leibler; zeros of A enter through sums alone, entries in many copies."""

    name = kind = "kl"
    beta, unit = 1.0, 1.0
    compress_below, budget, one_pass = 0.35, 1 << 17, False
    step_cost, race_steps, single_above, single_from = 4.0, (215.0, 0.7), 0.0, 1

    def scale(self, data: Totals) -> float:
        """The scale of the Kullback-Leibler loss, the sum of A."""
        return data.total

    def constant(self, data: Totals, filled: FloatArray) -> float:
        """The part ``sum A log A - A`` of the Kullback-Leibler loss of observed entries, which factors cannot change."""
        return data.entropy

    def filled_part(self, a: FloatArray, e: FloatArray) -> float:
        """What filled entries add to the objective, ``sum e - a log e`` for Kullback-Leibler: the constant does not hold them."""
        return float(e.sum() - weighted_logarithms(a.reshape(1, -1), e.reshape(1, -1)))

    def constant_of(self, A: Storage) -> float:
        """The part ``sum A log A - A`` of the Kullback-Leibler loss of some rows that factors cannot change."""
        return entropy(A.entries)

    def objective(
        self, A: Storage, V: FloatArray, l1: float, l2: float, constant: float, gram: FloatArray | None = None
    ) -> DivergenceObjective:
        """The Kullback-Leibler loss as an objective in one factor, from the data themselves."""
        return DivergenceObjective(A, V, l1, l2, constant)

    def column_products(self, A: Storage, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
        """The product ``(A / UV')'U`` and ``sum A log(UV')`` of a row chunk for the Kullback-Leibler loss in V."""
        return A.ratio_transposed_times(U, V)

    def objective_from_sums(
        self, sums: ColumnSums, V: FloatArray, l1: float, l2: float, constant: float
    ) -> DivergenceObjectiveAtV:
        """The Kullback-Leibler loss as an objective at V, the only place where a pass over row chunks tells of it."""
        return DivergenceObjectiveAtV(sums, V, l1, l2, constant)

    def entrywise(self, a: FloatArray, e: FloatArray) -> FloatArray:
        """The Kullback-Leibler loss ``a log(a/e) - a + e``, ``0 log 0 = 0``, accurate for close a and e and for tiny e."""
        a, positive = a.astype(np.float64, copy=False), a > 0
        x, y = np.where(positive, a, 1.0), np.where(positive, e, 1.0)
        excess = (y - x) / x
        logarithms = np.where(np.abs(excess) < 0.5, np.log1p(excess), np.log(y) - np.log(x))
        return np.asarray(np.where(positive, a * (excess - logarithms), e) + 0.0 * a)

    def loss_of_zeros(self, U: FloatArray, V: FloatArray) -> float:
        """The Kullback-Leibler loss ``sum UV'`` of zero data."""
        return float(column_sums(U) @ column_sums(V))

    def lift_zeros(self, X: FloatArray) -> FloatArray:
        """A factor whose zeros are lifted to a negligible entry, so that the Kullback-Leibler loss is finite."""
        return np.asarray(np.maximum(X, NEGLIGIBLE_ENTRY * X.max()))


def entropy(a: FloatArray) -> float:
    """The part ``sum a log a - a`` of the Kullback-Leibler loss that only the data determine."""
    flat, total = a.ravel(order="K"), 0.0
    for part in row_chunks(len(flat), 1):
        x = flat[part]
        x = x[x > 0].astype(np.float64, copy=False)
        total += float(np.sum(x * np.log(x)) - np.sum(x))
    return total


def penalty_value(X: FloatArray, l1: float, l2: float) -> float:
    """The penalty ``l1 sum(X) + l2 ||X||²`` that a loss adds for one factor."""
    return (l1 * float(X.sum()) if l1 else 0.0) + (l2 * float(np.vdot(X, X)) if l2 else 0.0)
