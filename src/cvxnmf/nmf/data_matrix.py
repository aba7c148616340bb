"""The data of a factorisation behind one protocol, and those in memory, dense or sparse; `chunked_data` has row chunks.

The descent asks for three things, and the data know how: update a factor of the rows by a rule, give the objective in V that
follows from it, and evaluate a loss. Data in memory are one chunk that can also be read by columns and may have missing
entries; data in row chunks are read once per step, and their factor U lives with the chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.chunked import add_part
from cvxnmf.linalg.arrays import FloatArray, energy
from cvxnmf.linalg.products import product_entries, put_entries
from cvxnmf.linalg.threads import sum_in_threads
from cvxnmf.nmf.extrapolation import Extrapolation
from cvxnmf.nmf.losses import LARGEST_SINGLE, NMFLoss, QuadraticObjective, Totals, VObjective, entropy, penalty_value
from cvxnmf.nmf.storage import CompressedRows, DenseRows, Lane, Products, Storage, storage_of
from cvxnmf.nmf.updates.hals import HALS
from cvxnmf.nmf.updates.rule import Rule
from cvxnmf.nmf.updates.volume import Volume


class Penalty(NamedTuple):
    """Weights of the penalties ``l1 sum(X) + l2 ||X||²`` on U and V, that on the volume of V; whether rows of U sum to 1."""

    l1: tuple[float, float] = (0.0, 0.0)
    l2: tuple[float, float] = (0.0, 0.0)
    volume: Volume = Volume()
    sum_to_one: bool = False

    def value(self, X: FloatArray, side: int) -> float:
        """The penalty on one factor U or V of the factorised data."""
        return penalty_value(X, self.l1[side], self.l2[side]) if self.l1[side] or self.l2[side] else 0.0

    @property
    def any(self) -> bool:
        """Whether there is any penalty on the factors, so that the scale of the columns matters."""
        return any(self.l1) or any(self.l2) or self.volume.weight > 0 or self.sum_to_one


NO_PENALTY = Penalty()


class FactorRows(NamedTuple):
    """A factor U held where the rows of the data are: U and U before extrapolation, or what row chunks keep of both.

    With it go its largest entry (None where nobody needs it) and the penalty on it.
    """

    state: Any
    largest: float | None
    penalty: float


class RowStep(NamedTuple):
    """How the rows of U are updated, in memory or in row chunks."""

    rule: Rule[Any]
    loss: NMFLoss
    l1: float
    l2: float
    extrapolation: Extrapolation | None
    constant: float = 0.0
    largest: float | None = None
    gram: FloatArray | None = None

    def update(self, A: Storage, state: Any, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows of U after the update rule, extrapolated if that is asked for, and before extrapolation."""
        U, last = state if isinstance(state, tuple) else (state, state)
        objective = self.loss.objective(A, V, self.l1, self.l2, self.constant, self.gram)
        objective.largest = self.largest
        new = self.rule.update(objective, U)
        return (new if self.extrapolation is None else self.extrapolation.point(new, last)), new


class DataMatrix(Totals, Protocol):
    """The protocol of nonnegative data to be factored, in memory or in row chunks."""

    shape: tuple[int, int]
    #: Whether the data are of single precision or less.
    single: bool
    #: Whether the data are symmetric, and U is V.
    symmetric: bool
    #: Whether the data can be read by columns, and so often that searches are affordable.
    in_memory: bool
    #: What multiplies like a matrix, missing entries filled, for initialisations.
    matrix: Any

    @property
    def storage(self) -> Products:
        """The products with the data that symmetric update rules ask for."""

    def hold(self, U: FloatArray, penalty: Penalty) -> FactorRows:
        """Hand over a factor U to be held where the rows of the data are."""

    def collect(self, U: FactorRows) -> FloatArray:
        """The factor U that is held with the data, as one array."""

    def update_rows(
        self, rule: Rule[Any], loss: NMFLoss, penalty: Penalty, U: FactorRows, V: FloatArray, extrapolation: Extrapolation | None
    ) -> tuple[FactorRows, VObjective]:
        """U after its update rule on the rows of the data, and the objective in V that follows from it."""

    def loss_value(self, loss: NMFLoss, U: FactorRows, V: FloatArray) -> float:
        """The loss of the factors over the observed entries of the data, entry by entry."""

    def filled_loss(self, loss: NMFLoss, U: FactorRows, V: FloatArray) -> float:
        """The loss of the values that are filled in for missing entries of the data."""

    def impute(self, U: FloatArray, V: FloatArray) -> None:
        """Fill missing entries of the data with those of the model ``UV'``."""

    def column_objective(self, loss: NMFLoss, penalty: Penalty, U: FloatArray) -> VObjective:
        """The objective in V with U fixed; of row chunks only where the data are symmetric."""


