"""What workers of a cluster do. Every task depends on nothing but its arguments, so that it can be run again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.chunked.checked_chunks import checked_chunk, join_columns
from cvxnmf.chunked.local import map_reduce
from cvxnmf.chunked.map_reduce import ChunkFunction, state_rows

#: Bytes that the addresses of numpy's own arrays are multiples of.
ALIGNMENT = 16


class Literal:
    """A value that a task carries unchanged: dask does not look for tasks inside."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Refusal(NamedTuple):
    """A worker's refusal of a row chunk: a sentence, returned, not raised, so that no traceback is written to its log."""

    sentence: str


def split_dask_chunks(pieces: list[Any], places: Literal, width: int, height: int) -> list[Any] | Refusal:
    """Task: checked row chunks from the chunks of a dask array, each a list of pieces side by side, and cut to a height."""
    chunks = _checked_chunks((join_columns(row) for row in pieces), places, width)
    if isinstance(chunks, Refusal):
        return chunks
    return [chunk[first : first + height] for chunk in chunks for first in range(0, chunk.shape[0], height)]


def read_chunks(parts: Literal, places: Literal, width: int) -> list[Any] | Refusal:
    """Task: checked row chunks that a worker reads from sources and places in them."""
    return _checked_chunks((source.read(first, stop) for source, first, stop in parts.value), places, width)


def _checked_chunks(raw: Iterator[Any], places: Literal, width: int) -> list[Any] | Refusal:
    """A worker's row chunks as checked numbers, or the sentence about the first that cannot be read or has a wrong entry."""
    try:
        return [checked_chunk(rows, place, width) for rows, place in zip(raw, places.value, strict=True)]
    except ValueError as error:
        return Refusal(str(error))


def reduce_group(function: ChunkFunction, chunks: Any, state: Any, shared: Literal, threads: int) -> tuple[Any, Any]:
    """Task: map the function over the row chunks of a worker and reduce there: their new state, and the partial sum."""
    if isinstance(chunks, Refusal):
        return None, chunks
    states = None if state is None else align_data(state[0])
    return map_reduce(function, lambda number: align_data(chunks[number]), len(chunks), states, align_data(shared.value), threads)


def align_data(value: Any) -> Any:
    """Copy the arrays of a message to a worker to addresses aligned as numpy itself would choose.

    Arrays that came over the wire begin anywhere, and where they begin decides in which order some libraries add.
    """
    if isinstance(value, np.ndarray):
        return value if value.ctypes.data % ALIGNMENT == 0 else value.copy(order="K")
    if sp.issparse(value):
        arrays = (align_data(part) for part in (value.data, value.indices, value.indptr))
        return sp.csr_array(tuple(arrays), shape=value.shape, copy=False)
    if isinstance(value, list | tuple):
        parts = [align_data(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def broadcast(value: Any) -> Any:
    """Task that broadcasts a value, which is a part of it, to the workers."""
    return value


def set_state(states: Literal) -> tuple[Any, None]:
    """Task: states of row chunks in the form of what :func:`reduce_group` returns."""
    return states.value, None


def state(result: tuple[Any, Any]) -> Any:
    """Task: the state of a worker's row chunks after :func:`reduce_group`."""
    return result[0]


def partial_sum(result: tuple[Any, Any]) -> Any:
    """Task: the partial sum of a worker's row chunks, from :func:`reduce_group`."""
    return result[1]


def rows(result: tuple[Any, Any]) -> Any:
    """Task: the rows in the state of a worker's row chunks."""
    return np.concatenate([state_rows(part) for part in result[0]])
