"""A pass of Kernighan and Lin: the best of all moves, worse ones too, and a return to the best labels on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.graphs.moves import IN, OUT, Level, cluster_sums, gain_of, shift, weight
from cvxnmf.graphs.score import EXACT, Score
from cvxnmf.linalg.compiled import compile_with


@compile_with(**EXACT)
def _best_move(level: Level, score: Score, logs: Any, sums: Any, links: Any, fixed: Any, labels: Any) -> Any:
    """Best move of Kernighan and Lin: gain, node and target, a cluster with links to it, of a node not fixed; -1 for none."""
    highest, node, target = -np.inf, -1, -1
    for i in range(len(labels)):
        a = labels[i]
        if fixed[i] or sums[a].members == 1:
            continue
        shift(level, sums, i, a, links[i, a], OUT)
        lost = gain_of(level, score, logs, sums, i, a, links[i, a])
        for b in range(links.shape[1]):
            if b != a and links[i, b] != 0.0:
                change = gain_of(level, score, logs, sums, i, b, links[i, b]) - lost
                if change > highest:
                    highest, node, target = change, i, b
        shift(level, sums, i, a, links[i, a], IN)
    return highest, node, target


@compile_with(**EXACT)
def kernighan_lin_pass(level: Level, score: Score, logs: Any, labels: Any, count: int, patience: int) -> Any:
    """Kernighan-Lin pass: the best labels on a way along which nodes move at most once, and their gain; no cluster is emptied.

    The pass ends after `patience` moves without a new highest score.
    """
    n = len(labels)
    current, best, moved, links = labels.copy(), labels.copy(), np.zeros(n, np.bool_), np.zeros((n, count))
    sums = cluster_sums(level, current.astype(np.int32), count)
    for i in range(n):
        for p in range(level.indptr[i], level.indptr[i + 1]):
            links[i, current[level.indices[p]]] += weight(level, p)
    total, highest, idle = 0.0, 0.0, 0
    while idle < patience:
        change, node, target = _best_move(level, score, logs, sums, links, moved, current)
        if node < 0:
            break
        a = current[node]
        shift(level, sums, node, a, links[node, a], OUT)
        shift(level, sums, node, target, links[node, target], IN)
        current[node], moved[node], total, idle = target, True, total + change, idle + 1
        for p in range(level.indptr[node], level.indptr[node + 1]):
            links[level.indices[p], a] -= weight(level, p)
            links[level.indices[p], target] += weight(level, p)
        if total > highest + 1e-9 * abs(highest) + 1e-12:
            highest, idle = total, 0
            for i in range(n):
                best[i] = current[i]
    return best, highest
