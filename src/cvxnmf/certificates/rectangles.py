"""Bounds for data with missing entries, from fully observed rectangles that overlap with weights.

Rectangle b has columns J_b and nonnegative weights w_b of rows that are observed on all of J_b. If the weights of the rectangles
that hold an entry sum to at most 1, for every entry, then every X has a loss of at least

    sum_b  loss(D(w_b) A, D(w_b) X)  on J_b,

where squared error takes the roots of the weights. ``D(w_b) X`` is nonnegative and of the rank of X, so that each summand is at
least what is known of fully observed data; and it is not negative. For KL the witness y holds dual points side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.data import witness_arrays
from cvxnmf.certificates.divergence import matching_witness, oriented, singular_bound
from cvxnmf.certificates.rounding import UNIT, Bound, is_finite
from cvxnmf.certificates.squared_error import dual_bound
from cvxnmf.certificates.statement import Array, CertificateError, Proof, Witness

if TYPE_CHECKING:
    from cvxnmf.certificates.rank import RankStatement

#: Roots of weights, and products with them, are off by at most so many units.
WEIGHT_UNITS = 4


def prove_rectangles(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The bounds of all rectangles, summed."""
    if statement.scaling is not None:
        raise CertificateError("A bound of this kind is known for data that are not scaled.")
    data = statement.data(A)
    data = oriented(np.asarray(data.toarray() if sp.issparse(data) else data), witness)
    sets, weights = witness_arrays(witness, "sets", "weights")
    _require_packing(data, sets, weights)
    points = None if statement.has_squared_error else matching_witness(witness, "y", (len(data), int(sets.sum())))
    total, rounding, spare, first = 0.0, 0.0, 0.0, 0
    for columns, of_rows in zip(sets > 0, weights.T, strict=True):
        last = first + int(np.count_nonzero(columns))
        rows = of_rows > 0
        point = None if points is None else points[rows, first:last]
        bound = _rectangle_bound(data[np.ix_(rows, columns)], of_rows[rows], point, statement)
        first = last
        if bound is not None and bound.total > bound.rounding:
            total, rounding, spare = total + bound.total, rounding + bound.rounding, spare + bound.spare
    return Bound(total, rounding + len(sets) * UNIT * total, spare).proof(statement.scale(A))


def _require_packing(data: Array, sets: Array, weights: Array) -> None:
    """Refuse weights that count an entry more than once."""
    fits = sets.ndim == weights.ndim == 2 and sets.shape[1:] == data.shape[1:] and weights.shape == (len(data), len(sets))
    if not fits or not np.isin(sets, (0.0, 1.0)).all() or not weights.min(initial=0.0) >= 0:
        raise CertificateError("The rectangles of the witness do not match the data, or have negative weights.")
    if not float((weights @ sets).max(initial=0.0)) <= 1.0 - 2 * (len(sets) + 16) * UNIT:
        raise CertificateError("The rectangles of the witness count an entry more than once.")


def _rectangle_bound(A: Array, weights: Array, point: Array | None, statement: RankStatement) -> Bound | None:
    """The bound of one rectangle; None if it holds nothing."""
    if not is_finite(A):
        raise CertificateError("The data have missing entries where the witness needs them.")
    if not A.any():
        return None
    if point is None:
        return dual_bound(A * np.sqrt(weights)[:, None], None, statement.n_components, False, WEIGHT_UNITS * UNIT)
    return singular_bound(A * weights[:, None], point, statement.n_components)
