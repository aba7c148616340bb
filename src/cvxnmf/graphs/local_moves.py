"""Compiled loops of a division: posterior memberships, and local moves of single nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.sparse import over_rows


@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _shares(joined: Any, degrees: Any, logs: Any, costs: Any, prior: Any, before: Any, q: Any, first: int, last: int) -> float:
    k = len(logs)
    change = 0.0
    for i in range(first, last):
        top = -np.inf
        row, x, d = q[i], joined[i], degrees[i]
        for r in range(k):
            row[r] = x[r] * logs[r] - d * costs[r] + prior[r]
            top = max(top, row[r])
        total = 0.0
        for r in range(k):
            row[r] = np.exp(row[r] - top)
            total += row[r]
        total = 1.0 / total
        for r in range(k):
            row[r] *= total
            change += abs(row[r] - before[i, r])
    return change


def posterior_memberships(
    A: Any, joined: FloatArray, degrees: FloatArray, logs: FloatArray, costs: FloatArray, prior: FloatArray, before: FloatArray
) -> tuple[FloatArray, float]:
    """Shares in proportion to ``exp(joined_ir logs_r - degrees_i costs_r + prior_r)``, and how much they differ from before."""
    q = np.empty_like(before)
    parts = over_rows(A, lambda first, last: _shares(joined, degrees, logs, costs, prior, before, q, first, last))
    return q, float(sum(parts))


@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def greedy_moves(indptr: Any, indices: Any, data: Any, degrees: Any, labels: Any, logs: Any, excess: Any) -> int:
    """Give each node in turn the label of the highest ``sum_r logs_r edges_r - excess_r degrees_r^2``; how many moved.

    Edges and degrees are those inside clusters, in ordered pairs; no cluster is emptied. Labels are overwritten.
    """
    n, k = len(degrees), len(logs)
    joined, volume, sizes = np.zeros(k), np.zeros(k), np.zeros(k, np.int64)
    for i in range(n):
        volume[labels[i]] += degrees[i]
        sizes[labels[i]] += 1
    moved = 0
    for i in range(n):
        a = labels[i]
        if sizes[a] == 1 or degrees[i] == 0.0:
            continue
        joined[:] = 0.0
        loop, x = 0.0, degrees[i]
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] == i:
                loop += data[p]
            else:
                joined[labels[indices[p]]] += data[p]
        lost = logs[a] * (2.0 * joined[a] + loop) - excess[a] * x * (2.0 * volume[a] - x)
        gain, target = 1e-9 * (abs(lost) + 1e-300), a
        for b in range(k):
            if b != a:
                change = logs[b] * (2.0 * joined[b] + loop) - excess[b] * x * (2.0 * volume[b] + x) - lost
                if change > gain:
                    gain, target = change, b
        if target != a:
            labels[i] = target
            volume[a] -= x
            volume[target] += x
            sizes[a] -= 1
            sizes[target] += 1
            moved += 1
    return moved


def local_moves(A: Any, degrees: FloatArray, labels: NDArray[np.intp], logs: FloatArray, excess: FloatArray) -> int:
    """One pass of :func:`greedy_moves`; labels are overwritten."""
    return int(greedy_moves(A.indptr, A.indices, A.data, degrees, labels, logs, excess))
