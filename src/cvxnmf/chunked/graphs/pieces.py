"""Lists of edges in pieces of bounded size: text, npy, parquet, or columns in memory; names are bytes, never Python objects."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from cvxnmf import validation
from cvxnmf.chunked.graphs import cells
from cvxnmf.chunked.graphs.cells import Cells, Whole
from cvxnmf.chunked.graphs.columns import WEIGHTS, column_called, columns_of_ends
from cvxnmf.linalg.arrays import FloatArray

#: Bytes of text, and edges of other files, that are worked on at a time.
PIECE_BYTES, PIECE_EDGES = 1 << 22, 1 << 18
#: Bytes at the beginning that tell how a text is to be read.
SAMPLE = 1 << 16
SEPARATORS = ("\t", ";", ",", " ")
GZIP = b"\x1f\x8b"


class EdgePiece(NamedTuple):
    """Some edges: their ends as whole numbers or as cells of text, weights if there are any, and where they come from."""

    tails: Any
    heads: Any
    weights: FloatArray | None
    place: Place
    #: How much of the whole has been read.
    share: float


class Place(NamedTuple):
    """What sentences call the rows of a piece: the file, what a row of it is, and the numbers of the rows."""

    file: str
    noun: str
    numbers: Any

    def refuse(self, row: int, what: str) -> NoReturn:
        """Raise a ValueError that names the file and the row."""
        validation.refuse(f"{self.file}, {self.noun} {int(self.numbers[row]):,}: {what}")


class EdgeSource(Protocol):
    """A list of edges that can be read in pieces."""

    def pieces(self) -> Iterator[EdgePiece]:
        """The edges from first to last."""


def checked_weights(values: FloatArray, place: Place) -> FloatArray:
    """Weights, refused where they are negative or not finite."""
    bad = np.flatnonzero(~((values >= 0) & (values < np.inf)))
    if len(bad):
        place.refuse(int(bad[0]), f"the weight is {values[bad[0]]:g}; weights are finite and at least 0.")
    return values


def checked_numbers(values: Any, place: Place) -> Whole:
    """Numbers of nodes, refused where they are no whole numbers or missing."""
    bad = np.flatnonzero(~(values == np.floor(values)))
    if len(bad):
        place.refuse(int(bad[0]), f"the node is {values[bad[0]]:g}, which is not a whole number; nodes are numbers or names.")
    return np.asarray(values, dtype=np.int64)


class Layout(NamedTuple):
    """How lines are to be read: separator, cells on a line, columns of ends and weights, lines of the header, and names."""

    separator: str
    width: int
    columns: tuple[int, ...]
    header: int
    whole: bool


class TextEdges:
    """Text with two names on a line and perhaps a weight, packed with gzip or not."""

    def __init__(self, path: str, weighted: bool = True, piece: int = PIECE_BYTES) -> None:
        self.path, self.weighted, self.piece = path, weighted, piece
        self.size = max(1, os.path.getsize(path))

    def pieces(self) -> Iterator[EdgePiece]:
        """Pieces of whole lines."""
        with opened(self.path) as stream:
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
        ends: list[Any] = [self._numbered(column, place) if layout.whole else column for column in found[:2]]
        return EdgePiece(ends[0], ends[1], self._weights(found[2], place) if len(found) > 2 else None, place, share)

    def _numbered(self, column: Cells, place: Place) -> Whole:
        values, bad = cells.whole_numbers(column)
        if bad >= 0:
            text = column.text(bad)[:40]
            place.refuse(bad, f"the name {text!r} is no whole number, as all names before are; give names of one kind.")
        return np.asarray(values)

    def _weights(self, column: Cells, place: Place) -> FloatArray:
        values, bad = cells.weights(column)
        if bad >= 0:
            place.refuse(bad, f"expected a weight, found {column.text(bad)[:40]!r}.")
        return checked_weights(values, place)

    def _layout(self, head: bytes) -> Layout:
        """Look at the first lines to see how the text is to be read."""
        whole = head if len(head) < SAMPLE - 3 else head[: head.rfind(b"\n")]
        if b"\0" in whole:
            validation.refuse(f"{self.path} is not text; give an edge list as text, npy or parquet.")
        lines = [line.strip("\r") for line in whole.decode("utf-8-sig", "replace").split("\n")]
        data = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] not in "#%"]
        if not data:
            validation.refuse(f"{self.path} has no edges; give a file with two names on each line.")
        separator = _separator([line for _, line in data])
        rows = [_cells_of(line, separator) for _, line in data]
        header = _is_header(rows)
        if header and len(rows) == 1:
            validation.refuse(f"{self.path} has a header and no edges; give a file with at least one edge.")
        sample = rows[1:] if header else rows
        width = len(sample[0])
        if width < 2:
            validation.refuse(f"{self.path}, line {data[0][0]}: expected two names and perhaps a weight.")
        columns = _columns(rows[0] if header else [], sample, width, self.weighted)
        whole_names = all(_is_whole(row[column]) for row in sample if len(row) == width for column in columns[:2])
        return Layout(separator, width, columns, data[0][0] if header else 0, whole_names)


def _separator(lines: Sequence[str]) -> str:
    """The first separator among those that stand on most of the lines."""
    return max(SEPARATORS, key=lambda separator: sum(separator in line.strip() for line in lines[:100]))


def _cells_of(line: str, separator: str) -> list[str]:
    cut = line.split() if separator == " " else line.split(separator)
    return [cell.strip().strip('"') for cell in cut]


def _is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has well-known headings, or words where the others have whole numbers."""
    if None not in columns_of_ends(rows[0]):
        return True
    others = rows[1:100]
    return bool(others) and not any(map(_is_whole, rows[0][:2])) and all(all(map(_is_whole, row[:2])) for row in others)


