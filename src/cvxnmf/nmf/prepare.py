"""A user's matrix to data in memory: checked once, symmetric to the last bit if asked for, missing entries filled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray, in_double, with_short_indices
from cvxnmf.nmf.data_matrix import NOTHING_MISSING, MemoryMatrix, Missing
from cvxnmf.nmf.losses import NMFLoss
from cvxnmf.nmf.storage import storage_of


class Checked(NamedTuple):
    """A checked matrix of nonnegative finite entries, ones in place of missing ones, and where those are."""

    A: Any
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    single: bool


def memory_matrix(A: Any, symmetric: bool, loss: NMFLoss) -> MemoryMatrix:
    """Data in memory from whatever a user gives, refused in a sentence where they cannot be factored."""
    checked = _check_sparse(A) if sp.issparse(A) else _check_dense(A)
    for name, places, size, other in zip(("Row", "Column"), checked[1:3], checked.A.shape, checked.A.shape[::-1], strict=True):
        count = np.bincount(places, minlength=size) if len(places) else places
        if (count == other).any():
            validation.refuse(f"{name} {int(np.argmax(count == other))} of A has only NaN; drop it before factoring.")
    checked = _in_working_precision(checked, symmetric, loss)
    if symmetric:
        checked = checked._replace(A=_symmetric_part(checked, said=checked.single))
    data = _fill_missing(checked, symmetric, loss)
    validation.magnitude(data.observed_entries if len(data.observed_entries) else np.zeros(1), loss.name)
    return data


def checked_matrix(A: Any, symmetric: bool, loss: NMFLoss, single: bool = False) -> MemoryMatrix:
    """Data in memory from what :func:`cvxnmf.validation.partial_matrix` returned; initialisations see its dense form.

    `single` tells that the data were of single precision, as the factors shall be.
    """
    missing = np.zeros((0, 0), dtype=bool) if sp.issparse(A) else np.isnan(A)
    rows, columns = np.nonzero(missing) if missing.any() else NOTHING_MISSING[:2]
    checked = Checked(np.where(missing, 1.0, A) if len(rows) else A, rows, columns, single)
    checked = _in_working_precision(checked, symmetric, loss)
    if symmetric:
        checked = checked._replace(A=_symmetric_part(checked, said=True))
    return _fill_missing(checked, symmetric, loss, keep_dense=True)


def _in_working_precision(checked: Checked, symmetric: bool, loss: NMFLoss) -> Checked:
    """The checked matrix in double precision, unless it is complete, of a shape and a loss for which single precision does."""
    if not symmetric and not len(checked.rows) and loss.in_single_precision(checked.A):
        return checked
    return checked._replace(A=in_double(checked.A))


def _check_dense(A: Any) -> Checked:
    if np.ma.isMaskedArray(A) and A.dtype.kind in "fiub":
        A = np.ma.filled(A if A.dtype.kind == "f" else A.astype(np.float64), np.nan)  # masked is missing
    try:
        raw = np.asarray(A)
        missing = np.isnan(raw) if raw.dtype.kind == "f" else np.zeros(raw.shape, dtype=bool)
    except (TypeError, ValueError):
        raw, missing = A, np.zeros((1, 1), dtype=bool)
    some = missing.any()
    if some and not missing.all():
        raw = np.where(missing, np.asarray(0, raw.dtype), raw)  # so that the rest can be checked
    dense, dtype = validation.nonnegative_matrix(raw if some else A, keep_single=not some)
    rows, columns = np.nonzero(missing) if some else NOTHING_MISSING[:2]
    dense[rows, columns] = 1.0
    return Checked(dense, rows, columns, dtype.kind == "f" and dtype.itemsize <= 4)


def _check_sparse(A: Any) -> Checked:
    if A.ndim != 2 or 0 in A.shape or A.dtype.kind not in "fiub":
        validation.nonnegative_matrix(A)  # says what is wrong
    single = A.dtype.kind == "f" and A.dtype.itemsize <= 4
    matrix = sp.csr_array(A, dtype=np.float64)
    missing = np.isnan(matrix.data)
    if np.shares_memory(matrix.data, A.data) and (missing.any() or not (matrix.has_canonical_format and matrix.data.all())):
        matrix = matrix.copy()
    matrix.sum_duplicates()
    values, missing = matrix.data, np.isnan(matrix.data)
    for wrong, words in ((np.isinf(values), "an infinite entry"), (values < 0, "a negative entry")):
        if wrong.any():
            e = int(np.argmax(wrong))
            row, start = np.searchsorted(matrix.indptr, e, side="right") - 1, "Negative values in data: " if values[e] < 0 else ""
            validation.refuse(
                f"{start}A has {words} at row {row}, column {matrix.indices[e]}; only nonnegative finite entries can be factored."
            )
    if not (values > 0).any():
        validation.refuse("A is all zeros; there is nothing to fit.")
    places = np.flatnonzero(missing)
    rows, columns = np.searchsorted(matrix.indptr, places, side="right") - 1, matrix.indices[places].astype(np.intp)
    if len(places) or not values.all():
        matrix.data[missing] = 1.0
        matrix.eliminate_zeros()
    return Checked(with_short_indices(matrix), rows, columns, single)


def _symmetric_part(checked: Checked, said: bool) -> Any:
    """The prepared matrix without differences of mirrored entries by rounding, said or not; refused if there are others."""
    A, (m, n) = checked.A, checked.A.shape
    if m != n:
        validation.refuse(f"A must be square for a symmetric factorisation, not {m} by {n}; use symmetric=False.")
    places, mirrored = checked.rows * n + checked.columns, checked.columns * n + checked.rows
    if len(places) and not np.array_equal(np.sort(places), np.sort(mirrored)):
        validation.refuse("A has NaN at an entry but not at its mirror image; make both missing or give both.")
    return validation.symmetrise(A, hint="use symmetric=False", dtype=np.float32 if said else np.float64)


def _fill_missing(checked: Checked, symmetric: bool, loss: NMFLoss, keep_dense: bool = False) -> MemoryMatrix:
    """The prepared matrix in the storage that suits the loss, missing entries filled with what row and column suggest."""
    A, rows, columns, single = checked
    if loss.needs_positive_data:
        require_positive(A, loss.name)
    dense = not sp.issparse(A)
    compress = dense and loss.compress_below > 0 and np.count_nonzero(A) <= loss.compress_below * A.size
    storage = storage_of(sp.csr_array(A, dtype=np.float64) if compress else A)
    if not len(rows):
        return MemoryMatrix(storage, NOTHING_MISSING, single, symmetric, A if keep_dense else None)
    values = _typical_values(A, rows, columns)
    places: Any = (rows, columns)
    if storage.sparse:
        tags = sp.csr_array((np.arange(1, len(storage.entries) + 1), *storage.arrays[1::-1]), shape=storage.shape)
        places = np.asarray(tags[rows, columns]).ravel().astype(np.intp) - 1
    matrix = None
    if keep_dense:
        matrix = A.copy()
        matrix[rows, columns] = values
    data = MemoryMatrix(storage, Missing(rows, columns, places), single, symmetric, matrix)
    data.fill(values)
    return data


def require_positive(A: Any, loss: str) -> None:
    """Refuse a prepared matrix with zeros, from which every model is infinitely far; ones stand for missing entries."""
    zeros = A.shape[0] * A.shape[1] - (A.nnz if sp.issparse(A) else np.count_nonzero(A))
    if zeros:
        validation.refuse(
            f"loss={loss!r} compares ratios and needs positive data, but {zeros} of the entries of A are 0; mark them as missing "
            "with NaN, add a small value to A, or take a loss with beta above 0."
        )


def _typical_values(A: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
    """First guess of missing entries: the product of the row's and the column's mean over the mean."""
    (m, n), known = A.shape, A.copy()
    known[rows, columns] = 0.0
    row = np.asarray(known.sum(axis=1)).ravel() / (n - np.bincount(rows, minlength=m))
    column = np.asarray(known.sum(axis=0)).ravel() / (m - np.bincount(columns, minlength=n))
    mean = float(known.sum()) / (m * n - len(rows))
    return np.asarray(row[rows] * column[columns] / mean)
