"""The symmetric problem over distances of positions: ``X_ij = u_i + u_j - |w_i - w_j|^2 / 2``, coordinates ``x = (u, W)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg as sl

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import add_outer
from cvxnmf.results import FactorPoint, Point

if TYPE_CHECKING:
    from cvxnmf.convex.symmetric_component import SymmetricComponent

#: As many directions enter at a time.
MOST_ENTERING = 10
#: Directions whose share of the floor's Laplacian is above minus this do not enter.
LEAST_ENTERING = 1e-6
#: Newton steps for the effects after directions have entered.
BALANCING_STEPS = 4
#: A direction enters by this multiple of the step that Newton's method takes along it alone.
OVERSTEP = 1.5


def from_point(point: FactorPoint) -> FloatArray:
    """Coordinates (u, W) over distances of a point ``X = v1' + 1v' + WW'``."""
    return np.column_stack([point.v + 0.5 * np.sum(point.W**2, axis=1), point.W])


def to_point(x: FloatArray) -> Point:
    """The point ``X = v1' + 1v' + WW'`` with given coordinates (u, W) over distances."""
    W = x[:, 1:]
    return Point(x[:, 0] - 0.5 * np.einsum("ij,ij->i", W, W), W)


def slopes(component: SymmetricComponent, x: FloatArray) -> tuple[float, FloatArray]:
    """Objective and gradient over distance coordinates: ``2 G1`` and ``2 (GW - Diag(G1) W)``, with the penalty's."""
    point, cone, trace = to_point(x), component.cone, component.trace
    loss, margins, products = component.slopes(point)
    gradient = np.empty_like(x)
    gradient[:, 0], gradient[:, 1:] = margins, products
    del products  # as few arrays as possible at a time
    gradient[:, 1:] -= margins[:, None] * point.W
    if trace:
        pull = cone.penalty_gradient(point.W)
        pull *= trace
        gradient[:, 1:] += pull
        loss += trace * cone.penalty(point)
    gradient *= 2.0
    return loss, gradient


def _inverse(M: FloatArray) -> FloatArray:
    """The inverse, in single precision, of a positive definite metric, overwritten; of its diagonal if it is singular."""
    diagonal = M.diagonal().copy()
    factor, failed = sl.lapack.dpotrf(M.T, lower=True, overwrite_a=True)
    if failed:
        return np.diag(1.0 / diagonal).astype(np.float32)
    lower = sl.lapack.dpotri(factor, lower=True, overwrite_c=True)[0].astype(np.float32)
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def inverse_metric(component: SymmetricComponent, x: FloatArray, ridge: float) -> Callable[[FloatArray], FloatArray]:
    """Solve with ``2 (E + Diag(E1))`` over u and ``2 (L_E + ridge Diag(E1) + trace S^2)`` over W, E the loss's weights at x."""
    X = to_point(x).dense()
    E = component.loss.metric_weights(X, out=X)
    sums = E.sum(axis=1)
    L = -E
    L.flat[:: len(L) + 1] += (1.0 + ridge) * sums + component.trace * component.cone.s**2
    E.flat[:: len(E) + 1] += sums
    positions = _inverse(L)
    del L
    effects = _inverse(E)
    del E, X

    def solve(q: FloatArray) -> FloatArray:
        h, short = np.empty_like(q), q.astype(np.float32)
        h[:, 0] = effects @ short[:, 0]
        h[:, 1:] = positions @ short[:, 1:]
        h *= 0.5
        return h

    return solve


def with_entering_directions(component: SymmetricComponent, point: FactorPoint, value: float) -> FactorPoint | None:
    """The point with directions along which the gradient is negative, effects balanced as before; None if none lowers the value.

    Negative eigenpairs (r, x) of the gradient against the Laplacian of the floor: ``X + t xx'`` lowers the objective by about
    ``r t - bend t^2 / 2``.
    """
    X = point.dense()
    _, G = component.loss.value_and_gradient(X)
    try:
        values, vectors = laplacian_pencil(component, G, MOST_ENTERING)
    except sl.LinAlgError:  # data that are all but disconnected
        return None
    enters = values < -LEAST_ENTERING
    if not enters.any():
        return None
    Y = vectors[:, enters]
    bends = _fourth_moments(component.loss.metric_weights(X, out=X), Y)
    del X, G  # to balance effects needs the room
    new = Y * np.sqrt(-2.0 * OVERSTEP * values[enters] / np.maximum(0.5 * bends, 1e-300))
    share = 1.0
    while share > 0.05:
        wider = Point(point.v, np.column_stack([point.W, np.sqrt(share) * new]))
        raised = component.balance_effects(wider, BALANCING_STEPS)
        if component.value(raised) < value:
            return raised
        share *= 0.5
    return None


def _fourth_moments(E: FloatArray, Y: FloatArray) -> FloatArray:
    """The moments ``sum_ij E_ij (y_i - y_j)^4`` of distances along every column y."""
    squares = Y * Y
    spread = E.sum(axis=1) @ (squares * squares) - 4.0 * np.sum(squares * Y * (E @ Y), axis=0)
    return np.asarray(2.0 * spread + 6.0 * np.sum(squares * (E @ squares), axis=0))


def laplacian_pencil(component: SymmetricComponent, G: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """The least eigenvalues of G with the penalty against the floor's Laplacian with the penalty, and their vectors.

    Rows of G sum to zero; it is overwritten. The constant direction, on which both vanish, is lifted out of the way. A vector x
    has ``x'Lx = 1``. May raise LinAlgError.
    """
    floor = component.loss.floor()
    here = component.cone.add_penalty(G, component.trace)
    there = np.negative(floor, out=None if floor is component.loss.A else floor)
    del floor
    there.flat[:: len(there) + 1] -= there.sum(axis=1)
    there = component.cone.add_penalty(there, component.trace)
    scaling = 1.0 / np.sqrt(np.where(np.diag(there) > 0, np.diag(there), 1.0))  # a lone node has a zero Laplacian
    direction = 1.0 / scaling / np.linalg.norm(1.0 / scaling)
    for M in (here, there):
        M *= scaling[:, None]
        M *= scaling[None, :]
        add_outer(M, direction, direction)
    last = min(count, len(G)) - 1
    options = {"subset_by_index": [0, last], "overwrite_a": True, "overwrite_b": True, "check_finite": False}
    values, vectors = sl.eigh(here.T, there.T, **options)
    return values, scaling[:, None] * vectors
