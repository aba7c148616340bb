"""Data that are looked at piece by piece: memory-mapped files and dask arrays, in bounded memory."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.rounding import Array, CertificateError

#: Entries of a piece of a file.
PIECE = 1 << 20
#: Bytes of a file that are mapped at a time, and that the system maps around a place that is looked at.
PAGES, AROUND = 8 << 20, 1 << 16


class Walk(NamedTuple):
    """What one walk over the data tells: squared norm, sum, largest entry, whether all are known, and the smaller Gram matrix."""

    energy: float
    total: float
    largest: float
    complete: bool
    gram: Array | None


def is_chunked(A: Any) -> bool:
    """Whether it is a dask array; dask is not imported for the question."""
    return hasattr(A, "compute") and hasattr(A, "chunks")


def in_pieces(A: Any) -> bool:
    """Whether data are looked at piece by piece."""
    return (isinstance(A, np.memmap) or is_chunked(A)) and len(A.shape) == 2 and not any(map(math.isnan, A.shape))


def walked(A: Any, gram: bool = False) -> Walk:
    """Walk over all pieces; `gram` asks for ``A'A``, or ``AA'`` where that is smaller."""
    wide = A.shape[0] < A.shape[1] and gram
    energies, sums, largest, complete, product = [], [], 0.0, True, None
    for piece in pieces(A, wide):
        entries = piece.data if sp.issparse(piece) else piece
        if not math.isfinite(float(entries.max(initial=0.0))):
            complete, entries = False, entries[~np.isnan(entries)]
        energies.append(float(np.square(entries).sum()))
        sums.append(float(entries.sum()))
        largest = max(largest, float(entries.max(initial=0.0)))
        if gram:
            part = piece.T @ piece
            part = part.toarray() if sp.issparse(part) else part
            product = part if product is None else np.add(product, part, out=product)
    return Walk(math.fsum(energies), math.fsum(sums), largest, complete, product)


def pieces(A: Any, turned: bool = False) -> Iterator[Any]:
    """Checked float64 pieces: rows of A, dense or csr, or rows of its transpose."""
    root = root_of(A)
    for first, stop in _cuts(A, turned):
        if root is not None and not is_whole(root):
            raise CertificateError(f"The file {root.filename} is incomplete.")
        raw = A[:, first:stop] if turned else A[first:stop]
        raw = raw.compute() if is_chunked(raw) else raw if root is None else copied(raw, root)
        piece: Any = raw.tocsr().astype(np.float64) if hasattr(raw, "tocsr") else _numbers(raw)
        entries = piece.data if sp.issparse(piece) else piece
        lowest, highest = float(entries.min(initial=0.0)), float(entries.max(initial=0.0))
        regular = lowest == 0.0 and math.isfinite(highest)
        if not regular and (np.isinf(entries).any() or np.nanmin(entries, initial=0.0) < 0):
            raise CertificateError("The data must be a matrix of nonnegative numbers.")
        yield piece.T if turned else piece


def _cuts(A: Any, turned: bool) -> Iterator[tuple[int, int]]:
    """Where pieces begin and end: at the chunks of a dask array, else by size."""
    side, other = A.shape[::-1] if turned else A.shape
    height = max(1, PIECE // other)
    starts = np.cumsum([0, *A.chunks[1 if turned else 0]]).tolist() if is_chunked(A) else [*range(0, side, height), side]
    return ((first, stop) for first, stop in zip(starts, starts[1:], strict=False) if first < stop)


def _numbers(raw: Any) -> Array:
    try:
        dense = np.asarray(raw)
        if dense.dtype.kind in "fiub":
            return np.array(dense, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    raise CertificateError("The data must be a matrix of nonnegative numbers.")


def root_of(A: Any) -> Any:
    """The memory-mapped array that A is a view of, as it was opened; None if A is no view of one."""
    root = None
    while isinstance(A, np.ndarray):
        if isinstance(A, np.memmap) and isinstance(getattr(A, "_mmap", None), mmap.mmap):
            root = A
        A = A.base
    return root


def is_whole(root: Any) -> bool:
    """Whether the mapped file is still there in full; looking at what is no longer there would end the program."""
    first = root.offset - root.offset % mmap.ALLOCATIONGRANULARITY
    try:
        return bool(root._mmap.size() >= first + len(root._mmap))
    except (OSError, ValueError):  # the map holds no file that could tell
        return True


def copied(part: Any, root: Any) -> Any:
    """A copy of a part of a memory-mapped array, by a few lines of the file at a time, whose pages are then given back."""
    copy = np.empty_like(part, subok=False)
    lines, targets = (part, copy) if abs(part.strides[0]) >= abs(part.strides[1]) else (part.T, copy.T)
    count = max(1, PAGES // (AROUND + abs(lines.strides[1]) * lines.shape[1]))
    for first in range(0, len(lines), count):
        targets[first : first + count] = lines[first : first + count]
        _forget(root)
    return copy


def _forget(root: Any) -> None:
    """Give back the memory of a file's pages that were looked at."""
    if hasattr(mmap, "MADV_DONTNEED") and root.mode in ("r", "r+"):  # of private pages it would undo changes
        root._mmap.madvise(mmap.MADV_DONTNEED)
