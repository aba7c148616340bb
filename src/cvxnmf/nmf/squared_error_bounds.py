"""Bounds for squared error: singular values, and an ascent over the dual matrix N (docs/mathematics.md).

``||A||^2 - sum_{i <= k} sigma_i(A + N)^2`` is concave in N >= 0, with gradient minus twice the best approximation of rank k of
``A + N``: accelerated ascent with backtracking, and where singular values k and k + 1 meet, so that the bound has a kink, steps
of Polyak's length towards the value of the factorisation at hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import best_low_rank
from cvxnmf.linalg.momentum import Momentum
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.bound_goal import Found, Goal, observed_part

#: A gap that the singular values leave, relative to the value, which is not narrowed further without being asked.
NEARLY_CLOSED = 1e-3
#: Below this gap, relative to the value, there is nothing left to gain.
CLOSED = 1e-9
#: A step as short as this tells of a kink.
SHORTEST_STEP = 0.1
#: Steps of Polyak's length without progress before they are halved.
PATIENCE = 8


def squared_error_bounds(goal: Goal) -> Iterator[Found]:
    """The tail of the singular values, and where they can be computed often enough, a dual matrix."""
    A, symmetric, k = goal.scaled, goal.statement.symmetric, goal.statement.n_components
    if goal.is_full_rank(A):
        return
    if not goal.may_fill:
        yield from goal.found("lanczos", {})
        return
    part = observed_part(A, symmetric)
    if part is None or goal.is_full_rank(part.A):
        return
    yield from goal.found("tail", part.witness)
    k, left = min(k, *part.A.shape), goal.limits.decompositions(part.A.shape, goal.effort)
    if k == 1 or left == 0:  # of rank one, the best approximation is nonnegative
        return
    if goal.effort is None and not part.witness and goal.value - _tail(part.A, k, symmetric) <= NEARLY_CLOSED * goal.value:
        return
    N = best_dual_matrix(part.A, k, symmetric, goal.value, left)
    yield from goal.found("dual", part.witness | {"N": N})


def _tail(A: FloatArray, k: int, symmetric: bool) -> float:
    """What the best approximation of rank k leaves, up to rounding."""
    with single_thread(min(A.shape)):
        return float(np.vdot(A, A)) - best_low_rank(A, k, symmetric)[1]


def best_dual_matrix(A: FloatArray, k: int, symmetric: bool, value: float, effort: int) -> FloatArray:
    """Return the N >= 0 of the best bound found within the effort."""
    with single_thread(min(A.shape)):
        ascent = _Ascent(A, k, symmetric, value, effort)
        ascent.accelerate()
        ascent.approach()
    N = ascent.best_N
    return (N + N.T) / 2 if symmetric else N


class _Ascent:
    """The best N so far and what is left of the effort; energies are ``sum sigma_i^2`` of ``A + N``."""

    def __init__(self, A: FloatArray, k: int, symmetric: bool, value: float, effort: int) -> None:
        self.A, self.k, self.symmetric, self.value, self.left = A, k, symmetric, value, effort
        self.norm = float(np.vdot(A, A))
        self.best_N, self.least = np.zeros_like(A), np.inf

    @property
    def done(self) -> bool:
        """Whether the effort is spent or the gap is closed."""
        return self.left <= 0 or self.norm - self.least >= self.value * (1.0 - CLOSED)

    def evaluate(self, N: FloatArray) -> tuple[FloatArray, float]:
        """Best approximation of rank k of ``A + N``, and its energy."""
        self.left -= 1
        X, energy = best_low_rank(self.A + N, self.k, self.symmetric)
        if energy < self.least:
            self.best_N, self.least = N, energy
        return X, energy

    def accelerate(self) -> None:
        """Accelerated ascent with backtracking, until steps become short."""
        N = ahead = self.best_N
        X, energy = self.evaluate(ahead)
        step, momentum, before = 1.0, Momentum(), energy
        while not self.done and step > SHORTEST_STEP:
            following = np.maximum(0.0, ahead - step * X)
            move = following - ahead
            X_there, there = self.evaluate(following)
            if there > energy + 2.0 * float(np.vdot(X, move)) + float(np.vdot(move, move)) / step + 1e-13 * energy:
                step *= 0.5
                continue
            if there > before:
                momentum.restart(0.0)
            share = momentum.extrapolation()
            ahead, X, energy = following, X_there, there
            if share > 0:
                ahead = np.maximum(0.0, following + share * (following - N))
                X, energy = self.evaluate(ahead)
            N, before, step = following, there, 1.1 * step

    def approach(self) -> None:
        """Steps of Polyak's length towards the known value, halved when they bring nothing."""
        N, share, idle = self.best_N, 1.0, 0
        while not self.done and share > 1e-3:
            least = self.least
            X, energy = self.evaluate(N)
            idle = 0 if least - self.least > 1e-7 * abs(self.value - self.norm + least) else idle + 1
            if idle >= PATIENCE:
                N, share, idle = self.best_N, 0.5 * share, 0
                continue
            free = np.where((N > 0) | (X < 0), X, 0.0)
            slope = 2.0 * float(np.vdot(free, free))
            if slope == 0:
                return
            N = np.maximum(0.0, N - min(1.0, share * (self.value - self.norm + energy) / slope) * X)
