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
from cvxnmf.graphs.ascent import aggregate, ascend, climb
from cvxnmf.graphs.merges import merge_clusters
from cvxnmf.graphs.moves import Effort, Labels, Level, cluster_sums, level_of, renumber
from cvxnmf.graphs.order import canonical_order, in_order
from cvxnmf.graphs.score import Score
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.sparse_products import ONE_SHARE_BELOW

__all__ = ["Labels", "best_labels", "improved_labels", "labels_after_dissolving", "labels_at_resolution"]

#: Gains below this share of the total weight are rounding.
NEGLIGIBLE = 1e-14
#: Multiples of the resolution that starts are looked for at, before the resolution itself.
RESOLUTIONS = (1.0, 1.4, 0.7, 1.2, 0.85, 2.0)
#: Ascents to few clusters start from at most so many times more, at a share of the resolution that is halved down to this.
FEW, FINEST = 4, 1e-4
#: They also start from the clusters of the resolution itself if these are not more.
MANY = 500
#: So many starts in a row that lead to one partition are enough.
AGREEING = 4
#: Times that moves, refinement and aggregation are repeated from the nodes up, at most.
ROUNDS = 6
#: Times that the best partition is recombined with every other one.
PASSES = 2
#: A large prime, whose multiples modulo the number of nodes are a sequence of nodes without a pattern.
MULTIPLIER = 2_147_483_647


class Ascent(NamedTuple):
    """A multilevel ascent: graph, score to raise on it, the gain below which nothing moves, perhaps the most clusters, effort."""

    level: Level
    score: Score
    logs: FloatArray
    least: float
    most: int | None = None
    effort: Effort = Effort()

    def __call__(self, labels: Labels, rounds: int = 1, falling: bool = False) -> Labels:
        """The labels that a multilevel ascent from these ends with.

        If there may be so many clusters at most, they never become more than they were, are merged where that costs least, and
        ascend again.
        """
        if self.most is None:
            return self._ascend(labels, rounds, falling, len(labels))
        present = int(labels.max()) + 1
        if present > self.most:
            labels = self._ascend(labels, rounds, falling, present)
            labels = merge_clusters(self.level, self.score, self.logs, labels, self.most)
        return self._ascend(labels, rounds, falling, self.most)

    def _ascend(self, labels: Labels, rounds: int, falling: bool, most: int) -> Labels:
        scored = self.level, self.score, self.logs
        if len(self.level.indices) < ONE_SHARE_BELOW:
            return np.asarray(ascend(*scored, labels, self.least, falling, rounds, most, self.effort))
        for _ in range(rounds):
            before, labels = renumber(labels), climb(*scored, labels, self.least, falling, most, self.effort)
            if np.array_equal(before, labels):
                break
        return labels

    def alone(self) -> Labels:
        """Labels to begin an ascent with: every node a cluster of its own."""
        return np.arange(len(self.level.masses))

    def on_common_parts(self, first: Labels, second: Labels, rounds: int) -> Labels:
        """A multilevel ascent that begins with the parts that two partitions have in common as nodes."""
        common = common_parts(first, second)
        smaller = self._replace(level=aggregate(self.level, common))
        return np.asarray(smaller(smaller.alone(), rounds)[common])


def common_parts(first: Labels, second: Labels) -> Labels:
    """The clusters that nodes share in both of two partitions, numbered in the order of their first nodes."""
    if not np.any(second):
        return np.asarray(renumber(first))
    return np.asarray(renumber(np.unique(first * (len(first) + 1) + second, return_inverse=True)[1].astype(np.int64)))


def recombine(ascent: Ascent, found: list[Labels], value: Callable[[Labels], float], passes: int, rounds: int) -> Labels:
    """The best of several partitions, improved by what it has in common with each of the others; the first is the best."""
    numbered: list[Labels] = [renumber(labels) for labels in found]
    best, *others = {labels.tobytes(): labels for labels in numbered}.values()
    highest, idle = value(best), 0
    for other in others * passes:
        if idle == len(others):  # tried with all of them since it changed
            break
        labels = ascent(ascent.on_common_parts(best, other, rounds), rounds=2)
        idle += 1
        if (reached := value(labels)) > highest + ascent.least:
            best, highest, idle = labels, reached, 0
    return best


def best_labels(
    objective: PairObjective, starts: tuple[Any, ...] = (), n_clusters: int | None = None, from_nodes: bool = True
) -> Labels:
    """Labels of a partition of high quality, the same whatever the order of the nodes.

    Parameters
    ----------
    objective : PairObjective
        What is raised.
    starts : tuple of ndarray of int, shape (n,)
        Partitions to start from.
    n_clusters : int, optional
        The most clusters there may be.
    from_nodes : bool
        Whether to start from single nodes too.
    """
    W, sizes = _pair_matrix(objective)
    order = canonical_order(W, sizes)
    raising = _pair_ascent(in_order(W, order), sizes[order], objective, n_clusters)
    found = [raising(np.ascontiguousarray(start, dtype=np.int64)[order], ROUNDS) for start in starts]
    for share in _shares(raising) if from_nodes else ():
        found += [raising(_start(raising, share, falling), ROUNDS, falling) for falling in (False, True)]
        if len(found) >= AGREEING and len({labels.tobytes() for labels in found[-AGREEING:]}) == 1:
            break
    found.sort(key=lambda labels: -_pair_sum(raising, labels))
    best = recombine(raising, found, lambda labels: _pair_sum(raising, labels), PASSES, ROUNDS)
    labels = np.empty_like(best)
    labels[order] = best
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)


