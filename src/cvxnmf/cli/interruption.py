"""A program that Ctrl-C and SIGTERM end within a second, its best answer kept.

Python acts on Ctrl-C only between its own instructions, and scipy's eigendecompositions, which can last for minutes, keep even
other threads from running. So the work is done in a child process, forked before anything heavy is imported, while the program
waits. On a signal the child gets a KeyboardInterrupt, which the solvers answer with their best point so far; a child that does
not end in time is killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cvxnmf.cli import terminal
from cvxnmf.cli.exit_codes import ERROR, INTERRUPTED

#: Seconds that the work has for its best answer so far.
GRACE = 0.9
#: Seconds between looks of the program at its child after Ctrl-C, and of the child at the program.
LOOK, WATCH = 0.02, 0.5
#: Files that a process was writing, as `io.writing` names them; it is not imported here, since that takes long.
UNFINISHED = ".cvxnmf-{}-*.part"
#: Signals that ask the program to end.
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
#: Whether one of them was raised as a KeyboardInterrupt; an import that meets it may raise an ImportError instead.
HEARD = threading.Event()


def supervise(work: Callable[[], int], outputs: list[str]) -> int:
    """Do the work of a command in a child process where the system can fork; return its exit code, in the child as well.

    `outputs` are files that the work may write; what is left of unfinished ones is removed when it is killed. Where the work is
    done in this process, it hears the same signals, but ends only when a step is over.
    """
    if not hasattr(os, "fork") or "numpy" in sys.modules or threading.active_count() > 1:
        return _work_here(work)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    program, began = os.getpid(), time.time()
    child = os.fork()
    if child == 0:
        _on_signals(_raise_once)
        sys.unraisablehook = _raise_again
        threading.Thread(target=_end_with, args=(program,), daemon=True).start()
        return work()
    _on_signals(signal.default_int_handler)
    ended = _wait(child)
    return _after_kill(outputs, began, child) if ended is None else ended


def _work_here(work: Callable[[], int]) -> int:
    """Do the work of a command in this process, where every signal raises KeyboardInterrupt; then restore signal handlers."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    _on_signals(_raise)
    try:
        return work()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(number: int, frame: Any) -> None:
    """Raise KeyboardInterrupt on a signal."""
    HEARD.set()
    raise KeyboardInterrupt


def _on_signals(handler: Any) -> None:
    """Handle Ctrl-C, SIGTERM and SIGHUP alike; nohup ignores SIGHUP, and so it stays."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _raise_once(number: int, frame: Any) -> None:
    """Raise KeyboardInterrupt on a signal, and ignore further ones: a terminal and the program may both send one."""
    _on_signals(signal.SIG_IGN)
    _raise(number, frame)


def _raise_again(unraisable: Any) -> None:
    """Raise an interrupt again a little later that came where none can be raised, as in a callback of compiled code."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    signal.signal(signal.SIGINT, _raise_once)
    again = threading.Timer(LOOK, os.kill, (os.getpid(), signal.SIGINT))
    again.daemon = True
    again.start()


def _end_with(program: int) -> None:
    """Kill the child process when the program that started it is gone."""
    while os.getppid() == program:
        time.sleep(WATCH)
    os.kill(os.getpid(), signal.SIGKILL)


def _wait(child: int) -> int | None:
    """Return the exit code of the child process, or None if it had to be killed after a signal."""
    try:
        return _exit_code(os.waitpid(child, 0)[1])
    except KeyboardInterrupt:
        pass
    try:
        os.kill(child, signal.SIGINT)
        until = time.monotonic() + GRACE
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return _exit_code(status)
            time.sleep(LOOK)
    except KeyboardInterrupt:  # a second signal ends at once
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _exit_code(status: int) -> int:
    """Return the exit code of a child process that ended by itself, or by a signal, which becomes a sentence."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    name = signal.Signals(-code).name
    if name == "SIGINT":  # an interrupt that came while Python itself was ending, after its sentence
        return INTERRUPTED
    terminal.note(f"the work was ended by {name}{', perhaps for want of memory' if name == 'SIGKILL' else ''}.")
    return ERROR


def _after_kill(outputs: list[str], began: float, child: int) -> int:
    """Tidy up after a child process killed on interruption, and say what is in its files."""
    for path in outputs:
        for unfinished in Path(os.path.realpath(path)).parent.glob(UNFINISHED.format(child)):
            unfinished.unlink(missing_ok=True)
    terminal.show_cursor()
    terminal.note(f"interrupted in a step too long to wait for{what_is_kept(outputs, began)}.")
    return INTERRUPTED


def what_is_kept(outputs: list[str], began: float) -> str:
    """Say which files an interrupted command has written since a time and which not, as the end of a sentence."""
    kept = [path for path in outputs if os.path.exists(path) and os.path.getmtime(path) >= began - 0.1]
    lost = [path for path in outputs if path not in kept]
    rest = f"; {' and '.join(lost)} {'were' if len(lost) > 1 else 'was'} not written" if lost else ""
    return rest + (f"; what was finished before is in {' and '.join(kept)}" if kept else "")
