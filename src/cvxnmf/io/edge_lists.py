"""Edge lists: two names on a line and perhaps a weight, under whatever separators, headers and comments people use."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.chunked.graphs.columns import WEIGHTS, column_called, columns_of_ends
from cvxnmf.io import separated
from cvxnmf.io.adjacency import GraphFile, adjacency
from cvxnmf.io.separated import BLANKS, Piece, is_number, quote
from cvxnmf.io.source import Source
from cvxnmf.linalg.arrays import FloatArray

EXPECTED, FINITE = "expected two node names and perhaps a weight", "weights are finite and at least 0"
#: From this many bytes on, regular lists of numbered nodes are parsed as a whole; of named nodes, from 16 times as many.
LARGE = 1 << 16
#: The weight in what networkx writes behind an edge.
DICTIONARY_WEIGHT = re.compile(r"['\"]weight['\"]\s*:\s*([^,}\s]+)")
#: Ends, a weight and a time: more columns without headings may be a table of anything.
MOST_COLUMNS = 4
#: What lists of numbered nodes consist of.
PLAIN = b"0123456789.eE,; \t\n"
Numbers = NDArray[np.int64]


class Layout(NamedTuple):
    """How the lines of an edge list are to be read: cells on a line, columns of names and of weights if there can be any."""

    separator: str
    width: int
    tail: int = 0
    head: int = 1
    weight: int | None = None
    #: Whether a header calls that column a weight.
    named: bool = False
    #: Number of the line of the header, if there is one.
    header: int | None = None
    #: Whether the header calls the columns of names by well-known headings.
    named_ends: bool = False

    def notes(self) -> list[str]:
        """What there is to say about the layout."""
        others = self.width - 2 - (self.weight is not None)
        said = [f"{others} further column{'s are' if others > 1 else ' is'} ignored."] if others and self.width > 3 else []
        if self.header is not None:
            said.append(f"Line {self.header} is taken as a header; say --no-header if it is an edge.")
        return said


class Edges(NamedTuple):
    """Names of the nodes as they first occur, the edges as pairs of their numbers, and weights."""

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
    if not (sure or layout.named_ends) and layout.width > MOST_COLUMNS:
        source.refuse(
            f"has {layout.width} columns and is neither a square table nor clearly an edge list; call two of its columns source "
            "and target, or say --format edges if the first two are the ends of edges."
        )
    notes = layout.notes()
    if layout.header is not None:
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
    if edges.weights is not None and not layout.named:
        which = "first" if layout.weight == 0 else "third"
        notes.append(f"The {which} column is taken as weights; say --weights ignore if it is something else.")
    A, more = adjacency(len(edges.nodes), edges.ends[:, 0], edges.ends[:, 1], edges.weights)
    return GraphFile(edges.nodes, A, (*notes, *more))


def _without_dictionaries(piece: Piece) -> Piece:
    """Lines as networkx writes them with dictionaries, ``a b {'weight': 2}``, as lines with at most a weight."""
    if not (piece.lines and piece.lines[0].rstrip().endswith("}")):
        return piece
    return Piece(piece.numbers, [_without_dictionary(line) for line in piece.lines])


def _without_dictionary(line: str) -> str:
    before, brace, dictionary = line.partition("{")
    weight = DICTIONARY_WEIGHT.search(dictionary) if brace else None
    names = before.rstrip(f"{BLANKS},;")
    return f"{names}{before[len(names) :][:1] or ' '}{weight[1]}" if weight else names


def _layout(source: Source, piece: Piece, separator: str | None, header: bool | None, weights: bool) -> Layout:
    """Look at the first lines to see how the file is to be read."""
    cut = separator or separated.find_separator(piece.lines)
    rows = [[cell.strip(BLANKS) for cell in row] for row in separated.rows_of(source, piece, cut)]
    if header is None:
        header = len(rows[0]) > 1 and (None not in columns_of_ends(rows[0]) or _alone_in_words(rows))
    if header and len(rows) == 1:
        source.refuse("has a header and no edges; give a file with at least one edge.")
    width = len(rows[1] if header else rows[0])
    tail, head, column = _columns_by_content(rows[1:] if header else rows, width)
    if not header:
        return Layout(cut, width, tail, head, column if weights else None)
    headings = rows[0] if len(rows[0]) == width else []
    (first, second), named = columns_of_ends(headings), column_called(headings, WEIGHTS)
    if first is not None and second is not None:
        tail, head, column = first, second, 2 if width > 2 and 2 not in (first, second) else None
    elif named is not None and width > 2:
        tail, head = [index for index in range(width) if index != named][:2]
    column = column if named is None else named
    known = first is not None and second is not None
    return Layout(cut, width, tail, head, column if weights else None, named is not None, piece.numbers[0], known)


def _columns_by_content(rows: Sequence[Sequence[str]], width: int) -> tuple[int, int, int | None]:
    """The columns of tails, heads and weights, the last from the third on; the first holds weights if only it can."""
    regular = [row for row in rows if len(row) == width]
    if width == 3:
        numbers = [all(is_number(row[column]) for row in regular) for column in range(3)]
        whole = [all(row[column].isdigit() for row in regular) for column in range(3)]
        if numbers[0] and not whole[0] and not (numbers[2] and not whole[2]) and numbers[1] == numbers[2]:
            return 1, 2, 0
        if numbers[0] and not numbers[1] and not numbers[2]:
            return 1, 2, 0
    return 0, 1, 2 if width > 2 else None


def _alone_in_words(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has words where all others have numbers, in both names or in the weights."""
    first, others = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if not others:
        return False
    words = [not is_number(cell) and all(is_number(row[column]) for row in others) for column, cell in enumerate(first[:3])]
    weights = column_called(first[:3], WEIGHTS)
    return all(words[:2]) or (len(words) > 2 and (words[2] or (weights is not None and words[weights])))


