"""Graphs in blocks of rows on a Dask cluster: neighbouring blocks are pinned to a worker, entries move between workers in tasks.

All that a task returns can be computed again, so that a worker that is lost costs a recomputation.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.chunked import tasks as chunk_tasks
from cvxnmf.chunked.dask_connection import Connection
from cvxnmf.chunked.graphs import tasks
from cvxnmf.chunked.graphs.blocks import BlockedGraph, Facts, Kept, RowBlock, Whole, block_bounds, row_sums, scaled_weights
from cvxnmf.chunked.graphs.local import LocalGraph, rows_of
from cvxnmf.chunked.graphs.shelf import MemoryShelf
from cvxnmf.chunked.map_reduce import ChunkFunction
from cvxnmf.chunked.memory import Settings
from cvxnmf.chunked.on_dask import ClusterChunks, Group, State, shares
from cvxnmf.linalg.threads import thread_count

#: No places of an array.
NOWHERE = np.empty(0, dtype=np.int32)


class Workers:
    """The workers of a Dask connection, and graph tasks for them under names of their own."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self.connection, self.settings = connection, settings
        self.threads = connection.workers()
        token = uuid.uuid4().hex
        self._names = (f"cvxnmf-{token}-{number}" for number in count())

    def submit(self, function: Any, *arguments: Any, worker: str | None = None) -> Any:
        """A future of a graph task on a Dask worker."""
        return self.connection.submit(function, *arguments, key=next(self._names), worker=worker)

    def compute(self, delayed: Any) -> Any:
        """A future of a delayed value, such as a partition of a data frame, on the Dask workers."""
        return self.connection.compute(tasks.itself, delayed, worker=None, key=next(self._names))

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The results of graph tasks from the workers; a refusal of one is raised."""
        found = self.connection.gather(futures)
        for part in found:
            if isinstance(part, chunk_tasks.Refusal):
                validation.refuse(part.sentence)
        return found

    def shares(self, total: int) -> Iterator[tuple[str, int, int]]:
        """Each worker of the cluster with its share of so many blocks in a row; those without any are left out."""
        for worker, (first, stop) in zip(self.threads, shares(total, len(self.threads)), strict=False):
            yield worker, first, stop


class SentArrays:
    """Arrays of this process with copies on the workers of a cluster, which are told what has changed before they are used."""

    def __init__(self, arrays: tuple[Any, ...], chunks: ClusterChunks) -> None:
        self.arrays, self._chunks = arrays, chunks
        self._state: State | None = None
        self._changes: list[list[Any]] = [[] for _ in arrays]

    def note_changes(self, number: int, places: Any) -> None:
        """Remember places of an array that have new values, which the workers of the cluster are not told yet."""
        self._changes[number].append(places)

    def map_blocks(self, function: ChunkFunction, *shared: Any, colour: int | None = None) -> tuple[Any, ...]:
        """Tell the workers what has changed, and map the function over their blocks of a colour; the joined parts."""
        told, work = self._news(), partial(tasks.over_blocks, function, colour, shared)
        self._state, (found,) = self._chunks.map_reduce(work, self._state, *told)
        return tuple(found)

    def _news(self) -> list[Any]:
        """Places and values of each array that the workers must be told; no places where an array is sent as a whole.

        All of them are, if workers that are lost would have to be told more than that again.
        """
        told = [value for number in range(len(self.arrays)) for value in self._news_of(number)]
        size, longest = sum(part.nbytes for part in told), self._chunks.settings.lineage_bytes
        if self._state is None or self._state.broadcast_bytes + size >= longest:
            self._state = None
            told = [part for array in self.arrays for part in (NOWHERE, array)]
        self._changes = [[] for _ in self.arrays]
        return told

    def _news_of(self, number: int) -> tuple[Any, Any]:
        array, changes = self.arrays[number], self._changes[number]
        if not changes:
            return NOWHERE, array[:0]
        changed = np.zeros(len(array), dtype=np.bool_)  # marks cost less than sorting the places
        for places in changes:
            changed[places] = True
        where = np.flatnonzero(changed).astype(np.int32)
        return (NOWHERE, array) if 2 * len(where) > len(array) else (where, array[where])


class ClusterGraph:
    """A graph on a Dask cluster: blocks of rows are pinned to workers; facts about the nodes are in this process."""

    def __init__(self, workers: Workers, groups: list[Group], bounds: Whole, entries: int, facts: Facts, root: bool) -> None:
        self.workers, self.groups, self.bounds, self.entries = workers, groups, bounds, entries
        self.facts, self.root = facts, root
        self.n = len(facts.masses)
        self._chunks = self._as_chunks(groups, workers.settings.lineage_bytes)

    def _as_chunks(self, groups: list[Group], lineage_bytes: int) -> ClusterChunks:
        settings = replace(self.workers.settings, lineage_bytes=lineage_bytes)
        connection, token = self.workers.connection, uuid.uuid4().hex
        return ClusterChunks(connection, groups, self.bounds.tolist(), (self.n, self.n), token, settings)

    def map_reduce(self, function: ChunkFunction, *shared: Any) -> tuple[Any, ...]:
        """Each worker of the cluster maps the function over its blocks of the graph and reduces there."""
        return self._chunks.map_reduce(function, None, *shared)[1]

    def blocks(self) -> Iterator[RowBlock]:
        """Blocks of the graph as the workers of the cluster send them."""
        for group in self.groups:
            for number in range(group.stop - group.first):
                yield from self.workers.gather([self.workers.submit(tasks.one_of, group.future, number, worker=group.worker)])

    def keep(self, *arrays: Any) -> Kept:
        """Copies of the arrays on all workers of the cluster, with the blocks of each as one chunk whose state they are."""
        whole = sum(array.nbytes for array in arrays)
        longest = max(self.workers.settings.lineage_bytes, whole)
        return SentArrays(arrays, self._as_chunks([self._as_one(group) for group in self.groups], longest))

    def _as_one(self, group: Group) -> Group:
        future = self.workers.submit(tasks.as_one_chunk, group.future, group.first, group.threads, worker=group.worker)
        return group._replace(future=future)

    def aggregate(self, parts: NDArray[np.int32], facts: Facts) -> BlockedGraph:
        """The graph whose nodes are parts; entries go from worker to worker, or if they are few to this process."""
        n = len(facts.masses)
        state, (histogram,) = self._chunks.map_reduce(tasks.aggregate_and_count, None, parts, n)
        pieces = [
            self.workers.submit(chunk_tasks.state, future, worker=group.worker)
            for future, group in zip(state.futures, self.groups, strict=True)
        ]
        if int(histogram.sum()) > self.workers.settings.few_entries:
            return shuffle_entries(self.workers, pieces, histogram, facts, in_order=False)
        shelf, entries = MemoryShelf(), [piece for part in self.workers.gather(pieces) for piece in part]
        return LocalGraph(rows_of(entries, n, shelf), facts, shelf, thread_count())

    def with_scaled_weights(self, unit: float | None) -> ClusterGraph:
        """The graph on the cluster with the same blocks, but scaled weights."""
        facts = self.facts._replace(loops=scaled_weights(self.facts.loops, unit))
        groups = [
            group._replace(future=self.workers.submit(tasks.scaled_blocks, group.future, unit, worker=group.worker))
            for group in self.groups
        ]
        return with_row_sums(ClusterGraph(self.workers, groups, self.bounds, self.entries, facts, root=False))

    def close(self) -> None:
        """Let the workers of the cluster forget the graph's blocks; the connection is closed with the first graph."""
        self.groups = self._chunks.groups = []
        if self.root:
            self.workers.connection.close()


