"""Limited-memory quasi-Newton directions (L-BFGS) from an initial metric of the caller's, and descents along them.

With steps as the rows of S, changes of the gradient as those of Y, oldest first, and R the upper triangle of SY', D its diagonal,
the two loops of the recursion are two triangular solves:

    R a = S q,   r = c H0 (q - Y'a),   R' b = D a - Y r,   H q = r + S'b

c is ``s'y / y'H0 y`` of the last step, or a power of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dtrtrs

from cvxnmf.linalg.arrays import FloatArray

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
#: A step whose change of gradient is nearly orthogonal to it, or against it, teaches nothing about the curvature.
LEAST_COSINE = 1e-10
#: A step is long enough to be tried if it is at least this share of the first one.
SHORTEST = 1e-10
#: Power of the scale by which the caller's metric differs from the curvature along the last step: it is met half way, as what
#: the last step shows is mostly where the objective is steep.
CORRECTION = 0.5
#: Share of the slope by which a step must lower the objective (Armijo's rule).
ARMIJO = 1e-4


class Curvature:
    """L-BFGS curvature: the inverse Hessian that the last steps and gradients show, on top of an initial inverse metric."""

    def __init__(self, memory: int, most: float = np.inf) -> None:
        """Curvature from at most so many steps of L-BFGS, fewer if they hold more than `most` numbers, but always one."""
        self.memory, self.most = memory, most
        self.forget()

    def forget(self) -> None:
        """Forget the steps of L-BFGS: start anew from the initial metric."""
        self.order = np.zeros(0, dtype=np.intp)  # rows of S and Y, oldest first
        self.S = self.Y = self.R = np.zeros((0, 0))

    def __len__(self) -> int:
        """Number of steps that the curvature of L-BFGS remembers."""
        return len(self.order)

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Add a step and the change of the gradient along it to the curvature of L-BFGS."""
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
        """Carry L-BFGS curvature for arrays of a shape over to new coordinates, by an orthogonal map that may drop some."""
        for row in self.order:
            for known in (self.S, self.Y):
                there = linear(known[row].reshape(shape)).ravel()
                known[row, : there.size] = there
        if len(self):
            self.S, self.Y = self.S[:, : there.size], self.Y[:, : there.size]  # the room stays theirs

    def times(
        self, gradient: FloatArray, inverse_metric: Callable[[FloatArray], FloatArray], correction: float = 1.0
    ) -> FloatArray:
        """The inverse Hessian of L-BFGS times a gradient; the metric is scaled to the curvature along the last step, or less."""
        if not len(self):
            return np.ascontiguousarray(inverse_metric(gradient))
        S, Y, R = self.S[: len(self)], self.Y[: len(self)], self.R
        scale = self._scale(gradient.shape, inverse_metric) ** correction
        shares = dtrtrs(R, (S @ gradient.ravel())[self.order])[0]
        q = self._scatter(shares) @ Y
        np.subtract(gradient.ravel(), q, out=q)
        h = np.ascontiguousarray(inverse_metric(q.reshape(gradient.shape)))
        del q
        h *= scale
        shares *= np.diag(R)
        shares -= (Y @ h.ravel())[self.order]
        h += (self._scatter(dtrtrs(R, shares, trans=1)[0]) @ S).reshape(h.shape)
        return h

    def _scale(self, shape: tuple[int, ...], inverse_metric: Callable[[FloatArray], FloatArray]) -> float:
        """Scale of the initial metric of L-BFGS, as the last step shows it: ``s'y / y'H0 y``; 1 if H0 is lost to rounding."""
        y = self.Y[self.order[-1]].reshape(shape)
        along = float(np.vdot(y, inverse_metric(y)))
        return float(self.R[-1, -1] / along) if along > 0.0 else 1.0

    def _scatter(self, shares: FloatArray) -> FloatArray:
        """Put numbers for steps of L-BFGS, oldest first, into the order of the stored rows."""
        rows = np.empty_like(shares)
        rows[self.order] = shares
        return rows


class Descent:
    """Descent by L-BFGS: a point on its way down, its value and gradient, and its curvature; no array more than it needs."""

    def __init__(self, objective: Objective, x: FloatArray, curvature: Curvature) -> None:
        self.objective, self.curvature = objective, curvature
        self.arrive(x)

    def arrive(self, x: FloatArray) -> None:
        """Go on with the L-BFGS descent from a given point."""
        self.x = x
        self.value, self.gradient = self.objective(x)

    def step(self, inverse_metric: Callable[[FloatArray], FloatArray] | None = None, longest: float = np.inf) -> bool:
        """One step of L-BFGS, none of its numbers, but for those of the first column, beyond `longest`; False if none goes down.

        Without a metric that of the last step is taken, and the first step is of the length of 1.
        """
        if inverse_metric is None:
            direction = self.curvature.times(self.gradient, self._plain_metric)
        else:
            direction = self.curvature.times(self.gradient, inverse_metric, CORRECTION)
        np.negative(direction, out=direction)
        slope = float(np.vdot(self.gradient, direction))
        if not slope < 0:
            self.curvature.forget()
            return False
        largest = float(np.abs(direction[:, 1:]).max(initial=0.0)) if longest < np.inf else 0.0
        return self._line_search(direction, slope, min(1.0, longest / max(largest, 1e-300)))

    def _plain_metric(self, q: FloatArray) -> FloatArray:
        return q if len(self.curvature) else q / max(float(np.linalg.norm(q)), 1e-300)

    def _line_search(self, direction: FloatArray, slope: float, length: float) -> bool:
        """Line search of L-BFGS along a direction, overwritten, until Armijo's rule holds, by interpolation; False if none."""
        before, gradient, x, shortest = self.value, self.gradient, self.x, SHORTEST * min(1.0, length)
        while length > shortest:
            there = length * direction
            there += x
            value, slopes = self.objective(there)
            if value <= before + ARMIJO * length * slope:
                self.curvature.learn(np.subtract(there, x, out=direction), np.subtract(slopes, gradient, out=gradient))
                self.x, self.value, self.gradient = there, value, slopes
                return True
            del there, slopes  # their room is needed
            bend = value - before - slope * length
            length *= float(np.clip(-0.5 * slope * length / bend, 0.1, 0.5)) if np.isfinite(bend) else 0.1
        return False
