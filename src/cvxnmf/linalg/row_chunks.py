"""Rows in chunks: the one way in which work on a large matrix is cut into pieces that fit the memory."""

from __future__ import annotations

from collections.abc import Iterator


def row_chunks(n_rows: int, entries_per_row: int, budget: int = 1 << 18) -> Iterator[slice]:
    """Slices of consecutive rows, each of as many rows as `budget` entries allow, and of at least one.

    Examples
    --------
    >>> list(row_chunks(5, 100, budget=250))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    height = max(1, budget // max(1, entries_per_row))
    return (slice(first, min(first + height, n_rows)) for first in range(0, n_rows, height))
