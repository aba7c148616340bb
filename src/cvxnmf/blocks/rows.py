"""Where the rows of a matrix come from: an array in memory, a file, or the chunks of a dask array.

Each has `shape`, `dtype` and ``read(first, stop)``, which returns these rows as they are stored.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.blocks.entries import joined


class Rows(Protocol):
    """A source of rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def dtype(self) -> Any:
        """Type of the stored entries."""

    def read(self, first: int, stop: int) -> Any:
        """The rows from `first` up to `stop`, left out."""


class ArrayRows:
    """Rows of an array or of a sparse matrix in memory."""

    def __init__(self, A: Any) -> None:
        self.A = sp.csr_array(A) if sp.issparse(A) else A
        self.shape, self.dtype = A.shape, A.dtype

    def read(self, first: int, stop: int) -> Any:
        """A slice."""
        return self.A[first:stop]


@dataclass(frozen=True)
class FileRows:
    """Rows of a matrix in a file, by plain reads: what the system caches of the file is no memory of this process.

    Rows or columns must be contiguous in the file; of columns each read takes a piece.
    """

    path: str
    dtype: Any
    shape: tuple[int, int]
    strides: tuple[int, int]
    offset: int

    @classmethod
    def of(cls, A: np.memmap[Any, Any]) -> FileRows | None:
        """The file behind a memory-mapped matrix or a view of one; None if it is none that can be read in pieces."""
        base: Any = A
        while isinstance(base.base, np.memmap):
            base = base.base
        start = getattr(base, "_mmap", None)
        contiguous = A.ndim == 2 and A.dtype.kind in "fiub" and A.itemsize in A.strides and min(A.strides) > 0
        if not contiguous or base.filename is None or not isinstance(start, mmap.mmap):
            return None
        beginning = np.frombuffer(start, dtype=np.uint8).__array_interface__["data"][0]
        page = base.offset - base.offset % mmap.ALLOCATIONGRANULARITY
        offset = page + A.__array_interface__["data"][0] - beginning
        rows, columns = A.shape
        return cls(os.path.abspath(base.filename), A.dtype, (rows, columns), (A.strides[0], A.strides[1]), offset)

    def read(self, first: int, stop: int) -> Any:
        """The rows as stored; a file that has become too short is refused in a sentence."""
        height, width = stop - first, self.shape[1]
        begin = self.offset + first * self.strides[0]
        by_rows = self.strides[1] == self.dtype.itemsize
        block: Any = np.empty((height, width) if by_rows else (width, height), dtype=self.dtype)
        step = self.strides[0] if by_rows else self.strides[1]
        try:
            with open(self.path, "rb", buffering=0) as file:
                if step == block.shape[1] * self.dtype.itemsize:
                    self._fill(file, begin, memoryview(block).cast("B"), first, stop)
                else:
                    for number, line in enumerate(block):
                        self._fill(file, begin + number * step, memoryview(line).cast("B"), first, stop)
        except OSError as error:
            validation.refuse(f"{self.path} cannot be read: {error.strerror or error}.")
        return block if by_rows else block.T

    def _fill(self, file: Any, begin: int, target: memoryview, first: int, stop: int) -> None:
        """Fill the target from the file."""
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


class ChunkRows:
    """Rows of a dask array, computed chunk by chunk in this process."""

    def __init__(self, A: Any) -> None:
        self.shape, self.dtype = A.shape, A.dtype
        self.bounds, pieces = chunks_of(A)
        self._pieces = dict(zip(self.bounds, pieces, strict=False))

    def read(self, first: int, stop: int) -> Any:
        """One row of chunks."""
        return joined(import_module("dask").compute(*self._pieces[first], scheduler="synchronous"))


def chunks_of(A: Any) -> tuple[list[int], Any]:
    """First rows of the chunks of a dask array and the number of rows, and its delayed pieces; chunks without rows left out."""
    heights = np.array(A.chunks[0])
    return [0, *np.cumsum(heights[heights > 0]).tolist()], A.to_delayed()[heights > 0]
