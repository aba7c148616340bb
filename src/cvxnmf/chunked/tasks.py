"""What workers of a cluster do. Every task depends on nothing but its arguments, so that it can be run again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.chunked.entries import Place, joined, numbers, require_nonnegative
from cvxnmf.chunked.local import mapped
from cvxnmf.chunked.protocol import Function, first_of

#: Bytes that the addresses of numpy's own arrays are multiples of.
ALIGNMENT = 16


class Literal:
    """A value that a task carries as it is; dask does not look inside."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Refusal(NamedTuple):
    """What is wrong with a block; returned, not raised, so that no worker writes a traceback to its log."""

    sentence: str


def prepared(pieces: list[Any], places: Literal, width: int, height: int) -> list[Any] | Refusal:
    """Checked blocks from the chunks of a dask array, each a list of pieces side by side, and cut to a height."""
    chunks = _checked([joined(row) for row in pieces], places.value, width)
    if isinstance(chunks, Refusal):
        return chunks
    return [chunk[first : first + height] for chunk in chunks for first in range(0, chunk.shape[0], height)]


def read(raw: Literal, places: Literal, width: int) -> list[Any] | Refusal:
    """Checked blocks from rows, or from places in a file that this worker reads."""
    try:
        found = [part[0].read(*part[1:]) if isinstance(part, tuple) else part for part in raw.value]
    except ValueError as error:
        return Refusal(str(error))
    return _checked(found, places.value, width)


def _checked(raw: list[Any], places: list[Place], width: int) -> list[Any] | Refusal:
    try:
        blocks = [numbers(part, place, width) for part, place in zip(raw, places, strict=True)]
        for block, place in zip(blocks, places, strict=True):
            require_nonnegative(block, place)
    except ValueError as error:
        return Refusal(str(error))
    return blocks


def group_run(function: Function, blocks: Any, kept: Any, shared: Literal, threads: int) -> tuple[Any, Any]:
    """Map the function over the blocks of a group: what they keep, and their sum."""
    if isinstance(blocks, Refusal):
        return None, blocks
    parts = None if kept is None else aligned(kept[0])
    return mapped(function, lambda number: aligned(blocks[number]), len(blocks), parts, aligned(shared.value), threads)


def aligned(value: Any) -> Any:
    """The same with every array at an address as numpy itself would choose.

    Arrays that came over the wire begin anywhere, and where they begin decides in which order some libraries add.
    """
    if isinstance(value, np.ndarray):
        return value if value.ctypes.data % ALIGNMENT == 0 else value.copy(order="K")
    if sp.issparse(value):
        arrays = (aligned(part) for part in (value.data, value.indices, value.indptr))
        return sp.csr_array(tuple(arrays), shape=value.shape, copy=False)
    if type(value) in (list, tuple):
        return type(value)(aligned(part) for part in value)
    return value


def same(value: Any) -> Any:
    """The value, which is a part of the task."""
    return value


def as_kept(parts: Literal) -> tuple[Any, None]:
    """Parts in the form of what a run keeps."""
    return parts.value, None


def first(done: tuple[Any, Any]) -> Any:
    """What a run keeps."""
    return done[0]


def second(done: tuple[Any, Any]) -> Any:
    """The summand of a run."""
    return done[1]


def rows(done: tuple[Any, Any]) -> Any:
    """The rows that a run keeps."""
    return np.concatenate([first_of(part) for part in done[0]])
