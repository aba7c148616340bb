"""The pieces of the recursion: the nearest model below a matrix, heavy cliques, weights of several stages.

min loss(A, exp(X)) + trace <N, X>   over X in the cone with ``exp(X) <= A``           (docs/mathematics.md)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from cvxnmf.convex.cones import Cone
from cvxnmf.convex.losses import Loss
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.splitting import AlternatingDirections
from cvxnmf.results import Point

#: Rows with the largest sums from which cliques are grown.
SEEDS = 32
#: Entries that are most violated join the refit's constraints, this many at a time.
VIOLATED_AT_ONCE = 20
#: Rounds of that.
ROUNDS = 100
#: Effects stay within this distance of where they start, beside the range of the data's logarithms.
LARGEST_EFFECT = 30.0
#: Share of the largest curvature that every effect is given.
RIDGE = 1e-14
#: Residuals are balanced at iterations that are powers of this, so that the step settles.
SETTLING = 1.3


class Stage(NamedTuple):
    """The nearest model below the data: its point, and whether the iteration settled."""

    point: Point
    settled: bool


def effects_below(loss: Loss, cone: Cone, tol: float = 1e-8, max_iter: int = 50) -> Stage:
    """Return the best ``X = v1' + 1v'`` with ``exp(X) <= A``, by a barrier and Newton's method.

    ``min loss(v1' + 1v') - mu sum log(log A - v1' - 1v')`` for falling mu is off by at most mu per limit that counts.

    Parameters
    ----------
    loss : Loss
        Bound to data that are positive, but for an ignored diagonal.
    cone : Cone
        With free effects.
    tol : float
        How far from the optimum, relative to the size of the data, the result may be.
    """
    upper = _upper_limit(loss)
    n, scale = len(upper), loss.scale
    v = middle = 0.5 * np.where(np.isfinite(upper), upper, np.inf).min(axis=1) - 0.1
    reach = LARGEST_EFFECT + float(np.ptp(upper[np.isfinite(upper)]))  # without a diagonal, effects may have no optimum
    mu = 0.1 * scale / n**2
    while True:
        v, settled = _centred_effects(_Box(middle, reach), loss, cone, upper, v, mu, max_iter)
        if n**2 * mu <= tol * scale:
            return Stage(Point(v, np.zeros((n, 0))), settled)
        mu *= 0.1


class _Box(NamedTuple):
    """Limits of the effects: ``|v - middle| < reach``."""

    middle: FloatArray
    reach: float

    def barrier(self, v: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Barrier, its slope and its curvature."""
        above, below = self.reach - (v - self.middle), self.reach + (v - self.middle)
        if min(above.min(), below.min()) <= 0:
            return np.inf, above, below
        return -float(np.sum(np.log(above) + np.log(below))), 1.0 / above - 1.0 / below, 1.0 / above**2 + 1.0 / below**2


def _centred_effects(
    box: _Box, loss: Loss, cone: Cone, upper: FloatArray, v: FloatArray, mu: float, max_iter: int
) -> tuple[FloatArray, bool]:
    """Newton's method for one weight of the barrier, never leaving the inside."""
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
        if decrease <= 1e-3 * mu:
            return v, True
        length = 1.0
        while not value(v + length * step) < here and length > 1e-10:
            length *= 0.5
        v, here = v + length * step, value(v + length * step)
    return v, False


def _upper_limit(loss: Loss) -> FloatArray:
    """``log A``, infinite on an ignored diagonal."""
    upper = loss.minimiser()
    if loss.ignore_diagonal:
        np.fill_diagonal(upper, np.inf)
    return upper


def nearest_below(loss: Loss, cone: Cone, trace: float, tol: float = 1e-7, max_iter: int = 5000) -> Stage:
    """Return the point of the cone with ``exp(X) <= A`` that fits best, by alternating directions.

    Parameters
    ----------
    loss : Loss
        Bound to data that are positive, but for an ignored diagonal.
    cone : Cone
        In the uniform metric.
    trace : float
        Weight of the penalty.
    tol : float
        Both residuals, relative to the size of X, are at or below it at the end.
    """
    upper = _upper_limit(loss)
    finite = np.where(np.isfinite(upper), upper, 0.0)
    rho = 0.5 * float(loss.curvature(finite).mean()) + 1e-300
    state, due = AlternatingDirections(finite), 10.0
    for iteration in range(max_iter):
        point, before = cone.project(state.target, trace / rho), state.Y
        X = point.dense()
        state.update(X, lambda B: np.minimum(loss.proximal(B, rho), upper))  # noqa: B023 (called at once)
        size = 1.0 + float(np.linalg.norm(state.Y))
        primal, dual = float(np.linalg.norm(X - state.Y)) / size, float(np.linalg.norm(state.Y - before)) / size
        if max(primal, dual) <= tol:
            return Stage(point, True)
        if iteration >= due:
            due *= SETTLING
            factor = float(np.clip(np.sqrt(primal / max(dual, 1e-300)), 0.2, 5.0))
            rho *= factor
            state.rescale(factor)
    return Stage(point, False)


