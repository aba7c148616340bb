"""The alternating direction method of multipliers (ADMM)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxnmf.linalg.arrays import FloatArray

Proximal = Callable[[FloatArray], FloatArray]


class AlternatingDirections:
    """Minimise ``f(X) + g(Y)`` subject to ``X = Y`` by over-relaxed alternating directions, with a scaled multiplier U.

        X = prox_f(Y - U),  R = relaxation X + (1 - relaxation) Y,  Y = prox_g(R + U),  U = U + R - Y

    with the proximal maps for the current penalty rho, which the caller keeps: every rule for rho and every test for the
    end differs with the problem.

    Parameters
    ----------
    Y : ndarray
        The first Y; U is zero.
    relaxation : float
        Between 0 and 2; 1 is the plain method, somewhat more is faster.
    """

    def __init__(self, Y: FloatArray, relaxation: float = 1.6) -> None:
        self.Y, self.U, self.relaxation = Y, np.zeros_like(Y), relaxation

    def step(self, proximal_f: Proximal, proximal_g: Proximal) -> FloatArray:
        """Renew X, Y and U, and return X."""
        X = proximal_f(self.Y - self.U)
        target = self.relaxation * X
        target += (1.0 - self.relaxation) * self.Y
        target += self.U
        self.Y = proximal_g(target)
        target -= self.Y
        self.U = target
        return X

    def rescale(self, factor: float) -> None:
        """Keep the multiplier ``rho U`` when rho is multiplied by a factor."""
        self.U /= factor
