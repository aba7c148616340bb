"""Progress for people who wait: one line that changes at a terminal or in a notebook, a few lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cvxnmf.linalg.compiled import is_interactive
from cvxnmf.results import Iterate

#: Seconds between changes of the line; until the second plain line, and how much longer each following one waits.
BETWEEN, FIRST_LINE, GROWTH = 0.1, 2.0, 1.5
#: Width of the bar in characters.
WIDTH = 20


class Progress:
    """A callback that shows the progress of a descent and hands steps on to the user's callback; the last line stays."""

    def __init__(self, task: str, max_iter: int | None, callback: Callable[[Iterate], Any] | None) -> None:
        self.task, self.max_iter, self.callback = task, max_iter, callback
        self.changing = is_interactive()
        self.began, self.due = time.monotonic(), 0.0
        self.last: Iterate | None = None

    def __call__(self, iterate: Iterate) -> Any:
        """Show the progress of a step if a line is due, then call the user's callback."""
        elapsed = time.monotonic() - self.began
        self.last = iterate
        if sys.stderr is not None and (elapsed >= self.due or iterate.bound > 0):
            self.due = elapsed + BETWEEN if self.changing else max(FIRST_LINE, GROWTH * elapsed)
            line = self.line(iterate, elapsed)
            sys.stderr.write(f"{line:<100}\r" if self.changing else f"{line}\n")
            sys.stderr.flush()
        return None if self.callback is None else self.callback(iterate)

    def end(self) -> None:
        """Leave the last line of progress in a line of its own, where the line changed."""
        if self.changing and self.last is not None and sys.stderr is not None:
            sys.stderr.write(f"{self.line(replace(self.last, share=1.0), time.monotonic() - self.began):<100}\n")
            sys.stderr.flush()

    def line(self, iterate: Iterate, elapsed: float) -> str:
        """The line of progress: start or stage, step, loss, bound once there is one, time, and how much is left."""
        share = iterate.share or (min(1.0, iterate.iteration / self.max_iter) if self.max_iter else 0.0)
        parts = [iterate.stage or "start 1 of 1"] if self.max_iter or iterate.stage else []
        if not math.isnan(iterate.value):
            parts += [f"step {iterate.iteration}", f"{'loss' if self.max_iter else 'value'} {iterate.value:.6g}"]
        if iterate.bound > 0:
            parts.append(f"bound {iterate.bound:.6g}")
        left = elapsed * (1.0 / share - 1.0) if share else 0.0  # nobody can tell
        parts += [f"{elapsed:.0f} s"] + ([f"at most about {left:.0f} s left"] if elapsed >= BETWEEN and left >= 1.0 else [])
        bar = f" [{'#' * round(WIDTH * share):<{WIDTH}}] " if share else ": "
        return f"{self.task}{bar}{', '.join(parts)}"


def with_place(
    callback: Callable[[Iterate], Any] | None, place: Callable[[Iterate], tuple[str, float]]
) -> Callable[[Iterate], Any] | None:
    """The callback, told which start a step belongs to, how much of the work is done, and the time since the beginning."""
    began = time.perf_counter()

    def tell(iterate: Iterate) -> Any:
        assert callback is not None
        stage, share = place(iterate)
        return callback(replace(iterate, stage=stage, share=share, seconds=time.perf_counter() - began))

    return None if callback is None else tell


@contextmanager
def shown(
    verbose: Any, task: str, max_iter: int | None, callback: Callable[[Iterate], Any] | None
) -> Iterator[Callable[[Iterate], Any] | None]:
    """The callback, which shows progress too if `verbose`, until the work is done; after `max_iter` steps at most, if known."""
    if not verbose:
        yield callback
        return
    progress = Progress(task, max_iter, callback)
    try:
        yield progress
    finally:
        progress.end()
