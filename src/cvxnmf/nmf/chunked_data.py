"""Data of a factorisation in row chunks: read once per step, and their factor U lives with the chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxnmf.chunked import ChunkedMatrix, Maximum, SentLater, sent, state_rows
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.data_matrix import NOTHING, FactorRows, Penalty, RowStep
from cvxnmf.nmf.extrapolation import Extrapolation
from cvxnmf.nmf.losses import ColumnSums, NMFLoss, VObjective
from cvxnmf.nmf.storage import ChunkedProducts, storage_of
from cvxnmf.nmf.updates.rule import Rule


class ChunkedData:
    """Data of a factorisation in row chunks: U lives with the chunks, V and all sums in this process; one pass per step.

    Of data that are factored as `symmetric` ones U is V and in this process.
    """

    in_memory = False

    def __init__(self, matrix: ChunkedMatrix, symmetric: bool = False) -> None:
        self.storage, self.symmetric = ChunkedProducts(matrix), symmetric
        self.matrix, self.chunks, self.shape, self.single = matrix, matrix.chunks, matrix.shape, matrix.single
        self.energy, self.total, self.entropy = matrix.energy, float(matrix.total), float(matrix.entropy)

    def observed_sum(self, function: Callable[[FloatArray], FloatArray]) -> float:
        """Never called: losses that need sums of functions of the entries refuse row chunks before."""
        raise NotImplementedError

    def hold(self, U: FloatArray, penalty: Penalty) -> FactorRows:
        """A factor U whose rows are sent to their row chunks when they are needed there."""
        return FactorRows(SentLater(U, self.chunks), float(U.max()), penalty.value(U, 0))

    def collect(self, U: FactorRows) -> FloatArray:
        """The factor U gathered from the row chunks into this process."""
        return U.state.rows if isinstance(U.state, SentLater) else np.asarray(self.chunks.gather(U.state))

    def update_rows(
        self, rule: Rule[Any], loss: NMFLoss, penalty: Penalty, U: FactorRows, V: FloatArray, extrapolation: Extrapolation | None
    ) -> tuple[FactorRows, VObjective]:
        """U and the sums for the objective in V in one pass over the row chunks."""
        step = RowStep(rule, loss, penalty.l1[0], penalty.l2[0], extrapolation, largest=U.largest)
        state, total = self.chunks.map_reduce(update_chunk, sent(U.state), V, step)
        sums = ColumnSums(*total)
        weight = penalty.l1[0] * float(sums.sums.sum()) + penalty.l2[0] * float(np.trace(sums.gram))
        constant = loss.constant(self, NOTHING)
        objective = loss.objective_from_sums(sums, V, penalty.l1[1], penalty.l2[1], constant)
        return FactorRows(state, float(sums.largest), weight), objective

    def loss_value(self, loss: NMFLoss, U: FactorRows, V: FloatArray) -> float:
        """The loss of the factors by a pass over the row chunks, entry by entry."""
        _, (value,) = self.chunks.map_reduce(chunk_loss, sent(U.state), V, loss)
        return float(value)

    def filled_loss(self, loss: NMFLoss, U: FactorRows, V: FloatArray) -> float:
        """The loss of filled entries, 0: nothing is missing in row chunks."""
        return 0.0

    def impute(self, U: FloatArray, V: FloatArray) -> None:
        """Fill no entries: nothing is missing in row chunks."""

    def column_objective(self, loss: NMFLoss, penalty: Penalty, U: FloatArray) -> VObjective:
        """The objective in V of symmetric data in row chunks, by the products that a step has asked for."""
        A: Any = self.storage
        return loss.objective(A, U, penalty.l1[1], penalty.l2[1], loss.constant(self, NOTHING))


def update_chunk(chunk: Any, state: Any, V: FloatArray, step: RowStep) -> tuple[Any, tuple[Any, ...]]:
    """Update the rows of U of a row chunk, and return the chunk's share of :class:`ColumnSums`."""
    A = storage_of(chunk)
    U, new = step.update(A, state, V)
    products, logarithms = step.loss.column_products(A, U, V)
    return (U, new), (products, U.T @ U, U.sum(axis=0), Maximum(U.max()), logarithms)


def chunk_loss(chunk: Any, state: Any, V: FloatArray, loss: NMFLoss) -> tuple[None, tuple[float]]:
    """The loss of one row chunk for the rows of U that it holds."""
    return None, (loss.value(storage_of(chunk), state_rows(state), V),)
