"""Cuts that a given partition satisfies with equality, and a semidefinite matrix, weighted until they prove that it is optimal.

If a partition with the indicators Z solves the program with cuts and the semidefinite cone, there are multipliers ``m >= 0`` of
cuts without slack at the partition and a positive semidefinite T with ``T Z = 0`` for which every reduced weight
``R = L + T + sum m bb'`` has the sign of its pair: ``R_ij >= 0`` together, ``R_ij <= 0`` apart. The bound is then the quality of
the partition; in general it exceeds it by the sum of what is violated. They are looked for by descent on

    minimise  sum_{i<j} max(0, margin - s_ij R_ij)^2 / 2   over m >= 0, T,     s = 1 together, -1 apart,

coordinate by coordinate over m, by projected gradients over T, both with momentum. The violations v make a direction ``D = -s v``
in which co-memberships would gain, and cuts that it violates are added. The margin lets it end after finitely many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxnmf.certificates.label_cuts import Cuts
from cvxnmf.certificates.pair_objectives import Integers
from cvxnmf.graphs.label_bounds import separation
from cvxnmf.graphs.label_bounds.budget import Budget
from cvxnmf.graphs.label_bounds.separation import Rows, cut_rows, join_cuts, no_cuts
from cvxnmf.graphs.multilevel import Labels
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.eigen import eigenpairs
from cvxnmf.linalg.momentum import Momentum

#: Triangles, stars and 2-partitions that are added at once; growths of a 2-partition that are tried.
MOST_TRIANGLES, MOST_STARS, MOST_TWO_PARTITIONS, TRIES = 4000, 1500, 500, 300
#: Steps between new cuts: each one sweep of coordinate descent, every second one after a step on the matrix.
STEPS = 8
#: Rounds before cuts other than triangles, between looks for a better partition, and between looks at the progress.
FIRST_STARS, BETWEEN_LOOKS, BETWEEN_CHECKS = 3, 10, 15
#: Below this excess the margin is so many times the mean of what is missed, which leads to an end in fewer steps.
END, NEAR_END = 0.05, 3.0
#: How far co-memberships are moved along the direction, at most, to look for cuts that it violates.
MOVED = 0.45
#: Pairs in cuts, triples of nodes, pairs of nodes around stars, and cubes of nodes in decompositions that count as a unit.
PAIRS_PER_UNIT, TRIPLES_PER_UNIT, AROUND_PER_UNIT, CUBES_PER_UNIT = 5e4, 1e6, 3e3, 2.5e6


class _Point(NamedTuple):
    """Multipliers of complementary cuts, the semidefinite matrix, and ``s_ij R_ij`` above the diagonal, or their changes."""

    m: FloatArray
    T: FloatArray
    F: FloatArray


class ComplementaryCuts:
    """Complementary cuts: multipliers of cuts without slack at a partition, and a semidefinite matrix without.

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

    Attributes
    ----------
    cuts : Cuts
        Those in use; their multipliers are in `point`.
    unit : float
        The pair weight that multipliers and the matrix are counted in.
    excess : float
        By how much the bound exceeds the partition, in units.
    """

    def __init__(self, L: Integers, labels: Labels, n_clusters: int | None, budget: Budget) -> None:
        self.n_clusters, self.budget, self.n = n_clusters, budget, len(L)
        positive = L[np.triu(L, 1) > 0]
        self.unit = float(np.median(positive)) if len(positive) else 1.0
        self.L = np.triu(L, 1) / self.unit
        self.cuts = no_cuts()
        self.point = _Point(np.zeros(0), np.zeros((self.n, self.n)), self.L)
        self._set_partition(labels)

    def _set_partition(self, labels: Labels) -> None:
        """Prove this partition from now on: keep the cuts complementary to it, and project the matrix on those that are."""
        self.labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        self.same = self.labels[:, None] == self.labels[None, :]
        self.signs = np.triu(np.where(self.same, 1.0, -1.0), 1)
        self.indicators = np.eye(int(self.labels.max()) + 1)[self.labels]
        self.indicators /= np.linalg.norm(self.indicators, axis=0)
        self.margin = self.excess = np.inf
        kept = self._without_slack(cut_rows(self.cuts), self.cuts)
        cuts, m, T = self.cuts.select(kept), self.point.m[kept], self._project_off_clusters(self.point.T)
        i, j, coefficients, self.starts = cut_rows(cuts)
        self.pairs, self.coefficients = i * self.n + j, coefficients * self.signs[i, j]
        self._stop_momentum(m, T)
        self.cuts, self.point = cuts, _Point(m, T, self.signs * (self.L + T) - self._reduction_of_weights(m))

    def _stop_momentum(self, m: FloatArray, T: FloatArray) -> None:
        """Forget the last change of multipliers and matrix, so that the next step is a plain one."""
        self.momentum, self.moved = Momentum(), _Point(np.zeros_like(m), np.zeros_like(T), np.zeros_like(T))

    def _reduction_of_weights(self, m: FloatArray) -> FloatArray:
        """What multipliers of complementary cuts take from the reduced weights, times the sign of the pair."""
        amounts = self.coefficients * np.repeat(m, np.diff(self.starts))
        return np.asarray(np.bincount(self.pairs, amounts, minlength=self.n**2).reshape(self.n, self.n), dtype=np.float64)

    def _project_off_clusters(self, M: FloatArray) -> FloatArray:
        """A symmetric matrix projected on those that are 0 times the indicators of the partition's clusters."""
        Z = self.indicators
        left = M - Z @ (Z.T @ M)
        centred = left - (left @ Z) @ Z.T
        return np.asarray((centred + centred.T) / 2)

    def _without_slack(self, rows: Rows, cuts: Cuts) -> Any:
        if not len(rows.lengths):
            return np.zeros(0, dtype=bool)
        activities = np.add.reduceat(rows.coefficients * self.same[rows.i, rows.j], rows.starts[:-1])
        return activities == cuts.right_sides(self.n_clusters)

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

    def shift(self, amount: float) -> None:
        """Make all pair weights favour the partition to be proved less, in units."""
        self.L = self.L - amount * self.signs
        self.point, self.margin = self.point._replace(F=self.point.F - amount * np.abs(self.signs)), np.inf
        self._excess()

    def _excess(self) -> float:
        """Excess of the bound: the sum that pairs miss of their signs; the margin follows its mean, or a multiple at the end."""
        missed = np.maximum(0.0, -self.point.F)
        self.excess = float(missed.sum())
        share = NEAR_END if self.excess < END else 1.0
        self.margin = min(self.margin, share * self.excess / max(1, int(np.count_nonzero(missed))))
        return self.excess

    def _is_hopeful(self, excess: float, before: float, spent: float) -> bool:
        """Whether a hundredth of the bound's excess is within reach of the budget left, at the pace since the last look."""
        if not np.isfinite(before):
            return True
        return bool(np.log(before / excess) * self.budget.left >= np.log(100.0) * (self.budget.spent - spent))

    def _direction(self) -> tuple[FloatArray, float]:
        """The direction of the violations of complementary cuts, and its largest entry."""
        V = np.triu(np.maximum(0.0, self.margin - self.point.F), 1)
        D = -self.signs * V
        return D + D.T, float(V.max(initial=0.0)) or 1.0

    def _look_near(self, improve: Callable[[Labels], Labels]) -> None:
        """Offer a partition in the direction of the violations, and prove a better one from now on if there is one."""
        D, largest = self._direction()
        near = connected_components(sp.csr_array(self.same + D / largest > 0.5), directed=False)[1]
        best = improve(near.astype(np.int64))
        if not np.array_equal(best[:, None] == best[None, :], self.same):
            self._set_partition(best)
            self._excess()

    def _cut(self, count: int) -> None:
        """Add complementary cuts that the direction of the violations violates, and forget those without multiplier."""
        D, largest = self._direction()
        found = [separation.tight_triangles(D, self.labels, MOST_TRIANGLES)]
        self.budget.spend(1.0 + self.n * float(np.sum(np.bincount(self.labels) ** 2)) / TRIPLES_PER_UNIT)
        if count >= FIRST_STARS:
            X = np.clip(self.same + MOVED / largest * D, 0.0, 1.0)
            np.fill_diagonal(X, 1.0)
            found.append(separation.few_stars(X, MOST_STARS, count, (0.02, 0.98), 0.01))
            found.append(separation.two_partitions(X, MOST_TWO_PARTITIONS, TRIES, count))
            self.budget.spend(self.n**2 / AROUND_PER_UNIT)
        self._exchange(join_cuts(found))

    def _exchange(self, found: Cuts) -> None:
        """Forget complementary cuts without multiplier, and add new ones as far as they have no slack."""
        rows = cut_rows(found)
        fresh = self._without_slack(rows, found)
        inside, kept = np.repeat(fresh, rows.lengths), self.point.m > 0
        held, i, j = np.repeat(kept, np.diff(self.starts)), rows.i[inside], rows.j[inside]
        lengths = np.concatenate([np.diff(self.starts)[kept], rows.lengths[fresh]])
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.pairs = np.concatenate([self.pairs[held], i * self.n + j])
        self.coefficients = np.concatenate([self.coefficients[held], rows.coefficients[inside] * self.signs[i, j]])
        none = np.zeros(int(fresh.sum()))
        m, change = (np.concatenate([part.m[kept], none]) for part in (self.point, self.moved))
        self.moved = self.moved._replace(m=change, F=self.signs * self.moved.T - self._reduction_of_weights(change))
        self.cuts, self.point = join_cuts([self.cuts.select(kept), found.select(fresh)]), self.point._replace(m=m)

    def _descend(self) -> None:
        """Descend over multipliers with Nesterov's momentum, which starts anew where it would lead uphill."""
        rows, here = (self.starts, self.pairs, self.coefficients), self.point
        for step in range(STEPS):
            share, moved = self.momentum.extrapolation(), self.moved
            m, F = _extrapolate(here.m, here.F, moved.m, moved.F, share, *rows)
            T = here.T + share * moved.T
            if step % 2:
                T, F = self._project(T, F)
            _sweep(F.ravel(), self.margin, m, *rows)
            if _loss(F, self.margin) > _loss(here.F, self.margin):
                self._stop_momentum(m, T)
                here = self.point  # semidefinite, unlike what lies between
            else:
                self.moved, here = _Point(m - here.m, T - here.T, F - here.F), _Point(m, T, F)
                self.point = here if step % 2 else self.point
        self.budget.spend(STEPS * (len(self.pairs) / PAIRS_PER_UNIT + self.n**3 / 2 / CUBES_PER_UNIT))

    def _project(self, T: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A gradient step on the complementary matrix, projected on semidefinite ones; the matrix and ``s_ij R_ij``."""
        upper = self.signs * np.maximum(0.0, self.margin - F)
        stepped = self._project_off_clusters(T + upper + upper.T)
        values, vectors = eigenpairs(stepped)
        half = vectors[:, values < 0.0] * np.sqrt(-values[values < 0.0])
        stepped += half @ half.T
        return stepped, F + self.signs * (stepped - T)

    @property
    def R(self) -> FloatArray:
        """Reduced pair weights above the diagonal after complementary cuts, in units."""
        return np.asarray(self.signs * self.point.F)


@compile_with(nogil=True, error_model="numpy")
def _sweep(F: Any, margin: float, m: Any, starts: Any, pairs: Any, coefficients: Any) -> None:
    """Newton steps on one multiplier of complementary cuts after another, for the pairs violated when its turn comes."""
    for t in range(len(m)):
        slope, curvature = 0.0, 0.0
        for q in range(starts[t], starts[t + 1]):
            violation = margin - F[pairs[q]]
            if violation > 0.0:
                slope += violation * coefficients[q]
                curvature += coefficients[q] * coefficients[q]
        if slope == 0.0:
            continue
        step = max(-slope / curvature, -m[t])
        if step != 0.0:
            m[t] += step
            for q in range(starts[t], starts[t + 1]):
                F[pairs[q]] -= coefficients[q] * step


@compile_with(nogil=True)
def _extrapolate(m: Any, F: Any, m_moved: Any, F_moved: Any, share: float, starts: Any, pairs: Any, coefficients: Any) -> Any:
    """Multipliers and reduced weights of complementary cuts further along the last change, multipliers not below 0."""
    further, F_further = m + share * m_moved, F + share * F_moved
    flat = F_further.ravel()
    for t in range(len(m)):
        if further[t] < 0.0:
            for q in range(starts[t], starts[t + 1]):
                flat[pairs[q]] += coefficients[q] * further[t]
            further[t] = 0.0
    return further, F_further


@compile_with(nogil=True)
def _loss(F: Any, margin: float) -> float:
    """The sum of squared violations that complementary cuts leave."""
    total = 0.0
    for i in range(len(F)):
        for j in range(i + 1, len(F)):
            violation = max(0.0, margin - F[i, j])
            total += violation * violation
    return total
