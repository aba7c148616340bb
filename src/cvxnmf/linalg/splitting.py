"""The alternating direction method of multipliers (ADMM)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.row_chunks import cached_rows


class AlternatingDirections:
    """Minimise ``f(X) + g(Y)`` subject to ``X = Y`` by over-relaxed alternating directions, with a scaled multiplier U.

        X = prox_f(Y - U),  R = relaxation X + (1 - relaxation) Y,  Y = prox_g(R + U),  U = U + R - Y

    with the proximal maps for the current penalty rho, which the caller keeps: every rule for rho and every test for the
    end differs with the problem. A round is ``X = prox_f(state.target)`` and ``state.update(X, prox_g)``, from a given Y and
    ``U = 0``. The relaxation lies between 0 and 2; 1 is the plain method, somewhat more is faster.
    """

    def __init__(self, Y: FloatArray, relaxation: float = 1.6) -> None:
        self.Y, self.U, self.relaxation = Y, np.zeros_like(Y), relaxation

    @property
    def target(self) -> FloatArray:
        """``Y - U``, whose proximal point is the next X."""
        return self.Y - self.U

    def update(self, X: FloatArray, proximal_g: Callable[[FloatArray], FloatArray]) -> None:
        """Renew Y and U."""
        relaxed = self.U  # in its place
        for rows in cached_rows(X):
            relaxed[rows] += self.relaxation * X[rows] + (1.0 - self.relaxation) * self.Y[rows]
        self.Y = proximal_g(relaxed)
        relaxed -= self.Y

    def rescale(self, factor: float) -> None:
        """Keep the multiplier ``rho U`` when rho is multiplied by a factor."""
        self.U /= factor
