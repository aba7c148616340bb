"""Lists of edges in text, two names on a line and perhaps a weight, in pieces of whole lines."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cvxnmf import validation
from cvxnmf.chunked.graphs import cells
from cvxnmf.chunked.graphs.cells import Cells, Whole
from cvxnmf.chunked.graphs.columns import EdgeColumns, find_columns
from cvxnmf.chunked.graphs.lines import BLANKS, find_separator, split_lines
from cvxnmf.chunked.graphs.pieces import EdgePiece, Place, checked_weights
from cvxnmf.linalg.arrays import FloatArray

#: Bytes that are worked on at a time.
PIECE_BYTES = 1 << 22
#: Bytes at the beginning that tell how a text is to be read.
SAMPLE = 1 << 16
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Reading:
    """How a list of edges in text is to be read: with weights or not, the separator and whether there is a header, if known.

    `notes` takes what was decided.
    """

    weighted: bool = True
    separator: str | None = None
    header: bool | None = None
    notes: list[str] = field(default_factory=list)


class Layout(NamedTuple):
    """Layout of the lines of an edge list in text: separator, cells on a line, columns of ends and weights, header, and names."""

    separator: str
    width: int
    columns: tuple[int, ...]
    header: int
    whole: bool


class TextEdges:
    """List of edges in text with two names on a line and perhaps a weight, packed with gzip or not."""

    def __init__(self, path: str, reading: Reading | None = None, piece: int = PIECE_BYTES) -> None:
        self.path, self.reading, self.piece = path, reading or Reading(), piece
        self.size = max(1, os.path.getsize(path))

    def pieces(self) -> Iterator[EdgePiece]:
        """Pieces of edges: whole lines of the text."""
        with open_text(self.path) as stream:
            head = _read(stream, SAMPLE, self.path).removeprefix(b"\xef\xbb\xbf")
            layout, line, rest, done = self._layout(head), 1, head, False
            while rest or not done:
                more = b"" if done else _read(stream, self.piece, self.path)
                done = done or not more
                text = rest + more
                end = len(text) if done else text.rfind(b"\n") + 1
                rest = text[end:]
                if end:
                    piece = self._piece(text[:end], layout, line, min(1.0, _position(stream) / self.size))
                    line += text.count(b"\n", 0, end)
                    yield piece
                if done:
                    return

    def _piece(self, text: bytes, layout: Layout, line: int, share: float) -> EdgePiece:
        data = np.frombuffer(text, dtype=np.uint8)
        if line <= layout.header:  # the header is not looked at again
            skipped = np.flatnonzero(data == cells.NEWLINE)[layout.header - line] + 1
            data, line = data[skipped:], layout.header + 1
        columns = np.array(layout.columns, dtype=np.int64)
        starts, lengths, lines, wrong = cells.cut_lines(data, ord(layout.separator), columns, layout.width, line)
        place = Place(self.path, "line", lines)
        if wrong >= 0:
            words = f"{layout.width} cells are expected as on the lines before, and matching quotation marks."
            validation.refuse(f"{self.path}, line {wrong:,}: {words}")
        found = [Cells(data, starts[k], lengths[k]) for k in range(len(columns))]
        for column in found[:2]:
            if len(column) and not column.lengths.min():
                place.refuse(int(np.argmin(column.lengths)), "a name is empty; each line needs two names.")
        ends: list[Any] = [self._node_numbers(column, place) if layout.whole else column for column in found[:2]]
        return EdgePiece(ends[0], ends[1], self._weights(found[2], place) if len(found) > 2 else None, place, share)

    def _node_numbers(self, column: Cells, place: Place) -> Whole:
        values, bad = cells.whole_numbers(column)
        if bad >= 0:
            text = column.text(bad)[:40]
            place.refuse(bad, f"the name {text!r} is no whole number, as all names before are; give names of one kind.")
        return np.asarray(values)

    def _weights(self, column: Cells, place: Place) -> FloatArray:
        values, bad = cells.weights(column)
        if bad >= 0:
            place.refuse(bad, f"expected a weight, found {column.text(bad)[:40]!r}; mend it, or leave weights out.")
        return checked_weights(values, place)

    def _layout(self, head: bytes) -> Layout:
        """Layout of the text of an edge list, from its first lines."""
        whole = head if len(head) < SAMPLE - 3 else head[: head.rfind(b"\n")]
        if b"\0" in whole:
            validation.refuse(f"{self.path} is not text; give an edge list as text, npy or parquet.")
        lines = [line.strip("\r") for line in whole.decode("utf-8-sig", "replace").split("\n")]
        data = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] not in "#%"]
        if not data:
            validation.refuse(f"{self.path} has no edges; give a file with two names on each line.")
        separator = self.reading.separator or find_separator([line for _, line in data])
        rows = self._rows(data, separator)
        columns = find_columns(rows, self.reading.header, self.reading.weighted)
        if columns.header and len(rows) == 1:
            validation.refuse(f"{self.path} has a header and no edges; give a file with at least one edge.")
        if columns.width < 2:
            validation.refuse(f"{self.path}, line {data[0][0]}: expected two names and perhaps a weight.")
        if columns.unclear:
            advice = "call two of them source and target in a header, or keep two of names and one of weights"
            validation.refuse(f"{self.path} has {columns.width} columns and is not clearly a list of edges; {advice}.")
        self._note(columns, data[0][0])
        sample, ends = rows[1:] if columns.header else rows, (columns.tail, columns.head)
        whole_names = all(_is_whole(row[column]) for row in sample if len(row) == columns.width for column in ends)
        read = (*ends, columns.weight) if columns.weight is not None and columns.weighted else ends
        return Layout(separator, columns.width, read, data[0][0] if columns.header else 0, whole_names)

    def _rows(self, data: Sequence[tuple[int, str]], separator: str) -> list[list[str]]:
        """The cells of some lines of text; a line whose quotation marks do not match is refused."""
        rows = []
        for number, line in data:
            try:
                rows.append([cell.strip(BLANKS) for cell in split_lines([line], separator)[0]])
            except (csv.Error, IndexError):
                validation.refuse(f"{self.path}, line {number:,}: the quotation marks do not match; quote whole names.")
        return rows

    def _note(self, columns: EdgeColumns, first: int) -> None:
        """Note once how the columns of the text were read."""
        said = columns.notes(first)
        if columns.weight is not None:
            said += columns.weights_note() if columns.weighted else ["The third column is ignored: it is not of numbers."]
        self.reading.notes.extend(note for note in said if note not in self.reading.notes)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")


@contextmanager
def open_text(path: str) -> Iterator[Any]:
    """A stream of the bytes of a text file, unpacked if it is gzip."""
    try:
        with open(path, "rb") as stream:
            packed = stream.read(len(GZIP)) == GZIP
            stream.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=stream) as unpacked:
                    yield unpacked
            else:
                yield stream
    except OSError as error:
        validation.refuse(f"{path} cannot be read: {error.strerror or error}.")


def _read(stream: Any, size: int, path: str) -> bytes:
    try:
        return bytes(stream.read(size))
    except (OSError, EOFError, zlib.error) as error:
        kind = "damaged or incomplete" if isinstance(stream, gzip.GzipFile) else "not readable"
        validation.refuse(f"{path} is {kind} ({error}); fetch or pack it again.")


def _position(stream: Any) -> int:
    below: Any = stream.fileobj if isinstance(stream, gzip.GzipFile) else stream
    return int(below.tell())
