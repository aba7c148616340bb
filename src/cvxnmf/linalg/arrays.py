"""The array type of the package, effects of rows and columns, and sparse arrays in a common form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.linalg.row_chunks import cached_rows, row_chunks
from cvxnmf.linalg.threads import map_in_threads

FloatArray = NDArray[np.float64]
#: Stored entries from which a sparse matrix is large: what comes in is shared instead of copied, equal values are held once.
LARGE_SPARSE = 1_000_000
#: Entries from which dense data in single precision are worked on as they are: of fewer a copy costs nothing.
KEPT_SINGLE = 1 << 22
#: Numbers of a cache line, and of arrays for which it matters where they begin.
LINE, LARGE_ALIGNED = 8, 1 << 12


def is_single(A: Any) -> bool:
    """Whether data are of single precision, or half of it."""
    return getattr(A, "dtype", None) in (np.float32, np.float16)


def working_type(A: NDArray[Any], keep_single: bool) -> type[np.floating[Any]]:
    """The type in which a dense array is worked on: that of large data in single precision is kept if asked."""
    return np.float32 if keep_single and is_single(A) and A.size >= KEPT_SINGLE else np.float64


def in_double(A: Any) -> Any:
    """Data in double precision, for what single precision would spoil; a copy only where they are not."""
    return A.astype(np.float64) if is_single(A) else A


def energy(X: NDArray[Any]) -> float:
    """The energy ``||X||²`` of an array, the squares added up in double precision."""
    flat = X.ravel(order="K")  # no copy
    return float(np.vdot(flat, flat) if X.dtype == np.float64 else np.einsum("i,i", flat, flat, dtype=np.float64))


def column_sums(X: FloatArray) -> FloatArray:
    """The sums of an array's columns, as a product: many times as fast for few columns."""
    return np.asarray(np.ones(len(X)) @ X)


def extremes(X: NDArray[Any]) -> tuple[float, float, bool]:
    """The smallest and largest known entry of an array, or 0, and whether it has NaN; in threads, read from memory once."""

    def of_rows(rows: slice) -> tuple[float, float, bool]:
        part = X[rows]
        missing = bool(np.isnan(part.max(initial=0)))
        return float(np.fmin.reduce(part, axis=None, initial=0)), float(np.fmax.reduce(part, axis=None, initial=0)), missing

    if not X.size:
        return 0.0, 0.0, False
    lowest, highest, missing = zip(*map_in_threads(of_rows, list(row_chunks(len(X), X.size // len(X)))), strict=True)
    return min(lowest), max(highest), any(missing)


def aligned_empty(shape: tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """An empty array, a large one such that it begins where a cache line does: few of its vectors then lie on two lines."""
    size = math.prod(shape)
    if size < LARGE_ALIGNED:
        return np.empty(shape, kind)
    memory = np.empty(size + 2 * LINE, kind)
    first = -memory.ctypes.data // memory.itemsize % (8 * LINE // memory.itemsize)
    return memory[first : first + size].reshape(shape)


def add_effects(X: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Add effects ``rows_i + columns_j`` to an array X in place, in row chunks, which saves a second matrix; the sum commutes."""
    for chunk in cached_rows(X):
        X[chunk] += np.add.outer(rows[chunk], columns)
    return X


def log_row_sums(X: FloatArray) -> FloatArray:
    """Logarithms of the row sums of ``exp(X)``, overflow or not."""
    highest = X.max(axis=1)
    E = X - highest[:, None]
    return np.asarray(highest + np.log(np.exp(E, out=E).sum(axis=1)))


def csr_without_zeros(A: Any) -> Any:
    """Return `A` as a new CSR array of float64, repeated entries added up and zeros left out."""
    matrix = sp.csr_array(A, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return with_short_indices(matrix)


def shared_csr(A: Any) -> Any:
    """Like :func:`csr_without_zeros`, but a large CSR array in order shares its memory with the result: do not change it."""
    if not (sp.issparse(A) and A.format == "csr" and A.nnz >= LARGE_SPARSE and A.has_canonical_format and A.data.all()):
        return csr_without_zeros(A)
    return with_short_indices(sp.csr_array((A.data.astype(np.float64, copy=False), A.indices, A.indptr), shape=A.shape))


def is_uniform(A: Any) -> bool:
    """Whether the entries that a sparse matrix stores are all alike."""
    return bool(len(A.data)) and (is_held_once(A) or float(A.data.min()) == float(A.data.max()))


def is_held_once(A: Any) -> bool:
    """Whether the values of a sparse matrix are known to be alike, and one stands for all (`equal_values`)."""
    return len(A.data) > 1 and A.data.strides == (0,)


def equal_values(value: float, count: int) -> FloatArray:
    """An array of so many equal values, held once in memory; it cannot be written to."""
    return np.broadcast_to(np.float64(value), (count,))


def with_stored_values(A: Any) -> Any:
    """The sparse array A in compressed rows with every value stored, as products want it."""
    return sp.csr_array((np.ascontiguousarray(A.data), A.indices, A.indptr), shape=A.shape)


def with_short_indices(A: Any) -> Any:
    """The sparse array A in compressed rows, with indices of four bytes where these suffice: less to read, one kind of loop."""
    if A.indices.dtype == A.indptr.dtype == np.int32 or max(*A.shape, A.nnz) > np.iinfo(np.int32).max:
        return A
    return sp.csr_array((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)
