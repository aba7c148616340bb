"""An augmented Lagrangian for a lower limit on X."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.convex.losses import LimitedSquaredError, SquaredError
from cvxnmf.convex.methods.base import Method
from cvxnmf.convex.methods.factored import Factored
from cvxnmf.convex.methods.laplacian import LaplacianDescent
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import FactorPoint, Point

if TYPE_CHECKING:
    from cvxnmf.convex.symmetric_component import LimitedComponent


class AugmentedSquaredError(SquaredError):
    """The tangent squared error with a multiplier M of ``X >= lower`` and a quadratic penalty: an augmented Lagrangian.

    ``loss(X) + sum (M - sigma (X - lower))_+^2 / 2 sigma`` over the entries with data, ``sigma = weight a^2``. Only these entries
    are looked at for more than ``exp(X)^2``: `where` has their places, row by row.
    """

    weight = 6.0

    def __init__(self, loss: LimitedSquaredError) -> None:
        super().__init__(loss.A, loss.ignore_diagonal)
        places = np.flatnonzero(self.A)
        self.where = places.astype(np.int32) if self.A.size < 2**31 else places
        self.limit = loss.lower().ravel()[places]
        self.M = np.zeros(len(places))

    def renew(self, X: FloatArray) -> None:
        """Take the slope of the penalty at X as the multiplier."""
        for rows in self._chunks():
            entries = self._entries(X[rows], rows)
            self.M[entries.here] = entries.pressure

    def value(self, X: FloatArray) -> float:
        """The loss and the penalty."""
        return self._total(sum(self._value_and_slope(X[rows], rows)[0] for rows in self._chunks()))

    def _entries(self, X: FloatArray, rows: slice) -> _Entries:
        """What the limit does to the entries with data of some rows X."""
        first, last = (row * self.A.shape[1] for row in (rows.start, rows.stop))
        here = slice(*np.searchsorted(self.where, (first, last)))
        places = self.where[here] - first
        a = np.take(self.A[rows], places)
        above = np.take(X, places)
        above -= self.limit[here]
        sigma = self.weight * a * a
        return _Entries(here, places, a, above, sigma, np.maximum(self.M[here] - sigma * above, 0.0))

    def _value_and_slope(self, X: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        """Those of both; at entries without data ``exp(2x)`` is all there is."""
        _, places, a, above, sigma, pressure = self._entries(X, rows)
        E = self._model(self._visible(X, rows), rows)
        model = np.maximum(np.take(E, places), 0.5 * a)
        np.put(E, places, 0.0)
        rest = model - a
        total = float(np.vdot(E, E)) + float(np.vdot(rest, rest)) + 0.5 * float(np.vdot(pressure, pressure / sigma))
        total -= 0.5 * float(np.vdot(a * a, np.minimum(above, 0.0)))  # on the tangent
        E *= E
        E *= 2.0
        np.put(E, places, 2.0 * model * rest - pressure)
        return total, E

    def _curvature(self, X: FloatArray, rows: slice) -> FloatArray:
        """Second derivatives; a little of the metric keeps those of the tangent from vanishing."""
        H = super()._curvature(X, rows) + 1e-3 * super()._metric_weights(X, rows)
        entries = self._entries(X, rows)
        H.reshape(-1)[entries.places] += np.where(entries.pressure > 0, entries.sigma, 0.0)
        return H

    def _metric_weights(self, X: FloatArray, rows: slice) -> FloatArray:
        """Those of the loss, the multiplier's, and those of the penalty where it presses."""
        H = super()._metric_weights(X, rows)
        entries = self._entries(X, rows)
        H.reshape(-1)[entries.places] += 0.3 * entries.pressure + np.where(entries.pressure > 0, 0.5 * entries.sigma, 0.0)
        return H


class _Entries(NamedTuple):
    """Entries with data of some rows: places among all and in these rows, data, distance from the limit, slope of the penalty."""

    here: slice
    places: NDArray[np.integer[Any]]
    a: FloatArray
    above: FloatArray
    sigma: FloatArray
    pressure: FloatArray


class LimitedDescent(LaplacianDescent):
    """One of many descents on objectives that change a little: it remembers more and lets directions in once."""

    memory = 12
    entering_rounds = 1


class AugmentedDescent(Method):
    """Descents in the metric of the model's Laplacian on the loss with a multiplier M of the limit and its quadratic penalty.

    After every descent M becomes the slope of the penalty. The slope of the loss less M is nearly in the dual
    cone: a dual point.
    """

    check_every = 3
    patience = 20

    def __init__(self, component: LimitedComponent, point: FactorPoint) -> None:
        self.component, self.loss, self.taken = component, AugmentedSquaredError(component.loss), 0
        free = component.with_loss(self.loss)
        if not point.W.shape[1]:
            first = Factored(free, point)
            first.step()
            point = first.point
        self.descent = LimitedDescent(free, Point(point.v, point.W))
        self.point = component.raise_to_limit(point)
        self.value = component.value(self.point)

    def step(self) -> None:
        """One descent; the multiplier is renewed before every one of them but the first."""
        if self.taken:
            self.loss.renew(self.descent.point.dense())
            self.descent.resume()
        self.descent.step()
        self.taken += 1

    def settle(self) -> None:
        """Let directions enter, and raise the point of the descent to the limit."""
        self.descent.settle()
        self.point = self.component.raise_to_limit(self.descent.point)
        self.value = self.component.value(self.point)

    def dual_candidate(self) -> FloatArray | None:
        """The slope of the loss with its multiplier."""
        X = self.descent.point.dense()
        return self.loss.value_and_gradient(X, out=X)[1]
