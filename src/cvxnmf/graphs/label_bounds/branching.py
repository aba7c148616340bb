"""The bound of the linear program with cuts, and the optimum by branching on pairs of nodes."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxnmf.certificates.label_cuts import Branch, Cuts, case_bound
from cvxnmf.certificates.pair_objectives import PairObjective, exact_sum
from cvxnmf.graphs.label_bounds import separation
from cvxnmf.graphs.label_bounds.budget import Budget, LabelWitness
from cvxnmf.graphs.label_bounds.complementary import ComplementaryCuts
from cvxnmf.graphs.label_bounds.contraction import Contraction
from cvxnmf.graphs.label_bounds.linear_program import CutProgram
from cvxnmf.graphs.label_bounds.separation import cuts_witness, join_cuts, no_cuts
from cvxnmf.graphs.multilevel import Labels, improved_labels

#: Cuts that are added at once, by kind.
MOST_TRIANGLES, MOST_STARS, MOST_TWO_PARTITIONS = 3000, 800, 300
#: The least violation of a triangle.
TRIANGLE_VIOLATION = 1e-5
#: Growths of a 2-partition that are tried at once.
TRIES = 3000
#: Rounds of cuts at a branch below the first, and rounds without progress that end one.
ROUNDS_BELOW, STALLED = 60, 4
#: Bounds this close to the best partition count as equal where data are not whole numbers.
CLOSE = 1e-9
#: A bound before branching that is this close, as a share, is worth more work.
PROMISING = 0.005
#: Once few triangles are violated, a bound for more than so many nodes that is this far, as a share, after so many rounds is left
#: to other methods.
FAR, SMALL, EARLY = 0.01, 40, 8
#: A doubling of a ray's multipliers is tried this often.
DOUBLINGS = 30


class Case(NamedTuple):
    """Case of branching: partitions with some pairs decided, a bound on their sum of L over pairs, and the cuts proving it."""

    bound: Fraction
    cuts: Cuts


class Split(NamedTuple):
    """Branching on a pair of nodes, together in one case and apart in the other."""

    i: int
    j: int
    together: Case | Split
    apart: Case | Split


class ProvedByCuts(NamedTuple):
    """A label bound by branching: cuts with multipliers, the branches, and the best partition met on the way."""

    cuts: Cuts
    branches: list[Branch]
    grain: int
    labels: Labels
    closed: bool

    def witness(self) -> LabelWitness:
        """The proof by branching and cuts as the trusted kernel takes it."""
        return "cuts", cuts_witness(self.cuts, self.branches, self.grain)


class Search:
    """Search for a label bound of one quality by cutting planes and branching.

    Parameters
    ----------
    objective : PairObjective
        The quality.
    labels : ndarray of int, shape (n,)
        The best partition known.
    n_clusters : int, optional
        The most clusters of a partition.
    budget : Budget
        Work that may be spent.
    """

    def __init__(self, objective: PairObjective, labels: Labels, n_clusters: int | None, budget: Budget) -> None:
        self.contraction, self.n_clusters, self.budget = Contraction(objective), n_clusters, budget
        self.objective = self.contraction.objective
        self.program = CutProgram(self.objective, n_clusters)
        self.alone = exact_sum(self.objective.diagonal())
        self.labels = self.contraction.shrink(labels)
        self.value = self.pair_sum(self.labels)
        self.fixed: dict[tuple[int, int], bool] = {}
        self.first: Case | None = None
        self.turn, self.few_triangles, self.given_up = 0, False, False
        self.excluded: Labels | None = None
        self.weighing: ComplementaryCuts | None = None

    def run(self) -> ProvedByCuts:
        """Branch until the bound meets the best partition or the budget is spent, its reserve too if it is close."""
        return self.collect_proof(self._explore())

    def so_far(self) -> ProvedByCuts:
        """The proof if the search is stopped now: the label bound before any branching."""
        return self.collect_proof(self.first or self.trivial())

    def weigh_complementary_cuts(self, labels: Labels, budget: Budget) -> Labels:
        """Weigh cuts without slack at the best partition, perhaps this one, until they prove it; the best partition then."""
        self._offer(self.contraction.shrink(labels))
        self.weighing = ComplementaryCuts(self.program.L, self.labels, self.n_clusters, budget)
        self.weighing.run(
            self._slack(), self._improve, lambda excess: budget.report(float(self.alone + 2 * self.value) + 2.0 * excess)
        )
        return self.contraction.expand(self.labels)

    def _slack(self) -> float:
        """By how much a label bound may exceed the best partition, safely, and leave no room for a better one."""
        if self.objective.exact:
            return 0.4 * self.contraction.whole.step()
        return 0.5 * CLOSE * (abs(self.value) + self.objective.largest_pair())

    def _improve(self, labels: Labels) -> Labels:
        """Ascend from a partition met in the search; the best one known."""
        self._offer(improved_labels(self.objective, labels, self.n_clusters))
        return self.labels

    def collect_proof(self, tree: Case | Split) -> ProvedByCuts:
        """The tree of branching as a list of branches, and all cuts with the case they belong to."""
        branches: list[Branch] = []
        leaves: list[Case] = []

        def number(part: Case | Split) -> int:
            if isinstance(part, Case):
                leaves.append(part)
                return -len(leaves)
            place = len(branches)
            branches.append(Branch(part.i, part.j, 0, 0))
            branches[place] = Branch(part.i, part.j, number(part.together), number(part.apart))
            return place

        number(tree)
        cuts = [leaf.cuts._replace(cases=np.full(len(leaf.cuts.cases), case)) for case, leaf in enumerate(leaves)]
        closed = all(self._closes(leaf.bound) for leaf in leaves)
        grain, nodes = self.program.grain, self.contraction.left.tolist()
        everywhere = [branch._replace(i=nodes[branch.i], j=nodes[branch.j]) for branch in branches]
        proof = self.contraction.expand_cuts(join_cuts(cuts), grain)
        return ProvedByCuts(proof, everywhere, grain, self.contraction.expand(self.labels), closed)

    def trivial(self) -> Case:
        """The case of branching that is proved without any cut."""
        return Case(self._bound(no_cuts()), no_cuts())

    def pair_sum(self, labels: Labels) -> int:
        """Sum of pair weights L over unordered pairs in one cluster of a partition."""
        same = np.triu(labels[:, None] == labels[None, :], 1)
        return exact_sum(self.program.L[same])

    def _bound(self, cuts: Cuts) -> Fraction:
        return case_bound(self.objective, cuts, self.fixed, self.program.grain, self.n_clusters)

    def _closes(self, bound: Fraction) -> bool:
        """Whether no partition under this label bound is better than the best one known."""
        if self.objective.exact:
            return self.contraction.whole.highest_attainable(self.alone + 2 * bound) <= self.alone + 2 * self.value
        return bound <= self.value + CLOSE * (abs(self.value) + self.objective.largest_pair())

    def _explore(self) -> Case | Split:
        """Branch: bound partitions that agree with the pairs decided so far, by cases if one bound is not enough."""
        case, fractional = self._cut_loop(len(self.fixed))
        if self._closes(case.bound) or self.budget.exhausted or not fractional or self.given_up:
            return case
        i, j = self._pair_to_branch_on()
        parts: dict[bool, Case | Split] = {}
        for together in (True, False) if self.program.X[i, j] > 0.5 else (False, True):
            parts[together] = case if self.budget.exhausted else self.explore_with(i, j, together)
        return Split(i, j, parts[True], parts[False])

    def decide(self, i: int, j: int, together: bool) -> None:
        """Branch from now on only on partitions that have two nodes together, or apart."""
        self.fixed[i, j] = together
        self.program.decide(i, j, together)

    def explore_with(self, i: int, j: int, together: bool) -> Case | Split:
        """Branch: explore the partitions that also have two nodes together, or apart."""
        self.decide(i, j, together)
        found = self._explore()
        self.program.decide(i, j, None)
        del self.fixed[i, j]
        return found

    def _cut_loop(self, depth: int) -> tuple[Case, bool]:
        """Solve and cut until nothing is violated or the label bound stalls; the best one, and whether pairs are undecided."""
        best, stalled = self.trivial(), 0
        for round_number in range(ROUNDS_BELOW if depth else 10**6):
            if not self.program.solve(self.budget.left * WORK_PER_UNIT):
                return self._infeasible(best), False
            case = Case(self._bound(self.program.active_cuts()), self.program.active_cuts())
            progress = best.bound - case.bound
            best = min(best, case, key=lambda one: one.bound)
            self._note(best, depth)
            if round_number % 8 == 0:
                self._round()
            if self._closes(best.bound) or self.budget.exhausted:
                break
            cuts = self._violated_cuts(everywhere=bool(depth))
            few = 10**4 * progress < max(Fraction(1), best.bound - self.value)
            stalled = stalled + 1 if few and not np.any(np.diff(cuts.starts) == 3) else 0
            self.given_up = not depth and round_number >= EARLY and self._is_hopeless(best, progress)
            if not len(cuts.multipliers) or stalled >= STALLED or self.given_up:
                break
            if progress > 0:
                self.program.drop_slack()
            self.program.add(cuts)
        self._round()
        X = self.program.X
        return best, bool(np.any((X > 1e-6) & (X < 1 - 1e-6)))

    def _note(self, best: Case, depth: int) -> None:
        """Count the work of a round of cuts, keep the first case for an interrupt, and report."""
        self.budget.spend(5.0 + self.program.work / WORK_PER_UNIT + self.objective.n**3 / TRIANGLES_PER_UNIT)
        self.program.work = 0.0
        if self.first is not None and self._within(PROMISING, self.first):
            self.budget.draw_reserve()
        if not depth:
            self.first = best
            self.budget.report(float(self.alone + 2 * best.bound))

    def _is_hopeless(self, best: Case, progress: Fraction) -> bool:
        """Whether triangle cuts have done what they can and the label bound of a graph that is not small is still far."""
        slow = self.few_triangles and 20 * progress < best.bound - self.value
        return slow and self.objective.n > SMALL and not self._within(FAR, best)

    def _within(self, share: float, case: Case) -> bool:
        """Whether a case's bound is as close to the best partition as a share of what it is made of."""
        return case.bound - self.value < share * (abs(self.value) + abs(self.alone))

    def _infeasible(self, best: Case) -> Case:
        """Close an infeasible case: add a ray's multipliers to those of the best bound until it is below the best partition."""
        ray = self.program.infeasible_cuts()
        if ray is None:
            return best
        for doubling in range(DOUBLINGS):
            cuts = join_cuts([best.cuts, ray._replace(multipliers=ray.multipliers << doubling)])
            bound = self._bound(cuts)
            if self._closes(bound):
                return Case(bound, cuts)
        return best

    def _violated_cuts(self, everywhere: bool) -> Cuts:
        """Violated cuts of the linear program: triangles, and the others once few triangles are left."""
        X, found = self.program.X, []
        positive = None if everywhere or self.n_clusters is not None else self.program.L > 0
        found.append(separation.triangles(X, MOST_TRIANGLES, TRIANGLE_VIOLATION, positive)[0])
        if self.n_clusters is not None:
            found.append(separation.cliques(X, self.n_clusters))
        self.few_triangles = len(found[0].multipliers) < MOST_TRIANGLES // 4
        if self.few_triangles:
            found.append(separation.stars(X, MOST_STARS))
            if sum(len(cuts.multipliers) for cuts in found) < 100:
                self.turn += 1
                found.append(separation.two_partitions(X, MOST_TWO_PARTITIONS, TRIES, self.turn))
        return join_cuts(found)

    def _round(self) -> None:
        """Round the linear program's solution: look for a better partition near the fractional one."""
        near = connected_components(sp.csr_array(self.program.X > 0.5), directed=False)[1].astype(np.int64)
        if self.n_clusters is None or near.max() < self.n_clusters:
            self._offer(near)
        self._offer(improved_labels(self.objective, near, self.n_clusters))

    def _offer(self, labels: Labels) -> None:
        """Take over a partition met in branching that is better, unless it is excluded."""
        value = self.pair_sum(labels)
        if value > self.value and (self.excluded is None or not same_partition(labels, self.excluded)):
            self.labels, self.value = labels, value

    def _pair_to_branch_on(self) -> tuple[int, int]:
        X, weights = self.program.X, np.abs(self.program.L)
        score = np.minimum(X, 1.0 - X) * (weights + 0.05 * weights.max())
        i, j = divmod(int(np.argmax(np.triu(score, 1))), len(X))
        return i, j


def same_partition(labels: Labels, others: Labels) -> bool:
    """Whether two labellings name the same clusters, as partitions."""
    pairs = np.unique(np.column_stack([labels, others]), axis=0)
    return len(pairs) == len(np.unique(labels)) == len(np.unique(others))


#: Products of rows and iterations, and triples of nodes, that count as a unit of work.
WORK_PER_UNIT, TRIANGLES_PER_UNIT = 2e4, 2e6
