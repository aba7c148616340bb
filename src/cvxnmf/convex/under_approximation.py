"""Under-approximation: the best model below the data, ``exp(X) <= A`` (docs/mathematics.md).

    min loss(A, exp(X)) + trace <N, X>   over X in the cone with exp(X) <= A

With log-scalings alone, ``X = v1' + 1v'``, by a barrier and Newton's method; with an embedding by alternating directions, unless
a dual point shows that log-scalings alone are best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cvxnmf.convex.cones import Cone
from cvxnmf.convex.losses import Loss
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.splitting import AlternatingDirections
from cvxnmf.results import Point

#: Log-scalings stay within this distance of where they start, beside the range of the data's logarithms.
LARGEST_SCALING = 30.0
#: Share of the largest curvature that every log-scaling is given.
RIDGE = 1e-14
#: A decrease below this share of the objective is rounding.
ROUNDING = 1e-9
#: The penalty of the alternating directions changes at iterations that are powers of this, so that it settles.
SETTLING = 1.3


class UnderApproximation(NamedTuple):
    """The under-approximation, the best model below the data: its point, and whether the iteration converged."""

    point: Point
    converged: bool


def best_scalings_below(loss: Loss, cone: Cone, tol: float = 1e-8, max_iter: int = 50) -> UnderApproximation:
    """Return the best ``X = v1' + 1v'`` with ``exp(X) <= A``, by a barrier and Newton's method.

    ``min loss(v1' + 1v') - mu sum log(log A - v1' - 1v')`` for falling mu is off by at most mu per constraint that is active.
    The data are positive, but for an ignored diagonal; the result is within `tol` of the optimum, relative to their size.
    """
    v, _, converged = _scalings_and_slope(loss, cone, tol, max_iter)
    return UnderApproximation(Point(v, np.zeros((len(v), 0))), converged)


def _scalings_and_slope(loss: Loss, cone: Cone, tol: float = 1e-8, max_iter: int = 50) -> tuple[FloatArray, FloatArray, bool]:
    """The best log-scalings below the data, a slope there as dual point, and whether the barrier method converged."""
    upper = _log_data(loss)
    n, scale = len(upper), loss.scale
    v = middle = 0.5 * np.where(np.isfinite(upper), upper, np.inf).min(axis=1) - 0.1
    reach = LARGEST_SCALING + float(np.ptp(upper[np.isfinite(upper)]))  # without a diagonal there may be no optimum
    mu = 0.1 * scale / n**2
    while True:
        v, converged = _newton(_Box(middle, reach), loss, cone, upper, v, mu, max_iter)
        if n**2 * mu <= tol * scale:
            v, _ = _newton(_Box(middle, reach), loss, cone, upper, v, mu, max_iter, precision=1e-7)  # for the slope
            X = np.add.outer(v, v)
            return v, loss.value_and_gradient(X)[1] + mu / (upper - X), converged
        mu *= 0.1


class _Box(NamedTuple):
    """Limits of the log-scalings of an under-approximation: ``|v - middle| < reach``."""

    middle: FloatArray
    reach: float

    def barrier(self, v: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and curvature of the logarithmic barrier of the limits of the log-scalings."""
        above, below = self.reach - (v - self.middle), self.reach + (v - self.middle)
        if min(above.min(), below.min()) <= 0:
            return np.inf, above, below
        return -float(np.sum(np.log(above) + np.log(below))), 1.0 / above - 1.0 / below, 1.0 / above**2 + 1.0 / below**2


def _newton(
    box: _Box, loss: Loss, cone: Cone, upper: FloatArray, v: FloatArray, mu: float, max_iter: int, precision: float = 1e-3
) -> tuple[FloatArray, bool]:
    """Newton's method for the under-approximation with one weight mu of the barrier, from an interior point to another."""
    limited = np.isfinite(upper)

    def value(v: FloatArray) -> float:
        X = np.add.outer(v, v)
        room = upper[limited] - X[limited]
        return loss.value(X) + mu * (box.barrier(v)[0] - float(np.log(room).sum())) if room.min() > 0 else np.inf

    here = value(v)
    for _ in range(max_iter):
        X = np.add.outer(v, v)
        room = upper - X
        _, G = loss.value_and_gradient(X)
        _, slope, bend = box.barrier(v)
        residual = cone.margins(G + mu / room) + 0.5 * mu * slope  # margins are half a gradient over v
        curvature = loss.curvature(X) + mu / room**2
        curvature.flat[:: len(v) + 1] += 0.25 * mu * bend  # the diagonal counts twice
        curvature.flat[:: len(v) + 1] += RIDGE * float(curvature.sum(axis=1).max())  # a direction may not matter at all
        step = cone.effects_step(curvature, residual)
        decrease = -float(residual @ step)
        if decrease <= precision * mu:
            return v, True
        length, there = 1.0, value(v + step)
        while not there < here and length > 1e-10:
            length *= 0.5
            there = value(v + length * step)
        if not there < here:  # rounding hides what is left to gain
            return v, decrease <= ROUNDING * abs(here)
        v, here = v + length * step, there
    return v, False


def _log_data(loss: Loss) -> FloatArray:
    """The upper limit ``log A`` of X in an under-approximation; infinite on an ignored diagonal."""
    upper = loss.minimiser()
    if loss.ignore_diagonal:
        np.fill_diagonal(upper, np.inf)
    return upper


def best_point_below(loss: Loss, cone: Cone, trace: float, tol: float = 1e-6, max_iter: int = 1000) -> UnderApproximation:
    """Return the point of the cone with ``exp(X) <= A`` that fits best, by alternating directions between the two constraints.

    The data are positive, but for an ignored diagonal, and the metric is uniform. At the end both residuals, relative to the size
    of X, are at most `tol`. Where effects are free, log-scalings alone are tried first: their dual point tells whether an
    embedding would pay its penalty.
    """
    if cone.free_effects and trace:
        v, slope, converged = _scalings_and_slope(loss, cone)
        if converged and cone.smallest_eigenvalue(slope) >= -trace:
            return UnderApproximation(Point(v, np.zeros((len(v), 0))), True)
    upper = _log_data(loss)
    finite = np.where(np.isfinite(upper), upper, 0.0)
    rho = 0.5 * float(loss.curvature(finite).mean()) + 1e-300
    state, due = AlternatingDirections(finite), 10.0

    def below_data(target: FloatArray) -> FloatArray:
        return np.minimum(loss.proximal(target, rho, state.Y), upper)

    for iteration in range(max_iter):
        point, before = cone.project(state.target, trace / rho), state.Y
        X = point.dense()
        state.update(X.copy(), below_data)
        size = 1.0 + float(np.linalg.norm(state.Y))
        primal, dual = float(np.linalg.norm(X - state.Y)) / size, float(np.linalg.norm(state.Y - before)) / size
        if max(primal, dual) <= tol:
            return UnderApproximation(point, True)
        if iteration >= due:
            due *= SETTLING
            factor = float(np.clip(np.sqrt(primal / max(dual, 1e-300)), 0.2, 5.0))
            rho *= factor
            state.rescale(factor)
    return UnderApproximation(point, False)
