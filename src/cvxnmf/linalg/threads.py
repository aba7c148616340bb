"""Threads of BLAS and of our kernels: how many there may be, and when one is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import Any, TypeVar, cast

import scipy.linalg  # noqa: F401  # loads the libraries whose threads are set
from threadpoolctl import ThreadpoolController

#: Below this size two BLAS threads stall each other more than they help.
SINGLE_THREAD_BELOW = 600


Item = TypeVar("Item")
Result = TypeVar("Result")
#: Whether this thread is one of ours, which must not wait for others of the same pool.
_WORKER = local()


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


class _Limit:
    """The limit on BLAS threads, one for the process: the first who asks for one thread sets it, the last puts it back."""

    def __init__(self) -> None:
        self.lock, self.holders, self.allowed = Lock(), 0, 1
        self.limiter: Any = None

    def take(self) -> None:
        with self.lock:
            if not self.holders:
                self.allowed = _blas_threads()
                _release_control()
                self.limiter = _threads().limit(limits=1, user_api="blas")
            self.holders += 1

    def give_back(self) -> None:
        with self.lock:
            self.holders -= 1
            if not self.holders:
                _release_control()
                self.limiter.restore_original_limits()
                _release_control()


def _release_control() -> None:
    """Let any thread limit those of BLAS: threadpoolctl reserves that to one, but the first to ask may leave before the last."""
    for library in _threads().lib_controllers:
        release = getattr(library, "clear_controlling_thread", None)
        if release is not None:
            release(force=True)


_LIMIT = _Limit()


@contextmanager
def single_thread(n: int = 0, below: int = SINGLE_THREAD_BELOW) -> Iterator[None]:
    """Run BLAS on one thread inside the context, unless `n` is large enough for two to pay.

    On a busy machine threads of BLAS wait for each other by spinning, which makes small products a hundred times slower.
    """
    if n >= below:
        yield
        return
    _LIMIT.take()
    try:
        yield
    finally:
        _LIMIT.give_back()


def thread_count() -> int:
    """Threads that BLAS may use outside of :func:`single_thread`, so that one setting governs all."""
    with _LIMIT.lock:
        return _LIMIT.allowed if _LIMIT.holders else _blas_threads()


def _blas_threads() -> int:
    return max([1, *(int(library["num_threads"]) for library in _threads().info() if library["user_api"] == "blas")])


@cache
def thread_pool(threads: int) -> ThreadPoolExecutor:
    """The one pool of this many threads, for compiled kernels that let go of the interpreter's lock."""
    return ThreadPoolExecutor(threads, thread_name_prefix="cvxnmf")


def map_in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``[work(item) for item in items]``, neighbouring items on the same thread; on this one alone inside of another such map.

    The items are cut by the data, never by the number of threads, so that sums over the results do not depend on it.
    """
    threads = 1 if getattr(_WORKER, "busy", False) or len(items) == 1 else min(thread_count(), len(items))
    if threads == 1:
        return [work(item) for item in items]

    def share(number: int) -> list[Result]:
        _WORKER.busy = True
        try:
            first, last = (len(items) * edge // threads for edge in (number, number + 1))
            return [work(item) for item in items[first:last]]
        finally:
            _WORKER.busy = False

    later = [thread_pool(threads).submit(share, number) for number in range(1, threads)]
    results = share(0)  # this thread takes part
    for part in later:
        results += part.result()
    return results


def sum_in_threads(work: Callable[[Item], Result], items: Sequence[Item], add: Callable[[Result, Result], Result]) -> Result:
    """The sum of ``work(item)`` over all items in threads, halves of neighbours first, so that few parts are held at once.

    Which parts are added depends on the number of items alone.
    """
    ranges, threads = [(0, len(items))], min(thread_count(), len(items))
    while len(ranges) < threads:
        halves = [[(first, (first + last) // 2), ((first + last) // 2, last)] for first, last in ranges]
        ranges = [half for pair in halves for half in pair if half[1] > half[0]]
    sums = map_in_threads(lambda part: _sum_of_halves(work, items, add, part, {}), ranges)
    return cast(Result, _sum_of_halves(work, items, add, (0, len(items)), dict(zip(ranges, sums, strict=True))))


def _sum_of_halves(work: Any, items: Any, add: Any, part: tuple[int, int], known: dict[tuple[int, int], Any]) -> Any:
    """The sum over a range of the items of :func:`sum_in_threads`, by halves; sums over some ranges are known."""
    first, last = part
    if part in known:
        return known.pop(part)
    if last - first == 1:
        return work(items[first])
    middle = (first + last) // 2
    return add(*(_sum_of_halves(work, items, add, half, known) for half in ((first, middle), (middle, last))))
