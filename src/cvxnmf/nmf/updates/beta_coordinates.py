"""Coordinate descent on a beta divergence, a scalar Newton step per coordinate."""

from __future__ import annotations

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.beta_divergence import BetaObjective
from cvxnmf.nmf.beta_kernels import CHEAP, coordinate_sweep
from cvxnmf.nmf.updates.multiplicative import Multiplicative
from cvxnmf.nmf.updates.rule import Rule, lifted_entry


class BetaCoordinates(Rule[BetaObjective]):
    """Coordinate descent on a beta divergence by Newton steps; for betas without `CHEAP` powers a bold multiplication.

    Steps may pass the minimum, so that the caller has to look at the value, which comes along if `count`.
    """

    def __init__(self, count: bool) -> None:
        self.count, self.multiplicative = count, Multiplicative(bold=True)

    def update(self, objective: BetaObjective, X: FloatArray) -> FloatArray:
        """One pass of Newton steps over the coordinates of a factor in a beta divergence."""
        loss = objective.loss
        if loss.beta not in CHEAP:
            return self.multiplicative.update(objective, X)
        new, floor, H = X.copy(), lifted_entry(objective, X), np.ascontiguousarray(objective.V.T)
        l1, l2 = objective.l1 / loss.unit, objective.l2 / loss.unit

        def work(rows: slice, A: FloatArray, weights: FloatArray) -> float:
            return float(coordinate_sweep(A, weights, new[rows], H, loss.beta, l1, l2, floor, self.count))

        total = objective.over_blocks(work)
        if self.count:
            objective.varying = new, total
        return new
