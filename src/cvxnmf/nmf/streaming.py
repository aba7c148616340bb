"""Factors of rows that come batch by batch: what the past says about V is kept in sums, of which older batches are forgotten.

For the squared error the sums ``A'U`` and ``U'U`` are all that the objective in V needs, and V is swept as in a descent. For the
other losses they are the two sides of the multiplicative update, each taken at the V of its time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.losses import NMFLoss, QuadraticObjective, penalty_value
from cvxnmf.nmf.methods import METHODS, Needs
from cvxnmf.nmf.storage import DenseRows, Storage, storage_of
from cvxnmf.nmf.updates.hals import HALS
from cvxnmf.nmf.updates.least_squares import LeastSquares
from cvxnmf.nmf.weights import row_scales

#: Sweeps of V on the sums, and of codes of the squared error that go on.
SWEEPS = 4


class Memory(ABC):
    """Sums that streaming keeps of the past batches for the update of V."""

    count = 0.0  #: Rows, older ones with less weight.

    def remember(self, keep: float, A: Storage, U: FloatArray, V: FloatArray, loss: NMFLoss, weights: FloatArray | None) -> float:
        """Add a batch to the streaming sums, its rows weighted if there are weights; past batches are scaled by `keep`.

        Return its loss without the part that factors cannot change.
        """
        self.count = keep * self.count + (len(U) if weights is None else float(weights.sum()))
        if weights is not None and not weights.all():
            rows = np.flatnonzero(weights)
            A, U, weights = storage_of(A.A[rows]), U[rows], weights[rows]
        return self._add(keep, A, U, V, loss, weights)

    @abstractmethod
    def _add(self, keep: float, A: Storage, U: FloatArray, V: FloatArray, loss: NMFLoss, weights: FloatArray | None) -> float:
        """Add the sums of a batch, whose weights are positive, to the streaming memory; its loss up to a constant."""

    @abstractmethod
    def update(self, V: FloatArray, l1: float, l2: float, exponent: float) -> FloatArray:
        """The next V from the streaming sums, with penalties per row of the data."""


class QuadraticMemory(Memory):
    """Streaming sums of the squared error, ``A'U`` and ``U'U``."""

    def __init__(self, V: FloatArray) -> None:
        self.P, self.Q = np.zeros_like(V), np.zeros((V.shape[1], V.shape[1]))

    def _add(self, keep: float, A: Storage, U: FloatArray, V: FloatArray, loss: NMFLoss, weights: FloatArray | None) -> float:
        weighted = U if weights is None else weights[:, None] * U
        P, Q = A.transposed_times(weighted), U.T @ weighted
        self.P, self.Q = keep * self.P + P, keep * self.Q + Q
        return QuadraticObjective(P, Q, 0.0, 0.0, 0.0).value(V)

    def update(self, V: FloatArray, l1: float, l2: float, exponent: float) -> FloatArray:
        """The next V of streaming by sweeps of coordinate descent on the squared error."""
        objective = QuadraticObjective(self.P.copy(), self.Q.copy(), self.count * l1, self.count * l2, 0.0)
        return HALS(SWEEPS).update(objective, V)


class MultiplicativeMemory(Memory):
    """Streaming sums of the multiplicative update: numerator, times V, and denominator."""

    def __init__(self, V: FloatArray) -> None:
        self.numerator, self.denominator = np.zeros_like(V), np.zeros_like(V)

    def _add(self, keep: float, A: Storage, U: FloatArray, V: FloatArray, loss: NMFLoss, weights: FloatArray | None) -> float:
        columns, entries = A.A.T.tocsr() if A.sparse else np.ascontiguousarray(A.A.T), None
        if weights is not None and loss.beta == 0.0:
            entries = np.array(np.broadcast_to(weights, columns.shape))
        elif weights is not None:
            scales = row_scales(weights, loss.beta)
            columns, U = columns * scales, scales[:, None] * U
        transposed = storage_of(columns) if entries is None else DenseRows(columns, entries)
        objective = loss.objective(transposed, U, 0.0, 0.0, 0.0)
        negative, positive = objective.gradient_parts(V)
        self.numerator = keep * self.numerator + V * negative
        self.denominator = keep * self.denominator + positive
        return objective.value(V)

    def update(self, V: FloatArray, l1: float, l2: float, exponent: float) -> FloatArray:
        """The next V of streaming, the quotient of the sums; no entry vanishes for good."""
        positive = self.denominator + self.count * (l1 + 2.0 * l2 * V)
        base = self.numerator / np.where(positive > 0, positive, np.inf)
        new = base if exponent == 1.0 else V * (base / np.where(V > 0, V, np.inf)) ** exponent
        return np.asarray(np.maximum(new, 1e-12 * new.max()))


#: Memories by kind of loss.
MEMORIES: dict[str, type[QuadraticMemory] | type[MultiplicativeMemory]] = {
    "mse": QuadraticMemory,
    "kl": MultiplicativeMemory,
    "beta": MultiplicativeMemory,
}


class Streaming:
    """A factor V that follows the batches; penalties are pairs for U and, per row of the data, for V."""

    def __init__(self, V: FloatArray, loss: NMFLoss, l1: tuple[float, float], l2: tuple[float, float]) -> None:
        self.loss, self.l1, self.l2 = loss, l1, l2
        self.V = loss.lift_zeros(np.array(V, dtype=np.float64))
        if loss.kind not in MEMORIES:
            validation.refuse(f"loss={loss.name!r} is not known in streams; fit all data at once with NMF.")
        self.memory: Memory = MEMORIES[loss.kind](self.V)

    def constant(self, batch: Any, weights: FloatArray | None) -> float:
        """The part of the loss of a streamed batch that factors cannot change."""
        if weights is None:
            return self.loss.constant_of(_double(batch))
        return float(sum(w * self.loss.constant_of(_double(batch[[i]])) for i, w in enumerate(weights) if w))

    def step(
        self, batch: Any, keep: float, U: FloatArray | None, sweeps: int, tol: float, weights: FloatArray | None = None
    ) -> tuple[FloatArray, float, float]:
        """Codes of a batch, its objective without a constant before V moves, and the step of V, relative to its norm.

        Codes go on from U by one sweep; without U they are found anew by so many at most, for the squared error exactly.
        """
        A = _double(batch)
        with single_thread(), np.errstate(all="ignore"):
            codes = self.codes(A, U, sweeps, tol)
            value = self.memory.remember(keep, A, codes, self.V, self.loss, weights)
            value += penalty_value(codes, self.l1[0], self.l2[0])
            new = self.memory.update(self.V, self.l1[1], self.l2[1], self.loss.exponent)
            change, size = np.linalg.norm(new - self.V), np.linalg.norm(new)
        moved = float(change / size) if size > 0 else float(change > 0)
        self.V = new
        return codes, value, moved

    def codes(self, A: Storage, U: FloatArray | None, sweeps: int, tol: float) -> FloatArray:
        """Codes of a streamed batch for the current V."""
        objective = self.loss.objective(A, self.V, self.l1[0], self.l2[0], 0.0)
        rules = METHODS["hals"].make[self.loss.kind](Needs())
        rule: Any = rules.U if rules.later is None else rules.later[0]
        if self.loss.one_pass:
            rule, sweeps = LeastSquares() if U is None else HALS(SWEEPS), 1
        fresh = U is None
        if U is None:
            U = np.full((A.shape[0], self.V.shape[1]), float(A.A.mean()) / max(float(self.V.mean()) * self.V.shape[1], 1e-300))
        for _ in range(sweeps if fresh else 1):
            new = rule.update(objective, self.loss.lift_zeros(U))
            change, U = float(np.linalg.norm(new - U)), new
            if change <= tol * float(np.linalg.norm(new)):
                break
        return U


def _double(batch: Any) -> Storage:
    """Rows of a streamed batch in double precision, in their storage."""
    return storage_of(batch if batch.dtype == np.float64 else batch.astype(np.float64))
