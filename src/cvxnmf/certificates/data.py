"""The data and the witness as the check receives them, turned into arrays of numbers or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.losses import KL, require_moderate_size
from cvxnmf.certificates.rounding import is_finite, is_mirrored
from cvxnmf.certificates.row_chunks import is_dask
from cvxnmf.certificates.statement import Array, CertificateError, Witness

NO_SQUARE = "The data must be a square matrix of finite nonnegative numbers; of a graph it is partition(graph).A."


def observed_matrix(A: Any, symmetric: bool) -> Any:
    """The data for a check of a certificate, dense or in compressed rows, NaN where missing; made symmetric to the last bit."""
    data = real_matrix(A.compute() if is_dask(A) else A)
    if data is None or not _is_nonnegative(data):
        raise CertificateError("The data must be a matrix of nonnegative numbers.")
    if symmetric and data.shape[0] != data.shape[1]:
        raise CertificateError("The data must be a square matrix.")
    return (data + data.T) / 2 if symmetric else data


def data_matrix(A: Any) -> Array:
    """The data for a check of a certificate as a dense matrix of finite nonnegative numbers, or refused."""
    data = real_matrix(A)
    dense = data.toarray() if sp.issparse(data) else data
    if dense is None or not (is_finite(dense) and dense.min() >= 0):
        raise CertificateError("The data must be a matrix of finite nonnegative numbers.")
    return np.asarray(dense)


def square_matrix(A: Any) -> Array:
    """The data for a check of a certificate as a dense symmetric matrix, or refused."""
    dense = data_matrix(A)
    if dense.shape[0] != dense.shape[1]:
        raise CertificateError(NO_SQUARE)
    return dense if is_mirrored(dense) else (dense + dense.T) / 2


def sparse_graph(A: Any) -> Any:
    """The data for a check of a certificate as a symmetric matrix in compressed rows, on the nodes that carry any."""
    data = real_matrix(A)
    if data is None or data.shape[0] != data.shape[1]:
        raise CertificateError(NO_SQUARE)
    data = sp.csr_array(data)
    if not (is_finite(data.data) and data.data.min(initial=0.0) >= 0 and data.data.any()):
        raise CertificateError("The data must be a matrix of finite nonnegative numbers.")
    data = sp.csr_array((data + data.T) / 2)
    data.eliminate_zeros()
    require_moderate_size(data.data, KL)
    kept = np.flatnonzero(np.diff(data.indptr))
    return data[kept][:, kept].tocsr()


def real_matrix(A: Any) -> Any:
    """The data as a matrix of float64 numbers, dense or in compressed rows without duplicates; None if A is none, or empty."""
    try:
        raw: Any = A if sp.issparse(A) else np.asarray(A)
        if isinstance(A, np.ma.MaskedArray) or raw.dtype.kind not in "fiubO" or raw.ndim != 2 or 0 in raw.shape:
            return None
        if not sp.issparse(raw):
            return np.asarray(raw, dtype=np.float64)
        rows = raw.tocsr().astype(np.float64)
        rows.sum_duplicates()
        return rows
    except (TypeError, ValueError, OverflowError):
        return None


def _is_nonnegative(data: Any) -> bool:
    """Whether no entry of the data is infinite or negative; entries may be NaN."""
    entries = data.data if sp.issparse(data) else data
    return not np.isinf(entries).any() and np.nanmin(entries, initial=0.0) >= 0


def witness_array(witness: Witness, name: str) -> Array:
    """An array of a witness as finite float64 numbers; longer ones are rounded, and the proof is about the rounded ones."""
    try:
        array = np.asarray(witness[name])
    except (KeyError, TypeError, ValueError):
        raise CertificateError(f"The certificate lacks its witness ({name}).") from None
    if array.dtype.kind != "f":
        raise CertificateError("The witness must hold arrays of real numbers.")
    with np.errstate(all="ignore"):  # longer numbers may not fit
        array = array.astype(np.float64, copy=False)
    if not is_finite(array):
        raise CertificateError("The witness is not finite.")
    return array


def witness_arrays(witness: Witness, *names: str) -> list[Array]:
    """The named arrays of a certificate's witness, as finite float64 numbers."""
    return [witness_array(witness, name) for name in names]
