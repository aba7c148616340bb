"""Where the rows of a matrix come from: an array in memory, a file, or the chunks of a dask array."""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.certificates.row_chunks import copy_mapped, file_is_complete
from cvxnmf.chunked.checked_chunks import join_columns

#: Modes of memory-mapped files whose changes are those of the file.
SHARED = ("r", "r+", "w+")


class RowSource(ABC):
    """A source of a matrix's rows, which are read some at a time, in the type in which they are stored.

    `waits` tells that reads wait for a file, so that one more thread pays. `bounds` are the first rows of the chunks in which a
    dask array comes, and the number of rows; None where any rows can be read.
    """

    shape: tuple[int, int]
    dtype: Any
    waits = False
    bounds: list[int] | None = None

    @abstractmethod
    def read(self, first: int, stop: int) -> Any:
        """Read the rows from `first` up to `stop`, left out, from their source."""

    def part(self, first: int, stop: int) -> Any:
        """Source of rows that a worker can read, and places in it; by default the rows themselves."""
        return ArrayRows(self.read(first, stop)), 0, stop - first


class ArrayRows(RowSource):
    """Source of rows: an array or a sparse matrix in memory."""

    def __init__(self, A: Any) -> None:
        self.A = sp.csr_array(A) if sp.issparse(A) else A
        self.shape, self.dtype = A.shape, A.dtype

    def read(self, first: int, stop: int) -> Any:
        """Read rows as a slice of the array in memory."""
        return self.A[first:stop]


class StoredRows(RowSource):
    """Source of rows: a matrix in an HDF5 or zarr file, dense or in compressed rows."""

    def __init__(self, A: Any) -> None:
        if getattr(A, "format", "csr") != "csr":
            validation.refuse("A is stored by columns (csc), which cannot be read in rows; store it as csr first.")
        self.A, self.shape, self.dtype = A, tuple(A.shape), A.dtype

    def read(self, first: int, stop: int) -> Any:
        """Read rows as a slice of an HDF5 or zarr file, by its library."""
        rows = self.A[first:stop]
        return sp.csr_array(rows) if sp.issparse(rows) else np.asarray(rows)


class MappedRows(RowSource):
    """Source of rows: any view of a memory-mapped file; the pages that were read are given back to the system."""

    def __init__(self, A: Any, root: np.memmap[Any, Any]) -> None:
        self.A, self.root = np.asarray(A), root
        self.shape, self.dtype = A.shape, A.dtype

    def read(self, first: int, stop: int) -> Any:
        """Read rows as a copy of a memory-mapped slice; a file that has become too short is refused in a sentence."""
        if not file_is_complete(self.root):
            validation.refuse(f"{self.root.filename} is incomplete, so fetch or write it again.")
        return copy_mapped(self.A[first:stop], self.root)


@dataclass(frozen=True)
class FileRows(RowSource):
    """Source of rows: a matrix in a file, by plain reads; what the system caches of it is no memory of this process.

    Rows or columns must be contiguous in the file; of columns each read takes a piece. `identity` is the device and the number
    of the file, None where it may be another one, as on other machines.
    """

    path: str
    dtype: Any
    shape: tuple[int, int]
    strides: tuple[int, int]
    offset: int
    identity: tuple[int, int] | None = None
    waits = True

    @classmethod
    def of(cls, A: np.memmap[Any, Any], root: np.memmap[Any, Any]) -> FileRows | None:
        """The file behind a memory-mapped matrix or a view; None if it cannot be read in pieces, or holds other entries."""
        contiguous = A.ndim == 2 and A.dtype.kind in "fiub" and A.itemsize in A.strides and min(A.strides) > 0
        if not contiguous or root.filename is None or root.mode not in SHARED:
            return None
        path, pages = os.path.abspath(root.filename), root._mmap  # type: ignore[attr-defined]
        beginning = np.frombuffer(pages, dtype=np.uint8).__array_interface__["data"][0]
        identity = None
        try:
            if root.mode != "r":
                root.flush()
            status = os.stat(path)
            if status.st_size != pages.size() or _mapped_inode(beginning) not in (None, status.st_ino):
                return None  # there is another file now
            identity = status.st_dev, status.st_ino
        except (OSError, ValueError):  # reading it will say what is wrong
            pass
        page = root.offset - root.offset % mmap.ALLOCATIONGRANULARITY
        offset = page + A.__array_interface__["data"][0] - beginning
        rows, columns = A.shape
        return cls(path, A.dtype, (rows, columns), (A.strides[0], A.strides[1]), offset, identity)

    def read(self, first: int, stop: int) -> Any:
        """Read rows from the file as stored; a file that has become too short is refused in a sentence."""
        height, width = stop - first, self.shape[1]
        begin = self.offset + first * self.strides[0]
        by_rows = self.strides[1] == self.dtype.itemsize
        chunk: Any = np.empty((height, width) if by_rows else (width, height), dtype=self.dtype)
        step = self.strides[0] if by_rows else self.strides[1]
        try:
            with open(self.path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                if self.identity not in (None, (status.st_dev, status.st_ino)):
                    validation.refuse(f"{self.path} was replaced by another file while it was read; open it again.")
                if step == chunk.shape[1] * self.dtype.itemsize:
                    self._fill(file, begin, memoryview(chunk).cast("B"), first, stop)
                else:
                    for number, line in enumerate(chunk):
                        self._fill(file, begin + number * step, memoryview(line).cast("B"), first, stop)
        except OSError as error:
            validation.refuse(f"{self.path} cannot be read: {error.strerror or error}.")
        return chunk if by_rows else chunk.T

    def part(self, first: int, stop: int) -> Any:
        """The file as a source of rows for a worker: its name and places in it."""
        return replace(self, identity=None), first, stop

    def _fill(self, file: Any, begin: int, target: memoryview, first: int, stop: int) -> None:
        """Fill the target, rows of a chunk, from the file."""
        file.seek(begin)
        done = 0
        while done < len(target):
            count = file.readinto(target[done:])
            if not count:
                validation.refuse(
                    f"{self.path} ends before row {stop - 1} of its {self.shape[0]} rows; it is incomplete, so fetch or "
                    "write it again."
                )
            done += count


def _mapped_inode(address: int) -> int | None:
    """The inode of the file that is mapped at an address; None where the system does not tell.

    The device is left out, since some file systems call it differently here.
    """
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                span, _, _, _, inode = line.split()[:5]
                first, stop = (int(end, 16) for end in span.split("-"))
                if first <= address < stop:
                    return int(inode) or None
    except (OSError, ValueError):
        pass
    return None


class DaskRows(RowSource):
    """Source of rows: a dask array, computed chunk by chunk; chunks without rows are left out."""

    def __init__(self, A: Any) -> None:
        self.shape, self.dtype = A.shape, A.dtype
        heights = np.array(A.chunks[0])
        self.bounds = [0, *np.cumsum(heights[heights > 0]).tolist()]
        self._pieces = dict(zip(self.bounds, A.to_delayed()[heights > 0].tolist(), strict=False))

    def read(self, first: int, stop: int) -> Any:
        """Read one row of chunks of the dask array, computed in this process."""
        return join_columns(import_module("dask").compute(*self._pieces[first], scheduler="synchronous"))

    def part(self, first: int, stop: int) -> Any:
        """The delayed pieces of one row of chunks of the dask array."""
        return self._pieces[first]
