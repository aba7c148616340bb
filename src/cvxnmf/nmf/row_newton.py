"""Projected Newton steps for many small problems at once, one per row of codes ``w >= 0``."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np

from cvxnmf.linalg.arrays import FloatArray

#: Smallest eigenvalue, at unit diagonal, from which least squares are solved as they stand.
WELL_POSED = 3e-8
#: Steps of multiplication before Newton's, and the most of Newton's.
WARMING, NEWTON = 20, 200
#: Such steps from codes that are nearly the best, and the share of equal codes that is added so that no component is lost.
WARMED, UNIFORM = 2, 1e-3


class RowProblem(Protocol):
    """Convex problems of the rows of codes w for projected Newton steps, scaled so that codes sum to about one."""

    @property
    def stationary(self) -> float:
        """Stationarity at which Newton's steps count a row of codes as solved."""

    def of(self, rows: Any) -> Self:
        """The Newton problems of some of the rows of codes."""

    def even_codes(self) -> FloatArray:
        """Equal codes that sum to one, to start Newton's steps from."""

    def value(self, w: FloatArray) -> FloatArray:
        """The objective of each row of codes; infinite or NaN outside of its domain."""

    def slope_and_curvature(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient, and a positive semidefinite matrix in place of the Hessian, of each row of codes for Newton's step."""

    def multiply(self, w: FloatArray) -> FloatArray:
        """A multiplicative step of codes, before Newton's, that never lets the objective rise."""


def solve_rows(problem: RowProblem, start: FloatArray | None) -> FloatArray:
    """Solve all rows of codes: multiplicative steps, then Newton steps in the positive entries, projected and backtracked."""
    answer = problem.even_codes()
    if start is not None:
        answer = (1.0 - UNIFORM) * start + UNIFORM * answer
    for _ in range(WARMING if start is None else WARMED):
        answer = problem.multiply(answer)
    left, w = np.arange(len(answer)), answer.copy()
    for _ in range(NEWTON):
        further, error = _newton_step(problem, w)
        going = error > problem.stationary
        left, w = left[going], further[going]
        answer[left] = w
        if not len(left):
            break
        problem = problem if going.all() else problem.of(going)
    return answer


def _newton_step(problem: RowProblem, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One projected Newton step of every row of codes, and how far from stationary each row was before."""
    k = w.shape[1]
    slope, curvature = problem.slope_and_curvature(w)
    error = np.abs(w - np.maximum(0.0, w - slope)).max(axis=1)
    bound = (w <= np.minimum(1e-3, error)[:, None]) & (slope > 0)
    damping = WELL_POSED * np.maximum(np.einsum("rii->r", curvature) / k, 1e-6)
    curvature = curvature + damping[:, None, None] * np.eye(k)
    free = ~bound
    system = np.where(free[:, :, None] & free[:, None, :], curvature, np.eye(k))
    step = np.linalg.solve(system, np.where(free, -slope, -w)[:, :, None])[:, :, 0]
    return _backtrack(problem, w, slope, step), error


def _backtrack(problem: RowProblem, w: FloatArray, slope: FloatArray, step: FloatArray) -> FloatArray:
    """The row Newton step ``max(0, w + t step)`` with the first t = 1, 1/2, ... of sufficient descent, else the other method."""
    before = problem.value(w)
    answer, left, length = w.copy(), np.arange(len(w)), 1.0
    while len(left) and length > 1e-9:
        part = problem if len(left) == len(w) else problem.of(left)
        trial = np.maximum(0.0, w[left] + length * step[left])
        promised = 1e-4 * (slope[left] * (trial - w[left])).sum(axis=1)
        good = part.value(trial) <= before[left] + np.minimum(promised, 0.0) + 1e-15 * np.maximum(1.0, np.abs(before[left]))
        answer[left[good]] = trial[good]
        left, length = left[~good], 0.5 * length
    if len(left):
        answer[left] = problem.of(left).multiply(w[left])
    return answer
