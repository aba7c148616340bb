"""Threads of BLAS and of our kernels: how many there may be, and when one is faster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from threadpoolctl import ThreadpoolController

#: Below this size two BLAS threads stall each other more than they help.
SINGLE_THREAD_BELOW = 600


#: What was allowed before BLAS was held to one thread.
_ALLOWED: ContextVar[int | None] = ContextVar("allowed threads", default=None)


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def single_thread(n: int = 0, below: int = SINGLE_THREAD_BELOW) -> Iterator[None]:
    """Run BLAS on one thread inside the context, unless `n` is large enough for two to pay.

    On a busy machine threads of BLAS wait for each other by spinning, which makes small products a hundred times slower.
    """
    if n >= below or _ALLOWED.get() is not None:  # already on one thread: setting it anew costs a tenth of a millisecond
        yield
        return
    allowed = _ALLOWED.set(thread_count())
    try:
        with _threads().limit(limits=1, user_api="blas"):
            yield
    finally:
        _ALLOWED.reset(allowed)


def thread_count() -> int:
    """Threads that BLAS may use outside of :func:`single_thread`, so that one setting governs all."""
    allowed = _ALLOWED.get()
    if allowed is not None:
        return allowed
    return max([1, *(int(library["num_threads"]) for library in _threads().info() if library["user_api"] == "blas")])


@cache
def thread_pool(threads: int) -> ThreadPoolExecutor:
    """The one pool of this many threads, for compiled kernels that let go of the interpreter's lock."""
    return ThreadPoolExecutor(threads, thread_name_prefix="cvxnmf")
