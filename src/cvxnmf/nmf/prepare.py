"""Checked data to what descents work on in memory: symmetric to the last bit if asked for, missing entries filled."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray, extremes, in_double, is_single
from cvxnmf.nmf.data_matrix import NOTHING_MISSING, MemoryMatrix, Missing
from cvxnmf.nmf.losses import NMFLoss
from cvxnmf.nmf.storage import storage_of


def checked_matrix(A: Any, symmetric: bool, loss: NMFLoss, single: bool = False, keep_dense: bool = True) -> MemoryMatrix:
    """Data in memory from what :func:`cvxnmf.validation.partial_matrix` returned, in the storage that suits the loss.

    Missing entries are filled with what row and column suggest. `single` tells that the data were of single precision, as the
    factors shall be; initialisations see the dense form of dense data, unless it need not be kept.
    """
    rows, columns = _missing_places(A)
    if len(rows):
        A = _with_ones(A)
    if is_single(A) and (symmetric or len(rows) or not loss.in_single_precision(A)):
        A = in_double(A)
    if symmetric:
        A = _symmetric_part(A, rows, columns, single)
    if loss.needs_positive_data:
        require_positive(A, loss.name)
    dense = not sp.issparse(A)
    compress = dense and loss.compress_below > 0 and np.count_nonzero(A) <= loss.compress_below * A.size
    storage = storage_of(sp.csr_array(A, dtype=np.float64) if compress else A)
    matrix = A if dense and keep_dense else None
    if not len(rows):
        return MemoryMatrix(storage, NOTHING_MISSING, single, symmetric, matrix)
    values = _typical_values(A, rows, columns)
    places: Any = (rows, columns)
    if storage.sparse:
        tags = sp.csr_array((np.arange(1, len(storage.entries) + 1), *storage.arrays[1::-1]), shape=storage.shape)
        places = np.asarray(tags[rows, columns]).ravel().astype(np.intp) - 1
    if matrix is not None:
        matrix = matrix.copy()
        matrix[rows, columns] = values
    data = MemoryMatrix(storage, Missing(rows, columns, places), single, symmetric, matrix)
    data.fill(values)
    return data


def _missing_places(A: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the entries of checked data that are missing."""
    if sp.issparse(A):
        entries = np.flatnonzero(np.isnan(A.data))
        return np.searchsorted(A.indptr, entries, side="right") - 1, A.indices[entries].astype(np.intp)
    if not extremes(A)[2]:
        return NOTHING_MISSING[:2]
    rows, columns = np.nonzero(np.isnan(A))
    return rows, columns


def _with_ones(A: Any) -> Any:
    """The checked data with ones in place of missing entries, in a copy."""
    if sp.issparse(A):
        return sp.csr_array((np.where(np.isnan(A.data), 1.0, A.data), A.indices, A.indptr), shape=A.shape)
    return np.where(np.isnan(A), 1.0, A)


def _symmetric_part(A: Any, rows: NDArray[np.intp], columns: NDArray[np.intp], single: bool) -> Any:
    """The prepared matrix without differences of mirrored entries by rounding; refused if there are others."""
    m, n = A.shape
    if m == n and len(rows) and not np.array_equal(np.sort(rows * n + columns), np.sort(columns * n + rows)):
        validation.refuse("A has NaN at an entry but not at its mirror image; make both missing or give both.")
    return validation.symmetrise(A, hint="use symmetric=False", dtype=np.float32 if single else np.float64)


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
