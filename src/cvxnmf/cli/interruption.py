"""A program that Ctrl-C ends within a second.

Python acts on Ctrl-C only between its own instructions, and a LAPACK call can last for minutes. So the work runs in a child of
the program, forked before anything heavy is imported, and the program itself does nothing but wait. On Ctrl-C the child gets a
KeyboardInterrupt, which the solvers answer with their best point so far; a child that does not end in time is killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cvxnmf.cli import terminal
from cvxnmf.cli.exit_codes import ERROR

Result = TypeVar("Result")

#: Seconds that the work has for its best answer so far.
GRACE = 0.9
#: Seconds between looks at the child after Ctrl-C, of the child at its parent, and between ticks.
LOOK, WATCH, TICK = 0.02, 0.5, 0.1


def supervised(work: Callable[[], int], outputs: list[str], all_named: bool = False) -> int:
    """Do the work in a child process where the system can; return its exit code.

    Parameters
    ----------
    work : callable
        Returns an exit code; the child returns it from here, too.
    outputs : list of str
        Files the work may write; what is left of unfinished ones is removed when it is killed.
    all_named : bool
        Whether nothing else is written.
    """
    if not hasattr(os, "fork") or "numpy" in sys.modules or threading.active_count() > 1:
        return work()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    parent, (ear, mouth) = os.getpid(), os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, _raise_once)
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
        code = work()
        os.write(mouth, bytes([code]))
        return code
    os.set_blocking(ear, False)
    return _Supervisor(child, ear, outputs, all_named).wait()


def interruptible(function: Callable[[], Result], tick: Callable[[], Any]) -> Result:
    """Call the function, and `tick` now and then from another thread while it runs."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(TICK):
            tick()

    clock = threading.Thread(target=watch, daemon=True)
    clock.start()
    try:
        return function()
    finally:
        over.set()
        clock.join()


def _raise_once(number: int, frame: Any) -> None:
    """The child's answer to Ctrl-C; a terminal and the parent may both send it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _watch(parent: int) -> None:
    """End the child when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(WATCH)
    os.kill(os.getpid(), signal.SIGKILL)


class _Supervisor:
    """The program that waits for its child."""

    def __init__(self, child: int, ear: int, outputs: list[str], all_named: bool) -> None:
        self.child, self.ear, self.all_named = child, ear, all_named
        self.before = {path: _state(path) for path in outputs}
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP, and so it stays
                signal.signal(number, self._pass_on)

    def _pass_on(self, number: int, frame: Any) -> None:
        """End the child and then this program as a signal asks."""
        os.kill(self.child, signal.SIGKILL)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def wait(self) -> int:
        """The exit code of the child, however it ends."""
        try:
            return self._code(os.waitpid(self.child, 0)[1])
        except KeyboardInterrupt:
            pass
        try:
            os.kill(self.child, signal.SIGINT)
            code = self._code_in_time()
        except KeyboardInterrupt:  # a second Ctrl-C ends at once
            code = None
        return self._killed() if code is None else code

    def _code_in_time(self) -> int | None:
        """The exit code, if the work comes to an end within the grace; tidying up after it may take longer."""
        until = time.monotonic() + GRACE
        while time.monotonic() < until:
            ended, status = os.waitpid(self.child, os.WNOHANG)
            if ended:
                return self._code(status)
            time.sleep(LOOK)
        try:
            told = os.read(self.ear, 1)
        except BlockingIOError:
            return None
        os.kill(self.child, signal.SIGKILL)
        return told[0]

    def _killed(self) -> int:
        """End the child in the middle of its work."""
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        for path in self.before:
            Path(f"{os.path.realpath(path)}.part").unlink(missing_ok=True)
        lost = [path for path, state in self.before.items() if _state(path) == state]
        kept = [path for path in self.before if path not in lost]
        rest = f"; {' and '.join(lost)} could not be written" if lost else ""
        rest += f"; what was finished before is in {' and '.join(kept)}" if kept else ""
        rest = "; nothing was written" if self.all_named and not self.before else rest
        terminal.note(f"interrupted in a step too long to wait for{rest}.")
        return ERROR

    @staticmethod
    def _code(status: int) -> int:
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            return code
        name = signal.Signals(-code).name
        terminal.note(f"the work was ended by {name}{', perhaps for want of memory' if name == 'SIGKILL' else ''}.")
        return ERROR


def _state(path: str) -> tuple[int, ...] | None:
    """What changes when a file is written."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
