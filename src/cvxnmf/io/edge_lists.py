"""Edge lists: two names on a line and perhaps a weight, under whatever separators, headers and comments people use."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.chunked.graphs.columns import EdgeColumns, find_columns
from cvxnmf.chunked.graphs.lines import BLANKS, find_separator, is_number
from cvxnmf.io import separated
from cvxnmf.io.adjacency import GraphFile, adjacency
from cvxnmf.io.separated import Piece, quote
from cvxnmf.io.source import Source
from cvxnmf.linalg.arrays import FloatArray

EXPECTED, FINITE = "expected two node names and perhaps a weight", "weights are finite and at least 0"
#: From this many bytes on, regular lists of numbered nodes are parsed as a whole; of named nodes, from 16 times as many.
LARGE = 1 << 16
#: The weight in what networkx writes behind an edge.
DICTIONARY_WEIGHT = re.compile(r"['\"]weight['\"]\s*:\s*([^,}\s]+)")
#: A name that is a whole number, as it is written.
WHOLE = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)
#: What lists of numbered nodes consist of.
PLAIN = b"0123456789.eE,; \t\n"
#: Names that programs write where a value is missing.
MISSING = ("nan", "NaN", "NAN", "inf", "-inf", "Inf", "NA", "N/A", "null", "NULL", "None")
Numbers = NDArray[np.int64]


class Layout(NamedTuple):
    """How the lines of an edge list are to be read: the separator of their cells, and the meaning of the columns."""

    separator: str
    columns: EdgeColumns


class Edges(NamedTuple):
    """Edges from an edge list: names of nodes, the ends of each edge as places among them, shape (m, 2), and weights if any."""

    nodes: tuple[str, ...]
    ends: Numbers
    weights: FloatArray | None


def read_edges(
    source: Source,
    separator: str | None = None,
    header: bool | None = None,
    weights: bool = True,
    *,
    sure: bool = True,
    large: int = LARGE,
) -> GraphFile:
    """Read an edge list; names come in the order in which they first occur.

    A blank as separator stands for any blanks and tabs. If `header` is None, the first data line is a header if it uses
    well-known headings, or if it alone has words where all other lines have numbers. Weights are read from the column called so
    in a header, else from a third column of numbers. From `large` bytes on, regular lists are parsed as a whole. Unless it is
    `sure` that this is an edge list, many columns without well-known headings are refused: they may be a table of anything.
    """
    comments: list[int] = []
    pieces = separated.data_pieces(source, comments)
    first = separated.first_piece(source, pieces, "a file with at least one edge")
    layout = _layout(source, _without_dictionaries(first), separator, header, weights)
    columns = layout.columns
    if columns.unclear and not sure:
        source.refuse(
            f"has {columns.width} columns and is neither a square table nor clearly an edge list; call two of its columns source "
            "and target, or say --format edges if the first two are the ends of edges."
        )
    notes = columns.notes(first.numbers[0])
    if columns.header:
        first = Piece(first.numbers[1:], first.lines[1:])
    edges = _parse_as_a_whole(source, layout, first.numbers[0], large)
    if edges is None:
        reader = _LineReader(source, layout, notes)
        for piece in itertools.chain([first], pieces):
            reader.take(_without_dictionaries(piece))
        edges = reader.edges()
    if comments:
        lines = f"{len(comments)} line{'s' if len(comments) > 1 else ''}"
        notes.append(f"{lines} from {comments[0]} on begin with # or % and are skipped; quote names that begin so.")
    if edges.weights is not None:
        notes += columns.weights_note()
    if missing := next((name for name in MISSING if name in edges.nodes), None):
        notes.append(f"A node is called {missing}; if that stands for a missing name, leave its lines out.")
    A, more = adjacency(len(edges.nodes), edges.ends[:, 0], edges.ends[:, 1], edges.weights)
    return GraphFile(edges.nodes, A, (*notes, *more))


def _without_dictionaries(piece: Piece) -> Piece:
    """Turn lines that networkx writes with dictionaries, ``a b {'weight': 2}``, into lines with at most a weight."""
    if not (piece.lines and piece.lines[0].rstrip().endswith("}")):
        return piece
    return Piece(piece.numbers, [_without_dictionary(line) for line in piece.lines])


def _without_dictionary(line: str) -> str:
    before, brace, dictionary = line.partition("{")
    weight = DICTIONARY_WEIGHT.search(dictionary) if brace else None
    names = before.rstrip(f"{BLANKS},;")
    return f"{names}{before[len(names) :][:1] or ' '}{weight[1]}" if weight else names


def _layout(source: Source, piece: Piece, separator: str | None, header: bool | None, weights: bool) -> Layout:
    """Look at the first lines of an edge list to see how the file is to be read."""
    cut = separator or find_separator(piece.lines)
    rows = [[cell.strip(BLANKS) for cell in row] for row in separated.rows_of(source, piece, cut)]
    columns = find_columns(rows, header, weights)
    if columns.header and len(rows) == 1:
        source.refuse("has a header and no edges; give a file with at least one edge.")
    return Layout(cut, columns)


def _parse_as_a_whole(source: Source, layout: Layout, first_line: int, large: int) -> Edges | None:
    """Parse a large and regular edge list without looking at single lines; None if a line is out of the ordinary."""
    if len(source.data) < large or layout.columns.width < 2:
        return None
    lines = separated.lines_from(source, first_line)
    numbered = not lines.translate(None, PLAIN) and not _has_leading_zero(lines)
    for kind in [np.int64] * numbered + [object] * (len(source.data) >= 16 * large):
        kinds = {layout.columns.tail: kind, layout.columns.head: kind, layout.columns.weight: np.float64}
        columns = [(str(column), kinds.get(column, "U1")) for column in range(layout.columns.width)]
        table = separated.parse_regular(lines, layout.separator, columns)
        if table is not None:
            return _edges_of_table(table, layout)
    return None


def _edges_of_table(table: NDArray[Any], layout: Layout) -> Edges | None:
    """The edges of a parsed edge list; None if a name or a weight is out of the ordinary."""
    names = np.column_stack((table[str(layout.columns.tail)], table[str(layout.columns.head)]))
    weights = None if layout.columns.weight is None else table[str(layout.columns.weight)]
    nodes, ends = _number_nodes(names)
    if names.dtype == object and any(not name or name != name.strip() or name[0] in "#%" for name in nodes):
        return None
    return Edges(nodes, ends, weights) if weights is None or np.all((weights >= 0) & (weights < np.inf)) else None


def _has_leading_zero(lines: bytes) -> bool:
    """Whether an integer in an edge list begins with a zero: as the name of a node, 07 is not 7."""
    letters = np.frombuffer(b"\n" + lines + b"\n", dtype=np.uint8)
    digit = letters - np.uint8(ord("0")) < 10
    begins = ~digit[:-2] & (letters[:-2] != ord("."))
    return bool(np.any(begins & (letters[1:-1] == ord("0")) & digit[2:]))


def _number_nodes(names: NDArray[Any]) -> tuple[tuple[str, ...], Numbers]:
    """The distinct node names of an edge list, in numerical order or by first occurrence, and the place of every name."""
    if names.dtype == object:
        try:
            from pandas import factorize
        except ImportError:
            numbering: defaultdict[str, int] = defaultdict(itertools.count().__next__)
            numbers = np.fromiter(map(numbering.__getitem__, names.flat), dtype=np.int64, count=names.size)
            return _sort_numbered(tuple(numbering), numbers.reshape(names.shape))
        numbers, distinct = factorize(names.ravel())
        return _sort_numbered(tuple(distinct.tolist()), numbers.astype(np.int64).reshape(names.shape))
    flat = names.ravel()
    span, low = int(flat.max()) - int(flat.min()), flat.min()
    if span < 4 * len(flat):
        labels, codes = np.arange(low, low + span + 1), flat - low
    else:
        labels, codes = np.unique(flat, return_inverse=True)
    present = np.zeros(len(labels), dtype=np.int64)
    present[codes] = 1
    places = np.cumsum(present) - 1
    return tuple(map(str, labels[present > 0].tolist())), places[codes].reshape(names.shape)


def _sort_numbered(nodes: tuple[str, ...], ends: Numbers) -> tuple[tuple[str, ...], Numbers]:
    """Sort nodes whose names are whole numbers, as nodes of arrays, frames and lists are; other nodes keep their order."""
    if not all(map(WHOLE.fullmatch, nodes)):
        return nodes, ends
    order = sorted(range(len(nodes)), key=lambda place: int(nodes[place]))
    places = np.empty(len(nodes), dtype=np.int64)
    places[order] = np.arange(len(nodes))
    return tuple(nodes[place] for place in order), places[ends]


class _LineReader:
    """Edges of a list read line by line, so that a mistake is reported with its line."""

    def __init__(self, source: Source, layout: Layout, notes: list[str]) -> None:
        self.source, self.layout, self.notes = source, layout, notes
        self.numbering: defaultdict[str, int] = defaultdict(itertools.count().__next__)
        self.ends: list[Numbers] = []
        self.weights: list[FloatArray] | None = None if layout.columns.weight is None else []

    def take(self, piece: Piece) -> None:
        """Read the edges of some lines of an edge list."""
        if not piece.lines:
            return
        rows, layout = separated.rows_of(self.source, piece, self.layout.separator), self.layout
        if set(map(len, rows)) != {layout.columns.width} or layout.columns.width < 2:
            self._refuse_width(piece, rows)
        columns = list(zip(*rows, strict=True))
        tails, heads = ([name.strip(BLANKS) for name in columns[index]] for index in (layout.columns.tail, layout.columns.head))
        for names in (tails, heads):
            if "" in names:
                self.source.refuse(f"{EXPECTED}, found an empty name.", piece.numbers[names.index("")])
        both = map(self.numbering.__getitem__, itertools.chain.from_iterable(zip(tails, heads, strict=True)))
        self.ends.append(np.fromiter(both, dtype=np.int64, count=2 * len(tails)))
        if self.weights is not None and layout.columns.weight is not None:
            self._take_weights(piece, columns[layout.columns.weight], self.weights)

    def _take_weights(self, piece: Piece, column: Sequence[str], weights: list[FloatArray]) -> None:
        texts = [text.replace(",", ".") for text in column] if self.layout.separator == ";" else column
        wrong = next((index for index, text in enumerate(texts) if not is_number(text.strip(BLANKS))), None)
        if wrong is not None:
            self._ignore_weights(piece.numbers[wrong], column[wrong])
            return
        values = np.array(list(map(float, texts)))
        bad = np.flatnonzero(~((values >= 0) & (values < np.inf)))
        if len(bad):
            text, number = column[bad[0]].strip(BLANKS), piece.numbers[int(bad[0])]
            self.source.refuse(f"the weight is {text}; {FINITE} (--weights ignore leaves them out).", number)
        weights.append(values)

    def _ignore_weights(self, number: int, text: str) -> None:
        """Ignore a column of an edge list that is not one of weights, or refuse it where a header calls it so."""
        if self.layout.columns.weighted:
            advice = "mend it, or say --weights ignore"
            self.source.refuse(f"expected a number in the column of weights, found {quote(text)}; {advice}.", number)
        self.weights = None
        self.notes.append(f"The third column is ignored: in line {number} it is {quote(text)}, which is not a number.")

    def _refuse_width(self, piece: Piece, rows: Sequence[Sequence[str]]) -> None:
        wanted = max(2, self.layout.columns.width)
        index = next(index for index, row in enumerate(rows) if len(row) != wanted)
        number, found = piece.numbers[index], piece.lines[index]
        if len(rows[index]) < 2:
            self.source.refuse(f"{EXPECTED}, found {quote(found)}.", number)
        self.source.refuse(f"expected {wanted} columns as in the lines above, found {len(rows[index])}: {quote(found)}.", number)

    def edges(self) -> Edges:
        """Return all edges that were read from the lines of an edge list."""
        weights = None if self.weights is None else np.concatenate(self.weights)
        nodes, ends = _sort_numbered(tuple(self.numbering), np.concatenate(self.ends).reshape(-1, 2))
        return Edges(nodes, ends, weights)
