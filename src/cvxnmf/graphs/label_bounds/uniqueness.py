"""Whether an optimal partition is the only one.

Every optimum keeps nodes together, or apart, if the opposite would cost more than the bound leaves: a set of nodes together if
every cut through it has reduced weights of a larger sum, two such sets apart if those between them have, or two nodes by a search
with the pair decided the other way. If that holds for pairs that span every cluster and for one pair between any two clusters,
there is no other optimum.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from cvxnmf.certificates.pair_objectives import PairObjective
from cvxnmf.graphs.label_bounds.branching import Case, Search
from cvxnmf.graphs.label_bounds.budget import Budget
from cvxnmf.graphs.multilevel import Labels
from cvxnmf.linalg.compiled import compile_with

#: Units of work for the searches, and before them for the semidefinite matrix, for an effort of 1.
UNITS, FURTHER = 20_000.0, 4_000.0
#: A share of the least difference of two qualities that covers the rounding of a semidefinite matrix.
ROUNDING = 0.05


class Uniqueness(NamedTuple):
    """Uniqueness of an optimal partition: whether several are, None if that was not decided, and another one where there is."""

    several: bool | None
    other: Labels | None = None


def decide_uniqueness(
    objective: PairObjective, optimum: Labels, n_clusters: int | None, search: Search | None, effort: float = 1.0
) -> Uniqueness:
    """Decide whether an optimal partition is unique; `search` is the one that proved it, and is used up."""
    if n_clusters == 1 or objective.n == 1:
        return Uniqueness(False)
    optimum = np.unique(optimum, return_inverse=True)[1].astype(np.int64)
    other = tied_labels(objective, optimum, n_clusters)
    if other is not None:
        return Uniqueness(True, other)
    if not objective.exact or search is None:
        return Uniqueness(None)
    found = _Exclusion(search, search.contraction.shrink(optimum), effort).run()
    return found if found.other is None else found._replace(other=search.contraction.expand(found.other))


class _Exclusion:
    """A search for an optimal partition other than a given one."""

    def __init__(self, search: Search, optimum: Labels, effort: float) -> None:
        self.search, self.optimum = search, optimum
        search.budget = Budget(effort * UNITS)
        self.quality = search.pair_sum(optimum)
        search.labels, search.excluded, search.value = optimum, optimum, self.quality - search.contraction.whole.step() // 2
        self._weigh_further(effort)
        weights, excess = _reduced_weights(search, search.first or search.trivial(), self.quality)
        self.weights = np.abs(weights)
        self.sure = _sure_pairs(weights, excess, optimum)

    def _weigh_further(self, effort: float) -> None:
        """Weigh cuts until they prove the optimum although every other partition is preferred a little for every pair."""
        weighing = self.search.weighing
        if weighing is not None:
            least = ROUNDING * self.search.contraction.whole.step()
            weighing.budget = Budget(effort * FURTHER)
            weighing.shift(least / weighing.unit)
            weighing.run(least, lambda labels: weighing.labels, lambda excess: None)
            weighing.shift(-least / weighing.unit)

    def run(self) -> Uniqueness:
        """Decide uniqueness pair after pair; what is proved of one pair is used for the next ones."""
        for together, open_pair in ((True, self._pair_to_part), (False, self._pair_to_join)):
            while (pair := open_pair()) is not None:
                tree = self.search.explore_with(*pair, not together)
                if self.search.value == self.quality:
                    return Uniqueness(True, self.search.labels)
                if not self.search.collect_proof(tree).closed:
                    return Uniqueness(None)
                self.search.decide(*pair, together)
                self.sure[pair] = self.sure[pair[::-1]] = True
        return Uniqueness(False)

    def _pair_to_part(self) -> tuple[int, int] | None:
        """A pair in one cluster that another optimal partition may have apart, as far as is known."""
        together = _same_cluster(self.optimum)
        parts = connected_components(sp.csr_array(self.sure & together), directed=False)[1]
        candidates = together & ~_same_cluster(parts)
        return self._dearest(candidates) if candidates.any() else None

    def _pair_to_join(self) -> tuple[int, int] | None:
        """A pair in two clusters that another optimal partition may have in one."""
        members = np.eye(int(self.optimum.max()) + 1)[self.optimum]
        linked = members.T @ self.sure @ members > 0
        np.fill_diagonal(linked, True)
        if linked.all():
            return None
        a, b = np.argwhere(~linked)[0]
        return self._dearest(np.outer(self.optimum == a, self.optimum == b))

    def _dearest(self, candidates: NDArray[np.bool_]) -> tuple[int, int]:
        i, j = divmod(int(np.argmax(np.where(candidates, self.weights, -1))), len(self.optimum))
        return min(i, j), max(i, j)


def _reduced_weights(search: Search, root: Case, quality: int) -> tuple[Any, float]:
    """Pair weights reduced by all that lowers the bound, in parts of a unit, and the bound's excess over the quality."""
    grain, weighing = search.program.grain, search.weighing
    excess = math.floor((root.bound - quality) * grain)
    if weighing is not None:
        parts, rounding = weighing.unit * grain, ROUNDING * search.contraction.whole.step() * grain
        above = weighing.excess * parts + (search.pair_sum(weighing.labels) - quality) * grain + rounding
        if above < excess:
            return (weighing.R + weighing.R.T) * parts, above
    R = np.zeros_like(search.program.L)
    i, j, change = root.cuts.pairs()
    np.add.at(R, (i, j), change)
    return grain * search.program.L + R + R.T, excess


