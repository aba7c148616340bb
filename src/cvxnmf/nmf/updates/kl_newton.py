"""Coordinate descent on the Kullback-Leibler divergence, a scalar Newton step per coordinate (Hsieh & Dhillon 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compiled, inlined
from cvxnmf.linalg.logarithm import logarithms
from cvxnmf.linalg.threads import map_in_threads
from cvxnmf.nmf.losses import DivergenceObjective
from cvxnmf.nmf.updates.rule import Rule, lifted_entry

#: Entries of data below which one thread is as fast as several.
ENTRIES_PER_THREAD = 10_000


class KLNewton(Rule[DivergenceObjective]):
    """One Newton step per coordinate; with `count` the value of the objective comes along for free.

    A step may pass the minimum on its way down, so that the caller has to look at the value.
    """

    def __init__(self, count: bool) -> None:
        self.count = count

    def update(self, objective: DivergenceObjective, X: FloatArray) -> FloatArray:
        """One pass over the coordinates."""
        A, sums, extra = objective.A, objective.sums + objective.l1, 2.0 * objective.l2
        sweep: Any = newton_sweep_csr if A.sparse else newton_sweep_dense
        V = objective.V if A.sparse else np.ascontiguousarray(objective.V.T)
        new, floor = X.copy(), lifted_entry(objective, X)

        def work(rows: tuple[int, int]) -> float:
            return float(sweep(*A.arrays, new, V, sums, extra, floor, self.count, *rows))

        totals = map_in_threads(work, A.row_ranges(ENTRIES_PER_THREAD))
        if self.count:
            objective.logarithms = new, sum(totals)
        return new


@inlined
def _newton_row(a: Any, H: Any, w: Any, u: Any, S: Any, extra: float, size: int, floor: float) -> None:
    """One pass over the coordinates of a row u: ``w = u H`` follows, `S` holds ``sum_j H_lj + l1``, `extra` is 2 l2.

    Newton's step on ``1/N(x) = 1/S`` with ``N = sum a h / w``: 1/N is concave, so the step never passes the minimum upwards.
    """
    k = len(u)
    for j in range(size):
        w[j] = 0.0
    for r in range(k):
        x = u[r]
        for j in range(size):
            w[j] += x * H[r, j]
    previous, delta = 0, 0.0
    for r in range(k):
        N, q = 0.0, 0.0
        for j in range(size):  # the last coordinate's move and this one's sums in one pass
            model = w[j] + delta * H[previous, j]
            w[j] = model
            share = H[r, j] / model
            part = a[j] * share
            N += part
            q += part * share
        x, slope = u[r], S[r] + extra * u[r]
        if q > 0.0 and slope > 0.0:
            if extra > 0.0:
                new = x + (N - slope) / (q + extra) * (N / slope if N > slope else 1.0)
            else:
                new = x + (N / slope) * (N - slope) / q
        else:
            new = 0.1 * x if slope > 0.0 else x
        new = max(new, 0.1 * x, floor)
        delta, previous = new - x, r
        u[r] = new
    for j in range(size):
        w[j] += delta * H[previous, j]


@compiled
def newton_sweep_dense(
    A: Any, result: Any, H: Any, S: Any, extra: float, floor: float, count: bool, first: int, last: int
) -> float:
    """One pass of :func:`_newton_row` over some rows of the result; if `count`, ``sum A log(X H)`` there."""
    n = A.shape[1]
    w, logs = np.empty(n), np.empty(n)
    bits = w.view(np.int64)
    total = 0.0
    for i in range(first, last):
        a = A[i]
        _newton_row(a, H, w, result[i], S, extra, n, floor)
        if count:
            logarithms(w, bits, logs, n)
            part = 0.0
            for j in range(n):
                part += a[j] * logs[j]
            total += part
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
    """One sweep of scalar Newton steps on Kullback-Leibler over compressed rows: nonzero entries and the sums S suffice."""
    k, widest = result.shape[1], 1
    for i in range(first_row, last_row):
        widest = max(widest, indptr[i + 1] - indptr[i])
    w, logs, H = np.ones(widest), np.empty(widest), np.empty((k, widest))
    bits = w.view(np.int64)
    total = 0.0
    for i in range(first_row, last_row):
        first = indptr[i]
        size = indptr[i + 1] - first
        a = data[first : first + size]
        for j in range(size):
            v = V[indices[first + j]]
            for r in range(k):
                H[r, j] = v[r]
        _newton_row(a, H, w, result[i], S, extra, size, floor)
        if count:
            logarithms(w, bits, logs, size)
            part = 0.0
            for j in range(size):
                part += a[j] * logs[j]
            total += part
    return total
