"""Coordinate descent on the Kullback-Leibler divergence, a scalar Newton step per coordinate (Hsieh & Dhillon 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import LINE, FloatArray, aligned_empty
from cvxnmf.linalg.compiled import compiled, inlined
from cvxnmf.linalg.lanes import aligned_zeros, vector_loop
from cvxnmf.linalg.products import pad_columns
from cvxnmf.linalg.threads import map_in_threads
from cvxnmf.nmf.losses import DivergenceObjective
from cvxnmf.nmf.updates.rule import Rule, lifted_entry

#: Entries of data times coordinates below which one thread is as fast as several.
WORK_PER_THREAD = 400_000
_GATHER, _PAIR_SUMS, _LOGARITHMS = (
    vector_loop(name, module="divergence_loops") for name in ("gathered_columns", "pair_sums", "weighted_logarithms")
)


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
        V = pad_columns(objective.V) if A.sparse else _in_whole_lines(objective.V, A.entries.dtype)
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


def _in_whole_lines(V: FloatArray, kind: Any) -> FloatArray:
    """V transposed, with an even number of rows, and its last column repeated up to whole cache lines."""
    (n, k), line = V.shape, 8 * LINE // kind.itemsize
    H = aligned_empty((k + k % 2, n + -n % line), kind)
    H[:k, :n], H[k:, :n] = V.T, 0.0
    H[:, n:] = H[:, n - 1 : n]
    return H.ravel()


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
def _newton_pair(row: Any, r: int, S: Any, extra: float, floor: float) -> None:
    """KL Newton steps of the coordinates r and r + 1 of a row ``a, H, w, u, moves``; `S` is ``sum_j H_rj + l1``, `extra` 2 l2.

    ``w = u H``, but for the last `moves`, those of the pair before. Both of a pair take their sums from one pass over the
    entries, which halves divisions and loads. What the step d of the first does to the sums of the second is taken from
    ``sum p / (1 + t d) ≈ P / (1 + T d / P)``, with P and T the sums of p and of p t: exact where h/w is the same in all entries,
    and never too large, so that neither step passes its minimum upwards.
    """
    a, H, w, u, moves = row
    N, M, q, cross, s = _PAIR_SUMS(a, H, w, r, len(w), moves)
    x, y = u[r], u[r + 1]
    u[r] = _newton_point(x, N, q, S[r] + extra * x, extra, floor)
    kept = M / (M + cross * (u[r] - x)) if M > 0.0 else 1.0
    u[r + 1] = _newton_point(y, M * kept, s * kept * kept, S[r + 1] + extra * y, extra, floor)
    moves[0], moves[1] = u[r] - x, u[r + 1] - y


@inlined
def _weighted_logarithms(row: Any, last: int) -> float:
    """The sum ``sum a log w`` of a row after its KL Newton steps, of which those of the pair `last` were the last."""
    a, H, w, _, moves = row
    size = len(w)
    h, g = H[last * size : (last + 1) * size], H[(last + 1) * size : (last + 2) * size]
    for j in range(size):
        w[j] += moves[0] * h[j] + moves[1] * g[j]
    return float(_LOGARITHMS(a, w, size))


@inlined
def _begin_row(A: Any, i: int, result: Any, row: Any) -> None:
    """What KL Newton steps of a dense row work on: its entries, and the model."""
    a, H, w, u, moves = row
    size = len(w)
    for j in range(A.shape[1]):
        a[j] = A[i, j]
    for r in range(result.shape[1]):
        u[r] = result[i, r]
    for j in range(size):
        w[j] = 0.0
    for r in range(0, len(u), 2):
        x, y = A.dtype.type(u[r]), A.dtype.type(u[r + 1])
        h, g = H[r * size : (r + 1) * size], H[(r + 1) * size : (r + 2) * size]
        for j in range(size):
            w[j] += x * h[j] + y * g[j]
    moves[0], moves[1] = 0.0, 0.0


@compiled
def newton_sweep_dense(
    A: Any, result: Any, H: Any, S: Any, extra: float, floor: float, count: bool, first: int, last: int
) -> float:
    """One pass of KL Newton steps over some dense rows of the result; if `count`, ``sum A log(X H)`` there.

    The last column of H is repeated up to whole cache lines, so that vectors need no remainder; it counts once. Two rows are
    swept side by side: while a step of one waits for its divisions, the processor adds up entries of the other.
    """
    K, size, total = len(S), len(H) // len(S), 0.0
    a, w, u, moves = aligned_zeros(2 * size, A), aligned_zeros(2 * size, A), np.zeros((2, K)), np.zeros((2, 2))
    one, other = (a[:size], H, w[:size], u[0], moves[0]), (a[size:], H, w[size:], u[1], moves[1])
    for i in range(first, last, 2):
        beside = min(i + 1, last - 1)
        _begin_row(A, i, result, one)
        _begin_row(A, beside, result, other)
        for r in range(0, K, 2):
            _newton_pair(one, r, S, extra, floor)
            _newton_pair(other, r, S, extra, floor)
        for r in range(result.shape[1]):
            result[i, r], result[beside, r] = u[0, r], u[1, r]
        if count:
            total += _weighted_logarithms(one, K - 2)
        if count and beside > i:
            total += _weighted_logarithms(other, K - 2)
    return total


@inlined
def _gather_row(indices: Any, data: Any, start: Any, end: Any, V: Any, places: Any, row: Any) -> None:
    """What KL Newton steps of a compressed row work on: the last entry is repeated up to whole cache lines, and counts once."""
    a, H, w, u, moves = row
    near, own, size = indices[start:end], data[start:end], end - start
    for j in range(size):
        places[j], a[j] = near[j], own[j]
    for j in range(size, len(a)):
        places[j], a[j] = near[size - 1], 0.0
    _GATHER(places, len(a), V, u, H, w)
    moves[0], moves[1] = 0.0, 0.0


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

    Two rows are swept side by side: while a step of one waits for its divisions, the processor adds up entries of the other.
    """
    line, K, k, widest = 8 * LINE // data.itemsize, V.shape[1], result.shape[1], 0
    for i in range(first_row, last_row):
        widest = max(widest, indptr[min(i + 2, last_row)] - indptr[i] + 2 * line)
    H, w, a = aligned_zeros(K * widest, data), aligned_zeros(widest, data), aligned_zeros(widest, data)
    u, moves, places, total = np.zeros((2, K)), np.zeros((2, 2)), np.zeros(widest, np.int64), 0.0
    for i in range(first_row, last_row, 2):
        beside = min(i + 1, last_row - 1)
        start, middle, end = np.int64(indptr[i]), np.int64(indptr[i + 1]), np.int64(indptr[beside + 1])
        one = (middle - start + line - 1) // line * line
        both = one + (end - middle + line - 1) // line * line
        first = a[:one], H, w[:one], u[0], moves[0]
        second = a[one:both], H[K * one :], w[one:both], u[1], moves[1]
        for r in range(k):
            u[0, r], u[1, r] = result[i, r], result[beside, r]
        _gather_row(indices, data, start, middle, V, places, first)
        _gather_row(indices, data, middle, end, V, places, second)
        for r in range(0, len(S), 2):
            _newton_pair(first, r, S, extra, floor)
            _newton_pair(second, r, S, extra, floor)
        for r in range(k):
            result[i, r] = u[0, r]
            if beside > i:
                result[beside, r] = u[1, r]
        if count:
            total += _weighted_logarithms(first, len(S) - 2)
            total += _weighted_logarithms(second, len(S) - 2)
    return total
