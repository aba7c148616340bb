"""A graph in blocks of rows, and how entries from anywhere become such blocks.

Where a block begins depends on the graph alone, never on memory, threads or workers: what is done block by block gives the same
bits everywhere. Blocks are dealt out to a few colours; a round works on the blocks of one colour at the same time.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cvxnmf.chunked.row_chunks import ChunkFunction
from cvxnmf.linalg.arrays import FloatArray

Whole = NDArray[np.int64]
#: Blocks of a graph if they are neither too small to be worth a call nor too large, in stored entries.
BLOCKS, SMALLEST, LARGEST = 64, 1 << 15, 1 << 21
#: Blocks that are worked on at the same time are of one colour.
COLOURS = 8


class RowBlock(NamedTuple):
    """Rows of a symmetric graph from `first` on: entries off the diagonal in compressed rows, one weight if all are alike.

    Of each row there is its mass, the weight of ordered pairs inside its node, and how many nodes of the first graph it is.
    """

    first: int
    indptr: Whole
    indices: NDArray[np.int32]
    weights: FloatArray
    masses: FloatArray
    loops: FloatArray
    counts: Whole


class Entries(NamedTuple):
    """Entries by rising row, and then column: rows, columns, and weights, None if all are 1."""

    rows: Any
    columns: Any
    weights: Any


class Facts(NamedTuple):
    """Of each node its mass, the weight inside it, and how many nodes of the first graph it is."""

    masses: FloatArray
    loops: FloatArray
    counts: Whole


class BlockedGraph(Protocol):
    """A symmetric graph in blocks of rows, wherever they are."""

    n: int
    #: Stored entries off the diagonal.
    entries: int
    facts: Facts

    def map_reduce(self, function: ChunkFunction, *shared: Any, colour: int | None = None) -> tuple[Any, ...]:
        """The sum of the parts of ``function(block, None, *shared)`` over the blocks of a colour, of all if it is None."""

    def aggregate(self, parts: NDArray[np.int32], facts: Facts) -> BlockedGraph:
        """The graph whose nodes are parts, numbered from 0, with these facts."""

    def close(self) -> None:
        """Let go of the blocks."""


def block_bounds(indptr: Whole) -> Whole:
    """First rows of the blocks of a graph with these row pointers, and the number of rows."""
    entries = int(indptr[-1])
    size = min(max(SMALLEST, -(-entries // BLOCKS)), LARGEST)
    inner = np.searchsorted(indptr, np.arange(size, entries, size))
    return np.unique(np.concatenate([[0], inner, [len(indptr) - 1]]))


def blocks_of_colour(count: int, colour: int | None) -> range:
    """The numbers of the blocks of a colour, of all blocks if it is None."""
    return range(count) if colour is None else range(colour, count, COLOURS)


def sorted_entries(rows: Any, columns: Any, weights: Any) -> Entries:
    """Entries by row and column, those of a pair summed; without weights a pair counts once."""
    keys = rows.astype(np.int64) << 32 | columns
    if weights is None:
        keys = np.sort(keys)
        keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
        return Entries((keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32), None)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.empty(0, np.int64)
    sums = np.add.reduceat(weights[order], starts) if len(keys) else weights
    keys = keys[starts]
    return Entries((keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32), sums)


def aggregate_block(block: RowBlock, state: Any, parts: NDArray[np.int32]) -> tuple[Entries, tuple[Any, ...]]:
    """The entries between different parts in a block, as its state."""
    rows = np.repeat(parts[block.first : block.first + len(block.masses)], np.diff(block.indptr))
    columns = parts[block.indices]
    across = rows != columns
    weights = block.weights if len(block.weights) == len(rows) else np.broadcast_to(block.weights, len(rows))
    return sorted_entries(rows[across], columns[across], weights[across]), ()


def joined(pieces: list[Entries]) -> Entries:
    """Pieces of the same rows in one."""
    weights = None if pieces[0].weights is None else np.concatenate([piece.weights for piece in pieces])
    return sorted_entries(*(np.concatenate([piece[part] for piece in pieces]) for part in (0, 1)), weights)
