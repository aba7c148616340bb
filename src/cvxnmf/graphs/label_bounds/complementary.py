"""Cuts that a given partition satisfies with equality, weighted until they prove that it is optimal.

If a partition solves the linear program with cuts, there are multipliers ``m >= 0`` of cuts without slack at the partition for
which every reduced weight ``R = L + sum m bb'`` has the sign of its pair: ``R_ij >= 0`` together, ``R_ij <= 0`` apart. The bound
is then the quality of the partition; in general it exceeds it by the sum of what is violated. Multipliers are looked for by
coordinate descent on

    minimise  sum_{i<j} max(0, margin - s_ij R_ij)^2 / 2   over m >= 0,     s = 1 together, -1 apart,

one multiplier after the other, which needs no factorisation, with momentum. The violations v make a direction ``D = -s v`` in
which co-memberships would gain, and cuts that it violates are added. The margin lets it end after finitely many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxnmf.certificates.label_cuts import Cuts
from cvxnmf.certificates.pair_objectives import Integers
from cvxnmf.graphs.label_bounds import separation
from cvxnmf.graphs.label_bounds.budget import Budget
from cvxnmf.graphs.label_bounds.separation import cut_rows, join_cuts, make_cuts, no_cuts
from cvxnmf.graphs.multilevel import Labels
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

#: Triangles, stars and 2-partitions that are added at once; growths of a 2-partition that are tried.
MOST_TRIANGLES, MOST_STARS, MOST_TWO_PARTITIONS, TRIES = 4000, 1500, 500, 300
#: Sweeps of coordinate descent before every extrapolation, and extrapolations between new cuts.
SWEEPS, EXTRAPOLATIONS = 4, 5
#: By how much an extrapolation may raise what is minimised.
RISE = 1.05
#: Rounds before and between cuts other than triangles, between looks for a better partition, and between looks at the progress.
FIRST_STARS, BETWEEN_STARS, BETWEEN_LOOKS, BETWEEN_CHECKS = 6, 3, 10, 15
#: How far co-memberships are moved along the direction, at most, to look for cuts that it violates.
MOVED = 0.45
#: Units of work within which the excess should fall to a hundredth, and more of them below a share of the quality, since
#: it falls faster near the end.
REACH, LAST_REACH, LAST = 35_000.0, 100_000.0, 1e-3
#: Pairs in cuts, triples of nodes, and pairs of nodes around stars that count as a unit of work.
PAIRS_PER_UNIT, TRIPLES_PER_UNIT, AROUND_PER_UNIT = 5e4, 1e6, 3e3


class ComplementaryCuts:
    """Multipliers of cuts without slack at a partition.

    Parameters
    ----------
    L : ndarray of int, shape (n, n)
        Pair weights.
    labels : ndarray of int, shape (n,)
        The partition.
    n_clusters : int, optional
        The most clusters of a partition.
    budget : Budget
        Work that may be spent.
    """

    def __init__(self, L: Integers, labels: Labels, n_clusters: int | None, budget: Budget) -> None:
        self.n_clusters, self.budget, self.n = n_clusters, budget, len(L)
        positive = L[np.triu(L, 1) > 0]
        self.unit = float(np.median(positive)) if len(positive) else 1.0
        self.L = np.triu(L, 1) / self.unit
        self.cuts, self.m = no_cuts(), np.zeros(0)
        self._aim(labels)

    def _aim(self, labels: Labels) -> None:
        """Take a partition, keep the cuts without slack at it."""
        self.labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        self.same = self.labels[:, None] == self.labels[None, :]
        self.signs = np.where(self.same, 1.0, -1.0)
        self.margin = np.inf
        kept = self._without_slack(self.cuts)
        self.cuts, self.m = self.cuts.select(kept), self.m[kept]
        self._make_rows()

    def _without_slack(self, cuts: Cuts) -> Any:
        i, j, coefficients, counts = cut_rows(cuts)
        if not len(counts):
            return np.zeros(0, dtype=bool)
        activities = np.add.reduceat(coefficients * self.same[i, j], np.concatenate([[0], np.cumsum(counts)[:-1]]))
        return activities == cuts.right_sides(self.n_clusters)

    def _make_rows(self) -> None:
        """The pairs of all cuts, and the reduced weights."""
        i, j, coefficients, counts = cut_rows(self.cuts)
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.pairs, self.coefficients = i * self.n + j, coefficients.astype(np.float64)
        taken = np.bincount(self.pairs, self.coefficients * np.repeat(self.m, counts), minlength=self.n**2)
        self.R = self.L - taken.reshape(self.n, self.n)

    def run(self, slack: float, improve: Callable[[Labels], Labels], report: Callable[[float], object]) -> None:
        """Descend until the bound exceeds the partition by at most the slack, or the budget or hope is spent.

        Partitions near by are handed to `improve`, which returns the best one known; `report` is told by how much the bound
        exceeds the partition.
        """
        least, checked = np.inf, (np.inf, self.budget.spent)
        for count in range(1, 10**6):
            excess = self._excess()
            least = min(least, excess)
            report(excess * self.unit)
            if excess * self.unit <= slack or self.budget.exhausted:
                return
            if count % BETWEEN_CHECKS == 0:
                if not self._is_hopeful(least, *checked):
                    return
                checked = least, self.budget.spent
            if count % BETWEEN_LOOKS == 0:
                self._look_near(improve)
            self._cut(count)
            self._descend()

    def _excess(self) -> float:
        """The sum of what pairs miss of the sign they should have; the margin follows its mean."""
        missed = np.maximum(0.0, -self.signs * self.R)
        excess = float(missed.sum())
        self.margin = min(self.margin, excess / max(1, int(np.count_nonzero(missed))))
        return excess

    def _is_hopeful(self, excess: float, before: float, spent: float) -> bool:
        """Whether a hundredth of the excess is within reach at the pace since the last look."""
        if not np.isfinite(before):
            return True
        reach = LAST_REACH if excess < LAST * abs(float(self.L[self.same].sum())) else REACH
        return bool(np.log(before / excess) * reach >= np.log(100.0) * (self.budget.spent - spent))

    def _direction(self) -> tuple[FloatArray, float]:
        """The direction of the violations, and its largest entry."""
        V = np.triu(np.maximum(0.0, self.margin - self.signs * self.R), 1)
        D = -self.signs * V
        return D + D.T, float(V.max(initial=0.0)) or 1.0

    def _look_near(self, improve: Callable[[Labels], Labels]) -> None:
        """Offer a partition in the direction of the violations, and aim at a better one if there is one now."""
        D, largest = self._direction()
        near = connected_components(sp.csr_array(self.same + D / largest > 0.5), directed=False)[1]
        best = improve(near.astype(np.int64))
        if not np.array_equal(best[:, None] == best[None, :], self.same):
            self._aim(best)
            self._excess()

    def _cut(self, count: int) -> None:
        """Add cuts that the direction of the violations violates, and forget those without multiplier."""
        D, largest = self._direction()
        order = np.argsort(self.labels, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(self.labels))])
        amounts, nodes = _triangles(D, self.labels, first, order)
        chosen = np.argsort(-amounts, kind="stable")[:MOST_TRIANGLES]
        found = [make_cuts(nodes[chosen].ravel(), np.tile(np.array([1, -1, -1]), len(chosen)), np.full(len(chosen), 3))]
        self.budget.spend(1.0 + self.n * float(np.sum(np.diff(first) ** 2)) / TRIPLES_PER_UNIT)
        if count >= FIRST_STARS and count % BETWEEN_STARS == 0:
            X = np.clip(self.same + MOVED / largest * D, 0.0, 1.0)
            np.fill_diagonal(X, 1.0)
            found.append(separation.few_stars(X, MOST_STARS, count, (0.02, 0.98), 0.01))
            found.append(separation.two_partitions(X, MOST_TWO_PARTITIONS, TRIES, count))
            self.budget.spend(self.n**2 / AROUND_PER_UNIT)
        found = [cuts.select(self._without_slack(cuts)) for cuts in found]
        kept = self.m > 0
        self.cuts = join_cuts([self.cuts.select(kept), *found])
        self.m = np.concatenate([self.m[kept], np.zeros(len(self.cuts.multipliers) - int(kept.sum()))])
        self._make_rows()

    def _descend(self) -> None:
        """Sweeps with Nesterov's momentum, which starts anew where it would lead uphill."""
        rows = self.starts, self.pairs, self.coefficients
        before, pace = (self.m.copy(), self.R.copy()), 1.0
        for _ in range(EXTRAPOLATIONS):
            _sweep(self.R.ravel(), self.signs.ravel(), self.margin, self.m, *rows, SWEEPS)
            faster = (1.0 + np.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
            here = self.m, self.R
            self.m, self.R = _extrapolate(*here, *before, (pace - 1.0) / faster, *rows)
            before, pace = here, faster
            if _loss(self.R, self.signs, self.margin) > RISE * _loss(here[1], self.signs, self.margin):
                self.m, self.R, pace = here[0].copy(), here[1].copy(), 1.0
        self.budget.spend(SWEEPS * EXTRAPOLATIONS * len(self.pairs) / PAIRS_PER_UNIT)

    def weighted(self, grain: int) -> Cuts:
        """The cuts with their multipliers in whole numbers of a grain."""
        whole = np.rint(self.m * self.unit * grain).astype(np.int64)
        return self.cuts._replace(multipliers=whole).select(whole > 0)


@compile_with(nogil=True)
def _triangles(D: Any, labels: Any, first: Any, order: Any) -> Any:
    """For every pair (i, k) the centre j in one of their clusters with the largest ``D_ij + D_jk - D_ik``, if positive."""
    n = len(D)
    amounts, nodes, count = np.empty(n * (n - 1) // 2), np.empty((n * (n - 1) // 2, 3), np.int64), 0
    for i in range(n):
        for k in range(i + 1, n):
            best, centre = D[i, k] + 1e-12, -1
            for side in range(1 if labels[i] == labels[k] else 2):
                cluster = labels[k] if side else labels[i]
                for q in range(first[cluster], first[cluster + 1]):
                    j = order[q]
                    amount = D[i, j] + D[k, j]
                    if amount > best and j != i and j != k:
                        best, centre = amount, j
            if centre >= 0:
                amounts[count] = best - D[i, k]
                nodes[count, 0], nodes[count, 1], nodes[count, 2] = centre, i, k
                count += 1
    return amounts[:count], nodes[:count]


@compile_with(nogil=True, error_model="numpy")
def _sweep(R: Any, signs: Any, margin: float, m: Any, starts: Any, pairs: Any, coefficients: Any, sweeps: int) -> None:
    """Newton steps on one multiplier after another, for the pairs that are violated when its turn comes."""
    for _ in range(sweeps):
        for t in range(len(m)):
            slope, curvature = 0.0, 0.0
            for q in range(starts[t], starts[t + 1]):
                p = pairs[q]
                violation = margin - signs[p] * R[p]
                if violation > 0.0:
                    slope += violation * signs[p] * coefficients[q]
                    curvature += coefficients[q] * coefficients[q]
            if slope == 0.0:
                continue
            step = max(-slope / curvature, -m[t])
            if step != 0.0:
                m[t] += step
                for q in range(starts[t], starts[t + 1]):
                    R[pairs[q]] -= coefficients[q] * step


@compile_with(nogil=True)
def _extrapolate(m: Any, R: Any, m_before: Any, R_before: Any, share: float, starts: Any, pairs: Any, coefficients: Any) -> Any:
    """Multipliers and reduced weights further along the last change, multipliers not below 0."""
    further, R_further = m + share * (m - m_before), R + share * (R - R_before)
    flat = R_further.ravel()
    for t in range(len(m)):
        if further[t] < 0.0:
            for q in range(starts[t], starts[t + 1]):
                flat[pairs[q]] += coefficients[q] * further[t]
            further[t] = 0.0
    return further, R_further


@compile_with(nogil=True)
def _loss(R: Any, signs: Any, margin: float) -> float:
    """The sum of squared violations."""
    total = 0.0
    for i in range(len(R)):
        for j in range(i + 1, len(R)):
            violation = max(0.0, margin - signs[i, j] * R[i, j])
            total += violation * violation
    return total