def _columns(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int, weighted: bool) -> tuple[int, ...]:
    """The columns of tails, heads and, if there are any, weights."""
    tail, head = columns_of_ends(headings)
    ends = (0, 1) if tail is None or head is None else (tail, head)
    weight = column_called(headings, WEIGHTS)
    if weight is None and width > 2 and 2 not in ends and all(_is_number(row[2]) for row in rows[:100] if len(row) == width):
        weight = 2
    return ends if weight is None or not weighted else (*ends, weight)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """A stream of the bytes of a file, unpacked."""
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


class NpyEdges:
    """An .npy file of two columns of whole numbers, or of three with weights, by plain reads."""

    def __init__(self, path: str, weighted: bool = True) -> None:
        self.path = path
        try:
            found = np.load(path, mmap_mode="r")
        except (OSError, ValueError) as error:
            validation.refuse(
                f"{path} cannot be read as an .npy file ({error}); it may be incomplete, so fetch or write it again."
            )
        shape, kind = found.shape, found.dtype.kind
        if len(shape) != 2 or shape[1] not in (2, 3) or kind not in "iuf" or found.flags.f_contiguous and shape[0] > 1:
            validation.refuse(f"{path} must have two columns of node numbers, or three with weights, row by row, not {shape}.")
        self.shape, self.dtype, self.offset = shape, found.dtype, found.offset
        self.weighted = weighted and shape[1] == 3

    def pieces(self) -> Iterator[EdgePiece]:
        """Rows of the file."""
        row = self.dtype.itemsize * self.shape[1]
        for first in range(0, self.shape[0], PIECE_EDGES):
            count = min(PIECE_EDGES, self.shape[0] - first)
            part = np.fromfile(self.path, self.dtype, count * self.shape[1], offset=self.offset + first * row)
            if len(part) < count * self.shape[1]:
                validation.refuse(f"{self.path} ends before row {first + count - 1:,}; fetch or write it again.")
            place = Place(self.path, "row", np.arange(first, first + count))
            yield array_piece(part.reshape(count, -1), self.weighted, place, (first + count) / self.shape[0])


def array_piece(part: Any, weighted: bool, place: Place, share: float) -> EdgePiece:
    """A piece of an array of two or three columns."""
    weights = checked_weights(part[:, 2].astype(np.float64), place) if weighted else None
    return EdgePiece(checked_numbers(part[:, 0], place), checked_numbers(part[:, 1], place), weights, place, share)