def with_row_sums(graph: ClusterGraph) -> ClusterGraph:
    """The graph on the cluster with the sums of its rows as masses."""
    facts = graph.facts._replace(masses=row_sums(graph))
    groups = []
    for group in graph.groups:
        masses = [facts.masses[first:stop] for first, stop in _spans(graph.bounds, group)]
        future = graph.workers.submit(tasks.blocks_with_masses, group.future, chunk_tasks.Literal(masses), worker=group.worker)
        groups.append(group._replace(future=future))
    return ClusterGraph(graph.workers, groups, graph.bounds, graph.entries, facts, graph.root)


def _spans(bounds: Whole, group: Group) -> list[tuple[int, int]]:
    """First row and end of each block of a worker's group."""
    return [(int(bounds[number]), int(bounds[number + 1])) for number in range(group.first, group.stop)]


def shuffle_entries(
    workers: Workers, pieces: list[Any], histogram: Any, facts: Facts, in_order: bool, root: bool = False
) -> ClusterGraph:
    """A graph on the cluster from futures of entries: cut by rows, sent to the rows' worker, summed, and cut into blocks."""
    n = len(facts.masses)
    cuts = tasks.bucket_bounds(histogram, n, len(workers.threads))
    names = list(workers.threads)
    slices = [workers.submit(tasks.cut_by_rows, piece, cuts) for piece in pieces]
    buckets = []
    for number, (first, stop) in enumerate(zip(cuts, cuts[1:], strict=False)):
        here = [workers.submit(tasks.one_of, cut, number) for cut in slices]
        worker = names[number % len(names)]
        buckets.append(workers.submit(tasks.joined_rows, here, first, stop, n, in_order, worker=worker))
    degrees = workers.gather([workers.submit(tasks.one_of, bucket, 1) for bucket in buckets])
    indptr = np.append(0, np.cumsum(np.concatenate(degrees)))
    bounds, groups = block_bounds(indptr), []
    for worker, first, stop in workers.shares(len(bounds) - 1):
        begin, end = int(bounds[first]), int(bounds[stop])
        near = [bucket for bucket, low, high in zip(buckets, cuts, cuts[1:], strict=False) if low < end and high > begin]
        own = chunk_tasks.Literal([fact[begin:end] for fact in facts])
        future = workers.submit(tasks.blocks_of_rows, near, bounds[first : stop + 1].tolist(), own, worker=worker)
        groups.append(Group(first, stop, worker, workers.threads[worker], future))
    return ClusterGraph(workers, groups, bounds, int(indptr[-1]), facts, root)


def sent_graph(workers: Workers, graph: LocalGraph) -> ClusterGraph:
    """A graph of this process sent to the workers of a cluster, block by block."""
    bounds, groups = graph.rows.bounds, []
    for worker, first, stop in workers.shares(len(bounds) - 1):
        blocks: list[RowBlock] = [graph.rows.block(number, graph.facts) for number in range(first, stop)]
        future = workers.submit(tasks.blocks_as_sent, chunk_tasks.Literal(blocks), worker=worker)
        groups.append(Group(first, stop, worker, workers.threads[worker], future))
    return ClusterGraph(workers, groups, bounds, graph.entries, graph.facts, root=True)
