"""Blocks in this process: rows are read when their turn comes, a few blocks at a time in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from cvxnmf.chunked.entries import Place, numbers, require_nonnegative
from cvxnmf.chunked.protocol import Function, added, first_of
from cvxnmf.chunked.rows import Rows
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread


class LocalBlocks:
    """Blocks of rows that are read from a source in every run, each once.

    Parameters
    ----------
    rows : Rows
        The source.
    bounds : list of int
        First rows of the blocks, and the number of rows.
    threads : int
        Blocks that are worked on at a time.
    """

    def __init__(self, rows: Rows, bounds: list[int], threads: int) -> None:
        self.rows, self.bounds, self.threads = rows, bounds, threads
        self.shape = rows.shape
        self._checked = [False] * (len(bounds) - 1)

    def block(self, number: int) -> Any:
        """One block as float64; its entries are checked when it is first read."""
        place = Place(number, self.bounds[number])
        block = numbers(self.rows.read(place.first, self.bounds[number + 1]), place, self.shape[1])
        if not self._checked[number]:
            require_nonnegative(block, place)
            self._checked[number] = True
        return block

    def run(self, function: Function, kept: Any, *shared: Any) -> tuple[Any, tuple[Any, ...]]:
        """Map the function over all blocks."""
        return mapped(function, self.block, len(self.bounds) - 1, kept, shared, self.threads)

    def scatter(self, X: FloatArray) -> Any:
        """Views of the rows."""
        return [X[first:stop] for first, stop in zip(self.bounds, self.bounds[1:], strict=False)]

    def gather(self, kept: Any) -> FloatArray:
        """A new array."""
        return np.concatenate([first_of(part) for part in kept])

    def close(self) -> None:
        """Nothing is held."""


def mapped(
    function: Function, block: Callable[[int], Any], count: int, kept: Any, shared: tuple[Any, ...], threads: int
) -> tuple[list[Any], tuple[Any, ...]]:
    """Map the function over numbered blocks in threads, each with one thread of BLAS, and sum in their order."""

    def work(number: int) -> tuple[Any, tuple[Any, ...]]:
        with np.errstate(all="ignore"):  # values are tested for being finite
            return function(block(number), None if kept is None else kept[number], *shared)

    parts: list[Any] = []
    total: tuple[Any, ...] | None = None
    with single_thread():
        for part, summand in in_order(work, count, threads):
            parts.append(part)
            total = added(total, summand)
    assert total is not None
    return parts, total


def in_order(work: Callable[[int], Any], count: int, threads: int) -> Iterator[Any]:
    """``work(0), work(1), ...`` in this order, a few at a time in threads."""
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
