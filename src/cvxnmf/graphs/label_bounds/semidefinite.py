"""The doubly nonnegative bound with cuts, by alternating directions.

    maximise <C, X>  over  X - 11'/k positive semidefinite, X >= 0, X_ii = 1, cuts        (k infinite unless given)

in coordinates scaled by the square roots of the sizes (``C_ij / e_i e_j``, ``X_ii = e_i^2``), where its dual is

    minimise  sum e^2 y + sum side lam - e'S e / k,   S = Diag(y) - C - N + G(lam) positive semidefinite, N >= 0, lam >= 0.

One step minimises the augmented Lagrangian over (y, N, lam), lam by coordinate descent, and then over S by an eigendecomposition.
The multiplier X then makes a step of length 1.6. `linalg.splitting` relaxes a point between two proximal maps in closed form; the
first block here has none, because of lam, and is only improved, which a longer step of the multiplier allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxnmf.certificates.label_cuts import Cuts
from cvxnmf.certificates.label_semidefinite import semidefinite_matrix
from cvxnmf.certificates.pair_objectives import Integers, PairObjective
from cvxnmf.certificates.rounding import is_psd
from cvxnmf.graphs.label_bounds import separation
from cvxnmf.graphs.label_bounds.budget import Budget, LabelWitness
from cvxnmf.graphs.label_bounds.complementary import ComplementaryCuts
from cvxnmf.graphs.label_bounds.contraction import Contraction
from cvxnmf.graphs.label_bounds.negative_part import NegativePart
from cvxnmf.graphs.label_bounds.separation import cut_arrays, cut_rows, join_cuts, no_cuts
from cvxnmf.graphs.multilevel import Labels
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.eigen import smallest_eigenvalue

#: Penalty of the first step, its change when residuals differ, over-relaxation, the weight of the newest dual in the average.
PENALTY, BALANCE, RELAXATION, NEWEST = 1e-3, 0.75, 1.6, 0.1
#: Penalty of the first step after multipliers of cuts are known.
PENALTY_THEN = 1e-2
#: Steps between evaluations of the bound; the first step with cuts, and steps between new ones.
EVALUATED, FIRST_CUTS, BETWEEN_CUTS = 10, 40, 20
#: Triangles and stars that are added at once, per node, and the violations that count.
TRIANGLES_PER_NODE, STARS_PER_NODE, VIOLATION = 10, 3, 0.01
#: Pairs with a co-membership above these are put together, in turn, when a partition is read off X.
ROUNDED = (0.5, 0.7, 0.3)
#: Once no triangle is violated by more than this, 2-partitions are grown, so many at a time, on graphs of at most so many nodes.
SETTLED, GROWTHS, SMALL = 0.05, 1000, 400
#: Sweeps of coordinate descent over the multipliers of cuts.
SWEEPS = 2
#: Operations, and pairs in cuts, that count as a unit of work.
OPERATIONS_PER_UNIT, PAIRS_PER_UNIT = 1.5e7, 3e4
#: Bits of the largest pair weight in the whole numbers of a witness.
BITS = 34


@dataclass
class _Dual:
    """A semidefinite dual point, scaled: its matrix M = Diag(y) - C - N + G, linear terms, and the cuts with multipliers."""

    M: FloatArray
    y: FloatArray
    linear: float
    cuts: Cuts
    lam: FloatArray
    bound: float = np.inf


class DoublyNonnegativeBound:
    """Doubly nonnegative label bound by alternating directions, scaled; the best dual point so far stays at hand.

    Parameters
    ----------
    objective : PairObjective
        The quality.
    labels : ndarray of int, shape (n,)
        A good partition, where X starts.
    n_clusters : int, optional
        The most clusters of a partition.
    budget : Budget
        Work that may be spent.
    """

    def __init__(self, objective: PairObjective, labels: Labels, n_clusters: int | None, budget: Budget) -> None:
        self.contraction, self.n_clusters, self.budget = Contraction(objective), n_clusters, budget
        self.objective = objective = self.contraction.objective
        labels = self.contraction.shrink(labels)
        n, L = objective.n, objective.dense().astype(np.float64)
        sizes = objective.sizes.astype(np.float64)
        sizes = np.where(sizes > 0, sizes, sizes.mean() or 1.0)
        self.b = sizes / sizes.mean()
        self.e = np.sqrt(self.b)
        self.outer = np.outer(self.e, self.e)
        scaled = L / self.outer
        self.unit = float(np.linalg.norm(scaled)) or 1.0
        self.C = scaled / self.unit
        self.J = self.outer / n_clusters if n_clusters is not None else np.zeros((1, 1))
        self.X = self.outer * (labels[:, None] == labels[None, :])
        self.S = np.zeros((n, n))
        self.mu = PENALTY
        self.cuts, self.lam = no_cuts(), np.zeros(0)
        self.rows = _ScaledRows(self.cuts, self.e, n_clusters)
        self.negative_part = NegativePart()
        self.average: _Dual | None = None
        self.best: _Dual | None = None

    def run(self, target: Callable[[], float], offer: Callable[[Labels], None]) -> None:
        """Improve the semidefinite bound up to the target or the budget's end; partitions near X are offered."""
        if not np.any(np.triu(self.C, 1)):  # nothing is left to decide
            y = np.diag(self.C).copy()
            self.best = _Dual(np.zeros_like(self.C), y, float(y @ self.b), self.cuts, self.lam, self.unit * float(y @ self.b))
            return
        for step in range(1, 10**6):
            dual, change = self._step()
            if step % EVALUATED == 0 or self.budget.exhausted:
                self._evaluate(dual)
                self._balance(change)
                if self.budget.exhausted or (self.best is not None and self.best.bound <= target()):
                    return
            if step >= FIRST_CUTS and (step - FIRST_CUTS) % BETWEEN_CUTS == 0:
                self._cut(step)
                offer(self.near_partition(ROUNDED[step // BETWEEN_CUTS % len(ROUNDED)]))

    def begin_with(self, weighing: ComplementaryCuts) -> None:
        """Begin the semidefinite program at what complementary cuts prove; positive reduced weights make a Laplacian matrix."""
        used = weighing.point.m > 0
        self.cuts, self.mu = weighing.cuts.select(used), PENALTY_THEN
        self.rows = _ScaledRows(self.cuts, self.e, self.n_clusters)
        self.lam = 2.0 * weighing.point.m[used] * weighing.unit / (self.rows.factors * self.unit)
        upper = np.triu(np.maximum(weighing.R, 0.0), 1)
        together = upper + upper.T
        self.S = (weighing.point.T + np.diag(together.sum(axis=1)) - together) * weighing.unit / (self.outer * self.unit)
        y = np.diag(self.C) + np.diag(self.S)
        linear = float(y @ self.b + self.rows.sides @ self.lam)
        self.best = _Dual(self.S.copy(), y, linear, self.cuts, self.lam.copy(), self.unit * linear)

    def near_partition(self, level: float) -> Labels:
        """The partition whose clusters are joined by pairs with a semidefinite co-membership above a level."""
        joined = sp.csr_array(self.restricted > level * self.outer)
        return self.contraction.expand(connected_components(joined, directed=False)[1].astype(np.int64))

    def _step(self) -> tuple[_Dual, float]:
        """One step of alternating directions on the semidefinite program; its dual point, and how far X moved."""
        diagonal = np.diag(self.C)
        y = diagonal + np.diag(self.S) + self.mu * (np.diag(self.X) - self.b)
        P = -self.C - self.S - self.mu * self.X
        if len(self.lam):
            P = self.rows.descend(P, self.lam, self.mu)
        V = np.minimum(P, 0.0) + self.S
        np.fill_diagonal(V, y - diagonal - self.mu * np.diag(self.X))
        M = V + self.mu * self.X
        V += self.mu * self.J
        values, vectors = self.negative_part(V)
        half = vectors * np.sqrt(-values / self.mu)
        X = half @ half.T + self.J
        self.S = V + self.mu * (X - self.J)
        change = X - self.X
        self.X += RELAXATION * change
        self.restricted = X
        n = len(y)
        self.budget.spend(3.0 + n**2 * (20.0 + 20.0 * len(values)) / OPERATIONS_PER_UNIT + len(self.rows.i) / PAIRS_PER_UNIT)
        dual = _Dual(M, y, float(y @ self.b + self.rows.sides @ self.lam), self.cuts, self.lam.copy())
        self._average(dual)
        return dual, float(np.linalg.norm(change))

    def _average(self, dual: _Dual) -> None:
        """The running average of the semidefinite dual points, which is one too; cuts only ever join the list while it runs."""
        if self.average is None:
            self.average = _Dual(dual.M.copy(), dual.y.copy(), dual.linear, dual.cuts, dual.lam.copy())
            return
        old = self.average
        old.M += NEWEST * (dual.M - old.M)
        old.y = old.y + NEWEST * (dual.y - old.y)
        old.linear += NEWEST * (dual.linear - old.linear)
        grown = np.concatenate([old.lam, np.zeros(len(dual.lam) - len(old.lam))])
        old.cuts, old.lam = dual.cuts, grown + NEWEST * (dual.lam - grown)

    def _evaluate(self, dual: _Dual) -> None:
        """Semidefinite bounds at the last dual point and at the average; the better one is kept if it is the best so far."""
        for point in (dual, self.average):
            if point is None:
                continue
            low = smallest_eigenvalue(point.M.copy())
            self.budget.spend(len(point.y) ** 3 / OPERATIONS_PER_UNIT)
            bound = point.linear + max(0.0, -low) * float(self.b.sum())
            if self.n_clusters is not None:
                bound -= (float(self.e @ point.M @ self.e) + max(0.0, -low) * float(self.b.sum())) / self.n_clusters
            bound *= self.unit
            if self.best is None or bound < self.best.bound:
                self.best = _Dual(point.M.copy(), point.y + max(0.0, -low), point.linear, point.cuts, point.lam.copy(), bound)
                self.best.M.flat[:: len(point.y) + 1] += max(0.0, -low)
        self.budget.report(self.best.bound if self.best else np.inf)

    def _balance(self, change: float) -> None:
        """Balance the penalty of alternating directions: smaller where X is nearly feasible, larger where it hardly moves."""
        off = np.diag(self.X) - self.b
        primal = np.sqrt(float(off @ off) + float(np.sum(np.minimum(self.X, 0.0) ** 2))) / (1.0 + float(np.linalg.norm(self.b)))
        dual = self.mu * change
        self.mu *= BALANCE if primal < dual / 2 else 1 / BALANCE if primal > 2 * dual else 1.0

    def _cut(self, step: int) -> None:
        """Add violated triangles to the semidefinite program, and stars once they hardly are; forget cuts without multiplier."""
        n = self.objective.n
        X = np.clip(self.restricted / self.outer, 0.0, 1.0)
        triangles, worst = separation.triangles(X.astype(np.float32), TRIANGLES_PER_NODE * n, VIOLATION)
        found = [triangles]
        if worst < 0.15 or len(triangles.multipliers) < TRIANGLES_PER_NODE * n:
            found.append(separation.few_stars(X, STARS_PER_NODE * n, step))
        if worst < SETTLED and n <= SMALL:
            found.append(separation.two_partitions(X, STARS_PER_NODE * n, GROWTHS, step))
        if self.n_clusters is not None:
            found.append(separation.cliques(X, self.n_clusters))
        self.budget.spend(n**3 / 2 / OPERATIONS_PER_UNIT)
        kept = (self.lam > 0) | (self.average.lam > 1e-9 if self.average is not None else False)
        if self.average is not None:
            self._forget(self.average, kept)
        self.lam = np.concatenate([self.lam[kept], np.zeros(sum(len(cuts.multipliers) for cuts in found))])
        self.cuts = join_cuts([self.cuts.select(kept), *found])
        self.rows = _ScaledRows(self.cuts, self.e, self.n_clusters)

    def _forget(self, dual: _Dual, kept: Any) -> None:
        """Drop cuts of hardly any weight from the averaged dual point, which stays exact: M and the linear term follow."""
        dropped = _ScaledRows(dual.cuts.select(~kept), self.e, self.n_clusters)
        dual.M -= dropped.matrix(dual.lam[~kept])
        dual.linear -= float(dropped.sides @ dual.lam[~kept])
        dual.cuts, dual.lam = dual.cuts.select(kept), dual.lam[kept]

    def witnesses(self) -> list[LabelWitness]:
        """Witnesses: the best semidefinite dual point in whole numbers, its diagonal raised until the matrix surely is PSD."""
        if self.best is None:
            return []
        best, objective = self.best, self.objective
        grain = 2 ** max(0, BITS - objective.largest_pair().bit_length())
        multipliers = np.rint(0.5 * best.lam * _ScaledRows(best.cuts, self.e, self.n_clusters).factors * self.unit * grain)
        cuts = best.cuts._replace(multipliers=multipliers.astype(np.int64))
        cuts = cuts.select(cuts.multipliers > 0)
        y = np.rint(best.y * self.b * self.unit * grain).astype(np.int64)
        upper = np.triu_indices(objective.n, 1)
        without = semidefinite_matrix(objective, cuts, y, np.zeros(len(upper[0]), dtype=np.int64), grain)
        N = np.maximum(np.rint(without[upper] - (best.M * self.outer)[upper] * self.unit * grain), 0.0).astype(np.int64)
        return self._raise_diagonal(cuts, y, N, grain)

    def _raise_diagonal(self, cuts: Cuts, y: Integers, N: Integers, grain: int) -> list[LabelWitness]:
        """The semidefinite proof for all nodes, its diagonal raised until the matrix is positive semidefinite for certain."""
        whole, contraction = self.contraction.whole, self.contraction
        cuts, N = contraction.expand_cuts(cuts, grain), contraction.expand_pairs(N)
        sizes = np.ones(whole.n)
        sizes[contraction.left] = self.b
        y = contraction.expand_diagonal(y, grain)
        for doubling in range(60):
            raised = y + np.ceil(sizes * 2.0**doubling).astype(np.int64)
            if is_psd(semidefinite_matrix(whole, cuts, raised, N, grain).astype(np.float64), np.zeros(whole.n)):
                return [("semidefinite", cut_arrays(cuts) | {"y": raised, "N": N, "grain": grain})]
        return []


class _ScaledRows:
    """Cuts of the semidefinite program, scaled, each with a factor that makes its largest coefficient 1."""

    def __init__(self, cuts: Cuts, e: FloatArray, n_clusters: int | None) -> None:
        self.n, (self.i, self.j, coefficients, self.starts) = len(e), cut_rows(cuts)
        scaled = coefficients / (e[self.i] * e[self.j])
        self.factors = 1.0 / np.maximum.reduceat(np.abs(scaled), self.starts[:-1]) if len(scaled) else np.zeros(0)
        self.coefficients = scaled * np.repeat(self.factors, np.diff(self.starts))
        self.sides = self.factors * cuts.right_sides(n_clusters)

    def matrix(self, lam: FloatArray) -> FloatArray:
        """Matrix ``G(lam)`` of scaled cuts, whose product with X is the weighted sum of the left sides."""
        upper = np.zeros((self.n, self.n))
        _add_rows(upper, lam, self.starts, self.i, self.j, self.coefficients)
        return np.asarray(upper + upper.T)

    def descend(self, P: FloatArray, lam: FloatArray, mu: float) -> FloatArray:
        """Add ``G(lam)`` of scaled cuts to P after sweeps of coordinate descent on lam, which is overwritten."""
        upper = np.triu(P, 1)
        _add_rows(upper, lam, self.starts, self.i, self.j, self.coefficients)
        _descend(upper, lam, self.starts, self.i, self.j, self.coefficients, self.sides, mu, SWEEPS)
        return np.asarray(upper + upper.T)


@compile_with(nogil=True)
def _add_rows(upper: Any, lam: Any, starts: Any, i: Any, j: Any, coefficients: Any) -> None:
    for t in range(len(lam)):
        if lam[t] != 0.0:
            for q in range(starts[t], starts[t + 1]):
                upper[i[q], j[q]] += 0.5 * coefficients[q] * lam[t]


@compile_with(nogil=True, error_model="numpy", fastmath=True)
def _descend(upper: Any, lam: Any, starts: Any, i: Any, j: Any, coefficients: Any, sides: Any, mu: float, sweeps: int) -> None:
    """Newton steps on one multiplier of scaled cuts after another; `upper` below 0 marks entries that N leaves alone."""
    for _ in range(sweeps):
        for t in range(len(lam)):
            slope, curvature = 0.0, 0.0
            for q in range(starts[t], starts[t + 1]):
                curvature += coefficients[q] * coefficients[q]
                slope += coefficients[q] * min(upper[i[q], j[q]], 0.0)
            step = max(-(sides[t] + slope / mu) * 2.0 * mu / curvature, -lam[t])
            if step != 0.0:
                lam[t] += step
                for q in range(starts[t], starts[t + 1]):
                    upper[i[q], j[q]] += 0.5 * coefficients[q] * step
