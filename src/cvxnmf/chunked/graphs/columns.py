"""Which columns of a list of edges are the ends and the weights, and whether it has a header: by headings, and by content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from cvxnmf.chunked.graphs.lines import is_number

#: Headings of the columns of names, in pairs, without blanks, dashes and underscores.
ENDS = (
    {"source", "src", "from", "fromnodeid", "node1", "id1", "nodeid1", "vertex1", "v1", "tail", "start"},
    {*("target", "dst", "destination", "to", "tonodeid", "node2", "id2", "nodeid2", "vertex2", "v2", "head", "end")},
)
#: Headings of the column of weights.
WEIGHTS = {"weight", "weights", "value", "w"}
#: Ends, a weight and a time: more columns without headings may be a table of anything.
MOST_COLUMNS = 4
#: Fewest edges from which a word above numbers is a heading, and a first pair of names that no other edge has is doubted.
TELLING, DOUBTED = 5, 10

Rows = Sequence[Sequence[str]]


class EdgeColumns(NamedTuple):
    """The columns of a list of edges: which are ends and weights, and whether there is a header."""

    #: Cells on a line.
    width: int
    tail: int = 0
    head: int = 1
    #: The column of weights, if there can be one.
    weight: int | None = None
    #: Whether a heading calls it so.
    named: bool = False
    #: Whether it is one: a heading calls it so, or more than half of its cells are numbers.
    weighted: bool = False
    header: bool = False
    #: Whether headings call the columns of names so.
    named_ends: bool = False
    #: Whether the first line, which is taken as an edge, may be a header.
    doubtful: bool = False

    @property
    def unclear(self) -> bool:
        """Whether the columns of a list of edges may be those of anything."""
        return not self.named_ends and self.width > MOST_COLUMNS

    def notes(self, first: int) -> list[str]:
        """Notes on how the columns of a list of edges were read, the first line with data being that of this number."""
        others = self.width - 2 - (self.weight is not None)
        said = [f"{others} further column{'s are' if others > 1 else ' is'} ignored."] if others and self.width > 3 else []
        if self.header and not self.named_ends:
            said.append(f"Line {first} is taken as a header; say --no-header if it is an edge.")
        if self.doubtful:
            said.append(f"Line {first} is taken as an edge; say --header if it is a header.")
        return said

    def weights_note(self) -> list[str]:
        """Notes on the column of a list of edges that was read as weights."""
        which = "first" if self.weight == 0 else "third"
        return [] if self.named else [f"The {which} column is taken as weights; say --weights ignore if it is something else."]


def column_called(headings: Sequence[str], names: set[str]) -> int | None:
    """The first column of a list of edges whose heading is one of the names, whatever its blanks, dashes and underscores."""
    return next((index for index, cell in enumerate(headings) if re.sub(r"[\s_\-]", "", cell.lower()) in names), None)


def columns_of_ends(headings: Sequence[str]) -> tuple[int | None, int | None]:
    """The columns of tails and heads of edges by well-known headings."""
    return column_called(headings, ENDS[0]), column_called(headings, ENDS[1])


def find_columns(rows: Rows, header: bool | None, weights: bool) -> EdgeColumns:
    """The columns of a list of edges by its first lines, cut into cells; the header is looked for if it is None."""
    asked = header is None
    if header is None:
        header = len(rows[0]) > 1 and (None not in columns_of_ends(rows[0]) or _alone_in_words(rows))
    edges = rows[1:] if header and len(rows) > 1 else rows
    width = len(edges[0])
    tail, head, column = _by_content(edges, width)
    headings = rows[0] if header and len(rows[0]) == width else []
    (first, second), called = columns_of_ends(headings), column_called(headings, WEIGHTS)
    if first is not None and second is not None:
        tail, head, column = first, second, 2 if width > 2 and 2 not in (first, second) else None
    elif called is not None and width > 2:
        tail, head = [index for index in range(width) if index != called][:2]
    column = called if called is not None else column
    column = column if weights else None
    named = column is not None and called is not None
    weighted = column is not None and (named or _mostly_numbers(edges, column))
    known, doubtful = first is not None and second is not None, asked and not header and _is_alone(rows, tail, head)
    return EdgeColumns(width, tail, head, column, named, weighted, header, known, doubtful)


def _by_content(rows: Rows, width: int) -> tuple[int, int, int | None]:
    """The columns of tails, heads and weights of edges by content; the first holds weights if only it can."""
    regular = [row for row in rows if len(row) == width]
    if width == 3:
        numbers = [all(is_number(row[column]) for row in regular) for column in range(3)]
        whole = [all(row[column].isdigit() for row in regular) for column in range(3)]
        if numbers[0] and not whole[0] and not (numbers[2] and not whole[2]) and numbers[1] == numbers[2]:
            return 1, 2, 0
        if numbers[0] and not numbers[1] and not numbers[2]:
            return 1, 2, 0
    return 0, 1, 2 if width > 2 else None


def _alone_in_words(rows: Rows) -> bool:
    """Whether the first row is a header: words where all others have numbers, in both names, or most others in the weights.

    One column of names is enough where there are some rows to tell by.
    """
    first, others = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if not others:
        return False
    words = [not is_number(cell) and all(is_number(row[column]) for row in others) for column, cell in enumerate(first[:2])]
    if all(words) or (any(words) and len(others) >= TELLING):
        return True
    weights = column_called(first[:3], WEIGHTS)
    column = 2 if weights is None else weights
    return len(first) > 2 and not _is_decimal(first[column]) and _mostly_numbers(others, column)


def _mostly_numbers(rows: Rows, column: int) -> bool:
    """Whether more than half of the cells of a column are numbers."""
    cells = [row[column] for row in rows if len(row) > column]
    return 2 * sum(map(_is_decimal, cells)) > len(cells)


def _is_decimal(cell: str) -> bool:
    """Whether a cell is a number, a comma standing for a point."""
    return is_number(cell.replace(",", "."))


def _is_alone(rows: Rows, tail: int, head: int) -> bool:
    """Whether the first row may be a header: its two names are words that no other row has."""
    if len(rows) < DOUBTED or any(len(row) <= max(tail, head) for row in rows):
        return False
    others = {row[column] for row in rows[1:] for column in (tail, head)}
    return not any(is_number(rows[0][column]) or rows[0][column] in others for column in (tail, head))
