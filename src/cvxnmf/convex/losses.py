"""The losses in log variables ``X = log E``: value, gradient, curvature, domain of the dual.

A loss is bound to its data ``A`` and sums over all entries, or over the off-diagonal ones when the
diagonal is ignored (weight 0 there). Formulas: docs/mathematics.md.

    KL    phi(x) = e^x - a x + a log a - a            floor  a      (dual variable w >= -a)
    MSE   phi(x) = (e^x - a)^2 where e^x >= a/2,      floor  a^2/2  (dual variable w >= -a^2/2)
          and its tangent at log(a/2) below: convex, C1, never below the true squared error
    paper's MSE   the same on x >= log(a/2) only

What else is known of a loss stands in its class: whether it limits X, whether the edge of the noise is known for it, whether
products with the model are enough to minimise it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from scipy.special import entr, wrightomega, xlogy

from cvxnmf.linalg.arrays import FloatArray

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
    limited = False  # whether ``X >= lower`` is part of the problem

    def __init__(self, A: FloatArray, ignore_diagonal: bool = False) -> None:
        if ignore_diagonal and np.diag(A).any():
            A = A - np.diag(np.diag(A))
        self.A = A
        self.ignore_diagonal = ignore_diagonal
        self.constant = self._constant()

    def _constant(self) -> float:
        """Sum of the part of the loss that does not depend on X."""
        return 0.0

    @abstractmethod
    def _sum(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Sum of the loss without its constant, and ``exp(X)``."""

    @abstractmethod
    def _slope(self, E: FloatArray) -> FloatArray:
        """Entrywise derivative from ``E = exp(X)``; may overwrite E."""

    @abstractmethod
    def _bend(self, X: FloatArray) -> FloatArray:
        """Entrywise second derivative."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The size of the data, against which a vanishing value is judged."""

    @abstractmethod
    def floor(self) -> FloatArray:
        """Entrywise ``f >= 0`` such that the conjugate is finite exactly for ``w >= -f``."""

    def minimiser(self) -> FloatArray:
        """The X of least loss, ``log A``; ``-inf`` where there is none."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.A))

    @abstractmethod
    def proximal(self, B: FloatArray, weight: FloatArray | float, near: FloatArray | None = None) -> FloatArray:
        """Return argmin ``phi(x) + weight/2 (x - b)^2``, entrywise, sought from `near`; where the diagonal is ignored, b."""

    @abstractmethod
    def dual_value(self, w: FloatArray) -> float:
        """``-sum phi*(w)``: what w proves if it lies in the dual cone; minus infinity outside the domain ``w >= -f``."""

    def value(self, X: FloatArray) -> float:
        """Loss at X; ``-inf`` entries of X stand for ``exp(X) = 0``."""
        return self._total(self._sum(self._visible(X))[0])

    def value_and_gradient(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Loss and its gradient at X, one exponential for both."""
        X = self._visible(X)
        total, E = self._sum(X)
        return self._total(total), self._weight_entries(self._slope(E))

    def metric_weights(self, X: FloatArray) -> FloatArray:
        """Positive weights of the size of the second derivatives, for the metric of a descent."""
        return self.curvature(X)

    def curvature(self, X: FloatArray) -> FloatArray:
        """Second derivatives at X, entrywise."""
        return self._weight_entries(self._bend(self._visible(X)))

    def _total(self, variable_part: float) -> float:
        """The loss itself; rounding must not take it below zero."""
        total = variable_part + self.constant
        return max(0.0, total) if total < np.inf else np.inf  # inf - inf is as bad as inf

    def _visible(self, X: FloatArray) -> FloatArray:
        """X with an ignored diagonal set to zero, lest its exponential overflow."""
        if self.ignore_diagonal:
            X = X.copy()
            np.fill_diagonal(X, 0.0)
        return X

    def _weight_entries(self, G: FloatArray) -> FloatArray:
        if self.ignore_diagonal:
            np.fill_diagonal(G, 0.0)
        return G


