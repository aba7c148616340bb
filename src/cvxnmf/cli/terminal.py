"""Text on the terminal: rich does colours and tables where it is installed; without it the text is plain."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection, Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def tolerate_encodings() -> None:
    """Let names that stdout or stderr cannot encode be shown escaped instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether a person looks at the stream."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def printable(text: str) -> str:
    """Return the text without characters that would move the cursor or change colours."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def note(sentence: str) -> None:
    """Say something to the person, on stderr."""
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
    """Print a table on stdout; columns stand to the right but for those in `left`, and the last is cut off to fit."""
    console = rich_console()
    if console is None:
        for row in (header, *rows):
            print("  ".join(row))
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    widths: list[int] = []
    for place, name in enumerate(header):
        widest = max(len(row[place]) for row in (header, *rows))
        left_over = console.width - sum(widths) - 3 * len(widths)  # columns stand three blanks apart
        widths.append(widest if place + 1 < len(header) else max(min(widest, left_over), len(name)))
        table.add_column(name, justify="left" if place in left else "right", no_wrap=True, width=widths[-1])
    for row in rows:
        table.add_row(*row)
    console.width = max(console.width, sum(widths) + 3 * len(widths))  # numbers are never cut: rather a line wraps
    console.print(table, soft_wrap=False)
