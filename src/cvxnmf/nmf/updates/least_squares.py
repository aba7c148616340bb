"""Alternating nonnegative least squares (Kim & Park 2011)."""

from __future__ import annotations

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.nnls import nnls_rows
from cvxnmf.nmf.losses import QuadraticObjective
from cvxnmf.nmf.updates.rule import Rule, row_values


class LeastSquares(Rule):
    """The exact minimiser by block principal pivoting; rows that rounding would make worse stay as they are."""

    def update(self, objective: QuadraticObjective, X: FloatArray) -> FloatArray:
        """Solve for all rows."""
        new = nnls_rows(objective.Q[None], objective.P, X > 0, regularise=True)
        worse = ~(row_values(objective, new) <= row_values(objective, X))
        new[worse] = X[worse]
        return new
