"""Anderson's acceleration of a fixed-point iteration.

With steps as the rows of S and changes of the residual F along them as those of D, the next step is that of the combination of
points seen whose residual is the least:

    g = argmin |F - D'g|,   step = F - (S + D)'g
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray

ShortArray = NDArray[np.float32]

#: Share of the mean square of the changes that is added to each of them, so that like changes do not cancel.
RIDGE = 1e-8
#: A step after which the residual is so many times as long shows that the past teaches nothing here.
MUCH_LONGER = 2.0
#: Changes that are known before the first step that is made of them.
LEAST_KNOWN = 2


class Anderson:
    """Anderson acceleration: steps of a fixed-point iteration made of its last ones, which are kept in single precision.

    After a step that made things worse all is forgotten, and plain steps follow, twice as many each time: the iteration
    converges as it does without.
    """

    def __init__(self, memory: int, weights: FloatArray | None = None, plain_steps: int = 0) -> None:
        """Anderson acceleration from at most so many steps, the first ones plain; weights of entries in lengths default to 1."""
        largest = 1.0 if weights is None else max(float(weights.max()), 1e-300)
        self.weights = None if weights is None else (weights / largest).astype(np.float32)
        self.memory, self.waiting, self.penance = memory, plain_steps, 4
        self.forget()

    def forget(self) -> None:
        """Forget all steps of Anderson acceleration, so that it starts anew."""
        self.known, self.length, self.is_mixed = -1, np.inf, False
        self.steps = self.changes = np.zeros((0, 0), dtype=np.float32)

    def improve(self, residual: FloatArray) -> None:
        """Replace the residual of a fixed-point iteration, a vector, by its accelerated (Anderson) step, in place."""
        seen = residual.astype(np.float32) if self.weights is None else (residual * self.weights).astype(np.float32)
        length = float(np.linalg.norm(seen))
        if self.is_mixed and not length < MUCH_LONGER * self.length:
            self.forget()
            self.waiting, self.penance = self.penance, 2 * self.penance
        if self.known < 0:
            self.steps, self.changes = (np.empty((self.memory, seen.size), dtype=np.float32) for _ in range(2))
        else:
            row = self.known % self.memory
            np.subtract(seen, self.changes[row], out=self.changes[row])
        self.known, self.length, self.waiting = self.known + 1, length, self.waiting - 1
        self.is_mixed = self.known >= LEAST_KNOWN and self.waiting < 0 and self._mix(residual, seen)
        row = self.known % self.memory
        self.steps[row], self.changes[row] = residual, seen  # the change is known after the step

    def _mix(self, residual: FloatArray, seen: ShortArray) -> bool:
        """Take the combination of past steps (Anderson) off the residual, weighted `seen`, in place; False if impossible."""
        rows = min(self.known, self.memory)
        changes = self.changes[:rows]
        products = (changes @ changes.T).astype(np.float64)
        total = float(np.trace(products))
        if not 0.0 < total < np.inf:
            return False
        products.flat[:: rows + 1] += RIDGE * total
        shares = np.linalg.solve(products, (changes @ seen).astype(np.float64)).astype(np.float32)
        past = shares @ changes
        if self.weights is not None:
            past /= self.weights
        past += shares @ self.steps[:rows]
        residual -= past
        return True
