"""A graph in blocks of rows, and how entries from anywhere become such blocks.

Where a block begins depends on the graph alone, never on memory, threads or workers: what is done block by block gives the same
bits everywhere. Blocks are dealt out to a few colours; a round works on the blocks of one colour at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cvxnmf.chunked.map_reduce import ChunkFunction, Maximum
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

Whole = NDArray[np.int64]
#: Blocks of a graph if they are neither too small to be worth a call nor too large, in stored entries.
BLOCKS, SMALLEST, LARGEST = 64, 1 << 15, 1 << 21
#: Entries that are sorted at a time.
BUCKET = 1 << 19
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
    """Entries of a graph by rising row, and then column: rows, columns, and weights, None if all are 1."""

    rows: Any
    columns: Any
    weights: Any


class Facts(NamedTuple):
    """Facts about each node of a blocked graph: its mass, the weight inside it, and how many nodes of the first graph it is."""

    masses: FloatArray
    loops: FloatArray
    counts: Whole


class Kept(Protocol):
    """Arrays that whoever works on the blocks of a graph has, too, and is told what has changed in them."""

    def note_changes(self, number: int, places: Any) -> None:
        """Note that one of the arrays kept with the blocks has new values in these places."""

    def map_blocks(self, function: ChunkFunction, *shared: Any, colour: int | None = None) -> tuple[Any, ...]:
        """The parts of ``function(block, None, *arrays, *shared)`` over the blocks of a colour, of all if it is None, joined."""


class BlockedGraph(Protocol):
    """A symmetric graph in blocks of rows, wherever they are."""

    n: int
    #: Stored entries off the diagonal.
    entries: int
    facts: Facts

    def map_reduce(self, function: ChunkFunction, *shared: Any) -> tuple[Any, ...]:
        """The sum of the parts of ``function(block, None, *shared)`` over all blocks of a graph."""

    def blocks(self) -> Iterator[RowBlock]:
        """All blocks of the graph in their order, one at a time in this process."""

    def keep(self, *arrays: Any) -> Kept:
        """Keep arrays that change from call to call with the blocks of the graph; only what has changed is sent."""

    def aggregate(self, parts: NDArray[np.int32], facts: Facts) -> BlockedGraph:
        """The blocked graph whose nodes are parts, numbered from 0, with these facts."""

    def with_scaled_weights(self, unit: float | None) -> BlockedGraph:
        """The blocked graph with weights in units of one that all edges have, or as their square roots; masses are row sums."""

    def close(self) -> None:
        """Let go of the blocks of the graph."""


def block_bounds(indptr: Whole) -> Whole:
    """First rows of the blocks of a graph with these row pointers, and the number of rows."""
    entries = int(indptr[-1])
    size = min(max(SMALLEST, -(-entries // BLOCKS)), LARGEST)
    inner = np.searchsorted(indptr, np.arange(size, entries, size))
    return np.unique(np.concatenate([[0], inner, [len(indptr) - 1]]))


def blocks_of_colour(count: int, colour: int | None) -> range:
    """The numbers of the blocks of a graph with a colour, of all blocks if it is None."""
    return range(count) if colour is None else range(colour, count, COLOURS)


def sorted_entries(rows: Any, columns: Any, weights: Any) -> Entries:
    """Entries of a graph by row and column, those of a pair summed in their order; without weights a pair counts once."""
    keys = rows.astype(np.int64) << 32 | columns
    if weights is None:
        keys = np.sort(keys)
        keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
    else:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.empty(0, np.int64)
        weights = np.add.reduceat(weights[order], starts) if len(keys) else weights
        keys = keys[starts]
    return Entries((keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32), weights)


def summed_entries(rows: Any, columns: Any, weights: Any, first: int, stop: int, n: int) -> Entries:
    """Entries of rows `first` to `stop` by row, columns as they first occur, those of a pair summed in their order."""
    if weights is None:
        return sorted_entries(rows, columns, None)
    return Entries(*_sum_pairs(rows, columns, np.asarray(weights), first, stop, n))


@compile_with(nogil=True)
def _sum_pairs(rows: Any, columns: Any, weights: Any, first: int, stop: int, n: int) -> Any:
    place = np.zeros(stop - first + 1, np.int64)
    for row in rows:
        place[row - first + 1] += 1
    place = np.cumsum(place)
    starts, order = place.copy(), np.empty(len(rows), np.int64)
    for p in range(len(rows)):
        order[place[rows[p] - first]] = p
        place[rows[p] - first] += 1
    slot, filled = np.full(n, -1, np.int64), 0
    new_rows, new_columns, sums = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32), np.empty(len(rows))
    for row in range(stop - first):
        begin = filled
        for q in range(starts[row], starts[row + 1]):
            p = order[q]
            c = columns[p]
            if slot[c] < begin:
                slot[c] = filled
                new_rows[filled], new_columns[filled], sums[filled] = row + first, c, 0.0
                filled += 1
            sums[slot[c]] += weights[p] if len(weights) > 1 else weights[0]
    return new_rows[:filled].copy(), new_columns[:filled].copy(), sums[:filled].copy()


def row_sums(graph: BlockedGraph) -> FloatArray:
    """Sums of the rows of a graph in blocks, loops once."""
    return np.concatenate(graph.map_reduce(row_sums_block)[0])


def row_sums_block(block: RowBlock, state: Any) -> tuple[None, tuple[Any, ...]]:
    """Sums of the rows of one block of a graph."""
    degrees = np.diff(block.indptr)
    if len(block.weights) == 1:
        return None, ((degrees * block.weights[0] + block.loops,),)
    rows = np.repeat(np.arange(len(degrees)), degrees)
    return None, ((np.bincount(rows, block.weights, len(degrees)) + block.loops,),)


def extremes_block(block: RowBlock, state: Any) -> tuple[None, tuple[Any, ...]]:
    """The largest weight off the diagonal of a block of a graph, and the smallest with its sign changed."""
    weights = block.weights if len(block.indices) else np.empty(0)
    return None, (Maximum(weights.max(initial=-np.inf)), Maximum((-weights).max(initial=-np.inf)))


def scaled_weights(weights: Any, unit: float | None) -> Any:
    """Weights of a graph's edges in a unit, or their square roots."""
    return np.sqrt(weights) if unit is None else weights / unit


