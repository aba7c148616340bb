"""Row chunks on a Dask cluster: one group of chunks per worker, one task per worker and call.

A task takes the group, its state and the broadcast arguments, all of which can be computed again, so that a worker that is lost
costs a recomputation. Arguments are broadcast once per call; the state stays on the workers; partial sums come back.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cvxnmf import validation
from cvxnmf.chunked import tasks
from cvxnmf.chunked.checked_chunks import Place
from cvxnmf.chunked.dask_connection import Connection
from cvxnmf.chunked.map_reduce import ChunkFunction, add_part
from cvxnmf.chunked.memory import Settings
from cvxnmf.chunked.sources import RowSource
from cvxnmf.linalg.arrays import FloatArray


class State(NamedTuple):
    """State of row chunks on a Dask cluster: futures of each group's, the calls since it was last sent, and bytes broadcast."""

    futures: tuple[Any, ...]
    calls: int = 0
    broadcast_bytes: int = 0


class Group(NamedTuple):
    """Row chunks of one worker of a Dask cluster: their numbers, and a future of the checked chunks."""

    first: int
    stop: int
    worker: str
    threads: int
    future: Any


def cluster_chunks(source: RowSource, connection: Connection, settings: Settings) -> ClusterChunks:
    """Distribute rows to workers of a Dask cluster, by chunks of a dask array, else by size; a failure closes the connection."""
    try:
        return _distribute(source, connection, settings)
    except BaseException:
        connection.close()
        raise


def _distribute(source: RowSource, connection: Connection, settings: Settings) -> ClusterChunks:
    m, n = (int(side) for side in source.shape)
    workers, token = connection.workers(), uuid.uuid4().hex
    height = max(1, min(settings.largest_chunk // (8 * n), -(-m // len(workers))))
    cuts = source.bounds or [*range(0, m, height), m]
    groups, bounds = [], [0]
    for (worker, threads), (first, stop) in zip(workers.items(), shares(len(cuts) - 1, len(workers)), strict=False):
        spans = list(itertools.pairwise(cuts[first : stop + 1]))
        parts = [source.part(begin, end) for begin, end in spans]
        places = tasks.Literal([Place(number, begin) for number, (begin, _) in enumerate(spans, first)])
        pinned = {"worker": worker, "key": f"cvxnmf-data-{token}-{first}"}
        if source.bounds is None:
            future = connection.submit(tasks.read_chunks, tasks.Literal(parts), places, n, **pinned)
        else:
            future = connection.compute(tasks.split_dask_chunks, parts, places, n, height, **pinned)
        before = len(bounds) - 1
        for begin, end in spans:
            bounds += [*range(begin + height, end, height), end]
        groups.append(Group(before, len(bounds) - 1, worker, threads, future))
    return ClusterChunks(connection, groups, bounds, (m, n), token, settings)


def shares(count: int, workers: int) -> list[tuple[int, int]]:
    """Ranges of neighbouring row chunks, one for each worker; workers beyond the number of chunks are left out."""
    ends = [round(place * count / workers) for place in range(workers + 1)]
    return [(first, stop) for first, stop in itertools.pairwise(ends) if first < stop]


class ClusterChunks:
    """Row chunks on a Dask cluster, in groups pinned to workers."""

    def __init__(
        self,
        connection: Connection,
        groups: list[Group],
        bounds: list[int],
        shape: tuple[int, int],
        token: str,
        settings: Settings,
    ) -> None:
        self.connection, self.groups, self.bounds, self.shape, self.settings = connection, groups, bounds, shape, settings
        self._names = (f"cvxnmf-{token}-{number}" for number in itertools.count())
        self.sent = 0

    def map_reduce(self, function: ChunkFunction, state: State | None, *shared: Any) -> tuple[State, tuple[Any, ...]]:
        """Map a function over row chunks on a cluster: each worker reduces its own, a second task returns the partial sum."""
        submit, name = self.connection.submit, next(self._names)
        common = submit(tasks.broadcast, tasks.Literal(shared), key=f"{name}-shared")
        futures, sums = [], []
        for number, group in enumerate(self.groups):
            before = None if state is None else state.futures[number]
            pinned: dict[str, Any] = {"worker": group.worker}
            result = submit(
                tasks.reduce_group, function, group.future, before, common, group.threads, key=f"{name}-{number}", **pinned
            )
            futures.append(result)
            sums.append(submit(tasks.partial_sum, result, key=f"{name}-sum-{number}", **pinned))
        total: tuple[Any, ...] | None = None
        for part in self.connection.gather(sums):
            if isinstance(part, tasks.Refusal):
                validation.refuse(part.sentence)
            total = add_part(total, part)
        assert total is not None
        size = sum(part.nbytes for part in shared if isinstance(part, np.ndarray))
        calls, remembered = (0, 0) if state is None else (state.calls + 1, state.broadcast_bytes + size)
        return self._shorten_lineage(State(tuple(futures), calls, remembered)), total

    def _shorten_lineage(self, state: State) -> State:
        """The state of row chunks on a cluster, fetched and sent anew when recomputing it would take too many tasks."""
        if state.calls < self.settings.longest_lineage and state.broadcast_bytes < self.settings.lineage_bytes:
            return state
        futures = [self.connection.submit(tasks.state, future, key=next(self._names)) for future in state.futures]
        return self._send(self.connection.gather(futures))

    def _send(self, parts: Sequence[Any]) -> State:
        """Send each group of row chunks on the cluster its state, as a task that can be run again."""
        self.sent += 1
        futures = [
            self.connection.submit(tasks.set_state, tasks.Literal(part), worker=group.worker, key=next(self._names))
            for part, group in zip(parts, self.groups, strict=True)
        ]
        return State(tuple(futures))

    def scatter(self, X: FloatArray) -> State:
        """Send the rows of X to the cluster's workers that hold their row chunks."""
        bounds = self.bounds
        return self._send([[X[bounds[c] : bounds[c + 1]] for c in range(g.first, g.stop)] for g in self.groups])

    def gather(self, state: State) -> FloatArray:
        """Fetch the state of all row chunks from the cluster as one array."""
        futures = [self.connection.submit(tasks.rows, future, key=next(self._names)) for future in state.futures]
        return np.concatenate(self.connection.gather(futures))

    def close(self) -> None:
        """Let the workers of the cluster forget the row chunks, and close the connection."""
        self.groups = []
        self.connection.close()
