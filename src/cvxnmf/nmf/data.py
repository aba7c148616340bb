"""The data of a rank-k factorisation: dense or in compressed rows, with places for missing entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.sparse import csr_times
from cvxnmf.linalg.symmetry import asymmetry, rounding_asymmetry
from cvxnmf.nmf import kernels

#: Share of nonzero entries up to which Kullback-Leibler works on compressed rows: zeros of A only enter through sums.
MOSTLY_ZERO = 0.6
#: Columns up to which a compiled loop beats the library's matrix product.
THIN = 4


class Data:
    """A and its transpose, dense or in compressed rows, with places for missing entries.

    Attributes
    ----------
    A, At : ndarray or scipy.sparse.csr_array
        Missing entries hold the fill.
    rows, columns : ndarray
        Where entries are missing.
    """

    def __init__(self, A: Any, rows: Any, columns: Any, single: bool, symmetric: bool) -> None:
        self.A, self.rows, self.columns, self.single = A, rows, columns, single
        self.shape: tuple[int, int] = A.shape
        self.At: Any
        self._places: Any
        self._places_t: Any
        self.sparse = sp.issparse(A)
        self.missing = len(rows) > 0
        self._symmetric = symmetric
        self._fill_places()

    def _fill_places(self) -> None:
        """Find the missing entries in the storage of A and of its transpose."""
        if not self.sparse:
            self.At = self.A if self._symmetric else np.ascontiguousarray(self.A.T)
            self._places, self._places_t = (self.rows, self.columns), (self.columns, self.rows)
            return
        tags = sp.csr_array((np.arange(1, self.A.nnz + 1), self.A.indices, self.A.indptr), shape=self.shape)
        turned = tags.T.tocsr()
        order = turned.data - 1
        self.At = sp.csr_array((self.A.data[order], turned.indices, turned.indptr), shape=self.shape[::-1])
        inverse = np.empty(len(order), dtype=np.intp)
        inverse[order] = np.arange(len(order))
        wanted = np.asarray(tags[self.rows, self.columns]).ravel().astype(np.intp) - 1 if self.missing else self.rows
        self._places, self._places_t = wanted, inverse[wanted]

    @classmethod
    def from_user(cls, A: Any, symmetric: bool, loss: str) -> Data:
        """Check a user's matrix: nonnegative, finite, no row or column without an observed entry."""
        if sp.issparse(A):
            data = cls._from_sparse(A, symmetric)
        else:
            data = cls._from_dense(A, symmetric)
        counts = [np.bincount(places, minlength=size) for places, size in zip((data.rows, data.columns), data.shape, strict=True)]
        for name, count, other in zip(("Row", "Column"), counts, data.shape[::-1], strict=True):
            if (count == other).any():
                validation.refuse(f"{name} {int(np.argmax(count == other))} of A has only NaN; drop it before factoring.")
        if symmetric:
            _require_symmetry(data)
        observed = data.observed()
        validation.magnitude(observed if len(observed) else np.zeros(1), loss)
        data.fill(_typical_values(data))
        return data.compressed() if loss == "kl" else data

    @classmethod
    def _from_dense(cls, A: Any, symmetric: bool) -> Data:
        if np.ma.isMaskedArray(A) and A.dtype.kind in "fiub":
            A = np.ma.filled(A if A.dtype.kind == "f" else A.astype(np.float64), np.nan)  # masked is missing
        raw = A
        try:
            raw = np.asarray(A)
            missing = np.isnan(raw) if raw.dtype.kind == "f" else np.zeros(raw.shape, dtype=bool)
        except (TypeError, ValueError):
            missing = np.zeros((1, 1), dtype=bool)
        if missing.any() and not missing.all():
            raw = np.where(missing, 0.0, raw)
        dense, dtype = validation.nonnegative_matrix(raw if missing.any() else A)
        rows, columns = np.nonzero(missing)
        return cls(dense, rows, columns, dtype.kind == "f" and dtype.itemsize <= 4, symmetric)

    @classmethod
    def _from_sparse(cls, A: Any, symmetric: bool) -> Data:
        if A.ndim != 2 or 0 in A.shape or A.dtype.kind not in "fiub":
            validation.nonnegative_matrix(A)  # says what is wrong
        single = A.dtype.kind == "f" and A.dtype.itemsize <= 4
        matrix = sp.csr_array(A, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        values, missing = matrix.data, np.isnan(matrix.data)
        for wrong, words in ((np.isinf(values), "an infinite entry"), (values < 0, "a negative entry")):
            if wrong.any():
                e = int(np.argmax(wrong))
                start = "Negative values in data: " if values[e] < 0 else ""
                validation.refuse(
                    f"{start}A has {words} at row {rows[e]}, column {matrix.indices[e]}; only nonnegative finite "
                    "entries can be factored."
                )
        if not (values[~missing] > 0).any():
            validation.refuse("A is all zeros; there is nothing to fit.")
        keep = missing | (values > 0)
        if not keep.all():
            places = (rows[keep], matrix.indices[keep])
            matrix = sp.csr_array((np.where(missing, 1.0, values)[keep], places), shape=matrix.shape)
            matrix.sort_indices()
            return cls(matrix, rows[missing], places[1][missing[keep]], single, symmetric)
        columns = matrix.indices[missing]
        matrix.data[missing] = 1.0
        return cls(matrix, rows[missing], columns, single, symmetric)

    def compressed(self) -> Data:
        """The same data in compressed rows if that saves work."""
        if self.sparse or np.count_nonzero(self.A) > MOSTLY_ZERO * self.A.size:
            return self
        values = self.filled
        self.fill(np.ones(len(values)))  # missing entries need a place, whatever their fill
        short = Data(sp.csr_array(self.A), self.rows, self.columns, self.single, self._symmetric)
        short.fill(values)
        return short

    def observed(self) -> FloatArray:
        """The stored observed entries (of sparse data the nonzero ones)."""
        values: FloatArray = self.A.data if self.sparse else self.A
        if not self.missing:
            return values.ravel()
        hidden = np.zeros(values.shape, dtype=bool)
        hidden[self._places] = True
        return values[~hidden]

    def fill(self, values: FloatArray) -> None:
        """Put values where entries are missing."""
        if self.missing:
            (self.A.data if self.sparse else self.A)[self._places] = values
            (self.At.data if self.sparse else self.At)[self._places_t] = values

    @property
    def filled(self) -> FloatArray:
        """The values where entries are missing."""
        return np.asarray((self.A.data if self.sparse else self.A)[self._places])

    def model(self, U: FloatArray, V: FloatArray) -> FloatArray:
        """``UV'`` where entries are missing."""
        return np.asarray(kernels.entries(self.rows, self.columns, U, V))


def product(A: Any, V: FloatArray) -> FloatArray:
    """``A V`` for either storage."""
    if sp.issparse(A):
        return csr_times(A, V)
    if V.shape[1] <= THIN:
        return np.asarray(kernels.thin_product(A, np.ascontiguousarray(V.T)))
    return np.asarray(A @ V)


def _typical_values(data: Data) -> FloatArray:
    """First guess of missing entries: the product of the row's and the column's mean over the mean."""
    if not data.missing:
        return np.empty(0)
    data.fill(np.zeros(len(data.rows)))
    m, n = data.shape
    row = np.asarray(data.A.sum(axis=1)).ravel() / (n - np.bincount(data.rows, minlength=m))
    column = np.asarray(data.A.sum(axis=0)).ravel() / (m - np.bincount(data.columns, minlength=n))
    mean = float(data.A.sum()) / (m * n - len(data.rows))
    return np.asarray(row[data.rows] * column[data.columns] / mean)


def _require_symmetry(data: Data) -> None:
    """Refuse data that are not symmetric, and average what differs by rounding."""
    m, n = data.shape
    if m != n:
        validation.refuse(f"A must be square for a symmetric factorisation, not {m} by {n}; use symmetric=False.")
    places = set(zip(data.rows.tolist(), data.columns.tolist(), strict=True))
    if any((j, i) not in places for i, j in places):
        validation.refuse("A has NaN at an entry but not at its mirror image; make both missing or give both.")
    data.fill(np.ones(len(data.rows)))
    largest = asymmetry(data.A)
    if largest > rounding_asymmetry(data.A):
        validation.refuse(f"A is not symmetric: mirrored entries differ by up to {largest:g}; pass (A + A.T) / 2.")
    if largest:
        mean = (data.A + data.A.T) / 2
        data.A = sp.csr_array(mean) if data.sparse else mean
        data._fill_places()
