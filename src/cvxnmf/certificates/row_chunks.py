"""Data that are read in row chunks, in bounded memory: memory-mapped files and dask arrays."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.losses import Loss
from cvxnmf.certificates.rounding import row_slices
from cvxnmf.certificates.statement import Array, CertificateError

#: Entries of a row chunk of a file.
CHUNK_ENTRIES = 1 << 20
#: Bytes of a file that are mapped at a time, and that the system maps around a place that is read.
PAGES, AROUND = 8 << 20, 1 << 16


class Summary(NamedTuple):
    """Summary of data after one pass over their row chunks.

    `total` is the sum of the entries, or of their squares, as the loss has it; `complete`: none is missing; `gram` the smaller of
    ``A'A`` and ``AA'``, if it was asked for.
    """

    total: float
    largest: float
    complete: bool
    gram: Array | None


def is_dask(A: Any) -> bool:
    """Whether data are a dask array; dask is not imported for the question."""
    return hasattr(A, "compute") and hasattr(A, "chunks")


def is_read_in_chunks(A: Any) -> bool:
    """Whether data are read in row chunks: memory-mapped files and dask arrays."""
    return (isinstance(A, np.memmap) or is_dask(A)) and len(A.shape) == 2 and not any(map(math.isnan, A.shape))


def summarise(A: Any, loss: Loss, gram: bool = False) -> Summary:
    """Summarise data in one pass over all row chunks (column chunks for ``AA'``, of wide data)."""
    totals, largest, complete, product = [], 0.0, True, None
    for chunk in row_chunks(A, transposed=gram and A.shape[0] < A.shape[1]):
        entries = chunk.data if sp.issparse(chunk) else chunk
        if not math.isfinite(float(entries.max(initial=0.0))):
            complete, entries = False, entries[~np.isnan(entries)]
        totals.append(float(loss.magnitudes(entries).sum()))
        largest = max(largest, float(entries.max(initial=0.0)))
        if gram:
            part = chunk.T @ chunk
            part = part.toarray() if sp.issparse(part) else part
            product = part if product is None else np.add(product, part, out=product)
    return Summary(math.fsum(totals), largest, complete, product)


def row_chunks(A: Any, transposed: bool = False) -> Iterator[Any]:
    """Checked float64 row chunks of A, dense or csr, or of its transpose."""
    root = mapped_file(A)
    for lines in _chunk_slices(A, transposed):
        if root is not None and not file_is_complete(root):
            raise CertificateError(f"The file {root.filename} is incomplete.")
        raw = A[:, lines] if transposed else A[lines]
        raw = raw.compute() if is_dask(raw) else raw if root is None else copy_mapped(raw, root)
        chunk: Any = raw.tocsr().astype(np.float64) if hasattr(raw, "tocsr") else _numbers(raw)
        entries = chunk.data if sp.issparse(chunk) else chunk
        lowest, highest = float(entries.min(initial=0.0)), float(entries.max(initial=0.0))
        regular = lowest == 0.0 and math.isfinite(highest)
        if not regular and (np.isinf(entries).any() or np.nanmin(entries, initial=0.0) < 0):
            raise CertificateError("The data must be a matrix of nonnegative numbers.")
        yield chunk.T if transposed else chunk


def _chunk_slices(A: Any, transposed: bool) -> Iterator[slice]:
    """Slices of rows (or columns) of every chunk: the chunks of a dask array, else by size."""
    side, other = A.shape[::-1] if transposed else A.shape
    if not is_dask(A):
        return row_slices(side, other, CHUNK_ENTRIES)
    ends = np.cumsum([0, *A.chunks[1 if transposed else 0]]).tolist()
    return (slice(first, stop) for first, stop in zip(ends, ends[1:], strict=False) if first < stop)


def _numbers(raw: Any) -> Array:
    try:
        dense = np.asarray(raw)
        if dense.dtype.kind in "fiub":
            return np.array(dense, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    raise CertificateError("The data must be a matrix of nonnegative numbers.")


def mapped_file(A: Any) -> Any:
    """The memory-mapped array that A is a view of, as it was opened; None if A is no view of one."""
    root = None
    while isinstance(A, np.ndarray):
        if isinstance(A, np.memmap) and isinstance(getattr(A, "_mmap", None), mmap.mmap):
            root = A
        A = A.base
    return root


def file_is_complete(root: Any) -> bool:
    """Whether a memory-mapped file is still there in full; reading what is no longer there would end the program."""
    first = root.offset - root.offset % mmap.ALLOCATIONGRANULARITY
    try:
        return bool(root._mmap.size() >= first + len(root._mmap))
    except (OSError, ValueError):  # the map holds no file that could tell
        return True


def copy_mapped(part: Any, root: Any) -> Any:
    """A copy of a part of a memory-mapped array, by a few lines of the file at a time, whose pages are then given back."""
    copy = np.empty_like(part, subok=False)
    lines, targets = (part, copy) if abs(part.strides[0]) >= abs(part.strides[1]) else (part.T, copy.T)
    for few in row_slices(len(lines), AROUND + abs(lines.strides[1]) * lines.shape[1], PAGES):
        targets[few] = lines[few]
        _release_pages(root)
    return copy


def _release_pages(root: Any) -> None:
    """Give back the memory of pages of a memory-mapped file that were read."""
    if hasattr(mmap, "MADV_DONTNEED") and root.mode in ("r", "r+"):  # of private pages it would undo changes
        root._mmap.madvise(mmap.MADV_DONTNEED)
