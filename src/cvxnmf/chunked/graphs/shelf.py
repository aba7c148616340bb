"""Where arrays of a graph are kept: in memory, or in files of a folder of their own that are read in slices."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cvxnmf import validation

Array = NDArray[Any]


class FileArray:
    """An array of a shelf in a file; slices are plain reads, so what the system caches of it is no memory of this process."""

    def __init__(self, path: str, dtype: Any, length: int) -> None:
        self.path, self.dtype, self.length = path, np.dtype(dtype), length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, places: slice) -> Array:
        first, stop, _ = places.indices(self.length)
        count = max(0, stop - first)
        values = np.fromfile(self.path, self.dtype, count, offset=first * self.dtype.itemsize)
        if len(values) < count:
            validation.refuse(f"{self.path} is shorter than it was written; nobody else may change it while it is worked on.")
        return values


class Shelf(Protocol):
    """Shelf: keeps arrays of a graph in memory or files, and gives back what can be sliced."""

    def keep(self, parts: Iterator[Array], dtype: Any) -> Any:
        """Keep one array on the shelf, from parts that follow each other."""

    def discard(self, kept: Any) -> None:
        """Discard an array from the shelf."""


class MemoryShelf:
    """Shelf that keeps arrays of a graph in memory."""

    def keep(self, parts: Iterator[Array], dtype: Any) -> Any:
        """Keep the parts on the shelf as one joined array in memory; one with gaps would have loops compiled for itself alone."""
        found = [np.ascontiguousarray(part, dtype=dtype) for part in parts]
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0, dtype), *found])

    def discard(self, kept: Any) -> None:
        """Do nothing: a shelf in memory has no files to discard."""


class DiskShelf:
    """Shelf that keeps arrays of a graph in files of a temporary folder, which is removed with it."""

    def __init__(self, folder: str | None = None) -> None:
        try:
            self.folder = tempfile.mkdtemp(prefix="cvxnmf-", dir=folder)
        except OSError as error:
            validation.refuse(f"No folder for temporary files can be made: {error.strerror or error}; set TMPDIR to another one.")
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def keep(self, parts: Iterator[Array], dtype: Any) -> FileArray:
        """Keep an array on the shelf as a file that the parts are appended to."""
        with writing_errors(self.folder):
            number, path = tempfile.mkstemp(dir=self.folder)
            length = 0
            with os.fdopen(number, "wb") as file:
                for part in parts:
                    np.ascontiguousarray(part, dtype=dtype).tofile(file)
                    length += len(part)
        return FileArray(path, dtype, length)

    def discard(self, kept: Any) -> None:
        """Remove the file of an array from the shelf; arrays that users hold stay."""
        if isinstance(kept, FileArray):
            os.unlink(kept.path)

    def close(self) -> None:
        """Remove all files of the shelf."""
        self._remove()


@contextmanager
def writing_errors(folder: str) -> Iterator[None]:
    """Turn a full disk under a shelf into one sentence."""
    try:
        yield
    except OSError as error:
        validation.refuse(f"{folder} cannot hold the graph: {error.strerror or error}; set TMPDIR to a folder with more room.")
