"""Which columns of a list of edges are the ends and the weights, by their headings."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Headings of the columns of names, in pairs, without blanks, dashes and underscores.
ENDS = (
    {"source", "src", "from", "fromnodeid", "node1", "id1", "nodeid1", "vertex1", "v1", "tail", "start"},
    {*("target", "dst", "destination", "to", "tonodeid", "node2", "id2", "nodeid2", "vertex2", "v2", "head", "end")},
)
#: Headings of the column of weights.
WEIGHTS = {"weight", "weights", "value", "w"}


def column_called(headings: Sequence[str], names: set[str]) -> int | None:
    """The first column whose heading is one of the names, whatever its blanks, dashes and underscores."""
    return next((index for index, cell in enumerate(headings) if re.sub(r"[\s_\-]", "", cell.lower()) in names), None)


def columns_of_ends(headings: Sequence[str]) -> tuple[int | None, int | None]:
    """The columns of tails and heads by well-known headings."""
    return column_called(headings, ENDS[0]), column_called(headings, ENDS[1])