def improved_labels(objective: PairObjective, labels: Labels, n_clusters: int | None = None) -> Labels:
    """The partition that moves, refinement and aggregation make of one, merged down to `n_clusters` if it has more."""
    raising = _pair_ascent(*_pair_matrix(objective), objective, n_clusters)
    return raising(np.ascontiguousarray(labels, dtype=np.int64), rounds=2)


def labels_after_dissolving(objective: PairObjective, labels: Labels, n_clusters: int | None, tries: int) -> Labels:
    """The partition that ascents reach after nodes around one node have left their clusters, again and again.

    All nodes within two steps leave, or every third of them; which node is in the middle is a fixed sequence. What is not worse
    is kept, and what is worse recombined with the best one.
    """
    W, sizes = _pair_matrix(objective)
    order = canonical_order(W, sizes)
    W = in_order(W, order)
    raising = _pair_ascent(W, sizes[order], objective, n_clusters)
    best = np.asarray(renumber(np.ascontiguousarray(labels, dtype=np.int64)[order]))
    highest = _pair_sum(raising, best)
    for attempt in range(tries if W.nnz else 0):
        left = _around(W, attempt * MULTIPLIER % len(best))
        left = left[attempt % 3 :: 3] if attempt % 2 else left
        start = best.copy()
        start[left] = best.max() + 1 + np.arange(len(left))
        found = raising(renumber(start), rounds=2)
        if _pair_sum(raising, found) < highest - raising.least:
            found = raising(raising.on_common_parts(best, found, 2), rounds=2)
        if (reached := _pair_sum(raising, found)) >= highest - raising.least:
            best, highest = np.asarray(renumber(found)), max(reached, highest)
    everywhere = np.empty_like(best)
    everywhere[order] = best
    return everywhere


def _around(W: sp.csr_array, node: int) -> Labels:
    """The nodes within two steps of one, at most half of all, which leave their clusters before an ascent."""
    near = np.append(W.indices[W.indptr[node] : W.indptr[node + 1]], node)
    further = [W.indices[W.indptr[one] : W.indptr[one + 1]] for one in near]
    return np.unique(np.concatenate([near, *further]))[: max(1, W.shape[0] // 2)]


def labels_at_resolution(objective: PairObjective, share: float) -> Labels:
    """The partition that one multilevel ascent from single nodes finds at a multiple of the resolution."""
    return _start(_pair_ascent(*_pair_matrix(objective), objective), share, falling=False)


def _pair_matrix(objective: PairObjective) -> tuple[sp.csr_array, FloatArray]:
    """Weights of pairs for a multilevel ascent of a quality, and sizes, in a unit in which the largest pair is about 1."""
    off = objective.rows < objective.columns
    i, j, w = objective.rows[off], objective.columns[off], objective.alpha * objective.weights[off].astype(np.float64)
    unit = _unit(objective)
    entries = (np.tile(w / unit, 2), (np.concatenate([i, j]), np.concatenate([j, i])))
    return sp.csr_array(sp.coo_array(entries, shape=(objective.n, objective.n))), objective.sizes.astype(np.float64)


def _unit(objective: PairObjective) -> float:
    off = objective.rows < objective.columns
    weights = objective.alpha * objective.weights[off].astype(np.float64)
    return max(float(np.abs(weights).max(initial=0.0)), float(objective.beta) * float(objective.sizes.max()) ** 2) or 1.0


def _pair_ascent(W: sp.csr_array, sizes: FloatArray, objective: PairObjective, most: int | None = None) -> Ascent:
    least = NEGLIGIBLE * (float(np.abs(W.data).sum()) + 1.0)
    return Ascent(level_of(W, sizes), Score(1.0, float(objective.beta) / _unit(objective)), np.zeros(1), least, most)


def _pair_sum(raising: Ascent, labels: Labels) -> float:
    """Quality that an ascent raises: ``w_ij - beta p_i p_j`` over ordered pairs in one cluster, and ``-beta p_i^2``."""
    sums = cluster_sums(raising.level, labels.astype(np.int32), int(labels.max()) + 1)
    return float(sums["edges"].sum() - raising.score.penalty * np.sum(sums["masses"] ** 2))


def _shares(raising: Ascent) -> list[float]:
    """Multiples of the resolution to start ascents at: lower ones for fewer clusters than the resolution itself gives."""
    if raising.most is None:
        return list(RESOLUTIONS)
    counts = {1.0: int(_start(raising, 1.0, falling=False).max()) + 1}
    share = 1.0
    while counts[share] > FEW * raising.most and share > FINEST:
        share /= 2.0
        counts[share] = int(_start(raising, share, falling=False).max()) + 1
    whole = [1.0] if share < 1.0 and counts[1.0] <= MANY else []
    return whole + [share * factor for factor in RESOLUTIONS]


def _start(raising: Ascent, share: float, falling: bool) -> Labels:
    """Start of a multilevel ascent: single nodes, or the outcome at another resolution."""
    if share == 1.0 and raising.most is None:
        return raising.alone()
    other = raising._replace(score=raising.score._replace(penalty=raising.score.penalty * share), most=None)
    return other(raising.alone(), 1, falling)