class Missing(NamedTuple):
    """Rows and columns of missing entries, and their places among the stored ones."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    places: Any


NOTHING = np.empty(0)
NOTHING_MISSING = Missing(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), None)


class MemoryMatrix:
    """Data in memory: rows, their transpose, and places of missing entries, which hold the model's values.

    The storage is overwritten where data are missing, and never otherwise. `symmetric` tells that A is so to the last bit;
    initialisations work on `matrix`, or on the storage itself.
    """

    in_memory = True

    def __init__(
        self,
        storage: Storage,
        missing: Missing = NOTHING_MISSING,
        single: bool = False,
        symmetric: bool = False,
        matrix: Any = None,
    ) -> None:
        self.storage, self.missing, self.single, self.symmetric = storage, missing, single, symmetric
        self.shape, self.complete = storage.shape, not len(missing.rows)
        self.matrix = storage.A if matrix is None else matrix
        self._sums: dict[Callable[[FloatArray], FloatArray], float] = {}
        self._filled = [NOTHING if self.complete else np.asarray(storage.entries[missing.places])]  # shared by the transpose

    @cached_property
    def transposed(self) -> Storage:
        """The transpose of the data in memory in the same storage; of symmetric data the storage itself."""
        if self.symmetric:
            return self.storage
        A, weights = self.storage.A, self.storage.weights
        if self.storage.sparse:
            return CompressedRows(A.T.tocsr())
        return DenseRows(np.ascontiguousarray(A.T), None if weights is None else np.ascontiguousarray(weights.T))

    def transpose(self) -> MemoryMatrix:
        """The data in memory with rows and columns exchanged; both hold the same arrays."""
        rows, columns, _ = self.missing
        missing = self.missing if self.complete else Missing(columns, rows, self._transposed_places)
        matrix = None if self.matrix is self.storage.A else self.matrix.T  # of its own it is dense
        other = MemoryMatrix(self.transposed, missing, self.single, self.symmetric, matrix)
        other.__dict__["transposed"] = self.storage
        other._filled = self._filled
        return other

    def sample(self, rows: NDArray[np.intp]) -> MemoryMatrix:
        """A sample of the rows of data in memory without missing entries."""
        A, weights = self.storage.A[rows], self.storage.weights
        storage = storage_of(A) if weights is None else DenseRows(A, weights[rows])
        return MemoryMatrix(storage, single=self.single, matrix=self.matrix[rows] if self.matrix is not self.storage.A else A)

    @property
    def working(self) -> Any:
        """The data in memory as the first steps of a start multiply with them: dense in their storage, or the matrix."""
        return self.matrix if self.storage.sparse else self.storage.A

    def in_single_precision(self) -> MemoryMatrix:
        """The data with dense storage in single precision, where products of three entries stay within its range.

        Missing entries, weights and compressed rows stay as they are.
        """
        if self.storage.sparse or not self.complete or self.storage.weights is not None or self.storage.A.dtype == np.float32:
            return self
        if not 1 / LARGEST_SINGLE <= float(self.storage.A.max()) <= LARGEST_SINGLE:
            return self
        storage = storage_of(self.storage.A.astype(np.float32))
        return MemoryMatrix(storage, single=self.single, symmetric=self.symmetric, matrix=self.matrix)

    def in_double_precision(self) -> MemoryMatrix:
        """The data in double precision, where they are not."""
        if self.storage.entries.dtype == np.float64:
            return self
        return MemoryMatrix(storage_of(self.storage.A.astype(np.float64)), single=self.single, symmetric=self.symmetric)

    @cached_property
    def _transposed_places(self) -> Any:
        """Places of the missing entries in the transpose of the data in memory."""
        rows, columns, places = self.missing
        if self.symmetric or not self.storage.sparse:
            return places if self.symmetric else (columns, rows)
        A = self.storage.A
        numbers = sp.csr_array((np.arange(A.nnz), A.indices, A.indptr), shape=A.shape).T.tocsr().data
        inverse = np.empty(len(numbers), dtype=np.intp)
        inverse[numbers] = np.arange(len(numbers))
        return inverse[places]

    @cached_property
    def observed_entries(self) -> FloatArray:
        """The observed entries of the data in memory as they are stored (of sparse data the nonzero ones)."""
        values = self.storage.entries
        if self.complete:
            return values.ravel()
        hidden = np.zeros(values.shape, dtype=bool)
        hidden[self.missing.places] = True
        return values[~hidden]

    @cached_property
    def energy(self) -> float:
        """The energy ``||A||²`` of the observed entries of the data in memory."""
        return energy(self.observed_entries)

    @cached_property
    def total(self) -> float:
        """Sum of the observed entries of the data in memory."""
        return float(self.observed_entries.sum(dtype=np.float64))

    @cached_property
    def entropy(self) -> float:
        """The entropy ``sum A log A - A`` of the observed entries of the data in memory."""
        return entropy(self.observed_entries)

    def observed_sum(self, function: Callable[[FloatArray], FloatArray]) -> float:
        """Sum of a function over the observed entries of the data, times weights if there are any; once for each function."""
        if function not in self._sums:
            values, weights = function(self.observed_entries), self.storage.weights
            self._sums[function] = float(values.sum(dtype=np.float64) if weights is None else np.vdot(weights, values))
        return self._sums[function]

    @property
    def filled_values(self) -> FloatArray:
        """The values that stand for the missing entries of the data in memory."""
        return self._filled[0]

    def fill(self, values: FloatArray) -> None:
        """Put values into the data in memory and their transpose where entries are missing."""
        self._filled[0] = values
        rows, columns, places = self.missing
        if not self.storage.sparse:
            put_entries(values, rows, columns, self.storage.entries)
            if not self.symmetric:
                put_entries(values, columns, rows, self.transposed.entries)
            return
        self.storage.entries[places] = values
        if not self.symmetric:
            self.transposed.entries[self._transposed_places] = values

    def impute(self, U: FloatArray, V: FloatArray) -> None:
        """Fill missing entries of the data in memory with those of the model ``UV'``."""
        if not self.complete:
            self.fill(product_entries(self.missing.rows, self.missing.columns, U, V))

    def hold(self, U: FloatArray, penalty: Penalty) -> FactorRows:
        """The factor U of data in memory, held as the array itself."""
        return FactorRows((U, U), None, penalty.value(U, 0))

    def collect(self, U: FactorRows) -> FloatArray:
        """The factor U of data in memory, which is held as an array."""
        return np.asarray(U.state[0])

    def update_rows(
        self, rule: Rule[Any], loss: NMFLoss, penalty: Penalty, U: FactorRows, V: FloatArray, extrapolation: Extrapolation | None
    ) -> tuple[FactorRows, VObjective]:
        """U by its rule on the rows of data in memory, and the objective in V from the columns, or in one pass over the rows."""
        if self.complete and loss.one_pass and rule.by_rows:
            return self._update_in_one_pass(rule, loss, penalty, U, V, extrapolation)
        self.impute(U.state[0], V)
        step = RowStep(rule, loss, penalty.l1[0], penalty.l2[0], extrapolation, loss.constant(self, self.filled_values))
        state = step.update(self.storage, U.state, V)
        self.impute(state[0], V)
        return FactorRows(state, None, penalty.value(state[0], 0)), self.column_objective(loss, penalty, state[0])

    def _update_in_one_pass(
        self, rule: Rule[Any], loss: NMFLoss, penalty: Penalty, U: FactorRows, V: FloatArray, extrapolation: Extrapolation | None
    ) -> tuple[FactorRows, VObjective]:
        """U block by block of the data in memory, with sums for the objective in V while a block is in the cache."""
        current, last = U.state
        new = np.empty(current.shape)
        ahead = new if extrapolation is None else np.empty(current.shape)
        if rule.multiplies(self.storage, V):
            over_rows = cast(HALS, rule).one_pass(V, (penalty.l1[0], penalty.l2[0]), extrapolation)

            def multiply(lane: Lane) -> tuple[Any, ...]:
                rows = slice(lane[0][0].start, lane[-1][0].stop)
                return over_rows(self.storage.A[rows], (current[rows], last[rows]), (ahead[rows], new[rows]))

            products, gram = sum_in_threads(multiply, self.storage.lanes, add_part)
        else:
            step = RowStep(rule, loss, penalty.l1[0], penalty.l2[0], extrapolation, 0.0, float(current.max()), V.T @ V)

            def update(lane: Lane) -> tuple[Any, ...]:
                total = None
                for rows, A in lane:
                    ahead[rows], new[rows] = step.update(A, (current[rows], last[rows]), V)
                    part = (A.transposed_times(ahead[rows]), ahead[rows].T @ ahead[rows])
                    total = part if total is None else add_part(total, part)
                assert total is not None
                return total

            products, gram = sum_in_threads(update, self.storage.lanes, add_part)
        objective = QuadraticObjective(products, gram, penalty.l1[1], penalty.l2[1], loss.constant(self, NOTHING))
        return FactorRows((ahead, new), None, penalty.value(ahead, 0)), objective

    def column_objective(self, loss: NMFLoss, penalty: Penalty, U: FloatArray) -> VObjective:
        """The objective in V with U fixed, from the transpose of the data with missing entries filled."""
        return loss.objective(self.transposed, U, penalty.l1[1], penalty.l2[1], loss.constant(self, self.filled_values))

    def loss_value(self, loss: NMFLoss, U: FactorRows, V: FloatArray) -> float:
        """The loss of the factors over the observed entries of the data in memory; filled ones add nothing."""
        self.impute(U.state[0], V)
        return loss.value(self.storage, U.state[0], V)

    def filled_loss(self, loss: NMFLoss, U: FactorRows, V: FloatArray) -> float:
        """The loss of the values that are filled in for missing entries of the data in memory."""
        if self.complete:
            return 0.0
        model = product_entries(self.missing.rows, self.missing.columns, U.state[0], V)
        return loss.filled_part(self.filled_values, np.asarray(model))
