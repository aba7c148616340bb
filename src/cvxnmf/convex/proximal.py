"""The proximal point of the squared error in log variables, by Newton's method."""

from __future__ import annotations

import numpy as np

from cvxnmf.linalg.arrays import FloatArray

#: Weights of entries, all alike or one for each.
Weight = FloatArray | float
#: After a step of this size, relative to X, those of Newton's method have reached their end but for rounding.
NEARLY_THERE = 1e-6


def limited_minimiser(
    A: FloatArray, b: FloatArray, weight: Weight, near: FloatArray | None, lower: FloatArray, max_iter: int = 60
) -> FloatArray:
    """Return argmin ``(e^x - a)^2 + weight/2 (x - b)^2`` over ``x >= lower = log(a/2)``, entrywise.

    There the derivative is convex and increasing: Newton's steps never overshoot to the left, and to the right they are
    stopped at an upper limit. Most entries are there after two or three steps, and only the others take more.
    """
    highest = _right_of_minimum(A, b, weight)
    x = highest.copy() if near is None else np.minimum(np.maximum(near, lower), highest)
    while max_iter:
        move = _newton_move(A, b, weight, x)
        move += x
        np.maximum(move, lower, out=move)
        np.minimum(move, highest, out=move)
        x, before = move, x
        max_iter -= 1
        before -= x
        moves = np.abs(before, out=before) > NEARLY_THERE * np.maximum(1.0, np.abs(x))
        left = np.count_nonzero(moves)
        if not left:
            break
        if max_iter and left < x.size // 4:
            weights = weight if isinstance(weight, float) else weight[moves]
            x[moves] = limited_minimiser(A[moves], b[moves], weights, x[moves], lower[moves], max_iter)
            break
    return x


def _newton_move(A: FloatArray, b: FloatArray, weight: Weight, x: FloatArray) -> FloatArray:
    """Newton's step from x to the proximal point, for the derivative ``2 e^x (e^x - a) + weight (x - b)``."""
    E = np.exp(x)
    slope = E - A
    slope *= E
    slope *= 2.0
    E *= E
    E *= 2.0
    E += slope
    E += weight  # the second derivative
    pull = b - x
    pull *= weight
    pull -= slope
    pull /= E
    return pull


def _right_of_minimum(A: FloatArray, b: FloatArray, weight: Weight) -> FloatArray:
    """A point not left of the proximal point, from ``2 e^x (e^x - a) = weight (b - x)`` and ``x >= c``."""
    c = np.log(np.where(A > 0, A, 1.0))
    reach = np.sqrt(A * A + 2.0 * weight * np.maximum(b - c, 0.0))
    with np.errstate(divide="ignore"):
        x = np.maximum(c, np.log(0.5 * (A + reach)))
    return np.where((b > c) | (A == 0), np.minimum(x, b), x)
