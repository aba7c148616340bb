"""The array type of the package, and rows in chunks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def row_slices(n_rows: int, row_entries: int, chunk_entries: int = 1 << 18) -> Iterator[slice]:
    """Slices of consecutive rows with about `chunk_entries` entries each, at least one row.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    row_entries : int
        Entries that the work on one row takes.
    chunk_entries : int
        Most entries of a chunk of several rows.
    """
    height = max(1, chunk_entries // max(1, row_entries))
    return (slice(first, min(first + height, n_rows)) for first in range(0, n_rows, height))
