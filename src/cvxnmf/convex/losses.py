"""The losses in log variables ``X = log E``: value, gradient, curvature, domain of the dual.

A loss is bound to its data ``A`` and sums over all entries, or over the off-diagonal ones when the
diagonal is ignored (weight 0 there). Formulas: docs/mathematics.md.

    KL    phi(x) = e^x - a x + a log a - a            floor  a      (dual variable w >= -a)
    MSE   phi(x) = (e^x - a)^2 where e^x >= a/2,      floor  a^2/2  (dual variable w >= -a^2/2)
          and its tangent at log(a/2) below: convex, C1, never below the true squared error
    paper's MSE   the same on x >= log(a/2) only

Losses work on row chunks, so that little memory is needed beside data and result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import entr, wrightomega, xlogy

from cvxnmf.convex.proximal import Weight, limited_minimiser
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.row_chunks import cached_rows

LOG_2 = float(np.log(2.0))


def kl_constant(A: FloatArray) -> float:
    """``sum A log A - A`` over the positive entries of A: the part of the KL divergence that no model changes."""
    a = A[A > 0]
    return float(np.sum(a * np.log(a)) - a.sum())


class Loss(ABC):
    """A separable convex loss of X, bound to nonnegative data A.

    An ignored diagonal has weight zero: it is read as zero in the data and in the model.
    """

    noise_known = False  # whether entries have a variance proportional to their mean, so that ``trace="auto"`` is known
    by_products = False  # whether products with ``exp(X)`` are all that a method needs: large sparse data can stay sparse
    enters_domain = False  # whether residuals of projected steps soon are in the domain of the dual where few data are zero
    limited = False  # whether ``X >= log(A/2)`` is part of the problem

    def __init__(self, A: FloatArray, ignore_diagonal: bool = False) -> None:
        if ignore_diagonal and np.diag(A).any():
            A = A - np.diag(np.diag(A))
        self.A, self.ignore_diagonal = A, ignore_diagonal
        self.constant = self._constant()

    def _constant(self) -> float:
        """Sum of the part of a loss in log variables that does not depend on X."""
        return 0.0

    @abstractmethod
    def _sum(self, A: FloatArray, X: FloatArray, E: FloatArray) -> float:
        """Sum of the loss without its constant over some rows of X, ``E = exp(X)``."""

    @abstractmethod
    def _slope(self, A: FloatArray, E: FloatArray) -> None:
        """Entrywise derivative of a loss in log variables from ``E = exp(X)``, which it overwrites."""

    @abstractmethod
    def _bend(self, A: FloatArray, E: FloatArray) -> None:
        """Entrywise second derivative of a loss in log variables from ``E = exp(X)``, which it overwrites."""

    @abstractmethod
    def _dual_sum(self, A: FloatArray, w: FloatArray) -> float:
        """Sum of minus the conjugate of the loss at w without the constant over some rows; minus infinity outside its domain."""

    @abstractmethod
    def _nearest(self, A: FloatArray, b: FloatArray, weight: Weight, near: FloatArray | None) -> FloatArray:
        """The proximal point of the loss for some rows b."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The size of the data of a loss, against which a vanishing value is judged."""

    @abstractmethod
    def floor(self) -> FloatArray:
        """Entrywise ``f >= 0`` such that the conjugate of the loss is finite exactly for ``w >= -f``."""

    def minimiser(self) -> FloatArray:
        """The X of least loss, ``log A``; ``-inf`` where there is none."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.A))

    def proximal(self, B: FloatArray, weight: Weight, near: FloatArray | None = None) -> FloatArray:
        """Return argmin ``phi(x) + weight/2 (x - b)^2``, entrywise, sought from `near`; where the diagonal is ignored, b."""
        x = np.empty(B.shape)
        for rows in self._chunks():
            weights = weight if isinstance(weight, float) else weight[rows]
            x[rows] = self._nearest(self.A[rows], B[rows], weights, None if near is None else near[rows])
        if self.ignore_diagonal:
            np.fill_diagonal(x, np.diag(B))
        return x

    def dual_value(self, w: FloatArray, share: float = 1.0) -> float:
        """The dual ``-sum phi*(share w)`` of the loss, a bound if w is in the dual cone; minus infinity outside ``w >= -f``."""
        total = self.constant
        for rows in self._chunks():
            total += self._dual_sum(self.A[rows], share * w[rows])
            if total == -np.inf:
                break
        return total

    def share_outside(self, w: FloatArray) -> float:
        """By how much of the floor w leaves the domain ``w >= -f`` of the loss's conjugate."""
        floor = self.floor()
        lack = -sum(float(np.minimum(w[rows] + floor[rows], 0.0).sum()) for rows in self._chunks())
        return lack / max(float(floor.sum()), 1e-300)

    def value(self, X: FloatArray) -> float:
        """Loss at X; ``-inf`` entries of X stand for ``exp(X) = 0``."""
        total = 0.0
        for rows in self._chunks():
            x = self._visible(X[rows], rows)
            total += self._sum(self.A[rows], x, self._model(x, rows))
        return self._total(total)

    def value_and_gradient(self, X: FloatArray, out: FloatArray | None = None) -> tuple[float, FloatArray]:
        """Loss and gradient at X, one exponential for both; the gradient may take the place of X itself."""
        G, total = np.empty(X.shape) if out is None else out, 0.0
        for rows in self._chunks():
            part, G[rows] = self._value_and_slope(X[rows], rows)
            total += part
        return self._total(total), G

    def _value_and_slope(self, X: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        A, x = self.A[rows], self._visible(X, rows)
        E = self._model(x, rows)
        total = self._sum(A, x, E)
        self._slope(A, E)
        return total, E

    def curvature(self, X: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Second derivatives of the loss at X, entrywise; they may take the place of X itself."""
        return self._by_rows(self._curvature, X, out)

    def _curvature(self, X: FloatArray, rows: slice) -> FloatArray:
        E = self._model(self._visible(X, rows), rows)
        self._bend(self.A[rows], E)
        return E

    def metric_weights(self, X: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Positive weights of the size of the loss's second derivatives, for the metric of a descent; may take X's place."""
        return self._by_rows(self._metric_weights, X, out)

    def _metric_weights(self, X: FloatArray, rows: slice) -> FloatArray:
        return self._curvature(X, rows)

    def _by_rows(self, function: Callable[[FloatArray, slice], FloatArray], X: FloatArray, out: FloatArray | None) -> FloatArray:
        """An entrywise function of the loss at X, one chunk of rows after the other."""
        H = np.empty(X.shape) if out is None else out
        for rows in self._chunks():
            H[rows] = function(X[rows], rows)
        return H

    def _chunks(self) -> Iterator[slice]:
        return cached_rows(self.A)

    def _total(self, variable_part: float) -> float:
        """The loss from its variable part; rounding must not take it below zero."""
        return max(0.0, total) if (total := variable_part + self.constant) < np.inf else np.inf  # inf - inf is as bad as inf

    def _visible(self, X: FloatArray, rows: slice) -> FloatArray:
        """Rows of X that the loss sees, an ignored diagonal set to zero, so that its exponential does not overflow."""
        if self.ignore_diagonal:
            X = X.copy()
            X[np.arange(len(X)), np.arange(rows.start, rows.stop)] = 0.0
        return X

    def _model(self, x: FloatArray, rows: slice) -> FloatArray:
        """The model ``exp(x)`` of some rows in the loss, zero on an ignored diagonal."""
        with np.errstate(over="ignore"):
            E: FloatArray = np.exp(x)
        if self.ignore_diagonal:
            E[np.arange(len(E)), np.arange(rows.start, rows.stop)] = 0.0
        return E


class KullbackLeibler(Loss):
    """``KL(A || exp(X)) = sum A log A - A X - A + exp X``, with ``0 log 0 = 0``."""

    noise_known = by_products = enters_domain = True

    def _constant(self) -> float:
        return kl_constant(self.A)

    def _sum(self, A: FloatArray, X: FloatArray, E: FloatArray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            inner = float(np.vdot(A, X))
            if not np.isfinite(inner):  # 0 * (-inf) counts as 0
                inner = float(np.sum(A * np.where(A > 0, X, 0.0)))
            return float(E.sum()) - inner

    def _slope(self, A: FloatArray, E: FloatArray) -> None:
        E -= A

    def _bend(self, A: FloatArray, E: FloatArray) -> None:
        return

    def _nearest(self, A: FloatArray, b: FloatArray, weight: Weight, near: FloatArray | None) -> FloatArray:
        """The proximal point of KL, ``c - omega(c - log weight)`` with ``c = b + a/weight`` and Wright's omega."""
        c = A / weight
        c += b
        x: FloatArray = c - wrightomega(c - np.log(weight))
        return x

    def _dual_sum(self, A: FloatArray, w: FloatArray) -> float:
        """The dual sum of KL, ``sum Z - Z log Z`` with ``Z = A + w``."""
        w += A
        return float(w.sum()) + float(entr(w, out=w).sum()) if w.min() >= 0 else -np.inf

    @property
    def scale(self) -> float:
        """The scale of the KL loss in log variables, the sum of the data."""
        return float(self.A.sum())

    def floor(self) -> FloatArray:
        """The floor of KL, the data themselves: the dual variable is ``Z = A + w >= 0``."""
        return self.A


class PairedKullbackLeibler(KullbackLeibler):
    """The paper's nonsymmetric objective on a block matrix: ``KL(A || exp(X_12)) + weight (sum exp X_ii)``, A of shape (m, n).

    X has m + n rows. Either half of the off-diagonal blocks counts half; the other entries of the diagonal blocks do not
    count at all. Written as a KL loss with factors: ``sum factor e^x - a x``, a = A/2 off the diagonal blocks.
    """

    def __init__(self, A: FloatArray, weight: float) -> None:
        m, size = len(A), sum(A.shape)
        self.rectangle, self.weight = A, weight
        data = np.zeros((size, size))
        data[:m, m:], data[m:, :m] = 0.5 * A, 0.5 * A.T
        self.factors = weight * np.eye(size)
        self.factors[:m, m:] = self.factors[m:, :m] = 0.5
        super().__init__(data)

    def _constant(self) -> float:
        return kl_constant(self.rectangle)

    def minimiser(self) -> FloatArray:
        """The minimiser of the paired KL loss, ``log A`` in the off-diagonal blocks, ``-inf`` elsewhere."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(2.0 * self.A))

    def _visible(self, X: FloatArray, rows: slice) -> FloatArray:
        return np.where(self.factors[rows] > 0, X, 0.0)

    def _model(self, x: FloatArray, rows: slice) -> FloatArray:
        E = super()._model(x, rows)
        E *= self.factors[rows]
        return E

    def dual_value(self, w: FloatArray, share: float = 1.0) -> float:
        """Minus infinity: the dual of the paired KL loss has variables of its own for the diagonal, beside the slope."""
        return -np.inf

    @property
    def scale(self) -> float:
        """The scale of the paired KL loss, the sum of the data."""
        return float(self.rectangle.sum())


class SquaredError(Loss):
    """The squared error in log variables, ``sum (exp X - A)^2``, continued by its tangent where ``exp X < A/2``."""

    def _sum(self, A: FloatArray, X: FloatArray, E: FloatArray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            low = 2.0 * E < A
            a = A[low]
            below = 0.25 * a * a - 0.5 * a * a * (X[low] - np.log(a) + LOG_2)
            residual = E - A
            residual[low] = 0.0
            return float(np.vdot(residual, residual)) + float(below.sum())

    def _slope(self, A: FloatArray, E: FloatArray) -> None:
        np.maximum(E, 0.5 * A, out=E)  # at E = A/2 the derivative is -A^2/2, the tangent's slope
        G = E - A
        with np.errstate(over="ignore"):
            E *= G
            E *= 2.0

    def _bend(self, A: FloatArray, E: FloatArray) -> None:
        E *= 2.0
        E *= np.maximum(E - A, 0.0)

    def _metric_weights(self, X: FloatArray, rows: slice) -> FloatArray:
        """Metric weights ``2 max(E, A/2)^2`` of the squared error: on the tangent, which is not curved, as at its end."""
        E = self._model(self._visible(X, rows), rows)
        np.maximum(E, 0.5 * self.A[rows], out=E)
        E *= E
        E *= 2.0
        return E

    def lower(self, rows: slice = slice(None)) -> FloatArray:
        """The limit ``log(A/2)`` of some rows, below which a tangent continues the squared error; ``-inf`` on a free diagonal."""
        return _log_half(self.A[rows])

    def _nearest(self, A: FloatArray, b: FloatArray, weight: Weight, near: FloatArray | None) -> FloatArray:
        """The proximal point of the squared error, on the tangent where that ends below ``log(a/2)``."""
        lower = _log_half(A)
        x = limited_minimiser(A, b, weight, near, lower)
        return np.where(x > lower, x, np.minimum(lower, b + 0.5 * A * A / weight))

    def _dual_sum(self, A: FloatArray, w: FloatArray) -> float:
        """The dual sum of the squared error, ``sum (u - a)^2 - w log u`` with slope w at ``u = (a + sqrt(a^2 + 2w)) / 2``."""
        root = A * A
        root += 2.0 * w
        if not root.min() >= 0:
            return -np.inf
        u = 0.5 * (A + np.sqrt(root, out=root))
        return float(np.sum((u - A) ** 2 - xlogy(w, u)))

    @property
    def scale(self) -> float:
        """The scale of the squared error in log variables, the sum of squares of the data."""
        return float(np.vdot(self.A, self.A))

    def floor(self) -> FloatArray:
        """The floor of the squared error's dual domain, half the squared data."""
        f: FloatArray = self.A * self.A
        f *= 0.5
        return f


class LimitedSquaredError(SquaredError):
    """The paper's squared error, ``sum (exp X - A)^2`` where ``exp X >= A/2``: there it is convex."""

    limited = True

    def _nearest(self, A: FloatArray, b: FloatArray, weight: Weight, near: FloatArray | None) -> FloatArray:
        return limited_minimiser(A, b, weight, near, _log_half(A))

    def lifting_direction(self, X: FloatArray) -> FloatArray:
        """``t >= 0`` for which ``X + tt'`` respects the lower limit: ``t_i^2`` is the largest lack of row i."""
        lacks: FloatArray = np.concatenate([(self.lower(rows) - X[rows]).max(axis=1) for rows in self._chunks()])
        return np.sqrt(np.maximum(lacks, 0.0, out=lacks), out=lacks)

    def lifting_effects(self, X: FloatArray, sweeps: int = 8) -> FloatArray:
        """Small t >= 0 for which ``X + t1' + 1t'`` respects the lower limit: only nodes with an entry below are raised.

        From half of the largest lack of every row each sweep goes half of the way to what the others leave to do, which
        keeps ``t_i + t_j`` no less than the lack of (i, j).
        """
        lacks = [self.lower(rows) - X[rows] for rows in self._chunks()]
        t: FloatArray = 0.5 * np.maximum(np.concatenate([lack.max(axis=1) for lack in lacks]), 0.0)
        for _ in range(sweeps if t.any() else 0):
            t += np.maximum(np.concatenate([(lack - t).max(axis=1) for lack in lacks]), 0.0)
            t *= 0.5
        return t


def _log_half(A: FloatArray) -> FloatArray:
    """The lower limit ``log(A/2)`` of the paper's squared error, ``-inf`` where A vanishes."""
    with np.errstate(divide="ignore"):
        lower: FloatArray = np.log(A)
    lower -= LOG_2
    return lower


#: Losses by the names a user gives.
LOSSES: dict[str, type[Loss]] = {"kl": KullbackLeibler, "mse": SquaredError, "mse-paper": LimitedSquaredError}
