"""Above rank 6 no grid is good: bumps around the data are the start of a descent over U and V."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.linalg as sl
from scipy.optimize import Bounds, minimize

from cvxnmf.cp.pairs import HELD_ENTRIES, Features, Pairs, Rows, gaussian_bumps, measured_errors, on_both, refuse_columns
from cvxnmf.cp.reduction import unit_columns, weighted_columns
from cvxnmf.linalg.arrays import FloatArray

#: Above it, bumps are tried around this many points, and this many steps improve the ones chosen.
CENTRES = 2000
POLISHING_STEPS = 300
#: They end early when this many steps lower the squared error by less than a few percent.
STALLED_STEPS = 100
#: Steps that make all rows and columns equally large.
EVENING_STEPS = 8


def data_centred_features(pairs: Pairs, tol: float, max_columns: int) -> Features:
    """Bumps around the data, the heaviest improved freely: where a grid would be too large.

    More of them are taken until the whole is within the tolerance, or as long as that helps. Errors are weighed with all rows
    and columns made equally large, lest large effects drown the rest. A rectangular matrix whose smaller side is reached is
    its own factor, next to the identity.
    """
    even = _evened(pairs)
    bumps = weighted_columns(even, gaussian_bumps(even, _centres_around_data(pairs), 1.0))
    features = weighted_columns(even, _heaviest(bumps, _likely_columns(even, tol)))
    target, last = tol, np.inf
    while features.columns <= max_columns:
        if not pairs.symmetric and features.columns >= min(len(pairs.left.v), len(pairs.right.v)):
            return _own_factor(pairs)
        features = _polished(even, features, target)
        uneven = _with_effects_of(pairs, even, features)
        error, plain_error = _norm_error(even, features), _norm_error(pairs, uneven)
        if max(error, plain_error) <= tol or error > max(target, 0.9 * last):
            return uneven
        target, last = min(target, 0.9 * tol * error / plain_error), error
        features = _side_by_side(features, _most_missed(even, features, bumps, 1 + features.columns // 4))
    return refuse_columns(features.columns, max_columns)


def _evened(pairs: Pairs) -> Pairs:
    """The same positions with effects for which all rows and all columns have about the same norm."""
    W, Z = pairs.left.W, pairs.right.W
    a, b = np.zeros(len(W)), np.zeros(len(Z))
    for _ in range(EVENING_STEPS):
        row_squares, column_squares = np.empty(len(a)), np.zeros(len(b))
        for block, E in Pairs(Rows(a, W), Rows(b, Z)).blocks():
            np.square(E, out=E)
            row_squares[block] = E.sum(axis=1)
            column_squares += E.sum(axis=0)
        a, b = a - 0.25 * np.log(row_squares), b - 0.25 * np.log(column_squares)
    left = Rows(a, W)
    return Pairs(left, left if pairs.symmetric else Rows(b, Z))


def _with_effects_of(pairs: Pairs, others: Pairs, features: Features) -> Features:
    """Features of pairs that differ only in their effects."""
    left = features.left * np.exp(pairs.left.v - others.left.v)[:, None]
    return Features(left, left if pairs.symmetric else features.right * np.exp(pairs.right.v - others.right.v)[:, None])


def _norm_error(pairs: Pairs, features: Features) -> float:
    """Relative error in the Frobenius norm."""
    _, error, norm = measured_errors(pairs, features)
    return float(np.sqrt(error / norm))


def _most_missed(pairs: Pairs, features: Features, bumps: Features, count: int) -> Features:
    """The bumps along which adding weight lowers the error fastest, with weights small enough to lower it."""
    unit = unit_columns(bumps)
    gain = np.zeros(unit.columns)
    for block, E in pairs.blocks():
        gain += np.sum(unit.left[block] * ((E - features.left[block] @ features.right.T) @ unit.right), axis=0)
    most = np.argsort(-gain, kind="stable")[:count]
    weights = np.zeros(unit.columns)
    weights[most] = np.maximum(gain[most], 0.0) / count
    return unit.weighted(weights)


def _side_by_side(one: Features, other: Features) -> Features:
    """The columns of both."""
    left = np.hstack([one.left, other.left])
    return Features(left, left if one.right is one.left else np.hstack([one.right, other.right]))


def _centres_around_data(pairs: Pairs) -> FloatArray:
    """The origin, rows, their reflections, and both twice as far out."""
    W = np.vstack([_some(half, CENTRES // 4).W for half in ((pairs.left,) if pairs.symmetric else pairs)])
    return np.vstack([W, -W, 2.0 * W, -2.0 * W, np.zeros((1, pairs.rank))])


def _some(half: Rows, count: int) -> Rows:
    """At most `count` rows, evenly spread."""
    n = len(half.v)
    return half if n <= count else half.restricted(np.linspace(0, n - 1, count).astype(np.intp))


def _likely_columns(pairs: Pairs, tol: float) -> int:
    """Columns that no factor of this accuracy can do without, judged by the singular values of a part."""
    part = Pairs(*on_both(lambda half: _some(half, CENTRES // 4), pairs))
    squares = sl.svdvals(np.vstack([E for _, E in part.blocks()])) ** 2
    return max(1, int(np.count_nonzero(np.cumsum(squares[::-1]) > tol**2 * squares.sum())))


def _heaviest(features: Features, columns: int) -> Features:
    """The columns with the largest products."""
    left, right = on_both(lambda half: np.linalg.norm(half, axis=0), features)
    return features.chosen(np.argsort(-left * right, kind="stable")[:columns])


def _own_factor(pairs: Pairs) -> Features:
    """``exp(X)`` next to the identity on its smaller side."""
    E = np.vstack([E for _, E in pairs.blocks()])
    return Features(E, np.eye(E.shape[1])) if E.shape[1] <= E.shape[0] else Features(np.eye(E.shape[0]), E.T.copy())


def _polished(pairs: Pairs, features: Features, tol: float) -> Features:
    """Descend on ``||UV' - exp(X)||^2`` over U, V >= 0 until the tolerance is met or progress ends."""
    unit = 0.25 * np.log(measured_errors(pairs, features)[2])
    scaled = Pairs(*on_both(lambda half: half._replace(v=half.v - unit), pairs))  # of norm 1, as the stopping rules assume
    held = list(scaled.blocks()) if scaled.entries <= HELD_ENTRIES else None

    def halves(x: FloatArray) -> Features:
        left, right = x[: features.left.size], x[features.left.size :]
        U = left.reshape(features.left.shape)
        return Features(U, U if pairs.symmetric else right.reshape(features.right.shape))

    def stop(intermediate_result: Any) -> None:
        values.append(float(intermediate_result.fun))
        if values[-1] <= (0.99 * tol) ** 2 or values[-1] > 0.97 * values[-STALLED_STEPS]:
            raise StopIteration

    values = [np.inf] * STALLED_STEPS
    start = np.exp(-unit) * np.concatenate([half.ravel() for half in (features[:1] if pairs.symmetric else features)])
    found = minimize(
        lambda x: _distance_and_slope(held or scaled.blocks(), halves(x)),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(0.0, np.inf),
        callback=stop,
        options={"maxiter": POLISHING_STEPS, "maxfun": 2 * POLISHING_STEPS, "ftol": 1e-15, "gtol": 1e-12},
    )
    return Features(*on_both(lambda half: np.exp(unit) * half, halves(found.x)))


def _distance_and_slope(blocks: Iterable[tuple[slice, FloatArray]], features: Features) -> tuple[float, FloatArray]:
    """``||UV' - exp(X)||^2`` and its gradient, over U alone if symmetric."""
    U, V = features
    value, left, right = 0.0, np.empty_like(U), np.zeros_like(V)
    for rows, E in blocks:
        residual = U[rows] @ V.T
        residual -= E
        value += float(np.vdot(residual, residual))
        left[rows] = 2.0 * residual @ V
        if V is not U:
            right += 2.0 * residual.T @ U[rows]
    return value, 2.0 * left.ravel() if V is U else np.concatenate([left.ravel(), right.ravel()])
