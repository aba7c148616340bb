"""Text on the terminal: rich does colours where it is installed; without it the text is plain."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection, Sequence
from typing import IO, TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

if TYPE_CHECKING:
    from rich.console import Console

#: What stands between the columns of a table, and what a column of text is not narrowed below.
APART, LEAST_WIDTH = "   ", 20


def tolerate_encodings() -> None:
    """Let names that stdout or stderr cannot encode be shown escaped instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether the stream is a terminal that a person looks at."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def printable(text: str) -> str:
    """Return text for a terminal without characters that would move the cursor or change colours."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def note(sentence: str) -> None:
    """Say a sentence to the person at the terminal, on stderr."""
    if sys.stderr is not None:
        print(f"cvxnmf: {printable(sentence)}", file=sys.stderr, flush=True)


def show_cursor() -> None:
    """Show the cursor again, which a killed progress bar leaves hidden, at the start of an empty line."""
    if is_terminal(sys.stderr):
        print("\r\x1b[K\x1b[?25h", end="", file=sys.stderr, flush=True)


def rich_console(stderr: bool = False) -> Console | None:
    """Return rich's console for stdout or stderr, which takes text as it is; None where rich is not installed."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    width = shutil.get_terminal_size((100, 24)).columns
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def show(text: str, style: str = "") -> None:
    """Print a line of results on stdout, in a style of rich where there are colours."""
    console = rich_console() if style else None
    print(text) if console is None else console.print(text, style=style)


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int]) -> None:
    """Print a table on stdout; columns are aligned right, but for those of text in `left`, which a narrow terminal cuts.

    Lists of names are cut between names. Nothing is cut where no person looks, as in a pipe.
    """
    widths = [max(_cells(row[place]) for row in (header, *rows)) for place in range(len(header))]
    between, room = len(APART) * (len(header) - 1), shutil.get_terminal_size((100, 24)).columns
    if is_terminal(sys.stdout):
        widths = _narrow_columns(widths, left, room - between)
    encoding = getattr(sys.stdout, "encoding", None) or "utf8"
    rule = ("─" if encoding.lower().startswith("utf") else "-") * min(sum(widths) + between, max(room, 100))
    lines = [_line(row, widths, left) for row in (header, *rows)]
    print("\n".join([lines[0], rule, *lines[1:]]))


def _narrow_columns(widths: list[int], left: Collection[int], room: int) -> list[int]:
    """Column widths of a terminal's table, the widest columns of text narrowed alike until the table fits into the room."""
    fitted, widest = list(widths), max(widths)
    while sum(fitted) > room and widest > LEAST_WIDTH:
        widest -= 1
        fitted = [min(width, widest) if place in left else width for place, width in enumerate(widths)]
    return fitted


def _line(row: Sequence[str], widths: Sequence[int], left: Collection[int]) -> str:
    """A row of a terminal's table, without blanks at its end."""
    parts = []
    for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
        text = shorten_text(cell, width)
        blanks = " " * (width - _cells(text))
        parts.append(text + blanks if place in left else blanks + text)
    return APART.join(parts).rstrip()


def shorten_text(text: str, width: int) -> str:
    """The text, or as many of its first names, between commas, as fit into so many cells of a terminal."""
    if _cells(text) <= width:
        return text
    while text and _cells(text) > width - 1:
        text = text[:-1]
    names, comma, _ = text.rpartition(", ")
    return f"{names}{comma}…" if comma else f"{text}…"


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes: two for each wide character, none for one that combines."""
    return sum(0 if combining(sign) else 1 + (east_asian_width(sign) in "WF") for sign in text)
