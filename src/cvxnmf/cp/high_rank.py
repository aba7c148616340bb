"""Nonnegative factors above rank 6, where grids are too large: Gaussian bumps around the data, then a descent over U and V."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.linalg as sl
from scipy.optimize import Bounds, minimize

from cvxnmf.cp.hadamard_exponential import Features, HadamardExponential, map_halves, refuse_columns
from cvxnmf.cp.reduction import refit_weights, unit_columns
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Point

#: About this many centres are tried.
CENTRES = 2000
#: Steps of the descent, which ends early when STALLED_STEPS of them lower the squared error by less than a few percent.
DESCENT_STEPS = 1000
STALLED_STEPS = 200
#: Steps that make the norms of all rows and columns about equal.
SCALING_STEPS = 8
#: Matrices of up to this many entries are kept during a descent instead of computed at every step.
KEPT_ENTRIES = 1 << 24


def data_centred_features(target: HadamardExponential, tol: float, max_columns: int) -> Features:
    """Nonnegative features of a model of high rank: Gaussian bumps centred at the data, the best of them improved by descent.

    More of them are taken until the whole is within the tolerance, or as long as that helps. Errors are weighed with all rows
    and columns scaled to about equal norms, or else large log-scalings would hide the rest. A rectangular matrix that would
    need as many columns as its smaller side has is its own factor, beside the identity.
    """
    scaled = _equalise_norms(target)
    bumps = refit_weights(scaled, scaled.gaussian_bumps(_centres_around_data(target), 1.0))
    features = refit_weights(scaled, _heaviest(bumps, _numerical_rank(scaled, tol)))
    goal, last = tol, np.inf
    while features.columns <= max_columns:
        if not target.symmetric and features.columns >= min(target.shape):
            return _identity_factors(target)
        features = _descend(scaled, features, goal)
        answer = _rescale(features, scaled, target)
        error, plain_error = scaled.measure_errors(features).frobenius, target.measure_errors(answer).frobenius
        if max(error, plain_error) <= tol or error > max(goal, 0.9 * last):
            return answer
        goal, last = min(goal, 0.9 * tol * error / plain_error), error
        features = _join(features, _steepest_bumps(scaled, features, bumps, 1 + features.columns // 4))
    return refuse_columns(features.columns, max_columns)


def _equalise_norms(target: HadamardExponential) -> HadamardExponential:
    """The high-rank target with log-scalings changed so that all rows and all columns have about one norm."""
    W, Z = target.left.W, target.right.W
    a, b = np.zeros(len(W)), np.zeros(len(Z))
    for _ in range(SCALING_STEPS):
        row_squares, column_squares = np.empty(len(a)), np.zeros(len(b))
        for rows, E in HadamardExponential(Point(a, W), Point(b, Z)).chunks():
            np.square(E, out=E)
            row_squares[rows] = E.sum(axis=1)
            column_squares += E.sum(axis=0)
        a, b = a - 0.25 * np.log(row_squares), b - 0.25 * np.log(column_squares)
    left = Point(a, W)
    return HadamardExponential(left, left if target.symmetric else Point(b, Z))


def _rescale(features: Features, scaled: HadamardExponential, target: HadamardExponential) -> Features:
    """Features of the high-rank target, from features of a matrix that differs only in its log-scalings."""
    left = features.left * np.exp(target.left.v - scaled.left.v)[:, None]
    return Features(left, left if target.symmetric else features.right * np.exp(target.right.v - scaled.right.v)[:, None])


def _steepest_bumps(target: HadamardExponential, features: Features, bumps: Features, count: int) -> Features:
    """The Gaussian bumps along which adding weight lowers the error fastest, with weights small enough to do so."""
    unit = unit_columns(bumps)
    gain = np.zeros(unit.columns)
    for rows, E in target.chunks():
        gain += np.sum(unit.left[rows] * ((E - features.left[rows] @ features.right.T) @ unit.right), axis=0)
    most = np.argsort(-gain, kind="stable")[:count]
    weights = np.zeros(unit.columns)
    weights[most] = np.maximum(gain[most], 0.0) / count
    return unit.with_weights(weights)


def _join(one: Features, other: Features) -> Features:
    """The columns of two sets of nonnegative features side by side."""
    left = np.hstack([one.left, other.left])
    return Features(left, left if one.right is one.left else np.hstack([one.right, other.right]))


def _centres_around_data(target: HadamardExponential) -> FloatArray:
    """Centres of Gaussian bumps: the origin, rows of the embedding, their reflections, and both twice as far out."""
    W = np.vstack([_subsample(half, CENTRES // 4).W for half in ((target.left,) if target.symmetric else target)])
    return np.vstack([W, -W, 2.0 * W, -2.0 * W, np.zeros((1, target.rank))])


def _subsample(half: Point, count: int) -> Point:
    """At most `count` rows of the embedding of a high-rank target, evenly spread."""
    n = len(half.v)
    return half if n <= count else half.restrict_to(np.linspace(0, n - 1, count).astype(np.intp))


def _numerical_rank(target: HadamardExponential, tol: float) -> int:
    """Feature columns that no factor of this accuracy can do without, by the singular values of a part of the target."""
    part = HadamardExponential(*map_halves(lambda half: _subsample(half, CENTRES // 4), target))
    squares = sl.svdvals(np.vstack([E for _, E in part.chunks()])) ** 2
    return max(1, int(np.count_nonzero(np.cumsum(squares[::-1]) > tol**2 * squares.sum())))


def _heaviest(features: Features, columns: int) -> Features:
    """The Gaussian bumps whose columns have the largest products of norms."""
    left, right = map_halves(lambda half: np.linalg.norm(half, axis=0), features)
    return features.select(np.argsort(-left * right, kind="stable")[:columns])


def _identity_factors(target: HadamardExponential) -> Features:
    """The high-rank target itself beside the identity on its smaller side, as factors."""
    E = np.vstack([E for _, E in target.chunks()])
    return Features(E, np.eye(E.shape[1])) if E.shape[1] <= E.shape[0] else Features(np.eye(E.shape[0]), E.T.copy())


def _descend(target: HadamardExponential, features: Features, tol: float) -> Features:
    """Descend on ``||UV' - exp_H(X)||^2`` over U, V >= 0 until the tolerance is met or progress ends (L-BFGS-B)."""
    unit = 0.25 * np.log(target.measure_errors(features).squared_norm)
    # The stopping rules assume a matrix of norm one.
    of_norm_one = HadamardExponential(*map_halves(lambda half: half._replace(v=half.v - unit), target))
    kept = list(of_norm_one.chunks()) if target.entries <= KEPT_ENTRIES else None

    def unpack(x: FloatArray) -> Features:
        left, right = x[: features.left.size], x[features.left.size :]
        U = left.reshape(features.left.shape)
        return Features(U, U if target.symmetric else right.reshape(features.right.shape))

    def stop(intermediate_result: Any) -> None:
        values.append(float(intermediate_result.fun))
        if values[-1] <= (0.99 * tol) ** 2 or values[-1] > 0.97 * values[-STALLED_STEPS]:
            raise StopIteration

    values = [np.inf] * STALLED_STEPS
    start = np.exp(-unit) * np.concatenate([half.ravel() for half in (features[:1] if target.symmetric else features)])
    found = minimize(
        lambda x: _squared_distance_and_gradient(kept or of_norm_one.chunks(), unpack(x)),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(0.0, np.inf),
        callback=stop,
        options={"maxiter": DESCENT_STEPS, "maxfun": 2 * DESCENT_STEPS, "ftol": 1e-15, "gtol": 1e-12},
    )
    return Features(*map_halves(lambda half: np.exp(unit) * half, unpack(found.x)))


def _squared_distance_and_gradient(chunks: Iterable[tuple[slice, FloatArray]], features: Features) -> tuple[float, FloatArray]:
    """The distance ``||UV' - exp_H(X)||^2`` and its gradient over U and V, over U alone if symmetric."""
    U, V = features
    value, left, right = 0.0, np.empty_like(U), np.zeros_like(V)
    for rows, E in chunks:
        residual = U[rows] @ V.T
        residual -= E
        value += float(np.vdot(residual, residual))
        left[rows] = 2.0 * residual @ V
        if V is not U:
            right += 2.0 * residual.T @ U[rows]
    return value, 2.0 * left.ravel() if V is U else np.concatenate([left.ravel(), right.ravel()])
