"""Row chunks in this process: rows are read when their turn comes, a few chunks at a time in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from cvxnmf.chunked.checked_chunks import Place, checked_chunk, float64_chunk
from cvxnmf.chunked.map_reduce import ChunkFunction, add_part, state_rows
from cvxnmf.chunked.sources import RowSource
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread


class LocalChunks:
    """Row chunks that are read from a source once per call of `map_reduce`, some at a time in threads.

    `bounds` are the first rows of the chunks and the number of rows.
    """

    def __init__(self, source: RowSource, bounds: list[int], threads: int) -> None:
        self.source, self.bounds, self.threads = source, bounds, threads
        self.shape = source.shape
        self._checked = [False] * (len(bounds) - 1)

    def chunk(self, number: int) -> Any:
        """One row chunk as float64, read in this process; its entries are checked when it is first read."""
        place = Place(number, self.bounds[number])
        convert = float64_chunk if self._checked[number] else checked_chunk
        chunk = convert(self.source.read(place.first, self.bounds[number + 1]), place, self.shape[1])
        self._checked[number] = True
        return chunk

    def map_reduce(self, function: ChunkFunction, state: Any, *shared: Any) -> tuple[Any, tuple[Any, ...]]:
        """Map the function over all row chunks in this process, and reduce."""
        return map_reduce(function, self.chunk, len(self.bounds) - 1, state, shared, self.threads)

    def scatter(self, X: FloatArray) -> Any:
        """Cut X into views, one for each row chunk of this process."""
        return [X[first:stop] for first, stop in zip(self.bounds, self.bounds[1:], strict=False)]

    def gather(self, state: Any) -> FloatArray:
        """Join the states of all row chunks of this process in a new array."""
        return np.concatenate([state_rows(part) for part in state])

    def close(self) -> None:
        """Do nothing: row chunks in this process hold no resource."""


def map_reduce(
    function: ChunkFunction, chunk: Callable[[int], Any], count: int, state: Any, shared: tuple[Any, ...], threads: int
) -> tuple[list[Any], tuple[Any, ...]]:
    """Map the function over numbered row chunks in threads, each with one thread of BLAS, and add the parts in their order."""

    def work(number: int) -> tuple[Any, tuple[Any, ...]]:
        with np.errstate(all="ignore"):  # values are tested for being finite
            return function(chunk(number), None if state is None else state[number], *shared)

    states: list[Any] = []
    total: tuple[Any, ...] | None = None
    with single_thread():
        for new, part in ordered_results(work, count, threads):
            states.append(new)
            total = add_part(total, part)
    assert total is not None
    return states, total


def ordered_results(work: Callable[[int], Any], count: int, threads: int) -> Iterator[Any]:
    """Results ``work(0), work(1), ...`` of row chunks in this order, a few at a time in threads."""
    if min(threads, count) == 1:
        yield from map(work, range(count))
        return
    pool = ThreadPoolExecutor(min(threads, count))
    try:
        ahead: deque[Future[Any]] = deque()
        for number in range(count):
            ahead.append(pool.submit(work, number))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
