"""Upper bounds for partitions from cuts with multipliers, by cases if need be: sums of whole numbers and nothing else.

A partition whose clusters have the indicators ``z_c`` satisfies for every vector b of whole numbers

    sum_c (b'z_c)^2 >= r(b),

the least sum of squares of (at most k) whole numbers that add up to ``sum b``. With ``x_ij = 1`` for nodes in one cluster, that
is

    -sum_{i<j} b_i b_j x_ij <= (sum b^2 - r(b)) / 2:

``b = (1, -1, -1)`` gives triangles, ``(1, -1, ..., -1)`` stars, more signs 2-partitions, and k + 1 ones that two of k + 1 nodes
share one of k clusters. Multipliers ``m >= 0`` of such cuts turn pair weights L into ``R = L + sum m bb'``, and every pair that
is left free contributes at most ``max(R_ij, 0)``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.certificates.pair_objectives import Integers, PairObjective, exact_sum
from cvxnmf.certificates.statement import CertificateError

#: Sums of multipliers and pair weights stay below this, so that floating-point numbers hold them exactly.
LARGEST_EXACT = 2**52
#: The case of cuts that are used in all of them.
EVERY_CASE = -1


class Cuts(NamedTuple):
    """Witness of a label bound: cuts with their multipliers.

    Attributes
    ----------
    starts : ndarray of int, shape (t + 1,)
        Cut c has the nodes ``nodes[starts[c]:starts[c + 1]]``.
    nodes, signs : ndarray of int
        Its support, and the entries of b there.
    multipliers : ndarray of int, shape (t,)
        At least 0, in units of a pair weight over the grain.
    cases : ndarray of int, shape (t,)
        The case that each cut is used in, or -1 if that is every case.
    """

    starts: Integers
    nodes: Integers
    signs: Integers
    multipliers: Integers
    cases: Integers

    def select(self, chosen: NDArray[np.bool_]) -> Cuts:
        """Some of the cuts of a label bound, with their multipliers and cases."""
        lengths = np.diff(self.starts)
        inside = np.repeat(chosen, lengths)
        starts = np.concatenate([[0], np.cumsum(lengths[chosen])])
        return Cuts(starts, self.nodes[inside], self.signs[inside], self.multipliers[chosen], self.cases[chosen])

    def right_sides(self, n_clusters: int | None) -> Integers:
        """Right sides ``(sum b^2 - r(b)) / 2`` of all cuts."""
        sums = _sums(self.signs, self.starts)
        squares = _sums(self.signs**2, self.starts)
        return (squares - least_squares(sums, n_clusters)) // 2

    def total_side(self, n_clusters: int | None) -> int:
        """Right sides of the cuts, weighted with the multipliers and summed."""
        return sum(m * side for m, side in zip(self.multipliers.tolist(), self.right_sides(n_clusters).tolist(), strict=True))

    def pairs(self) -> tuple[Integers, Integers, Integers]:
        """The two nodes of every pair in every cut, and how the cut changes R there: ``m b_i b_j``."""
        parts = []
        lengths = np.diff(self.starts)
        for length in np.unique(lengths):
            cuts = np.flatnonzero(lengths == length)
            first, second = np.triu_indices(length, 1)
            at = self.starts[cuts][:, None]
            i, j = at + first, at + second
            change = self.multipliers[cuts][:, None] * self.signs[i] * self.signs[j]
            parts.append(np.stack([self.nodes[i].ravel(), self.nodes[j].ravel(), change.ravel()]))
        a, b, change = np.concatenate(parts, axis=1) if parts else np.zeros((3, 0), dtype=np.int64)
        return np.minimum(a, b), np.maximum(a, b), change


def _sums(values: Integers, starts: Integers) -> Integers:
    """Sums of values over every cut, consecutive pieces of which none is empty."""
    return np.asarray(np.add.reduceat(values, starts[:-1]))


def least_squares(sums: Integers, n_clusters: int | None) -> Integers:
    """Least sum of squares of whole numbers that add up to each of `sums` of cuts; at most `n_clusters` of them, if given."""
    total = np.abs(sums)
    if n_clusters is None:
        return total
    each, rest = np.divmod(total, n_clusters)
    return np.asarray(n_clusters * each**2 + rest * (2 * each + 1))


class Branch(NamedTuple):
    """Branch on a pair of nodes, and what follows if they are together or apart: a branch by number, or case c as ``-1 - c``."""

    i: int
    j: int
    together: int
    apart: int


def bound_by_cases(objective: PairObjective, cuts: Cuts, branches: list[Branch], grain: int, n_clusters: int | None) -> Fraction:
    """The label bound by cuts and cases: the highest of all cases, on the sum of L over ordered pairs in one cluster."""
    bounds = [
        case_bound(objective, cuts.select((cuts.cases == case) | (cuts.cases == EVERY_CASE)), fixed, grain, n_clusters)
        for case, fixed in enumerate_cases(branches, objective.n)
    ]
    return exact_sum(objective.diagonal()) + 2 * max(bounds)


def enumerate_cases(branches: list[Branch], n: int) -> list[tuple[int, dict[tuple[int, int], bool]]]:
    """Every case of the branches, with the pairs together or apart in it; a tree that leaves something out is refused."""
    found: list[tuple[int, dict[tuple[int, int], bool]]] = []
    open_ones: list[tuple[int, dict[tuple[int, int], bool]]] = [(0 if branches else -1, {})]
    seen: set[int] = set()
    while open_ones:
        place, fixed = open_ones.pop()
        if place in seen or not -len(branches) - 1 <= place < len(branches):
            raise CertificateError("The cases of the certificate do not form a tree.")
        seen.add(place)
        if place < 0:
            found.append((-1 - place, fixed))
            continue
        branch = branches[place]
        pair = min(branch.i, branch.j), max(branch.i, branch.j)
        if not 0 <= pair[0] < pair[1] < n or pair in fixed:
            raise CertificateError("The cases of the certificate branch on a pair of nodes that does not exist or is decided.")
        open_ones += [(branch.apart, {**fixed, pair: False}), (branch.together, {**fixed, pair: True})]
    if len(seen) != 2 * len(branches) + 1:
        raise CertificateError("The cases of the certificate do not form a tree.")
    return found


def case_bound(
    objective: PairObjective, cuts: Cuts, fixed: dict[tuple[int, int], bool], grain: int, n_clusters: int | None
) -> Fraction:
    """Label bound of one case by cuts: sum of L over unordered pairs in one cluster, some pairs being together or apart."""
    n = objective.n
    i, j, change = cuts.pairs()
    decided = np.array([a * n + b for a, b in fixed], dtype=np.int64)
    keys, place = np.unique(np.concatenate([i * n + j, decided]), return_inverse=True)
    added = np.zeros(len(keys), dtype=np.int64)
    np.add.at(added, place[: len(i)], change)
    weights = objective.pairs(keys // n, keys % n)
    reduced = grain * weights + added
    counted = np.maximum(reduced, 0)
    together = np.fromiter(fixed.values(), dtype=bool, count=len(fixed))
    counted[place[len(i) :]] = np.where(together, reduced[place[len(i) :]], 0)
    elsewhere = positive_pairs(objective) - exact_sum(np.maximum(weights, 0))
    return Fraction(grain * elsewhere + exact_sum(counted) + cuts.total_side(n_clusters), grain)


def positive_pairs(objective: PairObjective) -> int:
    """Sum of the positive L over unordered pairs of different nodes, the bound without any cut."""
    apart = objective.rows < objective.columns
    return exact_sum(np.maximum(objective.edges()[apart], 0))


def check_cuts(cuts: Cuts, objective: PairObjective, grain: int, cases: int) -> None:
    """Refuse cuts with wrong nodes, signs or multipliers, and numbers that sums of 64 bits could not hold."""
    lengths = np.diff(cuts.starts)
    consistent = (
        len(cuts.starts) > 0
        and cuts.starts[0] == 0
        and cuts.starts[-1] == len(cuts.nodes) == len(cuts.signs)
        and len(lengths) == len(cuts.multipliers) == len(cuts.cases)
        and bool(np.all(lengths >= 2))
    )
    if not consistent:
        raise CertificateError("The cuts of the certificate have wrong shapes.")
    if not (_within(cuts.nodes, 0, objective.n - 1) and _within(cuts.cases, EVERY_CASE, cases - 1) and np.all(cuts.signs != 0)):
        raise CertificateError("The cuts of the certificate name nodes or cases that do not exist.")
    members = np.repeat(np.arange(len(lengths)), lengths) * objective.n + cuts.nodes
    if len(np.unique(members)) < len(members):
        raise CertificateError("A cut of the certificate names a node twice.")
    if not (_within(cuts.multipliers, 0, LARGEST_EXACT) and _within(cuts.signs, -16, 16)):
        raise CertificateError("The cuts of the certificate have multipliers below 0 or too large ones.")
    largest = int(np.abs(cuts.signs).max(initial=0)) ** 2
    if exact_sum(cuts.multipliers) * largest + grain * objective.largest_pair() >= 2**62:
        raise CertificateError("The numbers of the certificate are too large.")


def _within(values: Integers, least: int, largest: int) -> bool:
    return bool(np.all((values >= least) & (values <= largest)))
