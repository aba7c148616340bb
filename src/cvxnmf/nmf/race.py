"""The race of :func:`cvxnmf.factorize`: starts descend on samples of the rows, the best go on with all rows, and one wins.

No single start is reliable, its early values tell little about its end, and descents on a quarter of the rows cost a quarter. So
several starts descend on samples; where they agree, or reach the bound of the singular values, there is nothing to search for.
Otherwise more of them descend on other samples, and the best are lifted to all rows and raced there. Columns of the winner are
exchanged and those of different contenders recombined as long as that helps; then random starts are tried with what effort is
left. Work is counted in steps on all data, never clocked: the same data give the same factors.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf import initialise
from cvxnmf.nmf.bounds import SPECTRAL
from cvxnmf.nmf.contender import Contender, Sample
from cvxnmf.nmf.data_matrix import MemoryMatrix
from cvxnmf.nmf.descent import Stopping
from cvxnmf.nmf.effort import Effort
from cvxnmf.nmf.initialise import Factors, Triples
from cvxnmf.nmf.losses import NMFLoss
from cvxnmf.nmf.progress import with_place
from cvxnmf.results import Iterate

#: Samples of the rows, and the fewest rows (and so many for each component) and entries of data that are sampled.
SAMPLES, SAMPLED_ROWS, ROWS_PER_COMPONENT, SAMPLED_ENTRIES = 4, 300, 12, 20_000
#: Starts without a pattern, and entries up to which they are tried.
UNEVEN_STARTS, FEW_ENTRIES = 6, 400
#: Components in excess, of those wanted, that are merged on each sample: different ones lead to different answers.
EXCESS = (1.5, 2.0, 1.25, 1.75)
#: Steps of a descent on a sample, and its tolerance; the tolerance of one on all data.
COARSE_STEPS, COARSE_TOLERANCE, FINE_TOLERANCE = 120, 1e-3, 1e-4
#: Relative spread of values up to which starts agree, are equal and the same: none, one or two exchanges are then enough.
AGREEMENT, EQUAL, SAME = 1e-3, 1e-4, 1e-5
#: Values within this factor of the tail of the singular values are worth a look at the bound; within this one they are optimal.
NEAR_BOUND, AT_BOUND = 1.15, 1.0007
#: Tails below this share of the energy are rounding; one that has settled changes by less than this share.
ROUNDING, SETTLED_TAIL = 1e-9, 3e-4
#: Contenders that are lifted, the steps they take before the best is looked for, and how near to it runners-up of a sample are.
LIFTED, LIFTED_STEPS, RUNNER_UP = 4, 15, 1.02
#: Last starts without a pattern, the share of the effort in which one may begin, and how near to the winner it must come.
RESTARTS, RESTART_SHARE, RESTARTED = 20, 0.8, 1.01
#: Share of the effort for samples, and the same where starts need more than the last share of the coarse steps.
SEARCH_SHARE, SLOW_SEARCH_SHARE, SLOW = 0.5, 0.2, 0.8
#: Steps of a new contender before it is looked at; what lowers the loss by less than this share is the same basin.
LOOK, SAME_BASIN = 16, 3e-4


class Attempts(NamedTuple):
    """When attempts to better the best of a race end, and how near to it they must come to go on.

    So many in vain, so many at all; how near after the first look, steps up to a second one, and how near then.
    """

    in_vain: int
    most: int
    near: float
    second_look: int
    very_near: float


COARSE_EXCHANGES, FINE_EXCHANGES = Attempts(1, 8, 1.05, 12, 1.02), Attempts(6, 12, 1.03, 12, 1.003)
#: Exchanges in vain before columns of different contenders are recombined, and of how many; fewer where all had agreed.
FEW_EXCHANGES, RECOMBINATIONS, PARENTS = 2, Attempts(8, 40, 1.03, 44, 1.003), 4
FEW_RECOMBINATIONS = RECOMBINATIONS._replace(in_vain=3)
#: Columns that stick out, singular vectors, rows that stick out, from one decomposition; the last one where effort is left.
FIRST_STARTS = (initialise.standing_columns, initialise.nndsvd, initialise.successive_projection)
#: First starts, a merged one of each sample, those that are lifted, exchanged and recombined, and the last in full precision.
MOST_ATTEMPTS = COARSE_EXCHANGES.most + FEW_EXCHANGES + RECOMBINATIONS.most + FINE_EXCHANGES.most
MOST_STARTS = len(FIRST_STARTS) + UNEVEN_STARTS + len(EXCESS) + LIFTED + MOST_ATTEMPTS + RESTARTS + 1


class Race:
    """A race of contenders on data whose rows are the longer side."""

    def __init__(self, data: MemoryMatrix, k: int, loss: NMFLoss, stopping: Stopping) -> None:
        self.exact, self.data, self.k, self.loss = data, data, k, loss
        self.stopping = stopping._replace(callback=with_place(stopping.callback, self._place))
        self.effort = Effort(data, k, loss, stopping.max_iter, self._sample_count() > 1)
        self.fine_tolerance = max(stopping.tol, FINE_TOLERANCE)
        self.coarse_tolerance = max(stopping.tol, COARSE_TOLERANCE)
        self.search_share = SEARCH_SHARE
        self.on_all_rows: list[Contender] = []
        self.on_samples: list[Contender] = []

    def _place(self, iterate: Iterate) -> tuple[str, float]:
        """Which contender of the race takes a step, of how many at most, and the share of the effort that is spent."""
        return f"start {len(self.on_samples) + len(self.on_all_rows)} of {MOST_STARTS} at most", self.effort.share

    @property
    def best(self) -> Contender | None:
        """The best contender of the race so far; one on a sample is lifted to all rows if there is no other."""
        if not self.on_all_rows and self.on_samples:
            self._lift(_best(self.on_samples))
        return _best(self.on_all_rows) if self.on_all_rows else None

    def run(self) -> Contender:
        """Run the race: starts on samples of the rows, the best on all rows; return the winner."""
        rows = self._sampled_rows()
        triples = initialise.leading_triples(self._sample(rows[0]).data.matrix, self.k)
        self._choose_precision(rows[0], triples)
        first = self._sample(rows[0])
        contenders: list[Contender] = []
        for start in FIRST_STARTS:
            if len(contenders) < 2 or not self.effort.exhausted(self.search_share):
                contenders.append(self._enter(first, start(first.data.matrix, self.k, triples)))
        contenders += [self._enter(first, uneven) for uneven in self._uneven_starts()]
        steps = float(np.mean([contender.steps for contender in contenders]))
        self.effort.restrict(steps)
        self.search_share = SLOW_SEARCH_SHARE if steps > SLOW * COARSE_STEPS else SEARCH_SHARE
        if self._reaches_bound(first, contenders, triples):
            return self._polish(_best(self.on_all_rows))
        agreed = _agree(contenders, AGREEMENT)
        winner, decided = self._race_on_all_rows(self._search(rows, contenders, agreed))
        return self._polish(self._improve(winner, decided, agreed))

    def _search(self, rows: list[NDArray[np.intp] | None], contenders: list[Contender], agreed: bool) -> list[Contender]:
        """The leaders of the race: of a second opinion or one merged start where all agree, else of all samples and excesses."""
        if agreed and rows[1] is not None:
            return self._second_opinion(contenders, rows[1])
        leaders = self._lead(self._sample(rows[0]), contenders, EXCESS[0])
        for others, excess in zip(rows[1:], EXCESS[1:], strict=True) if not agreed else ():
            if self.effort.exhausted(self.search_share):
                break
            leaders += self._lead(self._sample(others), [], excess)
        return leaders

    def _uneven_starts(self) -> list[Factors]:
        """Random starts of a race for few entries: deterministic starts of symmetric data agree on poor answers."""
        if self.data.storage.entries.size > FEW_ENTRIES:
            return []
        return list(islice(self._random_starts(), UNEVEN_STARTS))

    def _random_starts(self) -> Iterator[Factors]:
        """Starts without a pattern, the same ones for the same data."""
        rng = np.random.default_rng(self.data.shape)
        while True:
            yield initialise.random(self.data.matrix, self.k, rng)

    def _second_opinion(self, contenders: list[Contender], rows: NDArray[np.intp]) -> list[Contender]:
        """The best contender of a sample, and the best start on other rows, whose sample may favour another basin."""
        other = self._sample(rows)
        return [_best(contenders), self._enter(other, initialise.standing_columns(other.data.matrix, self.k))]

    def _sample_count(self) -> int:
        """Samples that the rows of the race are cut into: one where they are few, or entries are missing."""
        (m, n), parts = self.data.shape, SAMPLES if self.data.complete else 1
        while parts > 1 and (m // parts < max(ROWS_PER_COMPONENT * self.k, SAMPLED_ROWS) or m * n < SAMPLED_ENTRIES):
            parts //= 2
        return parts

    def _sampled_rows(self) -> list[NDArray[np.intp] | None]:
        """Samples of the race: rows in the order of their norms, every fourth in one; all rows, None, where there are few."""
        parts = self._sample_count()
        if parts == 1:
            return [None] * len(EXCESS)
        A = self.data.storage.A
        squares = np.asarray(A.multiply(A).sum(axis=1)).ravel() if sp.issparse(A) else np.einsum("ij,ij->i", A, A)
        order = np.argsort(squares, kind="stable")
        return [np.sort(order[number % parts :: parts]) for number in range(len(EXCESS))]

    def _sample(self, rows: NDArray[np.intp] | None) -> Sample:
        """The sample of a race with some rows, or with all."""
        return self.all_rows if rows is None else Sample(self.data.sample(rows), len(rows) / self.data.shape[0])

    def _choose_precision(self, rows: NDArray[np.intp] | None, triples: Triples) -> None:
        """Race in single precision where that is faster, in double where so little energy is left that values would cancel."""
        data = self._sample(rows).data
        if _tail(data, triples[1]) < self.loss.single_above * data.energy:
            self.exact = self.data = self.data.in_double_precision()
        elif self.k >= self.loss.single_from:
            self.data = self.data.in_single_precision()

    @property
    def all_rows(self) -> Sample:
        """The sample of all rows in the precision of the race."""
        return Sample(self.data, 1.0)

    def _enter(self, sample: Sample, start: Factors) -> Contender:
        """A new contender from a start, descended as far as that is cheap on its sample."""
        contender = Contender(self, sample, initialise.balance_columns(*start))
        if not sample.whole:
            self.on_samples.append(contender)
        contender.run(COARSE_STEPS, self.coarse_tolerance)
        return contender

    def _lead(self, sample: Sample, contenders: list[Contender], excess: float) -> list[Contender]:
        """The best contender of a sample, columns merged and exchanged, and those nearly as good."""
        merging = (excess + 1.0) / 2.0 * (initialise.SETTLING + initialise.BETWEEN * self.k * (excess - 1.0))
        self.effort.spent += 0.7 * sample.share * merging
        contenders = [*contenders, self._enter(sample, initialise.merge(sample.data.matrix, self.k, excess, sample.data.working))]
        leader = self._exchange(_best(contenders), COARSE_EXCHANGES, self.coarse_tolerance, self.search_share + 0.1)
        if sample.whole:
            return [leader]
        near = [other for other in contenders if other is not leader and other.value < RUNNER_UP * leader.value]
        return [leader, *sorted(near, key=lambda other: other.value)[:2]]

    def _lift(self, contender: Contender) -> Contender:
        """The contender of a sample lifted to all rows: U anew by least squares for its V."""
        if contender.lifted is None:
            V = contender.factors[1]
            U = initialise.least_squares_rows(self.data.storage.times(V), V, sweeps=6)
            contender.lifted = Contender(self, self.all_rows, (U, V), wait=0, parent=contender)
        return contender.lifted

    def _reaches_bound(self, sample: Sample, contenders: list[Contender], triples: Triples) -> bool:
        """Whether the best contender is as good as the singular values allow, so that the race is over.

        A few iterations may leave too much to the tail of a flat spectrum: two more must find as much, or all came to the same.
        """
        contender, known = _best(contenders), self.loss.name in SPECTRAL and self.data.complete
        if not known or contender.value > NEAR_BOUND * _tail(sample.data, triples[1]):
            return False
        lifted = self._lift(contender)
        triples = triples if sample.whole else initialise.leading_triples(self.data.matrix, self.k)
        tail = _tail(self.data, triples[1])
        while lifted.value > AT_BOUND * tail and lifted.value - 2.0 * lifted.predicted_decrease(10) < AT_BOUND * tail:
            if lifted.run(10, self.fine_tolerance):
                break
        if lifted.value > AT_BOUND * tail or _agree(contenders, SAME):
            return lifted.value <= AT_BOUND * tail
        lower = _tail(self.data, initialise.refined_values(self.data.matrix, triples[2]))
        return lower >= (1.0 - SETTLED_TAIL) * tail and lifted.value <= AT_BOUND * lower

    def _is_exact(self, contender: Contender) -> bool:
        """Whether a contender fits its rows but for rounding, so that nothing is left to gain."""
        return contender.value <= ROUNDING * self.loss.scale(contender.sample.data)

    def _race_on_all_rows(self, leaders: list[Contender]) -> tuple[Contender, Attempts]:
        """The winner of the leaders on all rows, and how long to exchange its columns: less where others came to its value."""
        for leader in leaders:
            self._lift(leader)
        lifted = sorted(self.on_all_rows, key=lambda contender: contender.value)[:LIFTED]
        for contender in lifted:
            contender.run(LIFTED_STEPS, self.fine_tolerance)
        winner = _best(lifted)
        winner.run(self.effort.steps_left(), self.fine_tolerance)
        self._settle(winner, 1.0)
        for contender in lifted:
            while contender is not winner and contender.steps < 150 and not self.effort.exhausted():
                if contender.value - 1.5 * contender.predicted_decrease(5) >= winner.value * (1.0 - 1e-5):
                    break
                if contender.run(5, self.fine_tolerance):
                    break
        best = _best(lifted)
        near = [[other for other in lifted if other.value <= (1.0 + spread) * best.value] for spread in (SAME, EQUAL, AGREEMENT)]
        counts = [len({other.origin for other in found}) for found in near]
        enough = min(3, len(lifted))
        in_vain = next((vain for vain, count in enumerate(counts) if count >= enough), FINE_EXCHANGES.in_vain)
        return best, FINE_EXCHANGES._replace(in_vain=in_vain)

    def _improve(self, winner: Contender, decided: Attempts, agreed: bool) -> Contender:
        """The winner after exchanges and recombinations of columns, or a start without a pattern; less of it where all agreed."""
        few = decided._replace(in_vain=min(FEW_EXCHANGES, decided.in_vain))
        winner = self._exchange(winner, few, self.fine_tolerance, 1.0)
        if not agreed or decided.in_vain >= FEW_EXCHANGES:
            child = self._recombine(winner, FEW_RECOMBINATIONS if agreed else RECOMBINATIONS)
            winner = self._exchange(child, decided, self.fine_tolerance, 1.0, few.in_vain if child is winner else 0)
        return winner if agreed and decided.in_vain < FINE_EXCHANGES.in_vain else self._restart(winner)

    def _exchange(self, contender: Contender, terms: Attempts, tol: float, share: float, vain: int = 0) -> Contender:
        """The contender after columns were exchanged, as long as that lowers the loss; so many were in vain before."""
        tries = vain
        while vain < terms.in_vain and tries < terms.most and not (self.effort.exhausted(share) or self._is_exact(contender)):
            A = contender.sample.data.matrix
            start = initialise.exchange_columns(A, *contender.factors, vain)
            other = self._try(Contender(self, contender.sample, start, wait=2, parent=contender), contender.value, terms, tol)
            tries, vain = tries + 1, vain + 1
            if other.value < contender.value * (1.0 - SAME_BASIN):
                vain = 0
            contender = _best([contender, other])
        return contender

    def _try(self, contender: Contender, best: float, terms: Attempts, tol: float) -> Contender:
        """Descend with a new contender that is near the best value after a few steps, and to the end if it comes very near."""
        contender.run(LOOK, 0.0)
        if contender.value < terms.near * best:
            contender.run(terms.second_look, tol)
        if contender.value < terms.very_near * best:
            contender.run(self.effort.steps_left(), tol)
        return contender

    def _recombine(self, winner: Contender, terms: Attempts) -> Contender:
        """The winner, or what is better of factors with columns of two good contenders, as long as some are."""
        rng, tries, vain = np.random.default_rng(self.data.shape), 0, 0
        while vain < terms.in_vain and tries < terms.most and not self.effort.exhausted(RESTART_SHARE):
            parents = self._parents()
            if len(parents) < 2 or self._is_exact(winner):
                break
            one, other = (parents[number] for number in rng.choice(len(parents), 2, replace=False))
            start = initialise.recombine(one.factors, other.factors, rng)
            child = self._try(Contender(self, self.all_rows, start, wait=2), winner.value, terms, self.fine_tolerance)
            tries, vain = tries + 1, vain + 1
            if child.value < winner.value * (1.0 - SAME_BASIN):
                vain = 0
            winner = _best([winner, child])
        return winner

    def _parents(self) -> list[Contender]:
        """The best contenders of different origins and values on all rows."""
        found: list[Contender] = []
        for contender in sorted(self.on_all_rows, key=lambda contender: contender.value):
            if all(contender.origin is not one.origin and contender.value > (1.0 + SAME) * one.value for one in found):
                found.append(contender)
        return found[:PARENTS]

    def _restart(self, winner: Contender) -> Contender:
        """The winner, or what is better of starts without a pattern, as many as there is effort left for."""
        for start in islice(self._random_starts(), UNEVEN_STARTS, UNEVEN_STARTS + RESTARTS):
            if self.effort.exhausted(RESTART_SHARE) or self._is_exact(winner):
                break
            other = self._enter(self.all_rows, start)
            if other.value < RESTARTED * winner.value:
                other.run(self.effort.steps_left(), self.fine_tolerance)
                winner = _best([winner, self._exchange(other, FINE_EXCHANGES, self.fine_tolerance, 1.0)])
        return winner

    def _settle(self, contender: Contender, share: float) -> None:
        """Descend with a contender until little more is to be expected; one that has not settled by now is slow."""
        while contender.predicted_decrease(10) > 3.0 * self.fine_tolerance * contender.value and not self.effort.exhausted(share):
            contender.solve_exactly()
            if contender.run(10, 1e-2 * self.fine_tolerance):
                return

    def _polish(self, contender: Contender) -> Contender:
        """Descend with the winner to the user's tolerance, in the precision of the data where that is below the race's."""
        self._settle(contender, 1.15)
        if self.stopping.tol < FINE_TOLERANCE:
            if self.data is not self.exact:
                contender = Contender(self, Sample(self.exact, 1.0), contender.factors, wait=0)
            contender.run(self.stopping.max_iter, self.stopping.tol)
        return contender


def _best(contenders: list[Contender]) -> Contender:
    """The contender of least loss in a race."""
    return min(contenders, key=lambda contender: contender.value)


def _agree(contenders: list[Contender], spread: float) -> bool:
    """Whether all contenders of a race came to nearly one value."""
    values = [contender.value for contender in contenders]
    return max(values) <= (1.0 + spread) * min(values)


def _tail(data: MemoryMatrix, values: FloatArray) -> float:
    """The energy of the data beyond the leading singular values, a lower bound for the race, not less than rounding."""
    return max(data.energy - float(np.sum(values**2)), ROUNDING * data.energy)
