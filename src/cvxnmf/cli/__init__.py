"""The command line: arguments, files, progress, exit codes.

Results go to stdout, progress and notes to stderr. Exit codes: 0 certified, 1 error, 2 usage, 3 finished above tolerance,
130 interrupted.
Heavy imports wait until a command needs them, so that ``cvxnmf --help`` answers at once.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

from cvxnmf import __version__
from cvxnmf.cli import terminal
from cvxnmf.cli.exit_codes import ERROR, INTERRUPTED, USAGE
from cvxnmf.cli.interruption import HEARD, supervise, what_is_kept

__all__ = ["main"]

#: Modules with a command each: ``add(commands)`` registers it and sets ``run``.
COMMANDS = ("demo", "partition", "factorize", "verify", "reproduce", "completion")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, with the arguments of the program when none are given, and return its exit code."""
    terminal.tolerate_encodings()
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.parser.error(_unknown(unknown[0], options.parser))
    named = (getattr(options, name, None) for name in ("output", "report", "certificate", "save"))
    outputs = [path for path in named if path and path != "-"]
    if arguments is not None:  # called from Python, whose own process it is
        return _run(options, outputs)
    return supervise(lambda: _run(options, outputs), outputs)


def _unknown(argument: str, parser: argparse.ArgumentParser) -> str:
    """Say that an argument of the command line is not known, and which option may have been meant."""
    if not argument.startswith("-"):
        return f"{argument!r} is one argument too many"
    near = difflib.get_close_matches(argument.split("=")[0], parser._option_string_actions, n=1)
    return f"there is no option {argument}" + (f"; did you mean {near[0]}?" if near else "")


def _run(options: argparse.Namespace, outputs: list[str]) -> int:
    """Run a command of the command line; any error becomes a sentence and an exit code."""
    began = time.time()
    try:
        with _warnings_as_sentences(), _notices(bool(getattr(options, "quiet", False))):
            code = int(options.run(options))
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough, as in `cvxnmf demo | head -1`
        _abandon_stdout()
        return ERROR
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("CVXNMF_TRACEBACK"):
            raise
        if isinstance(error, ImportError) and HEARD.is_set():  # imports of compiled modules say so of an interrupt
            error = KeyboardInterrupt()
        if isinstance(error, KeyboardInterrupt) and (hasattr(error, "solution") or not str(error)):
            error = KeyboardInterrupt(f"interrupted{what_is_kept(outputs, began)}.")
        _note_last(sentence(error))
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else ERROR


def sentence(error: BaseException) -> str:
    """Return what went wrong in a command, on one line."""
    words = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        return words
    if isinstance(error, MemoryError) and not isinstance(error, ValueError):
        return "there is not enough memory for this; take a smaller or coarsened matrix."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, ValueError | ImportError | OSError) and words:
        return words
    return f"unexpected {type(error).__name__}: {words or 'no message'}; set CVXNMF_TRACEBACK=1 to see where, and report it."


class _Parser(argparse.ArgumentParser):
    """A parser of the command line whose errors say where help is, and which command may have been meant."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line and end the program."""
        unknown = re.match(r"argument COMMAND: invalid choice: '([^']*)'", message)
        if unknown:
            near = difflib.get_close_matches(unknown[1].lower(), COMMANDS, n=1)
            rest = f"did you mean {near[0]}?" if near else f"the commands are {', '.join(COMMANDS)}."
            message = f"there is no command {unknown[1]!r}; {rest}"
        ending = " See" if message.endswith((".", "?")) else "; see"
        self.exit(USAGE, f"{self.prog}: {message}{ending} {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line with all commands."""
    parser = _Parser(
        prog="cvxnmf",
        description="Nonnegative matrix factorisation with a proof: deterministic, globally solved, certified.",
        epilog="exit codes: 0 certified, 1 error, 2 usage, 3 finished above tolerance, 130 interrupted",
    )
    parser.add_argument("-V", "--version", action="version", version=f"cvxnmf {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"{__name__}.{name}").add(commands)
    return parser


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Show a command's warnings meant for users as plain sentences, each once, and no others."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        terminal.note(" ".join(str(message).split()))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


@contextmanager
def _notices(quiet: bool) -> Iterator[None]:
    """Show what the package logs, such as that it compiles, beside a command's progress; nothing when quiet."""
    import logging

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not quiet:
                terminal.note(record.getMessage())

    logger, notes = logging.getLogger("cvxnmf"), Notes()
    level, logger.propagate = logger.level, False
    logger.setLevel(logging.INFO)
    logger.addHandler(notes)
    try:
        yield
    finally:
        logger.removeHandler(notes)
        logger.setLevel(level)
        logger.propagate = True


def _note_last(text: str) -> None:
    """Say what ended the program, if stderr is still open."""
    try:
        terminal.note(text)
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # stdout or stderr is full or closed
        _abandon_stdout()


def _abandon_stdout() -> None:
    """Point stdout nowhere, so that closing it at the program's end does not fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):  # not a real file, as under a test
        pass
