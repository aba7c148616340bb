"""The array type of the package, effects of rows and columns, and sparse arrays in a common form."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.linalg.row_chunks import cached_rows

FloatArray = NDArray[np.float64]


def add_effects(X: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Add ``rows_i + columns_j`` to X in place, in row chunks, which saves a second matrix; the sum commutes."""
    for chunk in cached_rows(X):
        X[chunk] += np.add.outer(rows[chunk], columns)
    return X


def csr_without_zeros(A: Any) -> Any:
    """Return `A` as a new CSR array of float64, repeated entries added up and zeros left out."""
    matrix = sp.csr_array(A, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return with_short_indices(matrix)


def with_short_indices(A: Any) -> Any:
    """A in compressed rows, its places in four bytes where these suffice: less to read, and loops are compiled for one kind."""
    if A.indices.dtype == A.indptr.dtype == np.int32 or max(*A.shape, A.nnz) > np.iinfo(np.int32).max:
        return A
    return sp.csr_array((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)