def _sure_pairs(weights: Any, excess: float, optimum: Labels) -> NDArray[np.bool_]:
    """Pairs that every optimal partition has together, or apart, as this one has them."""
    inside, sure = np.where(_same_cluster(optimum), np.maximum(weights, 0), 0), np.zeros(weights.shape, dtype=bool)
    open_sets, sets = [np.flatnonzero(optimum == cluster) for cluster in np.unique(optimum)], np.zeros(len(optimum), dtype=int)
    while open_sets:
        nodes = open_sets.pop()
        side = small_cut(np.ascontiguousarray(inside[np.ix_(nodes, nodes)], dtype=np.float64), float(excess))
        if side.any():
            open_sets += [nodes[side], nodes[~side]]
        else:
            sets[nodes] = nodes[0]
            sure[np.ix_(nodes, nodes)] = True
    numbers = np.unique(sets, return_inverse=True)[1]
    members = np.eye(int(numbers.max()) + 1)[numbers]
    apart = members.T @ np.where(_same_cluster(optimum), 0.0, np.maximum(-weights, 0)) @ members > excess
    return sure | apart[np.ix_(numbers, numbers)]


@compile_with(nogil=True)
def small_cut(W: Any, limit: float) -> Any:
    """One side of a cut of a graph of at most a limit, all False if there is none (Stoer and Wagner); W is overwritten."""
    count = len(W)
    group, left = np.arange(count), np.arange(count)
    while len(left) > 1:
        joined, last, before = np.zeros(len(left)), 0, 0
        used = np.zeros(len(left), np.bool_)
        for _ in range(len(left)):
            best = -1
            for q in range(len(left)):
                if not used[q] and (best < 0 or joined[q] > joined[best]):
                    best = q
            used[best] = True
            before, last = last, best
            for q in range(len(left)):
                if not used[q]:
                    joined[q] += W[left[best], left[q]]
        a, b = left[before], left[last]
        if joined[last] <= limit:
            return group == b
        for q in range(count):
            W[a, q] += W[b, q]
            W[q, a] = W[a, q]
            if group[q] == b:
                group[q] = a
        left = left[left != b]
    return np.zeros(count, np.bool_)


def _same_cluster(labels: Any) -> NDArray[np.bool_]:
    return np.asarray(labels[:, None] == labels[None, :])


def tied_labels(objective: PairObjective, labels: Labels, n_clusters: int | None) -> Labels | None:
    """Another partition of equal quality: a node moved to another cluster or one of its own, or two clusters merged.

    Labels are numbered from 0, and no cluster is empty.
    """
    if not objective.exact:
        return None
    gains, nodes = move_gains(objective, labels), np.arange(objective.n)
    count = gains.shape[1] - 1
    tied = gains == gains[nodes, labels][:, None]
    tied[nodes, labels] = False
    tied[np.bincount(labels)[labels] == 1, count] = False
    if n_clusters is not None and count >= n_clusters:
        tied[:, count] = False
    other = labels.copy()
    if tied.any():
        node, cluster = np.argwhere(tied)[0]
        other[node] = cluster
        return other
    merged = np.zeros((count, count), dtype=gains.dtype)
    np.add.at(merged, labels, gains[:, :count])
    np.fill_diagonal(merged, 1)
    if np.all(merged != 0):
        return None
    a, b = np.argwhere(merged == 0)[0]
    other[labels == a] = b
    return other


def move_gains(objective: PairObjective, labels: Labels) -> Any:
    """Sums of pair weights between every node and every cluster, itself left out, and a new cluster."""
    count = int(labels.max()) + 1
    off = objective.rows < objective.columns
    i, j, w = objective.rows[off], objective.columns[off], objective.weights[off]
    joined = np.zeros((objective.n, count + 1), dtype=w.dtype)
    np.add.at(joined, (i, labels[j]), w)
    np.add.at(joined, (j, labels[i]), w)
    volumes = np.zeros(count + 1, dtype=objective.sizes.dtype)
    np.add.at(volumes, labels, objective.sizes)
    gains = objective.alpha * joined - objective.beta * objective.sizes[:, None] * volumes[None, :]
    gains[np.arange(objective.n), labels] += objective.beta * objective.sizes**2
    return gains
