"""Rows in chunks: the one way in which work on a large matrix is cut into pieces that fit the memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

#: Entries of a chunk that stays in a processor's cache, of a large matrix and of a small one.
CACHED_ENTRIES = 1 << 14
LEAST_CACHED_ENTRIES = 1 << 12


def row_chunks(n_rows: int, entries_per_row: int, budget: int = 1 << 18) -> Iterator[slice]:
    """Slices of consecutive rows, each of as many rows as `budget` entries allow, and of at least one.

    Examples
    --------
    >>> list(row_chunks(5, 100, budget=250))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    height = max(1, budget // max(1, entries_per_row))
    return (slice(first, min(first + height, n_rows)) for first in range(0, n_rows, height))


def cached_rows(M: NDArray[Any]) -> Iterator[slice]:
    """Slices of consecutive rows of M, or of an array of its shape, that stay in a processor's cache.

    They are an eighth of M at most, unless that is little: the work on a chunk needs several arrays of its size.
    """
    return row_chunks(len(M), M[0].size, min(CACHED_ENTRIES, max(LEAST_CACHED_ENTRIES, M.size // 8)))
