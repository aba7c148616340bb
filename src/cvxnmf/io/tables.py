"""Dense tables of numbers in text, with or without a header and a column of names."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cvxnmf.chunked.graphs.lines import BLANKS, find_separator, is_number, uniform_separator
from cvxnmf.io import separated
from cvxnmf.io.separated import Piece, quote
from cvxnmf.io.source import Source
from cvxnmf.linalg.arrays import FloatArray

#: Cells that stand for a missing number, in small letters.
MISSING = {"", "na", "nan", "n/a", "null", "none", "?"}


class MatrixFile(NamedTuple):
    """A matrix from a file, its names where the file has them, and notes on the reading."""

    A: Any
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def unique_names(self) -> dict[str, Any]:
        """Names as `row_names` and `column_names` of :func:`factorize`, all with their numbers where some are alike."""
        return {"row_names": _unique(self.rows), "column_names": _unique(self.columns)}


def _unique(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The row or column names of a table; if some are alike, all with their numbers."""
    if names is None or len(set(names)) == len(names):
        return names
    return tuple(f"{name} ({number})" for number, name in enumerate(names))


class Layout(NamedTuple):
    """How the lines of a table are to be read: the separator, cells on a line, and whether the first cell is a name."""

    separator: str
    width: int
    named: bool


def read_table(source: Source, separator: str | None = None, header: bool | None = None) -> MatrixFile:
    """Read a table of numbers; empty cells, NA and nan are missing.

    If `header` is None, the first line is a header if it holds words only, if its first cell is empty, or if it is one cell
    shorter than the next line.
    """
    pieces = separated.data_pieces(source)
    first = separated.first_piece(source, pieces, "a table of numbers")
    cut = separator or _find_separator(first.lines)
    rows = separated.rows_of(source, first, cut)
    heading = [cell.strip(BLANKS) for cell in rows[0]]
    if header is None:
        header = _is_header(heading, cut) or (len(rows) > 1 and len(rows[1]) == len(heading) + 1)
    if header and len(rows) == 1:
        source.refuse("has a header and no numbers; give a table of numbers.")
    begun = rows[1] if header else rows[0]
    width = len(begun)
    named = (bool(begun) and not _is_cell(begun[0], cut)) or (header and (heading[0] == "" or len(heading) == width - 1))
    if width == named:
        source.refuse("holds names and no numbers; give a table of numbers.")
    doubtful = header and any(_is_cell(cell, cut) for cell in heading[1:])  # words alone cannot be a line of numbers
    notes = (f"Line {first.numbers[0]} is taken as a header; say --no-header if it is not.",) if doubtful else ()
    first, layout = Piece(first.numbers[header:], first.lines[header:]), Layout(cut, width, named)
    table = _parse_as_a_whole(source, layout, first.numbers[0]) or _parse_lines(source, layout, itertools.chain([first], pieces))
    columns = tuple(heading[len(heading) - width + named :]) if header and len(heading) >= width - named else None
    return MatrixFile(table[0], tuple(table[1]) if named else None, columns, notes)


def _find_separator(lines: Sequence[str]) -> str:
    """The separator of a table, whose header may be one cell shorter than its other lines."""
    uniform = uniform_separator(lines) or uniform_separator(lines[1:])
    return uniform or find_separator(lines)


def _is_header(heading: Sequence[str], separator: str) -> bool:
    """Whether the first row of a table is a header: it holds words only, or begins with an empty corner."""
    words = [not _is_cell(cell, separator) for cell in heading]
    return words[0] if len(words) == 1 else heading[0] == "" or all(words)


def _is_cell(text: str, separator: str) -> bool:
    plain = _plain(text, separator)
    return is_number(plain) or plain.lower() in MISSING


def _plain(text: str, separator: str) -> str:
    """A cell of a table without blanks; between semicolons a decimal comma is a point."""
    return text.strip(BLANKS).replace(",", ".") if separator == ";" else text.strip(BLANKS)


def _parse_as_a_whole(source: Source, layout: Layout, first_line: int) -> tuple[FloatArray, list[str]] | None:
    """Numbers and names of a regular table without missing cells; None if a line is in any way out of the ordinary."""
    columns: list[Any] = [("name", object)] if layout.named else []
    columns.append(("numbers", np.float64, (layout.width - layout.named,)))
    table = separated.parse_regular(separated.lines_from(source, first_line), layout.separator, columns)
    if table is None:
        return None
    names = [name.strip(BLANKS) for name in table["name"]] if layout.named else []
    commented = any(name.startswith(("#", "%")) for name in names)
    return None if commented else (np.ascontiguousarray(table["numbers"]), names)


def _parse_lines(source: Source, layout: Layout, pieces: Iterable[Piece]) -> tuple[FloatArray, list[str]]:
    """Numbers and names of a table line by line, so that a mistake is reported with its line and column."""
    names: list[str] = []
    blocks: list[FloatArray] = []
    for piece in pieces:
        rows = separated.rows_of(source, piece, layout.separator)
        numbers = [_numbers(source, layout, number, row) for number, row in zip(piece.numbers, rows, strict=True)]
        blocks.append(np.array(numbers, dtype=np.float64))
        names += [row[0].strip(BLANKS) for row in rows if layout.named]
    return np.concatenate(blocks), names


def _numbers(source: Source, layout: Layout, number: int, row: list[str]) -> list[float]:
    """The cells of a table's line as numbers, NaN where one is missing."""
    if len(row) != layout.width:
        source.refuse(f"expected {layout.width} columns, found {len(row)}.", number)
    found = []
    for column, cell in enumerate(row[layout.named :], start=layout.named + 1):
        text = _plain(cell, layout.separator)
        if is_number(text):
            found.append(float(text))
        elif text.lower() in MISSING:
            found.append(float("nan"))
        else:
            source.refuse(f"expected a number in column {column}, found {quote(cell)}.", number)
    return found