class KullbackLeibler(Loss):
    """``KL(A || exp(X)) = sum A log A - A X - A + exp X``, with ``0 log 0 = 0``."""

    noise_known = True
    by_products = True

    def _constant(self) -> float:
        return kl_constant(self.A)

    def _sum(self, X: FloatArray) -> tuple[float, FloatArray]:
        with np.errstate(over="ignore", invalid="ignore"):
            A, E = self.A, self._weight_entries(np.exp(X))
            inner = float(np.vdot(A, X))
            if not np.isfinite(inner):  # 0 * (-inf) counts as 0
                inner = float(np.sum(A * np.where(A > 0, X, 0.0)))
            return float(E.sum()) - inner, E

    def _slope(self, E: FloatArray) -> FloatArray:
        E -= self.A
        return E

    def _bend(self, X: FloatArray) -> FloatArray:
        return np.exp(X)

    def proximal(self, B: FloatArray, weight: FloatArray | float, near: FloatArray | None = None) -> FloatArray:
        """Return argmin ``phi(x) + weight/2 (x - b)^2``: ``c - omega(c - log weight)``, ``c = b + a/weight``, Wright's omega."""
        c = B + self.A / weight
        x: FloatArray = c - wrightomega(c - np.log(weight))
        if self.ignore_diagonal:
            np.fill_diagonal(x, np.diag(B))
        return x

    def dual_value(self, w: FloatArray) -> float:
        """``sum Z - Z log Z`` and the constant, with ``Z = A + w``."""
        Z = self.A + w
        if not Z.min() >= 0:
            return -np.inf
        total = float(Z.sum())
        return total + float(entr(Z, out=Z).sum()) + self.constant

    @property
    def scale(self) -> float:
        """Sum of the data."""
        return float(self.A.sum())

    def floor(self) -> FloatArray:
        """The data themselves: the dual variable is ``Z = A + w >= 0``."""
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
        """``log A`` in the off-diagonal blocks, ``-inf`` elsewhere."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(2.0 * self.A))

    def _visible(self, X: FloatArray) -> FloatArray:
        return np.where(self.factors > 0, X, 0.0)

    def _weight_entries(self, G: FloatArray) -> FloatArray:
        G *= self.factors
        return G

    def value_and_gradient(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Loss and its gradient at X."""
        total, E = self._sum(self._visible(X))
        return self._total(total), self._slope(E)

    def dual_value(self, w: FloatArray) -> float:
        """Not known for a slope alone: the dual of the diagonal has variables of its own."""
        return -np.inf

    @property
    def scale(self) -> float:
        """Sum of the data."""
        return float(self.rectangle.sum())


class SquaredError(Loss):
    """``sum (exp X - A)^2``, continued by its tangent where ``exp X < A/2``."""

    def _sum(self, X: FloatArray) -> tuple[float, FloatArray]:
        with np.errstate(over="ignore", invalid="ignore"):
            A, E = self.A, self._weight_entries(np.exp(X))
            low = 2.0 * E < A
            a = A[low]
            below = 0.25 * a * a - 0.5 * a * a * (X[low] - np.log(a) + LOG_2)
            residual = E - A
            residual[low] = 0.0
            return float(np.vdot(residual, residual)) + float(below.sum()), E

    def _slope(self, E: FloatArray) -> FloatArray:
        A = self.A
        np.maximum(E, 0.5 * A, out=E)  # at E = A/2 the derivative is -A^2/2, the tangent's slope
        G: FloatArray = E - A
        with np.errstate(over="ignore"):
            G *= E
            G *= 2.0
        return G

    def _bend(self, X: FloatArray) -> FloatArray:
        A, E = self.A, np.exp(X)
        return np.where(2.0 * E < A, 0.0, 2.0 * E * (2.0 * E - A))

    def metric_weights(self, X: FloatArray) -> FloatArray:
        """``2 max(E, A/2)^2``: on the tangent, which is not curved, as at its end."""
        E = np.maximum(np.exp(self._visible(X)), 0.5 * self.A)
        return self._weight_entries(2.0 * E * E)

    @cached_property
    def lower(self) -> FloatArray:
        """``log(A/2)``, below which the tangent continues the loss; ``-inf`` on an ignored diagonal."""
        with np.errstate(divide="ignore"):
            lower: FloatArray = np.log(self.A) - LOG_2
        if self.ignore_diagonal:
            np.fill_diagonal(lower, -np.inf)
        return lower

    def proximal(self, B: FloatArray, weight: FloatArray | float, near: FloatArray | None = None) -> FloatArray:
        """Return argmin ``phi(x) + weight/2 (x - b)^2``: on the tangent where that ends below ``log(a/2)``."""
        lower = self.lower
        x = self.limited_proximal(B, weight, near)
        return np.where(x > lower, x, np.minimum(lower, B + 0.5 * self.A**2 / weight))

    def limited_proximal(
        self, B: FloatArray, weight: FloatArray | float, near: FloatArray | None = None, max_iter: int = 60
    ) -> FloatArray:
        """Return argmin ``phi(x) + weight/2 (x - b)^2`` over ``x >= log(a/2)``, entrywise.

        There the derivative is convex and increasing: Newton's steps never overshoot to the left, and to the right they are
        stopped at an upper limit.
        """
        A, lower = self.A, self.lower
        highest = self._right_of_minimum(B, weight)
        if self.ignore_diagonal:
            np.fill_diagonal(highest, np.diag(B))
        x = highest.copy() if near is None else np.minimum(np.maximum(near, lower), highest)
        for _ in range(max_iter):
            E = np.exp(self._visible(x))
            slope = self._weight_entries(2.0 * E * (E - A)) + weight * (x - B)
            bend = self._weight_entries(2.0 * E * (2.0 * E - A)) + weight
            before = x
            x = np.minimum(np.maximum(x - slope / bend, lower), highest)
            if float(np.abs(x - before).max()) <= 1e-10 * max(1.0, float(np.abs(x[np.isfinite(x)]).max(initial=0.0))):
                break
        return x

    def _right_of_minimum(self, B: FloatArray, weight: FloatArray | float) -> FloatArray:
        """A point not left of the minimiser, from ``2 e^x (e^x - a) = weight (b - x)`` and ``x >= c``."""
        A = self.A
        c = np.log(np.where(A > 0, A, 1.0))
        reach = np.sqrt(A * A + 2.0 * weight * np.maximum(B - c, 0.0))
        with np.errstate(divide="ignore"):
            x = np.maximum(c, np.log(0.5 * (A + reach)))
        return np.where((B > c) | (A == 0), np.minimum(x, B), x)

    def dual_value(self, w: FloatArray) -> float:
        """``sum (u - a)^2 - w log u`` where the slope is w, ``u = (a + sqrt(a^2 + 2w)) / 2``."""
        A = self.A
        root = A * A + 2.0 * w
        if not root.min() >= 0:
            return -np.inf
        u = 0.5 * (A + np.sqrt(root))
        return float(np.sum((u - A) ** 2 - xlogy(w, u)))

    @property
    def scale(self) -> float:
        """Sum of squares of the data."""
        return float(np.vdot(self.A, self.A))

    def floor(self) -> FloatArray:
        """Half the squared data."""
        return 0.5 * self.A * self.A


