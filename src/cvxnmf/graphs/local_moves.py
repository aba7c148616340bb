"""Local moves: single nodes change their cluster while that raises the quality of the clustering.

There are two searches over one rule of gains. A pass of Kernighan and Lin makes the best of all moves, worse ones too, and
returns to the best labels on the way: it leaves local optima, at a cost of n k per move. A sweep visits every node once, at the
cost of a pass over the edges: for graphs too large for the other. Neither empties a cluster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

Labels = NDArray[np.intp]


class Quality(NamedTuple):
    """A quality of clusters, ``sum_r rewards_r edges_r - penalties_r mass_r^2``: edges (ordered pairs) and mass inside cluster r.

    At given rates the likelihood of the block model is one, with rewards ``log(w_r / w_0)``, penalties ``w_r - w_0`` and the
    degrees as masses. Modularity is another (1, resolution over the sum of degrees, degrees), and so is the constant Potts model
    (1, resolution, ones).
    """

    masses: FloatArray
    rewards: FloatArray
    penalties: FloatArray


def kernighan_lin_pass(A: sp.csr_array, labels: Labels, quality: Quality, patience: int) -> tuple[Labels, float]:
    """The best labels on a way along which every node moves at most once, and what they gain; `labels` stay unchanged.

    The pass ends after `patience` moves without a new highest quality.
    """
    found, gain = _kernighan_lin(A.indptr, A.indices, A.data, labels, quality, patience)
    return found, float(gain)


def greedy_sweep(A: sp.csr_array, labels: Labels, quality: Quality) -> tuple[Labels, int]:
    """Labels after each node in turn went where the quality is highest, and how many moved; `labels` stay unchanged."""
    labels = labels.copy()
    return labels, int(_sweep(A.indptr, A.indices, A.data, labels, quality))


@compile_with(error_model="numpy", nogil=True, inline="always")
def _gain(reward: float, penalty: float, links: float, loop: float, mass: float, others: float) -> float:
    """What a cluster gains by a node with these links to it; `others` is the mass of its other nodes."""
    return reward * (2.0 * links + loop) - penalty * mass * (2.0 * others + mass)


@compile_with(error_model="numpy", nogil=True)
def _best_move(
    links: FloatArray,
    loops: FloatArray,
    inside: FloatArray,
    sizes: Labels,
    fixed: NDArray[np.bool_],
    labels: Labels,
    quality: Quality,
) -> tuple[float, int, int]:
    """Gain, node and target of the best move of a node that is not fixed; node -1 if there is none."""
    masses, rewards, penalties = quality
    gain, node, target = -np.inf, -1, -1
    for i in range(len(labels)):
        a, x = labels[i], masses[i]
        if fixed[i] or sizes[a] == 1:
            continue
        lost = _gain(rewards[a], penalties[a], links[i, a], loops[i], x, inside[a] - x)
        for b in range(len(rewards)):
            if b != a:
                change = _gain(rewards[b], penalties[b], links[i, b], loops[i], x, inside[b]) - lost
                if change > gain:
                    gain, node, target = change, i, b
    return gain, node, target


@compile_with(error_model="numpy", nogil=True)
def _kernighan_lin(
    indptr: Labels, indices: Labels, data: FloatArray, labels: Labels, quality: Quality, patience: int
) -> tuple[Labels, float]:
    n, k = len(labels), len(quality.rewards)
    links, loops, inside, sizes = np.zeros((n, k)), np.zeros(n), np.zeros(k), np.zeros(k, np.int64)
    current, best, moved = labels.copy(), labels.copy(), np.zeros(n, np.bool_)
    for i in range(n):
        inside[current[i]] += quality.masses[i]
        sizes[current[i]] += 1
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] == i:
                loops[i] += data[p]
            else:
                links[i, current[indices[p]]] += data[p]
    total, highest, idle = 0.0, 0.0, 0
    while idle < patience:
        gain, node, target = _best_move(links, loops, inside, sizes, moved, current, quality)
        if node < 0:
            break
        a = current[node]
        current[node], moved[node], total = target, True, total + gain
        inside[a] -= quality.masses[node]
        inside[target] += quality.masses[node]
        sizes[a] -= 1
        sizes[target] += 1
        for p in range(indptr[node], indptr[node + 1]):
            if indices[p] != node:
                links[indices[p], a] -= data[p]
                links[indices[p], target] += data[p]
        idle += 1
        if total > highest + 1e-9 * abs(highest) + 1e-12:
            highest, idle = total, 0
            best[:] = current
    return best, highest


@compile_with(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _sweep(indptr: Labels, indices: Labels, data: FloatArray, labels: Labels, quality: Quality) -> int:
    masses, rewards, penalties = quality
    n, k = len(labels), len(rewards)
    links, inside, sizes = np.zeros(k), np.zeros(k), np.zeros(k, np.int64)
    for i in range(n):
        inside[labels[i]] += masses[i]
        sizes[labels[i]] += 1
    moved = 0
    for i in range(n):
        a, x = labels[i], masses[i]
        if sizes[a] == 1 or x == 0.0:
            continue
        links[:] = 0.0
        loop = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] == i:
                loop += data[p]
            else:
                links[labels[indices[p]]] += data[p]
        lost = _gain(rewards[a], penalties[a], links[a], loop, x, inside[a] - x)
        gain, target = 1e-9 * (abs(lost) + 1e-300), a
        for b in range(k):
            if b != a:
                change = _gain(rewards[b], penalties[b], links[b], loop, x, inside[b]) - lost
                if change > gain:
                    gain, target = change, b
        if target != a:
            labels[i] = target
            inside[a] -= x
            inside[target] += x
            sizes[a] -= 1
            sizes[target] += 1
            moved += 1
    return moved
