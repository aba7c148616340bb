"""What all update rules are: one better factor from the objective in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.losses import NMFLoss, QuadraticObjective, VObjective
from cvxnmf.nmf.storage import Storage

Objective = TypeVar("Objective", bound=VObjective)


class Rule(ABC, Generic[Objective]):
    """One update of one factor, for objectives of one kind."""

    #: Whether rows are treated on their own.
    by_rows = True

    @abstractmethod
    def update(self, objective: Objective, X: FloatArray) -> FloatArray:
        """A new factor at which the objective is not larger."""

    def multiplies(self, A: Storage, V: FloatArray) -> bool:
        """Whether the rule has a `one_pass` over such rows, which multiplies them itself."""
        return False

    def feasible_start(self, X: FloatArray, loss: NMFLoss) -> FloatArray:
        """A start that the rule can leave from: the loss must be finite there."""
        return loss.lift_zeros(X)


def lifted_entry(objective: VObjective, X: FloatArray) -> float:
    """What entries near zero are lifted to, in units of the whole factor."""
    return objective.negligible * (float(X.max()) if objective.largest is None else objective.largest)


def row_values(objective: QuadraticObjective, X: FloatArray) -> FloatArray:
    """The objective row by row, without its constant."""
    return np.asarray(np.einsum("ij,ij->i", X, X @ objective.Q - 2.0 * objective.P))