class LimitedSquaredError(SquaredError):
    """The paper's squared error: ``sum (exp X - A)^2`` under the constraint ``exp X >= A/2``, where it is convex."""

    limited = True

    def proximal(self, B: FloatArray, weight: FloatArray | float, near: FloatArray | None = None) -> FloatArray:
        """Return argmin ``phi(x) + weight/2 (x - b)^2`` over ``x >= log(a/2)``, entrywise."""
        return self.limited_proximal(B, weight, near)


class AugmentedSquaredError(SquaredError):
    """The tangent squared error with a multiplier M of ``X >= lower`` and a quadratic penalty: an augmented Lagrangian.

    ``loss(X) + sum (M - sigma (X - lower))_+^2 / 2 sigma`` over the entries with data, ``sigma = weight a^2``.
    """

    first_weight, growth, largest_weight = 4.0, 2.0, 10.0

    def __init__(self, loss: LimitedSquaredError) -> None:
        super().__init__(loss.A, loss.ignore_diagonal)
        self.with_data, self.weight = self.A > 0, self.first_weight
        self.M = np.zeros_like(self.A)
        self.limit = np.where(self.with_data, loss.lower, 0.0)

    @property
    def sigma(self) -> FloatArray:
        """Weights of the quadratic penalty."""
        return self.weight * self.A**2

    def renew(self, X: FloatArray) -> None:
        """Take the slope of the penalty at X as the multiplier, and penalise more."""
        self.M = self._pressure(X)
        self.weight = min(self.growth * self.weight, self.largest_weight)

    def _pressure(self, X: FloatArray) -> FloatArray:
        """``(M - sigma (X - lower))_+``; zero where there are no data."""
        return np.where(self.with_data, np.maximum(self.M - self.sigma * (X - self.limit), 0.0), 0.0)

    def _penalty(self, pressure: FloatArray) -> float:
        return float(np.sum(pressure[self.with_data] ** 2 / (2.0 * self.sigma[self.with_data])))

    def value(self, X: FloatArray) -> float:
        """The loss and the penalty."""
        return super().value(X) + self._penalty(self._pressure(X))

    def value_and_gradient(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient of both."""
        total, G = super().value_and_gradient(X)
        pressure = self._pressure(X)
        G -= pressure
        return total + self._penalty(pressure), G

    def curvature(self, X: FloatArray) -> FloatArray:
        """Second derivatives; a little of the metric keeps those of the tangent from vanishing."""
        active = np.where(self._pressure(X) > 0, self.sigma, 0.0)
        return super().curvature(X) + active + 1e-3 * super().metric_weights(X)

    def metric_weights(self, X: FloatArray) -> FloatArray:
        """Those of the loss, the multiplier's, and those of the penalty where it presses."""
        pressure = self._pressure(X)
        return super().metric_weights(X) + 0.3 * pressure + np.where(pressure > 0, 0.5 * self.sigma, 0.0)


#: Losses by the names a user gives.
LOSSES: dict[str, type[Loss]] = {"kl": KullbackLeibler, "mse": SquaredError, "mse-paper": LimitedSquaredError}
