"""Minimum volume: columns of V near one another, so that the rows of A fill the simplex they span (Leplat, Ang & Gillis 2019)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.momentum import Momentum
from cvxnmf.nmf.losses import NMFLoss, QuadraticObjective
from cvxnmf.nmf.updates.hals import SETTLED, hals_sweeps
from cvxnmf.nmf.updates.rule import Rule, row_values

#: Steps of an inner loop for one factor, and sweeps of coordinate descent.
INNER_STEPS, INNER_SWEEPS = 20, 4


class Volume(NamedTuple):
    """The penalty ``weight (log det(V'V + floor I) - k log floor)``, which is not negative; the weight 0 is none."""

    weight: float = 0.0
    floor: float = 1.0

    def value(self, V: FloatArray) -> float:
        """The penalty on the volume of V."""
        if not self.weight:
            return 0.0
        k = V.shape[1]
        return self.weight * float(np.linalg.slogdet(V.T @ V / self.floor + np.eye(k))[1])

    def tangent(self, V: FloatArray) -> FloatArray:
        """The matrix F with ``weight <F, V'V>`` above the concave penalty on the volume, up to a constant, touching it at V."""
        return np.asarray(self.weight * np.linalg.inv(V.T @ V + self.floor * np.eye(V.shape[1])))

    @classmethod
    def balancing(cls, share: float, loss: float, V: FloatArray) -> Volume:
        """The penalty on the volume that is a given share of a loss at V; its floor a tenth of the mean square of the columns."""
        floor = max(0.1 * float(np.vdot(V, V)) / V.shape[1], np.finfo(np.float64).tiny)
        unit = cls(1.0, floor).value(V)
        return cls(share * loss / max(unit, np.finfo(np.float64).tiny), floor)


class SimplexColumns(Rule[QuadraticObjective]):
    """Columns that sum to one, of little volume: projected gradient steps on the quadratic that lies above the objective."""

    by_rows = False

    def __init__(self, volume: Volume) -> None:
        self.volume = volume

    def update(self, objective: QuadraticObjective, X: FloatArray) -> FloatArray:
        """A few accelerated steps on columns in the simplex of little volume, restarted where the value would rise."""
        Q = objective.Q + self.volume.tangent(X)
        return np.ascontiguousarray(descend_in_simplex(objective.P, Q, X, columns=True))


class SmallVolume(Rule[QuadraticObjective]):
    """Free columns of little volume, by coordinate descent on the quadratic that lies above the objective."""

    by_rows = False

    def __init__(self, volume: Volume) -> None:
        self.volume = volume

    def update(self, objective: QuadraticObjective, X: FloatArray) -> FloatArray:
        """A few sweeps of coordinate descent on columns of little volume."""
        return hals_sweeps(X, objective.P, objective.Q + self.volume.tangent(X), INNER_SWEEPS, SETTLED)


class SimplexRows(Rule[QuadraticObjective]):
    """Update rule for rows in the simplex, which sum to one: shares."""

    def feasible_start(self, X: FloatArray, loss: NMFLoss) -> FloatArray:
        """The nearest start whose rows lie in the simplex."""
        return project_rows(X)

    def update(self, objective: QuadraticObjective, X: FloatArray) -> FloatArray:
        """A few accelerated steps on rows in the simplex."""
        return np.ascontiguousarray(descend_in_simplex(objective.P, objective.Q, X, columns=False))


def descend_in_simplex(P: FloatArray, Q: FloatArray, X: FloatArray, columns: bool) -> FloatArray:
    """Lower ``<XQ, X> - 2 <P, X>`` over nonnegative X whose columns, or rows, sum to one."""
    onto = (lambda Y: project_rows(Y.T).T) if columns else project_rows
    curvature = max(float(np.linalg.eigvalsh(Q)[-1]), np.finfo(np.float64).tiny)
    objective = QuadraticObjective(P, Q, 0.0, 0.0, 0.0)
    value, ahead, momentum = float(row_values(objective, X).sum()), X, Momentum()
    for _ in range(INNER_STEPS):
        new = onto(ahead - (ahead @ Q - P) / curvature)
        reached = float(row_values(objective, new).sum())
        if not reached <= value:
            if ahead is X:
                return X
            ahead, momentum = X, Momentum()
            continue
        ahead, X, value = new + momentum.extrapolation() * (new - X), new, reached
    return X


def project_rows(X: FloatArray) -> FloatArray:
    """The nearest matrix whose rows are nonnegative and sum to one."""
    ordered = -np.sort(-X, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, X.shape[1] + 1)
    last = np.count_nonzero(ordered > excess, axis=1) - 1
    return np.asarray(np.maximum(X - np.take_along_axis(excess, last[:, None], axis=1), 0.0))
