"""Text in columns: its separator, its data lines, and their cells. Parquet files become such text.

Regular text is parsed by numpy as a whole; all other text line by line, so that a mistake is reported with its line.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.chunked.graphs.lines import split_lines, width_of
from cvxnmf.io.source import Source

#: Lines that are no data: empty ones, and comments.
SKIPPED = re.compile(r"\s*(?:[#%]|$)").match
#: Blanks of other scripts, which belong to names here and which numpy would strip.
OTHER_BLANK = re.compile(r"[^\S\x00-\x7f]").search


class Piece(NamedTuple):
    """Some data lines of a text in columns: their numbers and texts."""

    numbers: Sequence[int]
    lines: list[str]


def text_of_parquet(source: Source) -> Source:
    """The table of a parquet file as text between commas, with a header and, where its rows have names, a column for them."""
    try:
        import pandas
        import pyarrow.parquet
    except ImportError:
        source.refuse("is a parquet file, which needs pandas and pyarrow; install them with: pip install pandas pyarrow.")
    with source.parsed_as("a parquet file"):
        described = pyarrow.parquet.read_metadata(io.BytesIO(source.data))
        cells = described.num_rows * described.num_columns
        source.check_announced_size(8 * cells, f"{described.num_rows:,} rows and {described.num_columns:,} columns")
        frame = pandas.read_parquet(io.BytesIO(source.data))
        text = frame.to_csv(index=not isinstance(frame.index, pandas.RangeIndex))
    return Source(source.name, text.encode(), ".csv")


def data_pieces(source: Source, comments: list[int] | None = None) -> Iterator[Piece]:
    """The data lines of a text in columns, some thousands at a time; numbers of comments after the first go to `comments`."""
    begun = False
    for first, lines in source.pieces():
        skipped = [SKIPPED(line) is not None for line in lines]
        kept = [index for index, skip in enumerate(skipped) if not skip]
        if comments is not None and (begun or kept):
            after = -1 if begun else kept[0]
            comments += [first + i for i, skip in enumerate(skipped) if skip and i > after and lines[i].strip()]
        if kept:
            begun = True
            yield Piece([first + index for index in kept], [lines[index] for index in kept])


def first_piece(source: Source, pieces: Iterator[Piece], wanted: str) -> Piece:
    """The first data lines of a text in columns; a source without any is refused, saying what is wanted."""
    first = next(pieces, None)
    return first or source.refuse(f"has no data, only comments or empty lines; give {wanted}.")


def rows_of(source: Source, piece: Piece, separator: str) -> list[list[str]]:
    """The cells of some lines of text in columns, a row for each, or a sentence about the line whose quotes do not match."""
    try:
        rows = split_lines(piece.lines, separator)
    except csv.Error:
        rows = []
    if len(rows) != len(piece.lines):
        broken = (n for n, line in zip(piece.numbers, piece.lines, strict=True) if width_of(line, separator) == 0)
        number = next(broken, piece.numbers[0])
        source.refuse("the quotation marks do not match; quote whole names, and double the marks inside them.", number)
    return rows


def lines_from(source: Source, first_line: int) -> bytes:
    """The bytes from a line on, counted from 1; lines end in a newline only."""
    data = source.data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data.split(b"\n", first_line - 1)[-1]


def parse_regular(lines: bytes, separator: str, dtype: Any) -> NDArray[Any] | None:
    """Parse lines of UTF-8 in columns by :func:`numpy.loadtxt`, a record for each; None if any line needs a closer look.

    The structured `dtype` has a field, or an entry of a field, for each column; ``object`` is text, with the blanks around it.
    """
    if b'"' in lines or b"{" in lines or not (lines.isascii() or (separator != " " and not OTHER_BLANK(lines.decode()))):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cut = None if separator == " " else separator
            return np.loadtxt(io.BytesIO(lines), dtype, comments=None, delimiter=cut, ndmin=1, encoding="utf-8")
    except (ValueError, Warning):
        return None


def quote(text: str, length: int = 40) -> str:
    """A cell or line of a text as an error sentence quotes it."""
    flat = text.strip()
    return repr(flat if len(flat) <= length else f"{flat[: length - 3]}...")