class ParquetEdges:
    """A parquet file with two columns of names or whole numbers, and perhaps one of weights."""

    def __init__(self, path: str, weighted: bool = True) -> None:
        try:
            self.parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise ImportError(f"{path} is a parquet file, which needs pyarrow; install it with: pip install pyarrow") from None
        self.path = path
        self.file = self._opened()
        names = list(self.file.schema_arrow.names)
        tail, head = columns_of_ends(names)
        weight = column_called(names, WEIGHTS)
        ends = [0, 1] if tail is None or head is None else [tail, head]
        if len(names) < 2:
            validation.refuse(f"{path} has a single column; a list of edges has two of names, and perhaps one of weights.")
        self.columns = [names[column] for column in ends + ([weight] if weighted and weight is not None else [])]

    def _opened(self) -> Any:
        try:
            return self.parquet.ParquetFile(self.path)
        except Exception as error:  # whatever is wrong with the file
            validation.refuse(f"{self.path} cannot be read as a parquet file ({error}); fetch or write it again.")

    def pieces(self) -> Iterator[EdgePiece]:
        """Batches of its row groups."""
        first, rows = 0, max(1, self.file.metadata.num_rows)
        batches = self.file.iter_batches(batch_size=PIECE_EDGES, columns=self.columns)
        while True:
            try:
                batch = next(batches, None)
            except Exception as error:  # a truncated or damaged page
                validation.refuse(f"{self.path}, row {first:,}: cannot be read ({error}); fetch or write the file again.")
            if batch is None:
                return
            yield arrow_piece(batch, self.columns, self.path, first, (first + batch.num_rows) / rows)
            first += batch.num_rows


def arrow_piece(batch: Any, columns: Sequence[str], name: str, first: int, share: float) -> EdgePiece:
    """A piece of a record batch of arrow."""
    place = Place(name, "row", np.arange(first, first + batch.num_rows))
    arrays = [batch.column(column) for column in columns]
    for array in arrays:
        if array.null_count:
            place.refuse(int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))), "a value is missing; drop such rows.")
    ends = [arrow_ends(array, place) for array in arrays[:2]]
    weights = checked_weights(arrays[2].to_numpy(zero_copy_only=False).astype(np.float64), place) if len(arrays) > 2 else None
    return EdgePiece(ends[0], ends[1], weights, place, share)


def arrow_ends(array: Any, place: Place) -> Whole | Cells:
    """Whole numbers, or cells that lie in the buffers of arrow."""
    arrow: Any = import_module("pyarrow")
    if arrow.types.is_integer(array.type) or arrow.types.is_floating(array.type):
        return checked_numbers(array.to_numpy(zero_copy_only=False), place)
    text = array.cast(arrow.large_string())
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
    return Cells(np.frombuffer(data if data is not None else b"", np.uint8), ends[:-1].copy(), np.diff(ends))


class FrameEdges:
    """Columns in memory: numbers, or names as text."""

    def __init__(self, tails: Any, heads: Any, weights: Any = None, name: str = "the data frame") -> None:
        self.tails, self.heads, self.weights, self.name = tails, heads, weights, name

    def pieces(self) -> Iterator[EdgePiece]:
        """Slices."""
        for first in range(0, len(self.tails), PIECE_EDGES):
            part = slice(first, first + PIECE_EDGES)
            place = Place(self.name, "row", np.arange(first, min(first + PIECE_EDGES, len(self.tails))))
            weights = None if self.weights is None else checked_weights(np.asarray(self.weights[part], dtype=np.float64), place)
            ends = [ends_of(np.asarray(column[part]), place) for column in (self.tails, self.heads)]
            yield EdgePiece(ends[0], ends[1], weights, place, min(1.0, part.stop / len(self.tails)))


def ends_of(values: Any, place: Place) -> Whole | Cells:
    """Whole numbers, or cells of text."""
    if values.dtype.kind in "iuf":
        return checked_numbers(values, place)
    wrong = next((row for row, value in enumerate(values) if not isinstance(value, str)), None)
    if wrong is not None:
        place.refuse(wrong, f"the name {values[wrong]!r} is no text, as others are; give names of one kind.")
    encoded = [value.encode() for value in values.tolist()]
    lengths = np.array([len(value) for value in encoded], dtype=np.int64)
    return Cells(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum(lengths) - lengths, lengths)
