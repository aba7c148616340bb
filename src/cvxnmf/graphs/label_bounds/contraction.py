"""Nodes that every optimal partition has together with another one, such as leaves: a smaller problem with the same optimum.

If the weight of a pair exceeds the sum of the absolute weights of all other pairs of one of its nodes,

    L_lu > sum_{j != l, u} |L_lj|,

then l moves to the cluster of u from any other one with a gain. The triangles of (l, u, j) with the multipliers ``|L_lj|`` prove
it: they turn every ``L_lj`` into 0, ``L_uj`` into ``L_uj + L_lj`` and leave a positive ``L_lu``, so that cuts of the smaller
problem and these prove the same bound for the whole one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.label_cuts import EVERY_CASE, Cuts
from cvxnmf.certificates.pair_objectives import Integers, PairObjective
from cvxnmf.graphs.label_bounds.separation import join_cuts, make_triangles
from cvxnmf.graphs.multilevel import Labels


class Merge(NamedTuple):
    """Contraction of a node into another one, and its weights with the nodes that are left then, the two aside.

    `surplus` is what the triangles leave of the weight of the two.
    """

    node: int
    joined: int
    others: Integers
    weights: Integers
    surplus: int


class Contraction:
    """Contraction of a quality of partitions to fewer nodes, and the way back.

    Parameters
    ----------
    objective : PairObjective
        The quality; if it is not one of whole numbers, nothing is joined.

    Attributes
    ----------
    objective : PairObjective
        The same quality on the nodes that are left.
    """

    def __init__(self, objective: PairObjective) -> None:
        self.whole = objective
        self.merges = _merges(objective.dense()) if objective.exact else []
        parents = np.arange(objective.n)
        for merge in reversed(self.merges):
            parents[merge.node] = parents[merge.joined]
        self.left, self.place = np.unique(parents, return_inverse=True)
        self.objective = _aggregate(objective, self.place, len(self.left)) if self.merges else objective

    def shrink(self, labels: Labels) -> Labels:
        """The labels of the nodes that the contraction leaves."""
        return np.ascontiguousarray(labels[self.left])

    def expand(self, labels: Labels) -> Labels:
        """Labels of all nodes from those that the contraction leaves."""
        return np.ascontiguousarray(labels[self.place])

    def expand_cuts(self, cuts: Cuts, grain: int) -> Cuts:
        """Cuts that prove for all nodes what some prove for those that the contraction leaves."""
        triangles = [_triangles(merge, grain) for merge in self.merges]
        return join_cuts([cuts._replace(nodes=self.left[cuts.nodes]), *triangles])

    def expand_diagonal(self, y: Integers, grain: int) -> Integers:
        """The diagonal y of a semidefinite proof for all nodes: both ends of a contraction carry what is left of its weight."""
        everywhere = grain * self.whole.diagonal()
        everywhere[self.left] += y - grain * self.objective.diagonal()
        for merge in self.merges:
            everywhere[[merge.node, merge.joined]] += grain * merge.surplus
        return everywhere

    def expand_pairs(self, N: Integers) -> Integers:
        """Entries above the diagonal of a symmetric matrix of all nodes, 0 where a node was contracted into another."""
        matrix = np.zeros((self.whole.n, self.whole.n), dtype=np.int64)
        i, j = np.triu_indices(len(self.left), 1)
        matrix[self.left[i], self.left[j]] = N
        return matrix[np.triu_indices(self.whole.n, 1)]


def _merges(L: Integers) -> list[Merge]:
    """All contractions, one after the other, until two nodes are left; L is overwritten."""
    np.fill_diagonal(L, 0)
    present, sums, largest = np.ones(len(L), dtype=bool), np.abs(L).sum(axis=1), L.max(axis=1, initial=0)
    merges: list[Merge] = []
    while len(L) - len(merges) > 2 and np.any(ready := present & (2 * largest > sums)):
        node = int(np.argmax(ready))
        joined = int(np.argmax(L[node]))
        present[[node, joined]] = False
        others = np.flatnonzero(present)
        before, added = L[joined, others], L[node, others]
        merges.append(Merge(node, joined, others, added, int(L[node, joined]) - int(np.abs(added).sum())))
        L[joined, others] = L[others, joined] = before + added
        L[node], L[:, node], present[joined] = 0, 0, True
        sums[others] += np.abs(before + added) - np.abs(before) - np.abs(added)
        stale = np.append(others[np.maximum(before, added) == largest[others]], joined)
        largest[others] = np.maximum(largest[others], before + added)
        largest[stale], sums[joined] = L[stale].max(axis=1), int(np.abs(L[joined]).sum())
    return merges


def _triangles(merge: Merge, grain: int) -> Cuts:
    """The triangles of a contraction, for all cases: centred at the node for positive weights, else at the other one."""
    used = merge.weights != 0
    others, weights = merge.others[used], merge.weights[used]
    centres, ends = np.where(weights > 0, merge.node, merge.joined), np.where(weights > 0, merge.joined, merge.node)
    cuts = make_triangles(np.column_stack([centres, ends, others]))
    return cuts._replace(multipliers=grain * np.abs(weights), cases=np.full(len(others), EVERY_CASE))


def _aggregate(objective: PairObjective, place: Integers, count: int) -> PairObjective:
    """The quality of partitions of contracted nodes, summed over those that were joined."""
    i, j = place[objective.rows], place[objective.columns]
    both = np.where((objective.rows != objective.columns) & (i == j), 2, 1) * objective.weights
    W = sp.csr_array(sp.coo_array((both, (np.minimum(i, j), np.maximum(i, j))), shape=(count, count)))
    W.sum_duplicates()
    W.sort_indices()
    upper = W.tocoo()
    sizes = np.zeros(count, dtype=objective.sizes.dtype)
    np.add.at(sizes, place, objective.sizes)
    rows, columns = upper.row.astype(np.int64), upper.col.astype(np.int64)
    return replace(objective, n=count, rows=rows, columns=columns, weights=upper.data, sizes=sizes)
