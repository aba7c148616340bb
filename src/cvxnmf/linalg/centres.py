"""Deterministic centres of points: farthest points, and Lloyd's iterations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray

#: Rounds of nearest centres.
CENTRE_ROUNDS = 100


def farthest_points(W: FloatArray, k: int) -> FloatArray:
    """K rows of W as first centres, each the farthest from those before it; the first the farthest from the origin."""
    chosen = [int(np.argmax(np.sum(W * W, axis=1)))]
    distance = np.sum((W - W[chosen[0]]) ** 2, axis=1)
    while len(chosen) < k:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.sum((W - W[chosen[-1]]) ** 2, axis=1))
    return W[chosen]


def nearest_centres(W: FloatArray, centres: FloatArray, rounds: int = CENTRE_ROUNDS) -> NDArray[np.intp]:
    """Labels of the nearest centre of each row, centres moved to the mean of theirs until they stay (Lloyd)."""
    labels = np.zeros(len(W), dtype=np.intp)
    for _ in range(rounds):
        before, labels = labels, nearest_of(W, centres)
        if np.array_equal(labels, before):
            break
        indicator = np.eye(len(centres))[labels]
        sizes = indicator.sum(axis=0)[:, None]
        centres = np.where(sizes > 0, indicator.T @ W / np.maximum(sizes, 1.0), centres)
    return labels


def nearest_of(W: FloatArray, centres: FloatArray) -> NDArray[np.intp]:
    """The nearest of the centres for each row of W; of the size of rows times centres there is one array."""
    distances = W @ centres.T
    distances *= -2.0
    distances += np.sum(centres**2, axis=1)
    return np.asarray(np.argmin(distances, axis=1))
