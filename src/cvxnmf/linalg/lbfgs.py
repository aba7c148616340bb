"""Limited-memory quasi-Newton directions (L-BFGS) from an initial metric of the caller's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import scipy.linalg as sl

from cvxnmf.linalg.arrays import FloatArray

#: A step whose change of gradient is nearly orthogonal to it, or against it, teaches nothing about the curvature.
LEAST_COSINE = 1e-10


class Curvature:
    """The inverse Hessian as the last steps and changes of the gradient show it, on top of an initial inverse metric."""

    def __init__(self, memory: int, most: float = np.inf) -> None:
        """Remember at most so many steps, fewer if they hold more than `most` numbers, but always one."""
        self.pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=memory)
        self.most = most

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Add a step and the change of the gradient along it."""
        product = float(np.vdot(step, change))
        if product > LEAST_COSINE * float(np.linalg.norm(step)) * float(np.linalg.norm(change)):
            while self.pairs and 2 * step.size * (len(self.pairs) + 1) > self.most:
                self.pairs.popleft()
            self.pairs.append((step, change, 1.0 / product))

    def forget(self) -> None:
        """Start anew from the initial metric."""
        self.pairs.clear()

    def map(self, linear: Callable[[FloatArray], FloatArray]) -> None:
        """Carry what is known over to new coordinates, by an orthogonal map that may drop some."""
        for _ in range(len(self.pairs)):
            step, change, scale = self.pairs.popleft()
            self.pairs.append((linear(step), linear(change), scale))

    def times(self, gradient: FloatArray, inverse_metric: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The inverse Hessian times a gradient, by the two-loop recursion."""
        q, shares = gradient.copy(), []
        for step, change, scale in reversed(self.pairs):
            shares.append(scale * float(np.vdot(step, q)))
            sl.blas.daxpy(change.ravel(), q.ravel(), a=-shares[-1])
        h = np.ascontiguousarray(inverse_metric(q))
        del q
        for (step, change, scale), share in zip(self.pairs, reversed(shares), strict=True):
            sl.blas.daxpy(step.ravel(), h.ravel(), a=share - scale * float(np.vdot(change, h)))
        return h
