"""Multiplicative updates (Lee & Seung 1999)."""

from __future__ import annotations

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.losses import VObjective
from cvxnmf.nmf.updates.rule import Rule, lifted_entry


class Multiplicative(Rule[VObjective]):
    """``X * negative / positive`` part of the gradient; entries near zero with a negative gradient are lifted."""

    def update(self, objective: VObjective, X: FloatArray) -> FloatArray:
        """One multiplication."""
        negative, positive = objective.gradient_parts(X)
        lift = lifted_entry(objective, X)
        new = X * (negative / np.where(positive > 0, positive, np.finfo(np.float64).tiny))
        new[~np.isfinite(new)] = 0.0
        return np.where((new < lift) & (negative > positive), lift, new)
