"""Partitions of high quality for a quality that is linear in co-membership: ascents from several starts, recombined.

Nothing is drawn at random: nodes are first put into an order that does not depend on their numbers, and a few visiting orders and
resolutions replace seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.pair_objectives import PairObjective
from cvxnmf.graphs.merges import merge_clusters
from cvxnmf.graphs.moves import Labels, Level, aggregate, ascend, cluster_sums, level_of, move_nodes, renumber, visiting_order
from cvxnmf.graphs.order import canonical_order, in_order
from cvxnmf.graphs.score import Score
from cvxnmf.linalg.arrays import FloatArray

__all__ = ["Labels", "best_labels", "improved_labels", "labels_at_resolution"]

#: Gains below this share of the total weight are rounding.
NEGLIGIBLE = 1e-14
#: Multiples of the resolution that starts are looked for at, before the resolution itself.
RESOLUTIONS = (1.0, 1.4, 0.7, 1.2, 0.85, 2.0)
#: Times that moves, refinement and aggregation are repeated from the nodes up, at most.
ROUNDS = 6
#: Times that the best partition is recombined with every other one.
PASSES = 2


class Ascent(NamedTuple):
    """A graph and a score to raise on it, with the gain below which nothing moves."""

    level: Level
    score: Score
    logs: FloatArray
    least: float

    def __call__(self, labels: Labels, rounds: int = 1, falling: bool = False) -> Labels:
        """The labels that an ascent from these ends with."""
        return np.asarray(ascend(self.level, self.score, self.logs, labels.copy(), self.least, falling, rounds))

    def alone(self) -> Labels:
        """Every node a cluster of its own."""
        return np.arange(len(self.level.masses))

    def on_common_parts(self, first: Labels, second: Labels, rounds: int) -> Labels:
        """An ascent that begins with the parts that two partitions have in common as nodes."""
        common = common_parts(first, second)
        smaller = self._replace(level=aggregate(self.level, common))
        return np.asarray(smaller(smaller.alone(), rounds)[common])


def common_parts(first: Labels, second: Labels) -> Labels:
    """The clusters that nodes share in both of two partitions, numbered in the order of their first nodes."""
    return np.asarray(renumber(np.unique(first * (len(first) + 1) + second, return_inverse=True)[1].astype(np.int64)))


def recombine(ascent: Ascent, found: list[Labels], value: Callable[[Labels], float], passes: int, rounds: int) -> Labels:
    """The best of several partitions, improved by what it has in common with each of the others; the first is the best."""
    best, highest = found[0], value(found[0])
    for other in found[1:] * passes:
        if _same(best, other):
            continue
        labels = ascent(ascent.on_common_parts(best, other, rounds), rounds=2)
        if (reached := value(labels)) > highest + ascent.least:
            best, highest = labels, reached
    return best


def _same(first: Labels, second: Labels) -> bool:
    return len(np.unique(first * (len(first) + 1) + second)) == len(np.unique(first)) == len(np.unique(second))


def best_labels(objective: PairObjective, starts: tuple[Any, ...] = (), n_clusters: int | None = None) -> Labels:
    """Labels of a partition of high quality, the same whatever the order of the nodes.

    Parameters
    ----------
    objective : PairObjective
        What is raised.
    starts : tuple of ndarray of int, shape (n,)
        Partitions to start from, besides single nodes.
    n_clusters : int, optional
        The most clusters there may be.
    """
    W, sizes = _pair_matrix(objective)
    order = canonical_order(W, sizes)
    raising = _pair_ascent(in_order(W, order), sizes[order], objective)
    found = [raising(np.ascontiguousarray(start, dtype=np.int64)[order], ROUNDS) for start in starts]
    found += [raising(_start(raising, share, falling), ROUNDS, falling) for share in RESOLUTIONS for falling in (False, True)]
    found.sort(key=lambda labels: -_pair_sum(raising, labels))
    best = recombine(raising, found, lambda labels: _pair_sum(raising, labels), PASSES, ROUNDS)
    labels = np.empty_like(best)
    labels[order] = best if n_clusters is None else _at_most(raising, best, n_clusters)
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)


def improved_labels(objective: PairObjective, labels: Labels, n_clusters: int | None = None) -> Labels:
    """The partition that moves, refinement and aggregation make of one, merged down to `n_clusters` if it has more."""
    raising = _pair_ascent(*_pair_matrix(objective), objective)
    better = raising(np.ascontiguousarray(labels, dtype=np.int64), rounds=2)
    return better if n_clusters is None else _at_most(raising, better, n_clusters)


def labels_at_resolution(objective: PairObjective, share: float) -> Labels:
    """The partition that one ascent from single nodes finds at a multiple of the resolution."""
    return _start(_pair_ascent(*_pair_matrix(objective), objective), share, falling=False)


def _pair_matrix(objective: PairObjective) -> tuple[sp.csr_array, FloatArray]:
    """Weights of pairs of different nodes, and sizes, in a unit in which the largest pair is about 1."""
    off = objective.rows < objective.columns
    i, j, w = objective.rows[off], objective.columns[off], objective.alpha * objective.weights[off].astype(np.float64)
    unit = _unit(objective)
    entries = (np.tile(w / unit, 2), (np.concatenate([i, j]), np.concatenate([j, i])))
    return sp.csr_array(sp.coo_array(entries, shape=(objective.n, objective.n))), objective.sizes.astype(np.float64)


def _unit(objective: PairObjective) -> float:
    off = objective.rows < objective.columns
    weights = objective.alpha * objective.weights[off].astype(np.float64)
    return max(float(np.abs(weights).max(initial=0.0)), float(objective.beta) * float(objective.sizes.max()) ** 2) or 1.0


def _pair_ascent(W: sp.csr_array, sizes: FloatArray, objective: PairObjective) -> Ascent:
    least = NEGLIGIBLE * (float(np.abs(W.data).sum()) + 1.0)
    return Ascent(level_of(W, sizes), Score(1.0, float(objective.beta) / _unit(objective)), np.zeros(1), least)


def _pair_sum(raising: Ascent, labels: Labels) -> float:
    """Sum of ``w_ij - beta p_i p_j`` over ordered pairs of different nodes in one cluster, and of ``-beta p_i^2``."""
    sums = cluster_sums(raising.level, labels, int(labels.max()) + 1)
    return float(sums.edges.sum() - raising.score.penalty * np.sum(sums.masses**2))


def _start(raising: Ascent, share: float, falling: bool) -> Labels:
    """Single nodes, or the outcome at another resolution."""
    if share == 1.0:
        return raising.alone()
    other = raising._replace(score=raising.score._replace(penalty=raising.score.penalty * share))
    return other(raising.alone(), 1, falling)


def _at_most(raising: Ascent, labels: Labels, n_clusters: int) -> Labels:
    """Merge clusters where it costs least until there are few enough, and move single nodes between them."""
    level, score, logs, least = raising
    merged = merge_clusters(level, score, logs, labels, n_clusters)
    return np.asarray(move_nodes(level, score, logs, merged, visiting_order(level, False), least, n_clusters, False))
