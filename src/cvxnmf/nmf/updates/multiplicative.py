"""Multiplicative updates (Lee & Seung 1999)."""

from __future__ import annotations

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.losses import VObjective
from cvxnmf.nmf.updates.rule import Rule, lifted_entry


class Multiplicative(Rule[VObjective]):
    """``X * (negative / positive)^exponent``, parts of the gradient; entries near zero with a negative gradient are lifted.

    With the exponent of the objective, which is 1 but for betas outside of 1 to 2, the objective never rises; the bold rule takes
    1 for all, which gets further and hardly ever rises, so that its caller has to look at the value.
    """

    def __init__(self, bold: bool = False) -> None:
        self.bold = bold

    def update(self, objective: VObjective, X: FloatArray) -> FloatArray:
        """One multiplicative update of a factor."""
        negative, positive = objective.gradient_parts(X)
        lift = lifted_entry(objective, X)
        ratio = negative / np.where(positive > 0, positive, np.finfo(np.float64).tiny)
        new = X * (ratio if self.bold or objective.exponent == 1.0 else ratio**objective.exponent)
        new[~np.isfinite(new)] = 0.0
        return np.where((new < lift) & (negative > positive), lift, new)
