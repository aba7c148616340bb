"""Bounds for losses with weights: the weights below a product of row and column weights, and rectangles for the rest.

Weights ``W = D(w) L D(s)`` with entries of L up to 1 leave the loss of the data scaled by w and s, with the weights L. Where L is
1 everywhere, as for weights of rows, that is a loss without weights; else L limits the rectangles of `rectangle_bounds`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.certificates.losses import SQUARED_ERROR
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.bound_goal import Found, Part, WeightedGoal, observed_part
from cvxnmf.nmf.divergence_bounds import (
    MORE_THAN_SUBSPACES,
    MOST_REWEIGHTINGS,
    MOST_STEPS,
    ky_fan_point,
    subspace_point,
    where_filled,
)
from cvxnmf.nmf.rectangle_bounds import MARGIN, rectangles
from cvxnmf.nmf.squared_error_bounds import best_dual_matrix

#: Limits above this are those of a product.
ALL_ONES = 1.0 - 1e-9
#: Entries with a smaller share of the largest weight in their row and column are left out.
NEGLIGIBLE = 1e-6


class Scaled(NamedTuple):
    """Data scaled by weights for a bound, NaN where the limit is zero, weights w and s of rows and columns, and the limits L."""

    A: FloatArray
    rows: FloatArray
    columns: FloatArray
    limits: FloatArray


def weighted_bounds(goal: WeightedGoal) -> Iterator[Found]:
    """Bounds for weighted losses: of one rectangle, with dual points of its own, and of many where the weights are no product."""
    k, squared_error = goal.statement.n_components, goal.statement.plain_loss is SQUARED_ERROR
    if k >= min(goal.A.shape) or not goal.limits.may_fill(goal.A, effort=1):
        return
    scaled = scaled_data(goal.A, goal.weights, squared_error)
    part = observed_part(scaled.A, symmetric=False)
    if part is not None and k < min(part.A.shape):
        yield from _one_rectangle(goal, scaled, part, squared_error)
    if not scaled.limits.min() >= ALL_ONES:
        found = rectangles(scaled.A, scaled.limits, k, squared_error)
        if found:
            turned = "transposed" in found
            rows, columns = (scaled.columns, scaled.rows) if turned else (scaled.rows, scaled.columns)
            weights, sets = found["weights"] * rows[:, None], found["sets"] * columns
            yield from goal.prove_bound("rectangles", found | {"weights": weights, "sets": sets})


def scaled_data(A: Any, weights: FloatArray, squared_error: bool) -> Scaled:
    """The data scaled by row and column weights: columns by geometric means, rows so that the product covers all weights."""
    A = np.asarray(A.toarray() if sp.issparse(A) else A, dtype=np.float64)
    W = np.where(np.isnan(A), 0.0, np.broadcast_to(weights, A.shape))
    seen = W > 0
    logs = np.log(np.where(seen, W, 1.0))
    of_rows = _mean(logs, seen, axis=1)
    columns = np.exp(_mean(np.where(seen, logs - of_rows[:, None], 0.0), seen, axis=0))
    rows = (W / columns).max(axis=1)
    rows = np.where(rows > 0, rows, 1.0)
    limits = W / columns / rows[:, None]
    limits = np.where(limits >= ALL_ONES, 1.0, np.where(limits < NEGLIGIBLE, 0.0, limits))
    scales = np.outer(rows, columns)
    scaled = np.where(limits > 0, np.nan_to_num(A) * (np.sqrt(scales) if squared_error else scales), np.nan)
    return Scaled(scaled, rows, columns, limits)


def _mean(values: FloatArray, seen: NDArray[np.bool_], axis: int) -> FloatArray:
    """Means of the logarithms of weights that are positive; 0 where none is."""
    return np.asarray(np.where(seen, values, 0.0).sum(axis=axis) / np.maximum(seen.sum(axis=axis), 1))


def _one_rectangle(goal: WeightedGoal, scaled: Scaled, part: Part, squared_error: bool) -> Iterator[Found]:
    """Weighted bounds of the observed part with the least limit of each row, without a dual point and with the best ones."""
    m, n = scaled.A.shape
    kept = part.witness.get("rows", np.ones(m)) > 0, part.witness.get("columns", np.ones(n)) > 0
    least = scaled.limits[np.ix_(*kept)].min(axis=1) * (1.0 - MARGIN)
    A = part.A * (np.sqrt(least) if squared_error else least)[:, None]
    weights, sets = np.zeros((m, 1)), np.zeros((1, n))
    weights[kept[0], 0], sets[0, kept[1]] = least * scaled.rows[kept[0]], scaled.columns[kept[1]]
    rectangle = {"weights": weights, "sets": sets}

    def prove_rectangle(name: str, point: FloatArray) -> list[Found]:
        whole = np.zeros((m, A.shape[1]))
        whole[kept[0]] = point
        return goal.prove_bound("rectangles", rectangle | {name: whole})

    yield from goal.prove_bound("rectangles", rectangle)
    k, left = goal.statement.n_components, goal.limits.decompositions((len(A), A.shape[1]), goal.effort)
    if not left or not A.any():
        return
    if squared_error:
        if k > 1:
            yield from prove_rectangle("N", best_dual_matrix(A, k, False, goal.value, left))
        return
    proved = prove_rectangle("y", where_filled(A, lambda filled: ky_fan_point(filled, k, False, min(left, MOST_STEPS))))
    yield from proved
    if all(each.proof.bound < MORE_THAN_SUBSPACES * goal.value for each in proved):
        yield from prove_rectangle("Y", where_filled(A, lambda filled: subspace_point(filled, k, min(left, MOST_REWEIGHTINGS))))
