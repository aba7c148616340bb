"""Lists of edges in pieces of bounded size: npy, npz, parquet, or columns in memory; names are bytes, never Python objects."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.chunked.graphs.cells import Cells, Whole
from cvxnmf.chunked.graphs.columns import WEIGHTS, column_called, columns_of_ends
from cvxnmf.linalg.arrays import FloatArray

#: Edges that are worked on at a time.
PIECE_EDGES = 1 << 18


class EdgePiece(NamedTuple):
    """A piece of a list of edges: ends as whole numbers or cells of text, weights if there are any, and where they come from."""

    tails: Any
    heads: Any
    weights: FloatArray | None
    place: Place
    #: How much of the whole has been read.
    share: float


class Place(NamedTuple):
    """Place of a piece of edges, for sentences: the file, what a row of it is, and the numbers of the rows."""

    file: str
    noun: str
    numbers: Any

    def refuse(self, row: int, what: str) -> NoReturn:
        """Raise a ValueError that names the file and the row of a piece of edges."""
        validation.refuse(f"{self.file}, {self.noun} {int(self.numbers[row]):,}: {what}")


class EdgeSource(Protocol):
    """A list of edges that can be read in pieces."""

    def pieces(self) -> Iterator[EdgePiece]:
        """The pieces of a list of edges from first to last."""


def checked_weights(values: FloatArray, place: Place) -> FloatArray:
    """Weights of a piece of edges, refused where they are negative or not finite."""
    bad = np.flatnonzero(~((values >= 0) & (values < np.inf)))
    if len(bad):
        place.refuse(int(bad[0]), f"the weight is {values[bad[0]]:g}; weights are finite and at least 0.")
    return values


def checked_numbers(values: Any, place: Place) -> Whole:
    """Numbers of nodes in a piece of edges, refused where they are no whole numbers or missing."""
    bad = np.flatnonzero(~(values == np.floor(values)))
    if len(bad):
        place.refuse(int(bad[0]), f"the node is {values[bad[0]]:g}, which is not a whole number; nodes are numbers or names.")
    return np.asarray(values, dtype=np.int64)


class NpyEdges:
    """List of edges in an .npy file of two columns of whole numbers, or of three with weights, by plain reads."""

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
        """Pieces of edges: rows of the .npy file."""
        row = self.dtype.itemsize * self.shape[1]
        for first in range(0, self.shape[0], PIECE_EDGES):
            count = min(PIECE_EDGES, self.shape[0] - first)
            part = np.fromfile(self.path, self.dtype, count * self.shape[1], offset=self.offset + first * row)
            if len(part) < count * self.shape[1]:
                validation.refuse(f"{self.path} ends before row {first + count - 1:,}; fetch or write it again.")
            place = Place(self.path, "row", np.arange(first, first + count))
            yield array_piece(part.reshape(count, -1), self.weighted, place, (first + count) / self.shape[0])


def array_piece(part: Any, weighted: bool, place: Place, share: float) -> EdgePiece:
    """A piece of edges from an array of two or three columns."""
    weights = checked_weights(part[:, 2].astype(np.float64), place) if weighted else None
    return EdgePiece(checked_numbers(part[:, 0], place), checked_numbers(part[:, 1], place), weights, place, share)


class NpzRows:
    """Edges as rows of a symmetric adjacency matrix in an .npz file of scipy.sparse, from `first` on; upper triangle only."""

    def __init__(self, path: str, weighted: bool = True) -> None:
        self.path, self.weighted, self.first = path, weighted, 0
        with self._readable(), open(path, "rb") as stream, np.load(stream) as file:
            self.height, self.width = (int(side) for side in file["shape"])

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            validation.refuse(f"{self.path} cannot be read as a matrix of scipy.sparse ({error}); fetch or write it again.")

    def pieces(self) -> Iterator[EdgePiece]:
        """The single piece of edges of an .npz file, whose rows are read at once."""
        with self._readable(), open(self.path, "rb") as stream:
            matrix = sp.coo_array(sp.load_npz(stream))
        rows = matrix.row.astype(np.int64) + self.first
        place = Place(self.path, "row", rows)
        checked_weights(matrix.data.astype(np.float64), place)
        once = (rows <= matrix.col) & (matrix.data != 0)
        weights = matrix.data[once].astype(np.float64) if self.weighted else None
        yield EdgePiece(rows[once], matrix.col[once].astype(np.int64), weights, place._replace(numbers=rows[once]), 1.0)


class ParquetEdges:
    """List of edges in a parquet file with two columns of names or whole numbers, and perhaps one of weights."""

    def __init__(self, path: str, weighted: bool = True) -> None:
        try:
            self.parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise ImportError(f"{path} is a parquet file, which needs pyarrow; install it with: pip install pyarrow") from None
        self.path = path
        self.file = self._open_file()
        names = list(self.file.schema_arrow.names)
        tail, head = columns_of_ends(names)
        weight = column_called(names, WEIGHTS)
        ends = [0, 1] if tail is None or head is None else [tail, head]
        if len(names) < 2:
            validation.refuse(f"{path} has a single column; a list of edges has two of names, and perhaps one of weights.")
        self.columns = [names[column] for column in ends + ([weight] if weighted and weight is not None else [])]

    def _open_file(self) -> Any:
        try:
            return self.parquet.ParquetFile(self.path)
        except Exception as error:  # whatever is wrong with the file
            validation.refuse(f"{self.path} cannot be read as a parquet file ({error}); fetch or write it again.")

    def pieces(self) -> Iterator[EdgePiece]:
        """Pieces of edges: batches of the row groups of a parquet file."""
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
    """A piece of edges from a record batch of arrow."""
    place = Place(name, "row", np.arange(first, first + batch.num_rows))
    arrays = [batch.column(column) for column in columns]
    for array in arrays:
        if array.null_count:
            place.refuse(int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))), "a value is missing; drop such rows.")
    ends = [arrow_ends(array, place) for array in arrays[:2]]
    weights = checked_weights(arrays[2].to_numpy(zero_copy_only=False).astype(np.float64), place) if len(arrays) > 2 else None
    return EdgePiece(ends[0], ends[1], weights, place, share)


def arrow_ends(array: Any, place: Place) -> Whole | Cells:
    """Ends of a piece of edges from an arrow array: whole numbers, or cells that lie in its buffers."""
    arrow: Any = import_module("pyarrow")
    if arrow.types.is_integer(array.type) or arrow.types.is_floating(array.type):
        return checked_numbers(array.to_numpy(zero_copy_only=False), place)
    text = array.cast(arrow.large_string())
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
    return Cells(np.frombuffer(data if data is not None else b"", np.uint8), ends[:-1].copy(), np.diff(ends))


class FrameEdges:
    """List of edges in columns in memory: numbers, or names as text."""

    def __init__(self, tails: Any, heads: Any, weights: Any = None, name: str = "the data frame") -> None:
        self.tails, self.heads, self.weights, self.name = tails, heads, weights, name

    def pieces(self) -> Iterator[EdgePiece]:
        """Pieces of edges: slices of columns in memory."""
        for first in range(0, len(self.tails), PIECE_EDGES):
            part = slice(first, first + PIECE_EDGES)
            place = Place(self.name, "row", np.arange(first, min(first + PIECE_EDGES, len(self.tails))))
            weights = None if self.weights is None else checked_weights(np.asarray(self.weights[part], dtype=np.float64), place)
            ends = [ends_of(np.asarray(column[part]), place) for column in (self.tails, self.heads)]
            yield EdgePiece(ends[0], ends[1], weights, place, min(1.0, part.stop / len(self.tails)))


def ends_of(values: Any, place: Place) -> Whole | Cells:
    """Ends of a piece of edges from an array: whole numbers, or cells of text."""
    if values.dtype.kind in "iuf":
        return checked_numbers(values, place)
    wrong = next((row for row, value in enumerate(values) if not isinstance(value, str)), None)
    if wrong is not None:
        place.refuse(wrong, f"the name {values[wrong]!r} is no text, as others are; give names of one kind.")
    encoded = [value.encode() for value in values.tolist()]
    lengths = np.array([len(value) for value in encoded], dtype=np.int64)
    return Cells(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum(lengths) - lengths, lengths)
