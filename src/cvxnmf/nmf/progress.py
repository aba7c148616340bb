"""Progress for people who wait: one line that changes at a terminal or in a notebook, a few lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from cvxnmf.linalg.compiled import is_interactive
from cvxnmf.results import Iterate

#: Seconds between changes of the line; until the second plain line, and how much longer each following one waits.
BETWEEN, FIRST_LINE, GROWTH = 0.1, 2.0, 1.5
#: Width of the bar in characters.
WIDTH = 20


class Progress:
    """A callback that shows steps and hands them on to the callback of the user; the changing line is left to be overwritten."""

    def __init__(self, task: str, max_iter: int, callback: Callable[[Iterate], Any] | None) -> None:
        self.task, self.max_iter, self.callback = task, max_iter, callback
        self.changing = is_interactive()
        self.began, self.starts = time.monotonic(), 0
        self.due = 0.0

    def __call__(self, iterate: Iterate) -> Any:
        """Show a step; a step 1 is that of a new start."""
        self.starts += iterate.iteration == 1
        elapsed = time.monotonic() - self.began
        if sys.stderr is not None and elapsed >= self.due:
            self.due = elapsed + BETWEEN if self.changing else max(FIRST_LINE, GROWTH * elapsed)
            line = self.line(iterate, elapsed)
            sys.stderr.write(f"{line:<100}\r" if self.changing else f"{line}\n")
            sys.stderr.flush()
        return None if self.callback is None else self.callback(iterate)

    def line(self, iterate: Iterate, elapsed: float) -> str:
        """What is known: the start, the step of so many at most, the loss, the bound once there is one, and the time."""
        done = min(1.0, iterate.iteration / self.max_iter)
        bar = "#" * round(WIDTH * done)
        bound = f", bound {iterate.bound:.6g}" if iterate.bound > 0 else ""
        step = f"step {iterate.iteration} of {self.max_iter} at most"
        return (
            f"{self.task} [{bar:<{WIDTH}}] start {max(1, self.starts)}, {step}, loss {iterate.value:.6g}{bound}, {elapsed:.0f} s"
        )


def shown(verbose: Any, task: str, max_iter: int, callback: Callable[[Iterate], Any] | None) -> Callable[[Iterate], Any] | None:
    """The callback, showing progress as well if `verbose`."""
    return Progress(task, max_iter, callback) if verbose else callback