def _parse_as_a_whole(source: Source, layout: Layout, first_line: int, large: int) -> Edges | None:
    """Parse a large and regular list without looking at single lines; None if a line is in any way out of the ordinary."""
    if len(source.data) < large or layout.width < 2:
        return None
    lines = separated.lines_from(source, first_line)
    numbered = not lines.translate(None, PLAIN) and not _has_leading_zero(lines)
    for kind in [np.int64] * numbered + [object] * (len(source.data) >= 16 * large):
        kinds = {layout.tail: kind, layout.head: kind, layout.weight: np.float64}
        columns = [(str(column), kinds.get(column, "U1")) for column in range(layout.width)]
        table = separated.parse_regular(lines, layout.separator, columns)
        if table is not None:
            return _edges_of_table(table, layout)
    return None


def _edges_of_table(table: NDArray[Any], layout: Layout) -> Edges | None:
    """The edges of a parsed list; None if a name or a weight is out of the ordinary."""
    names = np.column_stack((table[str(layout.tail)], table[str(layout.head)]))
    weights = None if layout.weight is None else table[str(layout.weight)]
    nodes, ends = _number_nodes(names)
    if names.dtype == object and any(not name or name != name.strip() or name[0] in "#%" for name in nodes):
        return None
    return Edges(nodes, ends, weights) if weights is None or np.all((weights >= 0) & (weights < np.inf)) else None


def _has_leading_zero(lines: bytes) -> bool:
    """Whether an integer in the text begins with a zero: as the name of a node, 07 is not 7."""
    letters = np.frombuffer(b"\n" + lines + b"\n", dtype=np.uint8)
    digit = letters - np.uint8(ord("0")) < 10
    begins = ~digit[:-2] & (letters[:-2] != ord("."))
    return bool(np.any(begins & (letters[1:-1] == ord("0")) & digit[2:]))


def _number_nodes(names: NDArray[Any]) -> tuple[tuple[str, ...], Numbers]:
    """Distinct names in the order in which they first occur, and the number of each in place of the name."""
    if names.dtype == object:
        try:
            from pandas import factorize
        except ImportError:
            numbering: defaultdict[str, int] = defaultdict(itertools.count().__next__)
            numbers = np.fromiter(map(numbering.__getitem__, names.flat), dtype=np.int64, count=names.size)
            return tuple(numbering), numbers.reshape(names.shape)
        numbers, distinct = factorize(names.ravel())
        return tuple(distinct.tolist()), numbers.astype(np.int64).reshape(names.shape)
    flat = names.ravel()
    span, low = int(flat.max()) - int(flat.min()), flat.min()
    if span < 4 * len(flat):
        labels, codes = np.arange(low, low + span + 1), flat - low
    else:
        labels, codes = np.unique(flat, return_inverse=True)
    first = np.full(len(labels), len(flat))
    first[codes[::-1]] = np.arange(len(flat))[::-1]  # of the places of a node, the last one written stays
    order = np.argsort(first)[: np.count_nonzero(first < len(flat))]
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return tuple(map(str, labels[order].tolist())), rank[codes].reshape(names.shape)


class _LineReader:
    """Edges read line by line, so that a mistake is reported with its line."""

    def __init__(self, source: Source, layout: Layout, notes: list[str]) -> None:
        self.source, self.layout, self.notes = source, layout, notes
        self.numbering: defaultdict[str, int] = defaultdict(itertools.count().__next__)
        self.ends: list[Numbers] = []
        self.weights: list[FloatArray] | None = None if layout.weight is None else []

    def take(self, piece: Piece) -> None:
        """Read some lines."""
        if not piece.lines:
            return
        rows, layout = separated.rows_of(self.source, piece, self.layout.separator), self.layout
        if set(map(len, rows)) != {layout.width} or layout.width < 2:
            self._refuse_width(piece, rows)
        columns = list(zip(*rows, strict=True))
        tails, heads = ([name.strip(BLANKS) for name in columns[index]] for index in (layout.tail, layout.head))
        for names in (tails, heads):
            if "" in names:
                self.source.refuse(f"{EXPECTED}, found an empty name.", piece.numbers[names.index("")])
        both = map(self.numbering.__getitem__, itertools.chain.from_iterable(zip(tails, heads, strict=True)))
        self.ends.append(np.fromiter(both, dtype=np.int64, count=2 * len(tails)))
        if self.weights is not None and layout.weight is not None:
            self._take_weights(piece, columns[layout.weight], self.weights)

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
        """The column is no column of weights: an error if it is called one, else it is ignored."""
        if self.layout.named:
            self.source.refuse(f"expected a number in the column of weights, found {quote(text)}.", number)
        self.weights = None
        self.notes.append(f"The third column is ignored: in line {number} it is {quote(text)}, which is not a number.")

    def _refuse_width(self, piece: Piece, rows: Sequence[Sequence[str]]) -> None:
        wanted = max(2, self.layout.width)
        index = next(index for index, row in enumerate(rows) if len(row) != wanted)
        number, found = piece.numbers[index], piece.lines[index]
        if len(rows[index]) < 2:
            self.source.refuse(f"{EXPECTED}, found {quote(found)}.", number)
        self.source.refuse(f"expected {wanted} columns as in the lines above, found {len(rows[index])}: {quote(found)}.", number)

    def edges(self) -> Edges:
        """All edges read."""
        weights = None if self.weights is None else np.concatenate(self.weights)
        return Edges(tuple(self.numbering), np.concatenate(self.ends).reshape(-1, 2), weights)
