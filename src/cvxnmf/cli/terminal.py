"""What a terminal can show: colours, characters, width; and notes on stderr."""

from __future__ import annotations

import os
import shutil
import sys
from typing import IO, Any

#: Codes of the colours in use.
COLOURS = {"green": "32", "yellow": "33", "red": "31", "bold": "1", "faint": "2"}


def tolerate_encodings() -> None:
    """Let names that stdout or stderr cannot encode be shown escaped instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def note(sentence: str) -> None:
    """Say something to the person, on stderr; over a live line, if there is one."""
    if sys.stderr is None:
        return
    text = f"cvxnmf: {printable(sentence)}"
    print(f"\r{text.ljust(width() - 1)}" if is_terminal(sys.stderr) else text, file=sys.stderr, flush=True)


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether a person looks at the stream."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def has_colours(stream: IO[str] | None) -> bool:
    """Whether to use colours: on terminals, unless NO_COLOR is set; always if FORCE_COLOR is."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: str, stream: IO[str] | None) -> str:
    """The text in a colour, where the stream has colours."""
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if has_colours(stream) else text


def can_show(text: str, stream: IO[str] | None) -> bool:
    """Whether the stream's encoding has these characters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def printable(text: str) -> str:
    """The text without characters that would move the cursor or change colours."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def width() -> int:
    """Columns of the terminal; 100 where there is none."""
    return shutil.get_terminal_size((100, 24)).columns
