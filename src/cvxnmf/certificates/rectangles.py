"""Bounds for data whose entries are missing or have weights, from fully observed rectangles that overlap with weights.

Rectangle b has nonnegative weights w_b of rows and s_b of columns; where both are positive, the data are observed. If the
products ``w_b s_b'`` of all rectangles sum to at most the weight of every entry (1, if entries have none), then every X has a
loss of at least

    sum_b  loss(D(w_b) A D(s_b), D(w_b) X D(s_b)),

where squared error takes the roots of the weights. The scaled X is nonnegative and of the rank of X, so that each summand is at
least what is known of fully observed data; and it is not negative. The witness may hold dual points of the rectangles side by
side: N for squared error; for KL y (`ky-fan`) or Y (`subspace`), without which the bound is Pinsker's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.data import witness_arrays
from cvxnmf.certificates.divergence import matching_witness, orient_data, pinsker_bound, singular_bound, subspace_bound
from cvxnmf.certificates.losses import KL, require_moderate_size
from cvxnmf.certificates.rounding import UNIT, Bound, is_finite
from cvxnmf.certificates.squared_error import dual_bound
from cvxnmf.certificates.statement import Array, CertificateError, Proof, Witness

if TYPE_CHECKING:
    from cvxnmf.certificates.rank import RankStatement

#: Roots of weights, and products with them, are off by at most so many units.
WEIGHT_UNITS = 4
#: Weights that are not zero are at least this, and at most its inverse: no product of two vanishes unnoticed.
LEAST_WEIGHT = 1e-100
#: The dual points that rectangles may have.
POINTS = ("N", "y", "Y")


def _rectangle_bound(A: Array, rows: Array, columns: Array, k: int, squared_error: bool, points: dict[str, Array]) -> Bound:
    """The bound of a rectangle whose rows and columns have positive weights."""
    if squared_error:
        scaled = A * np.sqrt(rows)[:, None] * np.sqrt(columns)
        return dual_bound(scaled, points.get("N"), k, False, WEIGHT_UNITS * UNIT)
    scaled = A * rows[:, None] * columns
    require_moderate_size(scaled, KL)
    if "y" in points:
        return singular_bound(scaled, points["y"], k)
    return (subspace_bound if "Y" in points else pinsker_bound)(scaled, k, points)


def prove_rectangles(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The bounds of all rectangles of the data, summed; entries have no weights."""
    if statement.scaling is not None:
        raise CertificateError("A bound of this kind is known for data that are not scaled.")
    data = statement.data(A)
    data = np.asarray(data.toarray() if sp.issparse(data) else data)
    bound = rectangles_bound(data, np.ones((1, 1)), statement.n_components, statement.has_squared_error, witness)
    return bound.proof(statement.scale(A))


def rectangles_bound(data: Array, weights_of_entries: Array, k: int, squared_error: bool, witness: Witness) -> Bound:
    """The bounds of all rectangles of the data, summed; the weights of entries may be one for each row, or for all."""
    data, limits = orient_data(data, witness), orient_data(weights_of_entries, witness)
    sets, weights = witness_arrays(witness, "sets", "weights")
    _require_packing(data, limits, sets, weights)
    side_by_side = (len(data), int(np.count_nonzero(sets)))
    points = {name: matching_witness(witness, name, side_by_side) for name in POINTS if name in witness}
    total, rounding, spare, first = 0.0, 0.0, 0.0, 0
    for of_columns, of_rows in zip(sets, weights.T, strict=True):
        rows, columns = of_rows > 0, of_columns > 0
        last = first + int(np.count_nonzero(columns))
        part = data[np.ix_(rows, columns)]
        if not is_finite(part):
            raise CertificateError("The data have missing entries where the witness needs them.")
        if part.any():
            own_points = {name: point[rows, first:last] for name, point in points.items()}
            bound = _rectangle_bound(part, of_rows[rows], of_columns[columns], k, squared_error, own_points)
            if bound.total > bound.rounding:
                total, rounding, spare = total + bound.total, rounding + bound.rounding, spare + bound.spare
        first = last
    return Bound(total, rounding + len(sets) * UNIT * total, spare)


def _require_packing(data: Array, limits: Array, sets: Array, weights: Array) -> None:
    """Refuse rectangles whose weights count an entry more often than it may be."""
    fits = sets.ndim == weights.ndim == 2 and sets.shape[1:] == data.shape[1:] and weights.shape == (len(data), len(sets))
    if not fits or not (_are_weights(sets) and _are_weights(weights)):
        raise CertificateError("The rectangles of the witness do not match the data, or have negative or extreme weights.")
    if not np.all(weights @ sets <= limits * (1.0 - 2 * (len(sets) + 16) * UNIT)):
        raise CertificateError("The rectangles of the witness count an entry more than once, or more than its weight.")


def _are_weights(values: Array) -> bool:
    """Whether all weights of rectangles are 0, or positive and neither so small nor so large that products vanish or overflow."""
    return bool(np.all((values == 0) | ((values >= LEAST_WEIGHT) & (values <= 1 / LEAST_WEIGHT))))
