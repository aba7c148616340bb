"""Hierarchical alternating least squares: coordinate descent on the squared error (Cichocki & Phan 2009)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray, aligned_empty
from cvxnmf.linalg.compiled import compiled
from cvxnmf.linalg.lanes import copy_transposed, of_vectors
from cvxnmf.linalg.products import THIN, THIN_SINGLE, add_times, add_transposed_times, pad_columns
from cvxnmf.linalg.row_chunks import row_chunks
from cvxnmf.linalg.threads import map_in_threads
from cvxnmf.nmf.extrapolation import Extrapolation, extrapolate
from cvxnmf.nmf.losses import QuadraticObjective
from cvxnmf.nmf.storage import Storage
from cvxnmf.nmf.updates.rule import Rule

#: Rows of a factor that are swept together; three cache lines of doubles per component.
ROWS_TOGETHER = 24
#: Rows that a thread takes at a time, a multiple of these.
ROWS_AT_A_TIME = 2016
#: Entries of dense rows that stay in a cache while they are multiplied twice.
BLOCK_ENTRIES = 1 << 15
#: A row has settled when a sweep changes it by less than this share of the first sweep's change.
SETTLED = 0.01

_DESCEND_1, _DESCEND_2, _DESCEND_3, _DESCEND_4 = of_vectors("coordinate_descent")
Factors = tuple[FloatArray, FloatArray]
#: A pass over rows of A: it takes them, U and U before extrapolation, and where to put both, and returns two sums.
RowPass = Callable[[FloatArray, Factors, Factors], Factors]


class HALS(Rule[QuadraticObjective]):
    """Hierarchical alternating least squares: columns one after the other, in up to `sweeps` sweeps per row."""

    def __init__(self, sweeps: int = 1) -> None:
        self.sweeps = sweeps

    def update(self, objective: QuadraticObjective, X: FloatArray) -> FloatArray:
        """Coordinate descent sweeps of HALS over a factor, many rows in threads."""
        if len(X) <= ROWS_AT_A_TIME:
            return hals_sweeps(X, objective.P, objective.Q, self.sweeps, SETTLED)
        result = np.empty_like(X)

        def sweep(rows: slice) -> None:
            result[rows] = hals_sweeps(X[rows], objective.P[rows], objective.Q, self.sweeps, SETTLED)

        map_in_threads(sweep, list(row_chunks(len(X), 1, ROWS_AT_A_TIME)))
        return result

    def multiplies(self, A: Storage, V: FloatArray) -> bool:
        """Whether one compiled loop multiplies and sweeps by HALS: for dense rows and few components."""
        thin = THIN if A.entries.dtype == np.float64 else THIN_SINGLE
        return not A.sparse and V.shape[1] <= thin and A.A.flags.c_contiguous

    def one_pass(self, V: FloatArray, penalties: tuple[float, float], extrapolation: Extrapolation | None) -> RowPass:
        """A pass of HALS over rows with V fixed: rows of U are swept into a result; it returns their ``A'U`` and ``U'U``."""
        (l1, l2), k, weight = penalties, V.shape[1], 0.0 if extrapolation is None else extrapolation.weight
        Q, padded = V.T @ V + l2 * np.eye(k), pad_columns(V)

        def over_rows(A: FloatArray, state: Factors, result: Factors) -> Factors:
            (U, last), (ahead, new) = (np.ascontiguousarray(factor) for factor in state), result
            block = np.empty((0 if A.dtype == np.float64 else _rows_at_once(A.shape[1]), A.shape[1]))
            products, gram = hals_pass(A, block, padded, Q, l1 / 2, self.sweeps, SETTLED, weight, U, last, new, ahead)
            return np.ascontiguousarray(products[:, :k]), np.ascontiguousarray(gram[:, :k])

        return over_rows


@compiled
def _sweep_rows(X: Any, start: int, rows: int, P: Any, Q: Any, sweeps: int, settled: float, result: Any) -> None:
    """Sweep some rows by :func:`hals_sweeps`, from `start` on, into a result; P has no other rows, and perhaps more columns."""
    k = X.shape[1]
    x, p = np.zeros((k, ROWS_TOGETHER)), np.zeros((k, ROWS_TOGETHER))
    change, limit, active = np.empty(ROWS_TOGETHER), np.empty(ROWS_TOGETHER), np.empty(ROWS_TOGETHER)
    inverse = np.zeros(k)
    for r in range(k):
        if Q[r, r] > 0.0:
            inverse[r] = 1.0 / Q[r, r]
    for first in range(0, rows, ROWS_TOGETHER):
        size = min(ROWS_TOGETHER, rows - first)
        copy_transposed(X, start + first, 0, size, k, x, 0, 0)
        copy_transposed(P, first, 0, size, k, p, 0, 0)
        for i in range(ROWS_TOGETHER):
            active[i] = 1.0 if i < size else 0.0
        for sweep in range(sweeps):
            for i in range(ROWS_TOGETHER):
                change[i] = 0.0
            for r in range(0, k - k % 4, 4):
                _DESCEND_4(Q, inverse, r, x, p, active, change)
            if k % 4 == 3:
                _DESCEND_3(Q, inverse, k - 3, x, p, active, change)
            elif k % 4 == 2:
                _DESCEND_2(Q, inverse, k - 2, x, p, active, change)
            elif k % 4 == 1:
                _DESCEND_1(Q, inverse, k - 1, x, p, active, change)
            if sweep == 0:
                for i in range(ROWS_TOGETHER):
                    limit[i] = settled * settled * change[i]
            moving = 0.0
            for i in range(ROWS_TOGETHER):
                active[i] = 1.0 if change[i] > limit[i] else 0.0
                moving += active[i]
            if moving == 0.0:
                break
        copy_transposed(x, 0, 0, k, size, result, start + first, 0)


def hals_sweeps(X: FloatArray, P: FloatArray, Q: FloatArray, sweeps: int, settled: float) -> FloatArray:
    """Cyclic coordinate descent on ``<XQ, X>/2 - <P, X>`` over X >= 0, a few rows together; a new array.

    Each sweep minimises over one column after the other, ``x_l <- (x_l + (p_l - X q_l) / Q_ll)_+``. A row is swept until
    it has settled, `sweeps` times at most: when a sweep changes it by less than the share `settled` of the first, it stays, so
    that no row depends on its neighbours. Columns with ``Q_ll = 0`` stay.
    """
    result = aligned_empty(X.shape)
    X, P, Q = (np.ascontiguousarray(array, dtype=np.float64) for array in (X, P, Q))
    _sweep_rows(X, 0, len(X), P, Q, sweeps, settled, result)
    return result


@compiled
def _rows_at_once(n: int) -> int:
    """How many rows of n entries HALS takes at a time, which stay in a cache while they are multiplied twice."""
    return ROWS_TOGETHER * max(1, BLOCK_ENTRIES // (ROWS_TOGETHER * n))


@compiled
def hals_pass(
    A: Any,
    block: Any,
    V: Any,
    Q: Any,
    shift: float,
    sweeps: int,
    settled: float,
    weight: float,
    U: Any,
    last: Any,
    new: Any,
    ahead: Any,
) -> Any:
    """HALS sweeps over the rows of U, and sums ``A'U`` and ``U'U`` of the extrapolated rows, columns up to whole vectors.

    V has them, too. Rows are taken as many at a time as stay in a cache from the first product with them to the second; into
    `block`, if it has rows, they are copied in double precision before. `shift` is taken from the products with V.
    """
    (m, n), k, wide, rows = A.shape, U.shape[1], V.shape[1], _rows_at_once(A.shape[1])
    products, gram = np.zeros((n, wide)), np.zeros((k, wide))
    P, factor = np.zeros((rows, wide)), np.zeros((rows, wide))
    for first in range(0, m, rows):
        size = min(rows, m - first)
        for i in range(size):
            for r in range(k):
                P[i, r] = -shift
        if len(block) > 0:
            for i in range(size):
                for j in range(n):
                    block[i, j] = A[first + i, j]
            add_times(block, 0, size, V, P)
        else:
            add_times(A, first, size, V, P)
        _sweep_rows(U, first, size, P, Q, sweeps, settled, new)
        extrapolate(new, last, weight, 0.0, ahead, first * k, (first + size) * k)
        for i in range(size):
            for r in range(k):
                factor[i, r] = ahead[first + i, r]
        if len(block) > 0:
            add_transposed_times(block, 0, size, factor, products, 0)
        else:
            add_transposed_times(A, first, size, factor, products, 0)
        add_transposed_times(factor, 0, size, factor, gram, 0)
    return products, gram
