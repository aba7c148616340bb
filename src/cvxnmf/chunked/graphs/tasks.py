"""What workers of a cluster do with blocks of a graph; a task depends on nothing but its arguments and can be run again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cvxnmf.chunked.graphs.blocks import COLOURS, Entries, RowBlock, aggregate_block, join_entries, scaled_weights
from cvxnmf.chunked.local import map_reduce
from cvxnmf.chunked.map_reduce import ChunkFunction
from cvxnmf.chunked.tasks import Literal, align_data

#: Ranges of rows whose entries are counted to share them out.
RANGES = 1024


class WorkerBlocks(NamedTuple):
    """The blocks of a graph on one worker as one chunk: the number of the first, and threads to work on them with."""

    first: int
    threads: int
    blocks: list[RowBlock]


def as_one_chunk(blocks: list[RowBlock], first: int, threads: int) -> list[WorkerBlocks]:
    """All blocks of a worker as its only chunk, in arrays that no task needs to copy again."""
    return [WorkerBlocks(first, threads, align_data(blocks))]


def over_blocks(
    function: ChunkFunction, colour: int | None, shared: tuple[Any, ...], own: WorkerBlocks, arrays: Any, *news: Any
) -> tuple[list[Any], tuple[Any, ...]]:
    """Task: map the function over a worker's blocks of a colour with arrays kept there: these, brought up to date, and the parts.

    The news are places and values of each array; without places all values are new, or none.
    """
    arrays = [_update_array(places, values, number, arrays) for number, (places, values) in enumerate(pairwise_of(news))]
    chosen = [block for number, block in enumerate(own.blocks, own.first) if colour is None or number % COLOURS == colour]
    if not chosen:
        return arrays, ((),)
    parts = map_reduce(function, chosen.__getitem__, len(chosen), None, (*arrays, *shared), own.threads)[1]
    return arrays, parts


def pairwise_of(values: Any) -> Any:
    """Pairs of values that a task was sent: the first with the second, the third with the fourth, and so on."""
    return zip(values[::2], values[1::2], strict=True)


def _update_array(places: Any, values: Any, number: int, arrays: Any) -> Any:
    """Task's array with new values in these places; a copy, because the task may be run again."""
    if arrays is None or (not len(places) and len(values)):
        return np.array(values)
    if not len(places):
        return arrays[number]
    updated = np.array(arrays[number])
    updated[places] = values
    return updated


def itself(value: Any) -> Any:
    """Task that returns a value on a worker as it is given."""
    return value


def one_of(pieces: list[Any], number: int) -> Any:
    """Task that takes one of several pieces of a graph on a worker."""
    return pieces[number]


def blocks_as_sent(blocks: Literal) -> Any:
    """Blocks of a graph that are a part of the task itself."""
    return align_data(blocks.value)


def scaled_blocks(blocks: list[RowBlock], unit: float | None) -> list[RowBlock]:
    """Task: a worker's blocks of a graph with other weights: 1 where all are one unit, else their square roots."""
    weights = [np.ones(1) if unit is not None else scaled_weights(block.weights, unit) for block in blocks]
    loops = [scaled_weights(block.loops, unit) for block in blocks]
    return [block._replace(weights=w, loops=own) for block, w, own in zip(blocks, weights, loops, strict=True)]


def blocks_with_masses(blocks: list[RowBlock], masses: Literal) -> list[RowBlock]:
    """Task: a worker's blocks of a graph with the masses of their rows."""
    return [block._replace(masses=own) for block, own in zip(blocks, masses.value, strict=True)]


def aggregate_and_count(block: RowBlock, state: Any, parts: Any, n: int) -> tuple[Entries, tuple[Any, ...]]:
    """Task: the entries between parts in a block of a graph, and how many there are in ranges of rows."""
    entries = aggregate_block(block, state, parts, n)[0]
    return entries, (histogram_of(entries.rows, n),)


def histogram_of(rows: Any, n: int) -> Any:
    """Number of a graph's entries in each of some ranges of rows, as workers count them."""
    return np.bincount(rows.astype(np.int64) * RANGES // n, minlength=RANGES)


def bucket_bounds(histogram: Any, n: int, most: int) -> list[int]:
    """First rows of at most so many buckets, for workers, of about as many entries each, and the number of rows."""
    ends = np.cumsum(histogram)
    wanted = ends[-1] * np.arange(1, most) // most
    inner = -(-(np.searchsorted(ends, wanted) + 1) * n // RANGES)
    return np.unique(np.concatenate([[0], np.minimum(inner, n), [n]])).tolist()  # type: ignore[no-any-return]


def cut_by_rows(pieces: list[Entries], cuts: list[int]) -> list[list[Entries]]:
    """Task: sorted entries of a graph cut at these rows: for each range the slices of all pieces."""
    places = [np.searchsorted(piece.rows, cuts) for piece in pieces]
    spans = [[slice(int(at[number]), int(at[number + 1])) for at in places] for number in range(len(cuts) - 1)]
    return [
        [Entries(*(None if part is None else part[span] for part in piece)) for piece, span in zip(pieces, row, strict=True)]
        for row in spans
    ]


def joined_rows(slices: list[list[Entries]], first: int, stop: int, n: int, in_order: bool) -> tuple[int, Any, Entries]:
    """Task: the rows from `first` up to `stop` of all slices: entries per row, and the entries, those of a pair summed."""
    found = join_entries([piece for part in slices for piece in part], first, stop, n, in_order)
    return first, np.bincount(found.rows - first, minlength=stop - first), found


def blocks_of_rows(buckets: list[tuple[int, Any, Entries]], bounds: list[int], facts: Literal) -> list[RowBlock]:
    """Task: blocks of a graph with these bounds from neighbouring buckets of rows."""
    degrees = np.concatenate([bucket[1] for bucket in buckets])
    indptr, origin = np.append(0, np.cumsum(degrees)), buckets[0][0]
    columns = np.concatenate([bucket[2].columns for bucket in buckets])
    weighted = buckets[0][2].weights is not None
    weights = np.concatenate([bucket[2].weights for bucket in buckets]) if weighted else np.ones(1)
    blocks = []
    for first, stop in zip(bounds, bounds[1:], strict=False):
        pointers = indptr[first - origin : stop - origin + 1]
        span = slice(int(pointers[0]), int(pointers[-1]))
        own = (fact[first - bounds[0] : stop - bounds[0]].copy() for fact in facts.value)  # copies, so that the whole can go
        entries = columns[span].copy(), weights[span].copy() if weighted else weights
        blocks.append(RowBlock(first, pointers - pointers[0], *entries, *own))
    return blocks
