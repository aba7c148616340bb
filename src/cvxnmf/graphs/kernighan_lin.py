"""Moves of single nodes between clusters, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def best_moves(
    indptr: Any, indices: Any, data: Any, degrees: Any, labels: Any, logs: Any, excess: Any, patience: int
) -> tuple[Any, float]:
    """One pass of Kernighan & Lin's moves on ``sum_r logs_r edges_r - excess_r degrees_r^2``, ordered pairs inside clusters.

    The best move of a node that has not moved yet is made, up or down, until `patience` moves in a row bring no new highest
    value; the labels of the highest value and the gain up to there are returned. No cluster is emptied.
    """
    n, k = len(degrees), len(logs)
    joined, loops, volume, sizes = np.zeros((n, k)), np.zeros(n), np.zeros(k), np.zeros(k, np.int64)
    current, best, moved = labels.copy(), labels.copy(), np.zeros(n, np.bool_)
    for i in range(n):
        volume[current[i]] += degrees[i]
        sizes[current[i]] += 1
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] == i:
                loops[i] += data[p]
            else:
                joined[i, current[indices[p]]] += data[p]
    total, highest, idle = 0.0, 0.0, 0
    while idle < patience:
        gain, node, target = -np.inf, -1, -1
        for i in range(n):
            a = current[i]
            if moved[i] or sizes[a] == 1:
                continue
            x = degrees[i]
            lost = logs[a] * (2.0 * joined[i, a] + loops[i]) - excess[a] * x * (2.0 * volume[a] - x)
            for b in range(k):
                if b != a:
                    change = logs[b] * (2.0 * joined[i, b] + loops[i]) - excess[b] * x * (2.0 * volume[b] + x) - lost
                    if change > gain:
                        gain, node, target = change, i, b
        if node < 0:
            break
        a = current[node]
        current[node], moved[node], total = target, True, total + gain
        volume[a] -= degrees[node]
        volume[target] += degrees[node]
        sizes[a] -= 1
        sizes[target] += 1
        for p in range(indptr[node], indptr[node + 1]):
            if indices[p] != node:
                joined[indices[p], a] -= data[p]
                joined[indices[p], target] += data[p]
        idle += 1
        if total > highest + 1e-9 * abs(highest) + 1e-12:
            highest, idle = total, 0
            best[:] = current
    return best, highest
