"""The alternating direction method of multipliers (ADMM)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxnmf.linalg.anderson import Anderson
from cvxnmf.linalg.arrays import FloatArray


class AlternatingDirections:
    """Minimise ``f(X) + g(Y)`` subject to ``X = Y`` by over-relaxed alternating directions, with a scaled multiplier U.

        X = prox_f(Y - U),  T = Y + U + relaxation (X - Y),  Y = prox_g(T),  U = T - Y

    with the proximal maps for the current penalty rho, which the caller keeps: every rule for rho and every test for the
    end differs with the problem. A round is ``X = prox_f(state.target)`` and ``state.update(X, prox_g)``, from a given Y and
    ``U = 0``. The relaxation lies between 0 and 2; 1 is the plain method, somewhat more is faster. T is the one unknown of a
    fixed-point iteration, which may be accelerated.
    """

    def __init__(self, Y: FloatArray, relaxation: float = 1.6, acceleration: Anderson | None = None) -> None:
        self.Y, self.U, self.relaxation, self.acceleration = Y, np.zeros_like(Y), relaxation, acceleration

    @property
    def target(self) -> FloatArray:
        """Target ``Y - U`` of the alternating directions (ADMM), whose proximal point is the next X."""
        return self.Y - self.U

    @property
    def distance(self) -> float:
        """Length of ADMM's last step, before it was accelerated; infinite if the acceleration has forgotten it."""
        return np.nan if self.acceleration is None else self.acceleration.length

    def update(self, X: FloatArray, proximal_g: Callable[[FloatArray], FloatArray]) -> None:
        """Update Y and the multiplier U of the alternating directions (ADMM); X is overwritten."""
        X -= self.Y
        X *= self.relaxation
        if self.acceleration is not None:
            self.acceleration.improve(X)
        X += self.Y
        X += self.U
        self.U = X  # the old one is not needed any more, its room is
        self.Y = proximal_g(X)
        self.U -= self.Y

    def rescale(self, factor: float) -> None:
        """Keep the multiplier ``rho U`` of the alternating directions (ADMM) when rho is multiplied by a factor."""
        self.U /= factor
        self.forget()

    def forget(self) -> None:
        """Let the acceleration of the alternating directions (ADMM) start anew."""
        if self.acceleration is not None:
            self.acceleration.forget()
