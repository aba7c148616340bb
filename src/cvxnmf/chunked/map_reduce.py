"""The one operation on data in row chunks: map a function over the chunks, and reduce.

``map_reduce(function, state, *shared)`` calls ``state'_c, part_c = function(chunk_c, state_c, *shared)`` for every chunk c. The
state stays where the chunk is; the parts are added in the order of the chunks, whoever finishes first, so that the same chunks
give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from cvxnmf.linalg.arrays import FloatArray

#: ``function(chunk, state, *shared) -> (state, part)``; a part is a tuple of arrays, numbers and tuples (which are joined).
ChunkFunction = Callable[..., tuple[Any, tuple[Any, ...]]]


class RowChunks(Protocol):
    """A matrix in row chunks, wherever they are, over which functions are mapped and reduced."""

    shape: tuple[int, int]
    bounds: list[int]

    def map_reduce(self, function: ChunkFunction, state: Any, *shared: Any) -> tuple[Any, tuple[Any, ...]]:
        """Map the function over all row chunks: the new state, which stays with the chunks, and the sum of the parts."""

    def scatter(self, X: FloatArray) -> Any:
        """Scatter the rows of X as the state of their row chunks."""

    def gather(self, state: Any) -> FloatArray:
        """Gather the state of all row chunks as one array; of tuples the first entry."""

    def close(self) -> None:
        """Let go of what is held for the row chunks."""


class Maximum(float):
    """A number of row chunks that is reduced by taking the larger one."""

    def __add__(self, other: float) -> Maximum:
        return Maximum(max(self, other))


def add_part(total: tuple[Any, ...] | None, part: tuple[Any, ...]) -> tuple[Any, ...]:
    """The total over row chunks with one more part; arrays of the total are changed in place."""
    if total is None:
        return tuple(np.array(entry) if isinstance(entry, np.ndarray) else entry for entry in part)
    return tuple(
        np.add(before, entry, out=before) if isinstance(before, np.ndarray) else before + entry
        for before, entry in zip(total, part, strict=True)
    )


def state_rows(state: Any) -> Any:
    """The rows in the state of a row chunk; of a tuple its first entry."""
    return state[0] if isinstance(state, tuple) else state


class SentLater:
    """Rows that become the state of their row chunks when they are first needed there."""

    def __init__(self, rows: FloatArray, chunks: RowChunks) -> None:
        self.rows, self.chunks = rows, chunks

    @cached_property
    def state(self) -> Any:
        """The state of the row chunks, sent when it is first asked for."""
        return self.chunks.scatter(self.rows)


def sent(state: Any) -> Any:
    """The state of the row chunks; rows that were not sent yet are sent now."""
    return state.state if isinstance(state, SentLater) else state
