"""Alternating nonnegative least squares (Kim & Park 2011), and quasi-Newton steps on them (Zdunek & Cichocki 2007)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compiled
from cvxnmf.linalg.nnls import nnls_rows
from cvxnmf.nmf.losses import QuadraticObjective
from cvxnmf.nmf.updates.rule import Rule, row_values


class LeastSquares(Rule[QuadraticObjective]):
    """The exact least squares factor by block principal pivoting; rows that rounding would make worse stay as they are."""

    def update(self, objective: QuadraticObjective, X: FloatArray) -> FloatArray:
        """Solve the nonnegative least squares problems of all rows of a factor."""
        new = nnls_rows(objective.Q[None], objective.P, X > 0, regularise=True)
        _keep_better(objective.P, objective.Q, X, new)
        return new


@compiled
def _keep_better(P: Any, Q: Any, old: Any, new: Any) -> None:
    """Put back rows x of a least squares factor whose ``x'Qx - 2 p'x`` has grown, or is not a number."""
    (m, k), values = P.shape, np.empty(2)
    for i in range(m):
        for side in range(2):
            x, total = old[i] if side == 0 else new[i], 0.0
            for r in range(k):
                slope = -2.0 * P[i, r]
                for s in range(k):
                    slope += Q[r, s] * x[s]
                total += x[r] * slope
            values[side] = total
        if not values[1] <= values[0]:
            for r in range(k):
                new[i, r] = old[i, r]


class QuasiNewton(Rule[QuadraticObjective]):
    """Quasi-Newton least squares: ``X - t G (Q + lambda I)^-1`` projected, fixed zeros left out, t by row; or a gradient step."""

    def __init__(self, steps: int = 2, regularisation: float = 1e-3) -> None:
        self.steps, self.regularisation = steps, regularisation

    def update(self, objective: QuadraticObjective, X: FloatArray) -> FloatArray:
        """A few quasi-Newton steps on the least squares problem of a factor."""
        Q, k = objective.Q, len(objective.Q)
        curvature = float(np.trace(Q))
        if not curvature > 0:
            return X
        factor = sl.cho_factor(Q + self.regularisation * curvature / k * np.eye(k), check_finite=False)
        for _ in range(self.steps):
            G = X @ Q - objective.P
            G[(X <= 0) & (G > 0)] = 0.0
            step = sl.cho_solve(factor, G.T, check_finite=False).T
            best = np.maximum(X - G / curvature, 0.0)  # the trace bounds the largest eigenvalue: always a descent
            values = row_values(objective, best)
            for t in (1.0, 0.5, 0.25, 0.1):
                new = np.maximum(X - t * step, 0.0)
                new_values = row_values(objective, new)
                better = new_values < values
                best[better], values[better] = new[better], new_values[better]
            X = best
        return X
