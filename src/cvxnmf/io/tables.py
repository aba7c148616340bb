"""Dense tables of numbers in text, with or without a header and a column of names."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cvxnmf.io.separated import BLANKS, Piece, abridged, data_pieces, found_separator, is_number, rows_of, uniform_separator
from cvxnmf.io.source import Source
from cvxnmf.linalg.arrays import FloatArray

#: Cells that stand for a missing number, in small letters.
MISSING = {"", "na", "nan", "n/a", "null", "none", "?"}


class MatrixFile(NamedTuple):
    """A matrix from a file, its names where the file has them, and what there is to say about the reading."""

    A: Any
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def read_table(source: Source, separator: str | None = None, header: bool | None = None) -> MatrixFile:
    """Read a table of numbers; empty cells, NA and nan are missing.

    Parameters
    ----------
    source : Source
        The content of the file.
    separator : str, optional
        Between cells; left out, it is found.
    header : bool, optional
        Whether the first line is a header. Left out, it is one if it holds words only, if its first cell is empty,
        or if it is one cell shorter than the next line.
    """
    pieces = data_pieces(source)
    first = next(pieces, None)
    if first is None:
        source.refuse("has no data, only comments or empty lines; give a table of numbers.")
    cut = separator or uniform_separator(first.lines) or uniform_separator(first.lines[1:]) or found_separator(first.lines)
    rows = rows_of(source, first, cut)
    heading = [cell.strip(BLANKS) for cell in rows[0]]
    if header is None:
        header = _is_header(heading, cut) or (len(rows) > 1 and len(rows[1]) == len(heading) + 1)
    if header and len(rows) == 1:
        source.refuse("has a header and no numbers; give a table of numbers.")
    width = len(rows[1] if header else rows[0])
    begun = rows[1:] if header else rows
    named = not all(_is_cell(row[0], cut) for row in begun[:1] if row)
    named = named or (header and (heading[0] == "" or len(heading) == width - 1))
    if width == named:
        source.refuse("holds names and no numbers; give a table of numbers.")
    reader = _Table(source, cut, width, named)
    for piece in itertools.chain([Piece(first.numbers[header:], first.lines[header:])], pieces):
        reader.take(piece)
    columns = tuple(heading[len(heading) - width + named :]) if header and len(heading) >= width - named else None
    notes = (f"Line {first.numbers[0]} is taken as a header; say --no-header if it is not.",) if header else ()
    return MatrixFile(np.concatenate(reader.blocks), tuple(reader.names) if named else None, columns, notes)


def _is_cell(text: str, separator: str) -> bool:
    plain = _plain(text, separator)
    return is_number(plain) or plain.lower() in MISSING


def _plain(text: str, separator: str) -> str:
    """A cell without blanks; between semicolons a decimal comma is a point."""
    return text.strip(BLANKS).replace(",", ".") if separator == ";" else text.strip(BLANKS)


def _is_header(heading: Sequence[str], separator: str) -> bool:
    """Whether a row holds words only, or begins with an empty corner."""
    words = [not _is_cell(cell, separator) for cell in heading]
    return words[0] if len(words) == 1 else heading[0] == "" or all(words)


class _Table:
    """The rows read so far."""

    def __init__(self, source: Source, separator: str, width: int, named: bool) -> None:
        self.source, self.separator, self.width, self.named = source, separator, width, named
        self.names: list[str] = []
        self.blocks: list[FloatArray] = []

    def take(self, piece: Piece) -> None:
        """Read some lines."""
        if not piece.lines:
            return
        rows = rows_of(self.source, piece, self.separator)
        if set(map(len, rows)) != {self.width}:
            index = next(index for index, row in enumerate(rows) if len(row) != self.width)
            self.source.refuse(f"expected {self.width} columns, found {len(rows[index])}.", piece.numbers[index])
        if self.named:
            self.names += [row[0].strip(BLANKS) for row in rows]
            rows = [row[1:] for row in rows]
        self.blocks.append(self._numbers(piece, rows))

    def _numbers(self, piece: Piece, rows: Sequence[Sequence[str]]) -> FloatArray:
        flat = list(itertools.chain.from_iterable(rows))
        try:
            if any("_" in line or not line.isascii() for line in piece.lines):  # which Python takes for parts of numbers
                raise ValueError
            values = list(map(float, flat))
        except ValueError:
            values = [self._number(piece, index, cell) for index, cell in enumerate(flat)]
        return np.array(values, dtype=np.float64).reshape(len(rows), self.width - self.named)

    def _number(self, piece: Piece, index: int, cell: str) -> float:
        text = _plain(cell, self.separator)
        if text.lower() in MISSING:
            return float("nan")
        if is_number(text):
            return float(text)
        row, column = divmod(index, self.width - self.named)
        place = column + self.named + 1
        return self.source.refuse(f"expected a number in column {place}, found {abridged(cell)}.", piece.numbers[row])
