"""Movers: a whole point, one step at a time, by alternating rules or by a symmetric one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf import kernels
from cvxnmf.nmf.data import product
from cvxnmf.nmf.objectives import TINY, Entropy, Problem
from cvxnmf.nmf.rules import Rule, Sparseness

#: The multiplicative symmetric rule moves this share of the way at least.
SMALLEST_SHARE = 1e-4


class Mover(Protocol):
    """A point and its value, moved by steps."""

    U: FloatArray
    value: float

    @property
    def V(self) -> FloatArray:
        """The other factor."""

    def step(self) -> None:
        """Move; the value does not rise beyond rounding."""


@dataclass
class Ahead:
    """Extrapolation: updates start a little ahead of the last factor, and fall back when the value rises.

    `wait` plain steps first keep the start's basin; `keep` is the share of an entry that extrapolation must leave.
    """

    wait: int
    weight: float
    keep: float = 0.0
    most: float = 1.0

    def point(self, new: FloatArray, old: FloatArray) -> FloatArray:
        """``(new + weight (new - old))``, not below ``keep * new``."""
        return np.maximum(new + self.weight * (new - old), self.keep * new)

    def slower(self) -> None:
        """After a rise."""
        self.most = self.weight
        self.weight /= 1.5

    def faster(self) -> None:
        """After a descent."""
        self.weight = min(self.most, 1.05 * self.weight)
        self.most = min(1.0, 1.01 * self.most)


class Rules(NamedTuple):
    """What an alternating method does: a rule for U, one for V.

    `later` ones come with extrapolation; `safe` ones step in where the others may let the value rise.
    """

    U: Rule
    V: Rule
    ahead: Ahead | None = None
    later: tuple[Rule, Rule] | None = None
    safe: tuple[Rule, Rule] | None = None


class Alternating:
    """U by its rule, then V by its rule; extrapolated if the method asks for it."""

    def __init__(self, problem: Problem, rules: Rules, U: FloatArray, V: FloatArray) -> None:
        self.problem, self.rules, self.ahead = problem, rules, rules.ahead
        self.U, self.V = (
            rule.project(X, X) if isinstance(rule, Sparseness) else problem.positive(X)
            for rule, X in ((rules.U, U), (rules.V, V))
        )
        self.value = problem.evaluate(self.U, self.V)
        self.steps = 0
        self._reset()

    def _reset(self) -> None:
        """Start anew from the point: nothing is extrapolated."""
        self.last_U, self.last_V, self.next_V, self.next_U = self.U, self.V, self.V, self.U

    def step(self) -> None:
        """One update of both factors; where extrapolation made the value rise, a plain one instead."""
        self.steps += 1
        ahead = self.ahead if self.ahead is not None and self.steps > self.ahead.wait else None
        rules = self.rules.later if ahead is not None and self.rules.later is not None else (self.rules.U, self.rules.V)
        moved = self._move(rules, ahead)
        if ahead is not None and not moved <= self.value:
            ahead.slower()
            self._reset()
            moved = self._move(rules, None)
        elif ahead is not None:
            ahead.faster()
        if self.rules.safe is not None and not moved <= self.value:
            self._reset()
            moved = self._move(self.rules.safe, None)
        self.U, self.V, self.value = self.candidate[0], self.candidate[1], moved

    def _move(self, rules: Any, ahead: Ahead | None) -> float:
        """Put the next point in `candidate`, and return its value."""
        problem = self.problem
        problem.fill(self.next_U, self.next_V)
        new_U = rules[0].update(problem.half(0, self.next_V), self.next_U)
        U = new_U if ahead is None else ahead.point(new_U, self.last_U)
        problem.fill(U, self.next_V)
        half = problem.half(1, U)
        V = rules[1].update(half, self.next_V)
        value = problem.value(half, 1, V, U)
        self.candidate = U, V
        self.next_U, self.next_V = U, V if ahead is None else ahead.point(V, self.last_V)
        self.last_U, self.last_V = new_U, V
        return value


class Symmetric:
    """U = V, moved by a symmetric rule; a rule that lets the value rise is asked for a smaller step."""

    def __init__(self, problem: Problem, rule: Callable[[Problem, FloatArray, float], FloatArray], U: FloatArray) -> None:
        self.problem, self.rule = problem, rule
        self.U = problem.positive(U)
        self.value = problem.evaluate(self.U, self.U)
        self.share = 0.5

    @property
    def V(self) -> FloatArray:
        """U itself."""
        return self.U

    def step(self) -> None:
        """One update; after a rise a smaller one, unless the rule knows no smaller one."""
        self.problem.fill(self.U, self.U)
        U, value = self._moved()
        while value > self.value and self.share > SMALLEST_SHARE:
            self.share /= 2.0
            before, (U, value) = U, self._moved()
            if np.array_equal(U, before):
                break
        self.U, self.value = U, value

    def _moved(self) -> tuple[FloatArray, float]:
        """What the rule makes of U, and the value there."""
        U = self.rule(self.problem, self.U, self.share)
        return U, self.problem.value(self.problem.half(0, U), 0, U, U)


def symmetric_multiplicative(problem: Problem, U: FloatArray, share: float) -> FloatArray:
    """Ding, He & Simon: ``U * (1/2 + 1/2 (AU) / (UU'U))``, the share 1/2 made smaller where that should not descend."""
    l1, l2 = sum(problem.penalty.l1), sum(problem.penalty.l2)
    negative = product(problem.data.A, U)
    positive = U @ (U.T @ U) + l1 / 4 + l2 / 2 * U
    new = U * (1.0 - share + share * negative / np.where(positive > 0, positive, np.finfo(np.float64).tiny))
    new[~np.isfinite(new)] = 0.0
    lift = TINY * float(U.max())
    return np.where((new < lift) & (negative > positive), lift, new)


def symmetric_coordinates(problem: Problem, U: FloatArray, share: float) -> FloatArray:
    """Exact minimisation over one entry of U after the other."""
    A, l1, l2 = problem.data.A, sum(problem.penalty.l1), sum(problem.penalty.l2)
    if problem.data.sparse:
        return np.asarray(kernels.symmetric_sweep_csr(A.indptr, A.indices, A.data, U, l1, l2))
    return np.asarray(kernels.symmetric_sweep_dense(A, U, l1, l2))


def symmetric_expectation(problem: Problem, U: FloatArray, share: float) -> FloatArray:
    """Expectation maximisation: ``n_il = U_il ((A / UU') U)_il``, ``U_il = n_il / sqrt(sum_i n_il)``.

    With penalties ``(sum_i u_il)²`` is bounded by ``S sum_i u_il² / U_il``, S the sum so far, and the minimiser is a root of a
    quadratic.
    """
    l1, l2 = sum(problem.penalty.l1), sum(problem.penalty.l2)
    negative, positive = Entropy(problem.data.A, U, 0.0, 0.0, 0.0).ratio(U)
    counts = U * negative
    if l1 or l2:
        square = positive / U + l2
        new = (np.sqrt(l1 * l1 + 16.0 * square * counts) - l1) / (4.0 * square)
    else:
        new = counts / np.sqrt(np.maximum(counts.sum(axis=0), np.finfo(np.float64).tiny))
    return np.asarray(np.maximum(new, TINY * new.max()))
