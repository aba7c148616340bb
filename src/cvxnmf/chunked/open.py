"""Which data are worked on in row chunks, and where: in this process, or on a Dask cluster."""

from __future__ import annotations

import math
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.certificates.row_chunks import mapped_file
from cvxnmf.chunked.local import LocalChunks
from cvxnmf.chunked.matrix import ChunkedMatrix
from cvxnmf.chunked.memory import DEFAULTS, Settings, limit_in_bytes, memory_plan, unlimited_plan
from cvxnmf.chunked.sources import ArrayRows, DaskRows, FileRows, MappedRows, RowSource, StoredRows
from cvxnmf.linalg.threads import thread_count

#: Float64 copies of the data that work in memory holds.
COPIES_IN_MEMORY = 3


def needs_chunks(A: Any, memory_limit: Any = None, client: Any = None) -> bool:
    """Whether data are worked on in row chunks: on demand, or because they come in chunks or are a file too large for memory."""
    return (
        memory_limit is not None
        or client is not None
        or isinstance(A, ChunkedMatrix)
        or is_dask(A)
        or is_stored(A)
        or too_large(A)
    )


def is_dask(A: Any) -> bool:
    """Whether data are a dask array, to be opened in its chunks; dask is not imported for the question."""
    return hasattr(A, "to_delayed") and hasattr(A, "chunks")


def is_stored(A: Any) -> bool:
    """Whether data are a matrix in an HDF5 or zarr file, dense, or sparse as AnnData keeps it, that is read by slices."""
    return type(A).__module__.partition(".")[0] in ("h5py", "zarr", "anndata") and hasattr(A, "dtype") and hasattr(A, "shape")


def too_large(A: Any, memory: float | None = None) -> bool:
    """Whether data are a file whose working copies would take more than half of the memory, so that it is opened in chunks."""
    memory = validation.physical_memory() if memory is None else memory
    return isinstance(A, np.memmap) and COPIES_IN_MEMORY * 8.0 * A.size > memory / 2


def open_chunked(
    A: Any, k: int, memory_limit: Any = None, client: Any = None, settings: Settings = DEFAULTS
) -> AbstractContextManager[ChunkedMatrix]:
    """Open data in row chunks and check them in a first pass; the ``with`` statement closes them, unless they were open before.

    Memory is planned for factors with k columns. Without a client or its address, a dask array is computed on the current client,
    or in this process.
    """
    if isinstance(A, ChunkedMatrix):
        return nullcontext(A)
    limit = None if memory_limit is None else limit_in_bytes(memory_limit)
    if limit is None and too_large(A):
        limit = int(validation.physical_memory() / 2)
    shape = matrix_shape(A)
    source = _source(A)
    if client is not None or is_dask(A):
        from cvxnmf.chunked import dask_connection, on_dask

        found = dask_connection.open_connection(client, settings)
        if found is not None:
            return _matrix(on_dask.cluster_chunks(source, found, settings), A, settings)
    threads = thread_count() + source.waits
    if limit is None:
        plan = unlimited_plan(shape, threads, settings)
    else:
        height = None if source.bounds is None else max(A.chunks[0])
        plan = memory_plan(shape, np.dtype(source.dtype).itemsize, k, limit, threads, height, settings)
    bounds = source.bounds or [*range(0, shape[0], plan.height), shape[0]]
    return _matrix(LocalChunks(source, bounds, plan.threads), A, settings, plan.room, plan.threads)


def matrix_shape(A: Any) -> tuple[int, int]:
    """The shape of a matrix that is to be worked on in row chunks; data of any other shape are refused."""
    if isinstance(A, str | os.PathLike):
        validation.refuse('A is the name of a file; open it with numpy.load(A, mmap_mode="r") or dask.array, or read it.')
    try:
        shape = A.shape if hasattr(A, "shape") else np.shape(A)
    except ValueError:
        validation.refuse("A is not a rectangular array of numbers; give every row the same length.")
    if len(shape) != 2:
        validation.refuse(f"A must be a two-dimensional matrix, not an array of shape {shape}.")
    if any(np.isnan(side) for side in shape):
        validation.refuse("The chunks of A have unknown sizes; call A.compute_chunk_sizes() first.")
    if 0 in shape:
        validation.refuse(f"A is empty (shape {tuple(shape)}); there is nothing to fit.")
    return int(shape[0]), int(shape[1])


def _source(A: Any) -> RowSource:
    """Source of rows to open in chunks: of a dask array, of a file where there is one, else of an array."""
    if is_dask(A):
        return DaskRows(A)
    if is_stored(A):
        return StoredRows(A)
    root = None if isinstance(A, np.ma.MaskedArray) else mapped_file(A)
    if root is not None:
        return (FileRows.of(A, root) if isinstance(A, np.memmap) else None) or MappedRows(A, root)
    return ArrayRows(A if sp.issparse(A) or isinstance(A, np.ma.MaskedArray) else np.asarray(A))


def _matrix(chunks: Any, A: Any, settings: Settings, room: float = math.inf, threads: int = 1) -> ChunkedMatrix:
    dtype = np.dtype(A.dtype) if hasattr(A, "dtype") else np.dtype(np.float64)
    try:
        return ChunkedMatrix(chunks, A, dtype.kind == "f" and dtype.itemsize <= 4, room, threads, settings)
    except BaseException:
        chunks.close()
        raise
