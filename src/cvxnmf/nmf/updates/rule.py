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
    """An update rule: one update of one factor, for objectives of one kind."""

    #: Whether rows are treated on their own.
    by_rows = True

    @abstractmethod
    def update(self, objective: Objective, X: FloatArray) -> FloatArray:
        """A new factor by the update rule, at which the objective is not larger."""

    def multiplies(self, A: Storage, V: FloatArray) -> bool:
        """Whether the update rule has a `one_pass` over such rows, which includes the products with the data."""
        return False

    def feasible_start(self, X: FloatArray, loss: NMFLoss) -> FloatArray:
        """A start that the update rule can leave from: the loss must be finite there."""
        return loss.lift_zeros(X)


def lifted_entry(objective: VObjective, X: FloatArray) -> float:
    """The value to which update rules lift entries near zero, in units of the whole factor."""
    return objective.negligible * (float(X.max()) if objective.largest is None else objective.largest)


def row_values(objective: QuadraticObjective, X: FloatArray) -> FloatArray:
    """The quadratic objective of an update rule, row by row, without its constant."""
    return np.asarray(np.einsum("ij,ij->i", X, X @ objective.Q - 2.0 * objective.P))
