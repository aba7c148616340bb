"""One step of a descent: U by its rule and V by its rule, or one factor of symmetric data."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray, column_sums
from cvxnmf.nmf.data_matrix import DataMatrix, FactorRows, Penalty
from cvxnmf.nmf.extrapolation import Extrapolation
from cvxnmf.nmf.losses import CANCELLING, NMFLoss, VObjective
from cvxnmf.nmf.methods import Rules
from cvxnmf.nmf.updates.rule import Rule
from cvxnmf.nmf.updates.symmetric import SymmetricRule, SymmetricTerms

#: Smallest share of its step that the multiplicative symmetric rule is asked for.
SMALLEST_SHARE = 1e-4
#: Columns of U and V whose sums differ by more than this factor are brought to the same size.
UNBALANCED = 1e40


class Objective:
    """A loss over the observed entries of the data, and penalties on the factors."""

    def __init__(self, data: DataMatrix, loss: NMFLoss, penalty: Penalty) -> None:
        self.data, self.loss, self.penalty = data, loss, penalty

    @cached_property
    def scale(self) -> float:
        """Size of the observed data, in the units of the loss of the descent."""
        return self.loss.scale(self.data)

    @property
    def scale_free(self) -> bool:
        """Whether the objective sees only the product UV', so that columns may be rescaled, and both factors are in memory."""
        return self.data.in_memory and not self.penalty.any

    def evaluate(self, U: FactorRows, V: FloatArray) -> float:
        """The objective of both factors, loss and penalties, computed entry by entry where affordable."""
        return self.data.loss_value(self.loss, U, V) + U.penalty + self.penalty.value(V, 1) + self.penalty.volume.value(V)

    def value(self, in_V: VObjective, U: FactorRows, V: FloatArray) -> float:
        """The objective of a step from its form in V at hand, entry by entry only where that would cancel."""
        value = in_V.value(V) - self.data.filled_loss(self.loss, U, V)
        if value - self.penalty.value(V, 1) < CANCELLING * max(self.scale, abs(in_V.constant)):
            return self.evaluate(U, V)
        return float(value) + U.penalty + self.penalty.volume.value(V)


class Alternating:
    """The step of an alternating method: U by its rule, then V by its rule, extrapolated if the method asks for it."""

    symmetric = False

    def __init__(self, objective: Objective, rules: Rules, U: FloatArray, V: FloatArray) -> None:
        self.objective, self.rules, self.extrapolation = objective, rules, rules.extrapolation
        self.U = objective.data.hold(rules.U.feasible_start(U, objective.loss), objective.penalty)
        self.V = rules.V.feasible_start(V, objective.loss)
        self.value = objective.evaluate(self.U, self.V)
        self.steps = 0
        self.decreases = (0.0, 0.0)  # of the last two steps
        self._restart()

    def _restart(self) -> None:
        """Restart the extrapolation of alternating updates from the current V."""
        self.last_V, self.next_V = self.V, self.V

    def step(self) -> None:
        """One alternating update of both factors; where extrapolation made the value rise, a plain one instead."""
        self.steps += 1
        ahead = self.extrapolation if self.extrapolation is not None and self.steps > self.extrapolation.wait else None
        if ahead is not None and self.steps == ahead.wait + 1 and self.decreases[0] > 0.0:
            ahead.begin(self.decreases[1] / self.decreases[0])
        rules = self.rules.later if ahead is not None and self.rules.later is not None else (self.rules.U, self.rules.V)
        U, V, value = self._update(rules, ahead)
        if ahead is not None and not value <= self.value:
            ahead.slow_down()
            self._restart()
            U, V, value = self._update(rules, None)
        elif ahead is not None:
            ahead.speed_up()
        if self.rules.safe is not None and not value <= self.value:
            self._restart()
            U, V, value = self._update(self.rules.safe, None)
        self.decreases = self.decreases[1], self.value - value
        self.U, self.V, self.value = U, V, value
        if self.rules.safe is not None and self.objective.scale_free:
            self._balance()

    def solve_exactly(self) -> None:
        """Go on with the exact rules of the alternating method, where there are any."""
        if self.rules.exact is not None:
            self.rules = self.rules._replace(later=self.rules.exact)

    def _balance(self) -> None:
        """Bring columns of U and V to the same size where bold alternating steps let one side grow and the other shrink."""
        U = self.objective.data.collect(self.U)
        u, v = column_sums(U), column_sums(self.V)
        if ((u > UNBALANCED * v) | (v > UNBALANCED * u)).any():
            ratio = np.sqrt(v / np.where(u > 0, u, 1.0), where=(u > 0) & (v > 0), out=np.ones_like(u))
            self.U, self.V = self.objective.data.hold(U * ratio, self.objective.penalty), self.V / ratio
            self._restart()

    def _update(self, rules: tuple[Rule[Any], Rule[Any]], ahead: Extrapolation | None) -> tuple[FactorRows, FloatArray, float]:
        """Factors after one alternating update, and the value; for Kullback-Leibler in row chunks the one before V is updated."""
        objective = self.objective
        U, in_V = objective.data.update_rows(rules[0], objective.loss, objective.penalty, self.U, self.next_V, ahead)
        V = rules[1].update(in_V, self.next_V)
        value = objective.value(in_V, U, V)
        self.next_V, self.last_V = V if ahead is None else ahead.point(V, self.last_V), V
        return U, V, value


class Symmetric:
    """The step for symmetric data, U = V by a symmetric rule; a rule that lets the value rise is asked for a smaller step."""

    symmetric = True

    def __init__(self, objective: Objective, rule: SymmetricRule, U: FloatArray) -> None:
        self.objective, self.rule = objective, rule
        self.data = objective.data
        self.terms = SymmetricTerms(self.data.storage, sum(objective.penalty.l1), sum(objective.penalty.l2))
        self.V = objective.loss.lift_zeros(U)
        self.U = self.data.hold(self.V, objective.penalty)
        self.value = objective.evaluate(self.U, self.V)
        self.share = 0.5

    def step(self) -> None:
        """One update of the symmetric factor; after a rise a smaller one, unless the rule knows no smaller one."""
        self.data.impute(self.V, self.V)
        U, V, value = self._update()
        while value > self.value and self.share > SMALLEST_SHARE:
            self.share /= 2.0
            before, (U, V, value) = V, self._update()
            if np.array_equal(V, before):
                break
        self.U, self.V, self.value = U, V, value

    def _update(self) -> tuple[FactorRows, FloatArray, float]:
        """The factor of symmetric data after its rule, and the value there."""
        objective, V = self.objective, self.rule(self.terms, self.V, self.share)
        U = self.data.hold(V, objective.penalty)
        return U, V, objective.value(self.data.column_objective(objective.loss, objective.penalty, V), U, V)