def aggregate_block(block: RowBlock, state: Any, parts: NDArray[np.int32], n: int) -> tuple[Entries, tuple[Any, ...]]:
    """The entries between n different parts in a block of a graph, as its state."""
    return Entries(*_between_parts(block, parts, n)), ()


@compile_with(nogil=True)
def _between_parts(block: RowBlock, parts: Any, n: int) -> Any:
    count, alike = 0, len(block.weights) == 1
    for i in range(len(block.masses)):
        for p in range(block.indptr[i], block.indptr[i + 1]):
            count += parts[block.indices[p]] != parts[block.first + i]
    rows, columns, weights, count = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count), 0
    for i in range(len(block.masses)):
        own = parts[block.first + i]
        for p in range(block.indptr[i], block.indptr[i + 1]):
            other = parts[block.indices[p]]
            if other != own:
                rows[count], columns[count] = own, other
                weights[count] = block.weights[0] if alike else block.weights[p]
                count += 1
    return _sum_pairs(rows, columns, weights, 0, n, n)


def join_entries(pieces: list[Entries], first: int, stop: int, n: int, in_order: bool) -> Entries:
    """Entries of rows `first` to `stop` from several pieces, those of a pair summed; columns in order, or as they first occur."""
    weights = None if pieces[0].weights is None else np.concatenate([piece.weights for piece in pieces])
    rows, columns = (np.concatenate([piece[part] for piece in pieces]) for part in (0, 1))
    return sorted_entries(rows, columns, weights) if in_order else summed_entries(rows, columns, weights, first, stop, n)
