"""Limited-memory quasi-Newton directions (L-BFGS) from an initial metric of the caller's.

With steps as the rows of S, changes of the gradient as those of Y, oldest first, and R the upper triangle of SY', D its diagonal,
the two loops of the recursion are two triangular solves:

    R a = S q,   r = H0 (q - Y'a),   R' c = D a - Y r,   H q = r + S'c
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dtrtrs

from cvxnmf.linalg.arrays import FloatArray

#: A step whose change of gradient is nearly orthogonal to it, or against it, teaches nothing about the curvature.
LEAST_COSINE = 1e-10


class Curvature:
    """The inverse Hessian as the last steps and changes of the gradient show it, on top of an initial inverse metric."""

    def __init__(self, memory: int, most: float = np.inf) -> None:
        """Remember at most so many steps, fewer if they hold more than `most` numbers, but always one."""
        self.memory, self.most = memory, most
        self.forget()

    def forget(self) -> None:
        """Start anew from the initial metric."""
        self.order = np.zeros(0, dtype=np.intp)  # rows of S and Y, oldest first
        self.S = self.Y = self.R = np.zeros((0, 0))

    def __len__(self) -> int:
        """Number of steps that are remembered."""
        return len(self.order)

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Add a step and the change of the gradient along it."""
        s, y = step.ravel(), change.ravel()
        if not float(s @ y) > LEAST_COSINE * np.sqrt(float(s @ s) * float(y @ y)):
            return
        if not len(self):
            rows = max(1, int(min(self.memory, self.most / (2 * step.size))))
            self.S, self.Y = np.zeros((rows, step.size)), np.zeros((rows, step.size))
        oldest = int(len(self) == len(self.S))  # one must go if all rows are taken
        row = self.order[0] if oldest else len(self)
        self.order = np.array([*self.order[oldest:], row])
        self.S[row], self.Y[row] = s, y
        R = np.zeros((len(self), len(self)), order="F")
        R[:-1, :-1] = self.R[oldest:, oldest:]
        R[:, -1] = (self.S @ y)[self.order]
        self.R = R

    def map(self, linear: Callable[[FloatArray], FloatArray], shape: tuple[int, ...]) -> None:
        """Carry what is known of arrays of a shape over to new coordinates, by an orthogonal map that may drop some."""
        for row in self.order:
            for known in (self.S, self.Y):
                there = linear(known[row].reshape(shape)).ravel()
                known[row, : there.size] = there
        if len(self):
            self.S, self.Y = self.S[:, : there.size], self.Y[:, : there.size]  # the room stays theirs

    def times(self, gradient: FloatArray, inverse_metric: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The inverse Hessian times a gradient."""
        if not len(self):
            return np.ascontiguousarray(inverse_metric(gradient))
        S, Y, R = self.S[: len(self)], self.Y[: len(self)], self.R
        shares = dtrtrs(R, (S @ gradient.ravel())[self.order])[0]
        q = self._scatter(shares) @ Y
        np.subtract(gradient.ravel(), q, out=q)
        h = np.ascontiguousarray(inverse_metric(q.reshape(gradient.shape)))
        del q
        shares *= np.diag(R)
        shares -= (Y @ h.ravel())[self.order]
        h += (self._scatter(dtrtrs(R, shares, trans=1)[0]) @ S).reshape(h.shape)
        return h

    def _scatter(self, shares: FloatArray) -> FloatArray:
        """Numbers for steps, oldest first, in the order of rows."""
        rows = np.empty_like(shares)
        rows[self.order] = shares
        return rows
