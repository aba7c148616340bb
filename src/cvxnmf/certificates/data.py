"""The data and the witness as the check receives them, turned into arrays of numbers or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.losses import KL, of_moderate_size
from cvxnmf.certificates.rounding import is_finite, is_mirrored
from cvxnmf.certificates.row_chunks import is_dask
from cvxnmf.certificates.statement import Array, CertificateError, Witness


def data_matrix(A: Any) -> Array:
    """The data as a dense matrix of finite nonnegative numbers."""
    try:
        raw = A.toarray() if sp.issparse(A) else np.asarray(A)
        real = raw.dtype.kind in "fiubO" and not isinstance(A, np.ma.MaskedArray)
        dense = np.asarray(raw, dtype=np.float64) if real else np.full((1, 1), np.nan)
    except (TypeError, ValueError, OverflowError):
        dense = np.full((1, 1), np.nan)
    if dense.ndim != 2 or not dense.size or not (is_finite(dense) and dense.min() >= 0):
        raise CertificateError("The data must be a matrix of finite nonnegative numbers.")
    return dense


def square_matrix(A: Any) -> Array:
    """The data as a symmetric matrix."""
    dense = data_matrix(A)
    if dense.shape[0] != dense.shape[1]:
        raise CertificateError("The data must be a square matrix of finite nonnegative numbers.")
    return dense if is_mirrored(dense) else (dense + dense.T) / 2


def sparse_data(A: Any) -> Any:
    """The data in compressed rows, on the nodes that carry any."""
    try:
        raw = A if sp.issparse(A) or isinstance(A, np.ma.MaskedArray) else np.asarray(A)
        if raw.dtype.kind not in "fiub" or isinstance(raw, np.ma.MaskedArray) or raw.ndim != 2:
            raise TypeError
        data = sp.csr_array(raw, dtype=np.float64)
        data = sp.csr_array((data + data.T) / 2)
    except (TypeError, ValueError):
        raise CertificateError("The data must be a square matrix of finite nonnegative numbers.") from None
    data.eliminate_zeros()
    if not (data.nnz and is_finite(data.data) and data.data.min() > 0):
        raise CertificateError("The data must be a matrix of finite nonnegative numbers.")
    of_moderate_size(data.data, KL)
    kept = np.flatnonzero(np.diff(data.indptr))
    return data[kept][:, kept].tocsr()


def observed_matrix(A: Any, symmetric: bool) -> Any:
    """The data as they are, made symmetric to the last bit."""
    A = A.compute() if is_dask(A) else A
    try:
        real = not isinstance(A, np.ma.MaskedArray) and (A if sp.issparse(A) else np.asarray(A)).dtype.kind in "fiubO"
        data = (A.tocsr().astype(np.float64) if sp.issparse(A) else np.asarray(A, dtype=np.float64)) if real else None
    except (TypeError, ValueError, OverflowError):
        data = None
    entries: Any = np.full(1, np.inf) if data is None else (data.data if sp.issparse(data) else data)
    if data is None or data.ndim != 2 or 0 in data.shape or np.isinf(entries).any() or np.nanmin(entries, initial=0.0) < 0:
        raise CertificateError("The data must be a matrix of nonnegative numbers.")
    if symmetric and data.shape[0] != data.shape[1]:
        raise CertificateError("The data must be a square matrix.")
    return (data + data.T) / 2 if symmetric else data


def witness_arrays(witness: Witness, *names: str) -> list[Array]:
    """The named arrays of a witness as finite float64 numbers."""
    try:
        arrays = [np.asarray(witness[name]) for name in names]
    except (KeyError, TypeError, ValueError):
        raise CertificateError(f"The certificate lacks its witness ({', '.join(names)}).") from None
    if any(array.dtype.kind != "f" for array in arrays):
        raise CertificateError("The witness must hold arrays of real numbers.")
    with np.errstate(all="ignore"):
        numbers = [array.astype(np.float64, copy=False) for array in arrays]
    if not all(is_finite(array) for array in numbers):
        raise CertificateError("The witness is not finite.")
    return numbers