def heavy_clique(weights: FloatArray, least: float, ignore_diagonal: bool) -> NDArray[np.intp]:
    """Return nodes with all mutual weights above `least`, grown greedily from several seeds; the one of largest energy.

    Where the diagonal counts, it must be above `least` too.
    """
    allowed = weights > least
    if ignore_diagonal:
        np.fill_diagonal(allowed, True)
    candidates = np.flatnonzero(np.diag(allowed))
    heaviest = candidates[np.argsort(-np.where(allowed, weights, 0.0).sum(axis=1)[candidates], kind="stable")]
    best, most = np.zeros(0, dtype=np.intp), 0.0
    for seed in heaviest[:SEEDS]:
        clique = _grown(seed, weights, allowed)
        part = weights[np.ix_(clique, clique)]
        energy = float(np.vdot(part, part))
        if energy > most:
            best, most = clique, energy
    return best if len(best) > 1 or not ignore_diagonal else best[:0]


def _grown(seed: np.intp, weights: FloatArray, allowed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Add the node with the largest total weight to the clique until none fits."""
    clique, total = [seed], weights[seed].copy()
    open_nodes = allowed[seed] & np.diag(allowed)
    open_nodes[seed] = False
    while open_nodes.any():
        node = np.intp(np.argmax(np.where(open_nodes, total, -np.inf)))
        clique.append(node)
        total += weights[node]
        open_nodes &= allowed[node]
        open_nodes[node] = False
    return np.sort(np.array(clique, dtype=np.intp))


def refitted_weights(A: FloatArray, stages: list[FloatArray], counted: NDArray[np.bool_]) -> FloatArray:
    """Return weights ``c >= 0`` that minimise ``||A - sum c_k E_k||^2`` under ``sum c_k E_k <= A`` on the counted entries.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Nonnegative.
    stages : list of ndarray of shape (n, k)
        Factors, ``E_k = U_k U_k'``.
    counted : ndarray of bool, shape (n, n)
        Entries that count.
    """
    columns = np.column_stack([(U @ U.T)[counted] for U in stages])
    data = A[counted]
    chosen = np.zeros(0, dtype=np.intp)
    c = np.zeros(len(stages))
    for _ in range(ROUNDS):
        c = _least_squares_below(columns, data, chosen)
        excess = columns @ c - data
        worst = np.argsort(-excess, kind="stable")[:VIOLATED_AT_ONCE]
        worst = np.setdiff1d(worst[excess[worst] > 1e-9 * data.max()], chosen)
        if not len(worst):
            break
        chosen = np.concatenate([chosen, worst])
    return c


def _least_squares_below(columns: FloatArray, data: FloatArray, chosen: NDArray[np.intp]) -> FloatArray:
    """Minimise ``|columns c - data|`` over c >= 0 with ``columns c <= data`` at the chosen rows.

    In coordinates where the objective is a distance this is a least-distance problem, whose dual is a nonnegative
    least-squares problem (Lawson and Hanson).
    """
    size = np.linalg.norm(columns, axis=0)
    scaled = columns / size
    R = np.asarray(np.linalg.qr(scaled, mode="r"))
    ridge = np.sqrt(float(np.finfo(np.float64).eps)) * np.eye(len(size))
    R = np.asarray(np.linalg.qr(np.vstack([R, ridge]), mode="r"))  # stages may repeat each other
    free = np.linalg.solve(R, np.linalg.solve(R.T, scaled.T @ data))
    limits = np.vstack([np.eye(len(size)), -scaled[chosen]])  # limits @ c >= edges
    edges = np.concatenate([np.zeros(len(size)), -data[chosen]]) - limits @ free
    G = np.linalg.solve(R.T, limits.T).T
    unit = max(float(np.abs(edges).max()), np.finfo(np.float64).tiny)
    u, _ = nnls(np.vstack([G.T, edges / unit]), np.append(np.zeros(len(size)), 1.0), maxiter=50 * len(edges))
    residual = np.vstack([G.T, edges / unit]) @ u - np.append(np.zeros(len(size)), 1.0)
    if -residual[-1] < 1e-12:  # no room at all: nothing may be taken
        return np.zeros(len(size))
    z = residual[:-1] / -residual[-1] * unit
    return np.asarray(np.maximum(0.0, free + np.linalg.solve(R, z)) / size)
