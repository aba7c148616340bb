"""Progress on stderr: a live line on a terminal, a few plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from cvxnmf.cli import terminal
from cvxnmf.cli.interruption import interruptible

if TYPE_CHECKING:
    from cvxnmf.results import Iterate

Result = TypeVar("Result")

#: Cells of the bar that shows the gap closing.
CELLS = 20
#: Seconds until the first plain line; each following one waits longer.
FIRST_LINE, GROWTH = 2.0, 1.3
#: A gap that counts as closed where the tolerance is 0.
CLOSED = 1e-12


class Progress:
    """Shows how far the work is.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet or sys.stderr is None
        self.live = not self.quiet and terminal.is_terminal(sys.stderr)
        self.task, self.tol, self.began, self.due = "", 0.0, time.monotonic(), FIRST_LINE
        self.latest: Iterate | None = None
        self.shown = False

    def run(self, task: str, tol: float, work: Callable[[], Result]) -> Result:
        """Do the work, showing what its callback hears."""
        self.task, self.tol, self.began, self.due, self.latest = task, tol, time.monotonic(), FIRST_LINE, None
        if self.quiet:
            return work()
        if not self.live:
            print(f"solving: {terminal.printable(task)}", file=sys.stderr, flush=True)
        try:
            return interruptible(work, self.tick)
        finally:
            self._clear()

    def hear(self, iterate: Iterate) -> None:
        """The callback of the solvers: remember the latest step."""
        self.latest = iterate

    def tick(self) -> None:
        """Show the state, as often as is fit."""
        elapsed = time.monotonic() - self.began
        if self.live:
            self._draw(self.line(elapsed))
        elif elapsed >= self.due:
            self.due = max(elapsed + 1.0, GROWTH * elapsed)
            print(self.line(elapsed), file=sys.stderr, flush=True)

    def _draw(self, line: str) -> None:
        room = terminal.width() - 1
        print(f"\r{line[:room].ljust(room)}", end="", file=sys.stderr, flush=True)
        self.shown = True

    def line(self, elapsed: float) -> str:
        """The state on one line."""
        task, step = terminal.printable(self.task), self.latest
        if step is None:
            return f"{task}: {elapsed:.0f} s"
        if step.stage:
            task = f"{task}, {step.stage}"
        if math.isnan(step.value):
            return f"{task}: {elapsed:.0f} s{self._left(step)}"
        text = f"{task}: step {step.iteration}, value {step.value:.6g}"
        if step.bound > 0:
            gap = max(0.0, step.gap / step.value)
            text += f", bound {step.bound:.6g}, gap {gap:.0e} {self._bar(gap)} goal {self.tol:.0g}"
        return f"{text}, {elapsed:.0f} s{self._left(step)}"

    @staticmethod
    def _left(step: Iterate) -> str:
        """About how much longer it takes, where that can be told."""
        return "" if math.isnan(step.seconds_left) else f", about {max(1.0, step.seconds_left):.0f} s left"

    def _bar(self, gap: float) -> str:
        """How far the gap has closed, on a logarithmic scale from 1 to the goal."""
        goal = min(max(self.tol, CLOSED), 0.5)
        share = min(1.0, max(0.0, math.log(min(1.0, max(gap, CLOSED))) / math.log(goal)))
        full, empty = ("█", "░") if terminal.can_show("█░", sys.stderr) else ("#", "-")
        return f"[{full * round(CELLS * share)}{empty * (CELLS - round(CELLS * share))}]"

    def _clear(self) -> None:
        """Take the live line away."""
        if self.shown:
            print(f"\r{' ' * (terminal.width() - 1)}\r", end="", file=sys.stderr, flush=True)
            self.shown = False
