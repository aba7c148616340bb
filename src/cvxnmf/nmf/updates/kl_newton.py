"""Coordinate descent on the Kullback-Leibler divergence, a scalar Newton step per coordinate (Hsieh & Dhillon 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compiled, inlined
from cvxnmf.linalg.lanes import gather_transposed
from cvxnmf.linalg.logarithm import logarithms
from cvxnmf.linalg.products import pad_columns
from cvxnmf.linalg.threads import map_in_threads
from cvxnmf.nmf.losses import DivergenceObjective
from cvxnmf.nmf.updates.rule import Rule, lifted_entry

#: Entries of data times coordinates below which one thread is as fast as several.
WORK_PER_THREAD = 400_000
#: Entries of a compressed row that are worked on together: two vectors.
TOGETHER = 8


class KLNewton(Rule[DivergenceObjective]):
    """Kullback-Leibler coordinate descent, one Newton step per coordinate; with `count` the value comes along for free.

    A step may pass the minimum on its way down, so that the caller has to look at the value.
    """

    def __init__(self, count: bool) -> None:
        self.count = count

    def update(self, objective: DivergenceObjective, X: FloatArray) -> FloatArray:
        """One pass of Newton steps over the coordinates of a factor in Kullback-Leibler."""
        A, k, extra = objective.A, X.shape[1], 2.0 * objective.l2
        sums = _pad_to_even_columns(objective.sums + objective.l1)
        sweep: Any = newton_sweep_csr if A.sparse else newton_sweep_dense
        wide = pad_columns(objective.V) if A.sparse else _pad_to_even_columns(objective.V).T
        V = np.ascontiguousarray(wide, dtype=np.float64 if A.sparse else A.entries.dtype)
        new, floor = X.copy(), lifted_entry(objective, X)

        def work(rows: tuple[int, int]) -> float:
            return float(sweep(*A.arrays, new, V, sums, extra, floor, self.count, *rows))

        totals = map_in_threads(work, A.row_ranges(WORK_PER_THREAD // k))
        if self.count:
            objective.logarithms = new, sum(totals)
        return new


def _pad_to_even_columns(X: FloatArray) -> FloatArray:
    """X with an even number of columns, a column of zeros in excess if need be: coordinates are taken in pairs."""
    k = X.shape[-1]
    if k % 2 == 0:
        return X
    wide = np.zeros((*X.shape[:-1], k + 1))
    wide[..., :k] = X
    return wide


@inlined
def _newton_point(x: float, N: float, q: float, slope: float, extra: float, floor: float) -> float:
    """Newton's step on ``1/N(x) = 1/slope`` with ``N = sum a h / w``, ``q = -N'``, `extra` the slope's own slope.

    1/N is concave, so that without penalties the step never passes the minimum upwards; it falls to a tenth at most.
    """
    new = 0.1 * x if slope > 0.0 else x
    if q > 0.0 and slope > 0.0:
        if extra > 0.0:
            new = x + (N - slope) / (q + extra) * (N / slope if N > slope else 1.0)
        else:
            new = x + (N / slope) * (N - slope) / q
    return max(new, 0.1 * x, floor)


@inlined
def _newton_row(a: Any, H: Any, w: Any, u: Any, S: Any, extra: float, size: int, floor: float) -> None:
    """One pass of KL Newton steps over coordinates of a row u in pairs: ``w = u H``, `S` is ``sum_j H_lj + l1``, `extra` 2 l2.

    Both of a pair take their sums from one pass over the entries, which halves divisions and loads. What the step d of the
    first does to the sums of the second is taken from ``sum p / (1 + t d) ≈ P / (1 + T d / P)``, with P and T the sums of p and
    of p t: exact where h/w is the same in all entries, and never too large, so that neither step passes its minimum upwards.
    """
    kind = w.dtype.type
    zero, one = kind(0.0), kind(1.0)
    for j in range(size):
        w[j] = zero
    for r in range(0, len(u), 2):
        x, y = kind(u[r]), kind(u[r + 1])
        for j in range(size):
            w[j] += x * H[r, j] + y * H[r + 1, j]
    last, move, other_move = 0, zero, zero
    for r in range(0, len(u), 2):
        N, M, q, cross, s = zero, zero, zero, zero, zero
        for j in range(size):  # the last pair's moves and this one's sums in one pass
            model = w[j] + (move * H[last, j] + other_move * H[last + 1, j])
            w[j] = model
            inverse = one / model
            share, other_share = H[r, j] * inverse, H[r + 1, j] * inverse
            part, other_part = a[j] * share, a[j] * other_share
            N += part
            M += other_part
            q += part * share
            cross += part * other_share
            s += other_part * other_share
        x, y = u[r], u[r + 1]
        u[r] = _newton_point(x, N, q, S[r] + extra * x, extra, floor)
        kept = M / (M + cross * (u[r] - x)) if M > 0.0 else 1.0
        u[r + 1] = _newton_point(y, M * kept, s * kept * kept, S[r + 1] + extra * y, extra, floor)
        last, move, other_move = r, kind(u[r] - x), kind(u[r + 1] - y)
    for j in range(size):
        w[j] += move * H[last, j] + other_move * H[last + 1, j]


@inlined
def _weighted_logarithms(a: Any, w: Any, wide: Any, bits: Any, logs: Any, size: int) -> float:
    """The sum ``sum a log w`` of a row after its KL Newton steps; the last three arguments are scratch."""
    for j in range(size):
        wide[j] = w[j]
    logarithms(wide, bits, logs, size)
    part = 0.0
    for j in range(size):
        part += a[j] * logs[j]
    return part


@compiled
def newton_sweep_dense(
    A: Any, result: Any, H: Any, S: Any, extra: float, floor: float, count: bool, first: int, last: int
) -> float:
    """One pass of :func:`_newton_row` over some dense rows of the result; if `count`, ``sum A log(X H)`` there."""
    n, k = A.shape[1], result.shape[1]
    u, w, wide, logs = np.zeros(len(H)), np.empty(n, A.dtype), np.empty(n), np.empty(n)
    bits = wide.view(np.int64)
    total = 0.0
    for i in range(first, last):
        for r in range(k):
            u[r] = result[i, r]
        _newton_row(A[i], H, w, u, S, extra, n, floor)
        for r in range(k):
            result[i, r] = u[r]
        if count:
            total += _weighted_logarithms(A[i], w, wide, bits, logs, n)
    return total


@compiled
def newton_sweep_csr(
    indptr: Any,
    indices: Any,
    data: Any,
    result: Any,
    V: Any,
    S: Any,
    extra: float,
    floor: float,
    count: bool,
    first_row: int,
    last_row: int,
) -> float:
    """One sweep of scalar Newton steps on Kullback-Leibler over compressed rows: nonzero entries and the sums S suffice.

    Rows are filled up to a multiple of `TOGETHER` entries with such as add nothing, for which vectors need no remainder.
    """
    k, widest = result.shape[1], 1
    for i in range(first_row, last_row):
        widest = max(widest, indptr[i + 1] - indptr[i])
    widest += TOGETHER
    u, w, H, a = (
        np.zeros(len(S)),
        np.empty(widest, data.dtype),
        np.zeros((V.shape[1], widest), data.dtype),
        np.zeros(widest, data.dtype),
    )
    wide, logs = np.empty(widest), np.empty(widest)
    bits = wide.view(np.int64)
    total = 0.0
    for i in range(first_row, last_row):
        first = int(indptr[i])
        size = int(indptr[i + 1]) - first
        groups = (size + TOGETHER - 1) // TOGETHER
        gather_transposed(indices, first, size, V, H)
        for j in range(size):
            a[j] = data[first + j]
        for j in range(size, groups * TOGETHER):
            a[j] = 0.0
            for r in range(len(u)):
                H[r, j] = 1.0
        for r in range(k):
            u[r] = result[i, r]
        _newton_row(a, H, w, u, S, extra, groups * TOGETHER, floor)
        for r in range(k):
            result[i, r] = u[r]
        if count:
            total += _weighted_logarithms(a, w, wide, bits, logs, groups * TOGETHER)
    return total
