"""Progress on stderr: rich's bar on a terminal, a few plain lines elsewhere or without rich, nothing when quiet."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from cvxnmf.cli import terminal

if TYPE_CHECKING:
    from cvxnmf.results import Iterate

Result = TypeVar("Result")

#: Seconds until the first plain line; each following one waits longer.
FIRST_LINE, GROWTH = 1.0, 1.3
#: A gap that counts as closed where the tolerance is 0.
CLOSED = 1e-12
#: Share of the work before which nobody knows how long the rest will take.
BEGUN = 0.05


class Progress:
    """Progress of a command's work on stderr, or nothing when quiet."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet or sys.stderr is None
        self.bar = None if self.quiet else _rich_bar()
        self.task, self.tol, self.began, self.due = "", 0.0, time.monotonic(), FIRST_LINE
        self.max_iter: int | None = None

    def run(self, task: str, work: Callable[[], Result], tol: float = 0.0, max_iter: int | None = None) -> Result:
        """Do a command's work, showing progress that callbacks report; the bar is full at the gap `tol`, or after `max_iter`."""
        self.task, self.tol, self.began, self.due = terminal.printable(task), tol, time.monotonic(), FIRST_LINE
        self.max_iter = max_iter
        if self.quiet:
            return work()
        if self.bar is None:
            print(f"solving: {self.task}", file=sys.stderr, flush=True)
            return work()
        row = self.bar.add_task(self.task, total=None)
        try:
            with self.bar:
                return work()
        finally:
            self.bar.remove_task(row)

    def on_iterate(self, iterate: Iterate) -> None:
        """Show the progress of a solver at a step; this is its callback."""
        gap = max(0.0, iterate.gap / abs(iterate.value)) if iterate.bound > 0 and iterate.value else math.nan
        if self.max_iter and not iterate.share:
            iterate = replace(iterate, share=min(1.0, iterate.iteration / self.max_iter))
        share = iterate.share or (None if math.isnan(gap) else closed_share(gap, self.tol))
        self._show(_describe(self.task, iterate, self.tol, bool(self.max_iter)), share)

    def on_count(self, done: int, total: int, task: str) -> None:
        """Show the progress of a work in parts: how many are done, and the one at work."""
        elapsed = time.monotonic() - self.began
        left = f", about {elapsed * (total - done) / done:.0f} s left" if done else ""
        self._show(f"{self.task}: {done} of {total}{left}: {task}", done / total)

    def _show(self, text: str, share: float | None) -> None:
        """Show the progress on the bar, or now and then in a line."""
        elapsed = time.monotonic() - self.began
        if self.bar is not None:
            total = None if share is None else 1.0
            for row in self.bar.task_ids:
                self.bar.update(row, description=text, completed=share or 0.0, total=total)
        elif not self.quiet and elapsed >= self.due:
            self.due = max(elapsed + 1.0, GROWTH * elapsed)
            print(f"{text}, {elapsed:.0f} s", file=sys.stderr, flush=True)


def _rich_bar() -> Any:
    """Return a progress bar of rich that vanishes at the end; None where there is no terminal, or no rich."""
    console = terminal.rich_console(stderr=True) if terminal.is_terminal(sys.stderr) else None
    if console is None:
        return None
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    return Progress(BarColumn(bar_width=20), TimeElapsedColumn(), text, console=console, transient=True)


def _describe(task: str, iterate: Iterate, tol: float, at_most: bool) -> str:
    """Return the progress at a step on one line; `at_most` says that the work may end before its share is whole."""
    text = f"{task}, {iterate.stage}" if iterate.stage else task
    if not math.isnan(iterate.value):
        text += f": step {iterate.iteration}, value {iterate.value:.6g}"
        if iterate.bound > 0:
            gap = iterate.gap / abs(iterate.value) if iterate.value else math.inf
            text += f", bound {iterate.bound:.6g}, gap {gap:.0e}, goal {tol:.0g}"
    if iterate.share > 0:
        text += f", {iterate.share:.0%} done"
    if iterate.share > BEGUN:
        text += f", {'at most' if at_most else 'about'} {max(1.0, iterate.seconds_left):.0f} s left"
    return text


def closed_share(gap: float, tol: float) -> float:
    """Return the progress of closing the relative gap, on a logarithmic scale from 1 to the tolerance."""
    goal = min(max(tol, CLOSED), 0.5)
    return min(1.0, max(0.0, math.log(min(1.0, max(gap, CLOSED))) / math.log(goal)))
