"""Lines of text in columns: what separates their cells, the cells of a few lines, and which are numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

#: Names of separators, as ``--separator`` takes them, in the order in which they are tried.
SEPARATORS = {"tab": "\t", "semicolon": ";", "comma": ",", "blank": " "}
#: Lines looked at to find the separator.
SAMPLE = 100
BLANKS = " \t\r\n\f\v"
TOKEN = re.compile(r'"((?:[^"]|"")*)"(?=[ \t]|$)|([^ \t]+)')


def find_separator(lines: Sequence[str]) -> str:
    """The first separator that cuts all sampled lines of text into equally many cells; else the one that cuts most of them."""

    def lines_cut(separator: str) -> int:
        return sum(width_of(line, separator) > 1 for line in lines[:SAMPLE])

    return uniform_separator(lines) or max(SEPARATORS.values(), key=lines_cut)


def uniform_separator(lines: Sequence[str]) -> str | None:
    """The first separator that cuts all sampled lines into equally many cells, two or more, if there is one."""
    for separator in SEPARATORS.values():
        widths = {width_of(line, separator) for line in lines[:SAMPLE]}
        if len(widths) == 1 and max(widths) > 1:
            return separator
    return None


def width_of(line: str, separator: str) -> int:
    """Number of cells of a line of text; 0 if its quotation marks do not match."""
    try:
        return len(split_lines([line], separator)[0])
    except (csv.Error, IndexError):
        return 0


def split_lines(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Cut lines of text into cells; quotes protect separators. May raise csv.Error, and return fewer rows than lines."""
    if separator != " ":
        return list(csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True))
    if any('"' in line or not line.isascii() for line in lines):
        return [[inside.replace('""', '"') or bare for inside, bare in TOKEN.findall(line.strip(BLANKS))] for line in lines]
    return [line.split() for line in lines]


def is_number(text: str) -> bool:
    """Whether a cell of a line of text is a number in ordinary notation."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text
