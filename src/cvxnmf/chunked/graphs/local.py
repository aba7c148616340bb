"""Graphs in blocks of rows in this process: arrays in memory, or files of which a block is read when its turn comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.chunked.graphs.blocks import (
    BUCKET,
    Entries,
    Facts,
    Kept,
    RowBlock,
    Whole,
    aggregate_block,
    block_bounds,
    blocks_of_colour,
    join_entries,
    row_sums,
    scaled_weights,
)
from cvxnmf.chunked.graphs.shelf import Shelf
from cvxnmf.chunked.local import map_reduce, ordered_results
from cvxnmf.chunked.map_reduce import ChunkFunction
from cvxnmf.linalg.threads import single_thread


class Rows:
    """Compressed rows of a graph on a shelf: pointers in memory, columns and weights wherever; a single weight if all are alike.

    Columns may be shared with other rows, which then let go of them.
    """

    def __init__(self, indptr: Whole, indices: Any, weights: Any, shared: bool = False) -> None:
        self.indptr, self.indices, self.weights, self.shared = indptr, indices, weights, shared
        self.bounds = block_bounds(indptr)

    def block(self, number: int, facts: Facts) -> RowBlock:
        """One block of rows of a graph in this process, read now."""
        first, stop = int(self.bounds[number]), int(self.bounds[number + 1])
        begin, end = int(self.indptr[first]), int(self.indptr[stop])
        weights = self.weights[0:1] if len(self.weights) == 1 else self.weights[begin:end]
        rows = slice(first, stop)
        own = facts.masses[rows], facts.loops[rows], facts.counts[rows]
        return RowBlock(first, self.indptr[first : stop + 1] - begin, self.indices[begin:end], weights, *own)


class OwnArrays(NamedTuple):
    """Arrays kept with the blocks of a graph in this process, where everybody sees what changes."""

    graph: LocalGraph
    arrays: tuple[Any, ...]

    def note_changes(self, number: int, places: Any) -> None:
        """Do nothing: in this process nobody needs to be told that a kept array has changed."""

    def map_blocks(self, function: ChunkFunction, *shared: Any, colour: int | None = None) -> tuple[Any, ...]:
        """Map the function over the blocks of a colour in this process; the joined parts."""
        numbers = blocks_of_colour(len(self.graph.rows.bounds) - 1, colour)
        found: tuple[Any, ...] = self.graph.map_some(function, numbers, (*self.arrays, *shared))[0] if len(numbers) else ()
        return found


class LocalGraph:
    """A graph in blocks of rows in this process."""

    def __init__(self, rows: Rows, facts: Facts, shelf: Shelf, threads: int) -> None:
        self.rows, self.facts, self.shelf, self.threads = rows, facts, shelf, threads
        self.n, self.entries = len(facts.masses), int(rows.indptr[-1])

    def map_reduce(self, function: ChunkFunction, *shared: Any) -> tuple[Any, ...]:
        """Map the function over all blocks of a graph in this process, and reduce."""
        return self.map_some(function, range(len(self.rows.bounds) - 1), shared)

    def map_some(self, function: ChunkFunction, numbers: range, shared: tuple[Any, ...]) -> tuple[Any, ...]:
        """Map the function over the blocks of these numbers in this process, and reduce."""
        chunk = lambda place: self.rows.block(numbers[place], self.facts)  # noqa: E731
        return map_reduce(function, chunk, len(numbers), None, shared, self.threads)[1]

    def blocks(self) -> Iterator[RowBlock]:
        """Blocks of the graph as they are read in this process."""
        return (self.rows.block(number, self.facts) for number in range(len(self.rows.bounds) - 1))

    def keep(self, *arrays: Any) -> Kept:
        """The arrays themselves, kept with the blocks of a graph in this process."""
        return OwnArrays(self, arrays)

    def aggregate(self, parts: NDArray[np.int32], facts: Facts) -> LocalGraph:
        """The graph in this process whose nodes are parts."""

        def work(number: int) -> Entries:
            return aggregate_block(self.rows.block(number, self.facts), None, parts, len(facts.masses))[0]

        with single_thread():
            pieces = ordered_results(work, len(self.rows.bounds) - 1, self.threads)
            return LocalGraph(rows_of(pieces, len(facts.masses), self.shelf), facts, self.shelf, self.threads)

    def with_scaled_weights(self, unit: float | None) -> LocalGraph:
        """The graph in this process with the same rows, but scaled weights; rows are closed by whoever opened them."""
        kept = self.rows.weights
        if unit is None:
            weights = self.shelf.keep((scaled_weights(kept[at], unit) for at in _slices(len(kept))), np.float64)
        else:
            weights = np.ones(1)
        rows = Rows(self.rows.indptr, self.rows.indices, weights, shared=True)
        facts = self.facts._replace(loops=scaled_weights(self.facts.loops, unit))
        graph = LocalGraph(rows, facts, self.shelf, self.threads)
        graph.facts = facts._replace(masses=row_sums(graph))
        return graph

    def close(self) -> None:
        """Discard the rows of a graph in this process from its shelf."""
        if not self.rows.shared:
            self.shelf.discard(self.rows.indices)
        self.shelf.discard(self.rows.weights)


def rows_of(pieces: Iterable[Entries], n: int, shelf: Shelf, in_order: bool = False) -> Rows:
    """Compressed rows of a graph from pieces of entries, each by rising row; those of a pair are summed in the pieces' order.

    The columns of a row are in order if that is asked for, else as they first occur.
    """
    kept, counts = [], np.zeros(n, dtype=np.int64)
    for piece in pieces:
        counts += np.bincount(piece.rows, minlength=n)
        weights = None if piece.weights is None else shelf.keep(iter([piece.weights]), np.float64)
        rows, columns = (shelf.keep(iter([part]), np.int32) for part in piece[:2])
        kept.append(Entries(rows, columns, weights))
    weighted = any(piece.weights is not None for piece in kept)
    buckets = _buckets(counts)
    degrees = np.zeros(n, dtype=np.int64)
    if not weighted:
        indices = shelf.keep((found.columns for found in _sorted_buckets(kept, buckets, degrees, in_order)), np.int32)
        weights = np.ones(1)
    else:
        both = shelf.keep(_columns_and_weights(kept, buckets, degrees, in_order), PAIRS)
        indices = shelf.keep((both[at]["column"] for at in _slices(len(both))), np.int32)
        weights = shelf.keep((both[at]["weight"] for at in _slices(len(both))), np.float64)
        shelf.discard(both)
    for piece in kept:
        for part in piece:
            if part is not None:
                shelf.discard(part)
    return Rows(np.append(0, np.cumsum(degrees)), indices, weights)


#: A column and a weight side by side, as they come out of sorting.
PAIRS = np.dtype([("column", np.int32), ("weight", np.float64)])


def _slices(length: int) -> Iterator[slice]:
    return (slice(first, first + BUCKET) for first in range(0, length, BUCKET))


def _columns_and_weights(kept: list[Entries], buckets: Whole, degrees: Whole, in_order: bool) -> Iterator[Any]:
    for found in _sorted_buckets(kept, buckets, degrees, in_order):
        both = np.empty(len(found.columns), PAIRS)
        both["column"], both["weight"] = found.columns, found.weights
        yield both


def _buckets(counts: Whole) -> Whole:
    """First rows of buckets of entries that can be sorted in memory, and the number of rows."""
    ends = np.cumsum(counts)
    inner = np.searchsorted(ends, np.arange(BUCKET, int(ends[-1]) if len(ends) else 0, BUCKET))
    return np.unique(np.concatenate([[0], inner, [len(counts)]]))


def _sorted_buckets(kept: list[Entries], buckets: Whole, degrees: Whole, in_order: bool) -> Iterator[Entries]:
    """The sorted entries of a graph bucket by bucket; the degrees are filled in."""
    cuts = [np.searchsorted(piece.rows[0 : len(piece.rows)], buckets) for piece in kept]
    for number in range(len(buckets) - 1):
        spans = [slice(int(cut[number]), int(cut[number + 1])) for cut in cuts]
        slices = [
            Entries(*(None if part is None else part[span] for part in piece)) for piece, span in zip(kept, spans, strict=True)
        ]
        first, stop = int(buckets[number]), int(buckets[number + 1])
        found = join_entries(slices, first, stop, len(degrees), in_order)
        degrees[first:stop] = np.bincount(found.rows - first, minlength=stop - first)
        yield found
