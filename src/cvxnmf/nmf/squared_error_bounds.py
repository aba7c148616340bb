"""Bounds for squared error: singular values, and an ascent over the dual matrix N (docs/mathematics.md).

``||A||^2 - sum_{i <= k} sigma_i(A + N)^2`` is concave in N >= 0, with gradient minus twice the best approximation of rank k of
``A + N``: accelerated ascent with backtracking, and where singular values k and k + 1 meet, so that the bound has a kink, Douglas
and Rachford's splitting between ``Y >= A`` and the leading singular values of ``Y = A + N``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import best_low_rank, eigenpairs
from cvxnmf.linalg.momentum import Momentum
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.bound_goal import Found, Goal, observed_part

#: A gap that the singular values leave, relative to the value, which is not narrowed further without being asked.
NEARLY_CLOSED = 1e-3
#: Below this gap, relative to the value, there is nothing left to gain.
CLOSED = 1e-9
#: A step as short as this tells of a kink.
SHORTEST_STEP = 0.1
#: Weight of the distance in a step of the splitting, and the steps after which its bound is computed.
DISTANCE, STEPS_PER_BOUND = 0.5, 10
#: Halvings that find the level of singular values that meet.
BISECTIONS = 50


def squared_error_bounds(goal: Goal) -> Iterator[Found]:
    """Squared error bounds: the tail of singular values, and where these can be computed often, a dual matrix."""
    A, symmetric, k = goal.scaled_data, goal.statement.symmetric, goal.statement.n_components
    if goal.is_full_rank(A):
        return
    if not goal.may_fill:
        yield from goal.prove_bound("lanczos", {})
        return
    part = observed_part(A, symmetric)
    if part is None or goal.is_full_rank(part.A):
        return
    yield from goal.prove_bound("tail", part.witness)
    k, left = min(k, *part.A.shape), goal.limits.decompositions(part.A.shape, goal.effort)
    if k == 1 or left == 0:  # of rank one, the best approximation is nonnegative
        return
    if goal.effort is None and not part.witness and goal.value - _tail(part.A, k, symmetric) <= NEARLY_CLOSED * goal.value:
        return
    N = best_dual_matrix(part.A, k, symmetric, goal.value, left)
    yield from goal.prove_bound("dual", part.witness | {"N": N})


def _tail(A: FloatArray, k: int, symmetric: bool) -> float:
    """The squared error of the best approximation of rank k, up to rounding."""
    with single_thread(min(A.shape)):
        return float(np.vdot(A, A)) - best_low_rank(A, k, symmetric)[1]


def best_dual_matrix(A: FloatArray, k: int, symmetric: bool, value: float, effort: int) -> FloatArray:
    """Return the dual matrix N >= 0 of the best squared error bound found within the effort."""
    with single_thread(min(A.shape)):
        ascent = _Ascent(A, k, symmetric, value, effort)
        ascent.accelerate()
        ascent.split()
    N = ascent.best_N
    return (N + N.T) / 2 if symmetric else N


class _Ascent:
    """Ascent over the dual matrix: the best N so far and the effort left; energies are ``sum sigma_i^2`` of ``A + N``."""

    def __init__(self, A: FloatArray, k: int, symmetric: bool, value: float, effort: int) -> None:
        self.A, self.k, self.symmetric, self.value, self.left = A, k, symmetric, value, effort
        self.norm = float(np.vdot(A, A))
        self.best_N, self.least = np.zeros_like(A), np.inf

    @property
    def done(self) -> bool:
        """Whether the effort of the dual ascent is spent or the gap is closed."""
        return self.left <= 0 or self.norm - self.least >= self.value * (1.0 - CLOSED)

    def evaluate(self, N: FloatArray) -> tuple[FloatArray, float]:
        """Best approximation of rank k of ``A + N`` for a dual matrix N, and its energy."""
        self.left -= 1
        X, energy = best_low_rank(self.A + N, self.k, self.symmetric)
        if energy < self.least:
            self.best_N, self.least = N, energy
        return X, energy

    def accelerate(self) -> None:
        """Accelerated ascent over the dual matrix with backtracking, until steps become short."""
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

    def split(self) -> None:
        """Douglas-Rachford steps for the dual matrix between Y >= A and small singular values; then ``Z = Y - X / DISTANCE``."""
        if self.done:
            return
        Y = self.A + self.best_N
        Z = Y - self.evaluate(self.best_N)[0] / DISTANCE
        while not self.done:
            for _ in range(min(STEPS_PER_BOUND, max(1, self.left - 1))):
                Z += lowered_leading(2.0 * Y - Z, self.k, self.symmetric) - Y
                np.maximum(self.A, Z, out=Y)
                self.left -= 1
            self.evaluate(Y - self.A)


def lowered_leading(M: FloatArray, k: int, symmetric: bool) -> FloatArray:
    """The Y of least ``sum_{i <= k} sigma_i(Y)^2 + DISTANCE |Y - M|^2``; of positive eigenvalues of Y, if symmetric."""
    if symmetric:
        values, vectors = eigenpairs(M)
        positive = np.maximum(values, 0.0)
        return np.asarray((vectors * (values - positive * leading_shares(positive, k))) @ vectors.T)
    if M.shape[0] < M.shape[1]:
        return lowered_leading(M.T, k, symmetric).T
    squares, vectors = eigenpairs(M.T @ M, overwrite=True)
    return np.asarray(M - ((M @ vectors) * leading_shares(np.sqrt(np.maximum(squares, 0.0)), k)) @ vectors.T)


def leading_shares(values: FloatArray, k: int) -> FloatArray:
    """The share that each singular value s, increasing, gives up: ``w / (w + DISTANCE)``, weights from 0 to 1 that sum to k.

    The k largest have weight 1 unless they would fall below others; those that meet at a level t have ``w = DISTANCE (s/t - 1)``.
    """
    weights = np.zeros_like(values)
    weights[-k:] = 1.0
    low = values[-k] * DISTANCE / (1.0 + DISTANCE)
    high = values[-k - 1] if k < len(values) else 0.0
    if high > low:
        for _ in range(BISECTIONS):
            level = 0.5 * (low + high)
            weights = np.clip(DISTANCE * (values / level - 1.0), 0.0, 1.0)
            low, high = (level, high) if weights.sum() > k else (low, level)
    return np.asarray(weights / (weights + DISTANCE))
