"""Blocks on a Dask cluster: one group of blocks per worker, one task per worker and run.

A task takes the group, what it kept and what is shared, all of which can be computed again, so that a worker that is lost costs
a recomputation. What is shared goes out once per run; what is kept stays on the workers; summands come back.
"""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cvxnmf import validation
from cvxnmf.chunked import tasks
from cvxnmf.chunked.connection import Connection, open_connection
from cvxnmf.chunked.entries import Place
from cvxnmf.chunked.memory import LARGEST_BLOCK
from cvxnmf.chunked.protocol import Function, added
from cvxnmf.chunked.rows import FileRows, Rows, chunks_of
from cvxnmf.linalg.arrays import FloatArray

#: Runs after which what is kept is fetched and sent anew, so that a lost worker has no longer past to compute again.
LONGEST_PAST = 200
#: Bytes of shared pieces that the scheduler remembers at most, unless what is kept is larger.
REMEMBERED = 1 << 26


class Kept(NamedTuple):
    """What is kept by each group, how many runs it took from what was sent, and the bytes that these shared."""

    futures: tuple[Any, ...]
    runs: int = 0
    shared: int = 0


class Group(NamedTuple):
    """Blocks of one worker: their numbers, and a future of the checked blocks."""

    first: int
    stop: int
    worker: str
    threads: int
    future: Any


def connected(client: Any) -> Cluster | None:
    """The cluster of a client, of an address or of the current client; None if there is none."""
    connection = open_connection(client)
    return None if connection is None else Cluster(connection)


class Cluster:
    """A connection that turns data into blocks on its workers."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def blocks(self, A: Any) -> ClusterBlocks:
        """Blocks of a dask array, by its chunks, or of rows in a file or an array."""
        try:
            return self._blocks(A)
        except BaseException:
            self.connection.close()
            raise

    def _blocks(self, A: Any) -> ClusterBlocks:
        m, n = (int(side) for side in A.shape)
        workers, token = self.connection.workers(), uuid.uuid4().hex
        height = max(1, min(LARGEST_BLOCK // (8 * n), -(-m // len(workers))))
        cuts, pieces = chunks_of(A) if hasattr(A, "to_delayed") else ([*range(0, m, height), m], None)
        groups, bounds = [], [0]
        for (worker, threads), (first, stop) in zip(workers.items(), _shares(len(cuts) - 1, len(workers)), strict=False):
            places = tasks.Literal([Place(number, cuts[number]) for number in range(first, stop)])
            pinned = {"worker": worker, "key": f"cvxnmf-data-{token}-{first}"}
            if pieces is not None:
                future = self.connection.compute(tasks.prepared, pieces[first:stop].tolist(), places, n, height, **pinned)
            else:
                raw = tasks.Literal(_readable(A, cuts[first : stop + 1]))
                future = self.connection.submit(tasks.read, raw, places, n, **pinned)
            before = len(bounds) - 1
            for begin, end in zip(cuts[first:stop], cuts[first + 1 : stop + 1], strict=True):
                bounds += [*range(begin + height, end, height), end]
            groups.append(Group(before, len(bounds) - 1, worker, threads, future))
        return ClusterBlocks(self.connection, groups, bounds, (m, n), token)


def _shares(count: int, workers: int) -> list[tuple[int, int]]:
    """Neighbouring blocks for each worker, none for those that there are too many of."""
    ends = [round(place * count / workers) for place in range(workers + 1)]
    return [(first, stop) for first, stop in zip(ends, ends[1:], strict=False) if first < stop]


def _readable(rows: Rows, bounds: Sequence[int]) -> list[Any]:
    """What a worker needs to read blocks: from a file its name and place, else the rows themselves."""
    if isinstance(rows, FileRows):
        rows = dataclasses.replace(rows, identity=None)
        return [(rows, first, stop) for first, stop in zip(bounds, bounds[1:], strict=False)]
    return [rows.read(first, stop) for first, stop in zip(bounds, bounds[1:], strict=False)]


class ClusterBlocks:
    """Groups of blocks pinned to workers."""

    def __init__(
        self, connection: Connection, groups: list[Group], bounds: list[int], shape: tuple[int, int], token: str
    ) -> None:
        self.connection, self.groups, self.bounds, self.shape = connection, groups, bounds, shape
        self._names = (f"cvxnmf-{token}-{number}" for number in itertools.count())

    def run(self, function: Function, kept: Any, *shared: Any) -> tuple[Any, tuple[Any, ...]]:
        """One task per group; a second, trivial one takes its summand out."""
        submit, name = self.connection.submit, next(self._names)
        common = submit(tasks.same, tasks.Literal(shared), key=f"{name}-shared")
        futures, summands = [], []
        for number, group in enumerate(self.groups):
            before = None if kept is None else kept.futures[number]
            pinned: dict[str, Any] = {"worker": group.worker}
            done = submit(
                tasks.group_run, function, group.future, before, common, group.threads, key=f"{name}-{number}", **pinned
            )
            futures.append(done)
            summands.append(submit(tasks.second, done, key=f"{name}-sum-{number}", **pinned))
        total: tuple[Any, ...] | None = None
        for summand in self.connection.gathered(summands):
            if isinstance(summand, tasks.Refusal):
                validation.refuse(summand.sentence)
            total = added(total, summand)
        assert total is not None
        size = sum(part.nbytes for part in shared if isinstance(part, np.ndarray))
        runs, remembered = (0, 0) if kept is None else (kept.runs + 1, kept.shared + size)
        return self._renewed(Kept(tuple(futures), runs, remembered)), total

    def _renewed(self, kept: Kept) -> Kept:
        """What is kept, fetched and sent anew when its past has become long."""
        if kept.runs < LONGEST_PAST and kept.shared < REMEMBERED:
            return kept
        futures = [self.connection.submit(tasks.first, future, key=next(self._names)) for future in kept.futures]
        return self._sent(self.connection.gathered(futures))

    def _sent(self, parts: Sequence[Any]) -> Kept:
        """Parts to the workers of their groups, as tasks that can be run again."""
        return Kept(
            tuple(
                self.connection.submit(tasks.as_kept, tasks.Literal(part), worker=group.worker, key=next(self._names))
                for part, group in zip(parts, self.groups, strict=True)
            )
        )

    def scatter(self, X: FloatArray) -> Kept:
        """Rows to their groups."""
        bounds = self.bounds
        return self._sent([[X[bounds[b] : bounds[b + 1]] for b in range(g.first, g.stop)] for g in self.groups])

    def gather(self, kept: Kept) -> FloatArray:
        """One array in this process."""
        futures = [self.connection.submit(tasks.rows, future, key=next(self._names)) for future in kept.futures]
        return np.concatenate(self.connection.gathered(futures))

    def close(self) -> None:
        """Let the workers forget the data."""
        self.groups = []
        self.connection.close()
