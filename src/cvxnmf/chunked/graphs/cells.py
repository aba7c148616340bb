"""Cells of text without Python objects: where they begin in the bytes, as whole numbers, as weights, as hashes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.hashing import mixed_bits

Whole = NDArray[np.int64]
Hashes = NDArray[np.uint64]
#: Digits of a number that a float64 holds exactly, and the largest power of ten that it does.
EXACT_DIGITS, EXACT_POWER = 15, 22
POWERS = 10.0 ** np.arange(EXACT_POWER + 1)
QUOTE, NEWLINE, BLANK, TAB, RETURN = (ord(sign) for sign in '"\n \t\r')


class Cells(NamedTuple):
    """Cells of a column of text: the bytes that they lie in, where they begin, and their lengths."""

    data: NDArray[np.uint8]
    starts: Whole
    lengths: Whole

    def text(self, row: int) -> str:
        """The text of one cell of a line, decoded."""
        return self.bytes(row).decode("utf-8", "replace")

    def bytes(self, row: int) -> bytes:
        """The bytes of one cell of text as it stands."""
        return self.data[self.starts[row] : self.starts[row] + self.lengths[row]].tobytes()

    def __len__(self) -> int:
        return len(self.starts)


@compile_with(nogil=True)
def _skip_blanks(data: Any, p: int, separator: int) -> int:
    while p < len(data) and (data[p] == BLANK or data[p] == TAB) and (separator == BLANK or data[p] != separator):
        p += 1
    return p


@compile_with(nogil=True)
def _line_end(data: Any, p: int) -> int:
    while p < len(data) and data[p] != NEWLINE:
        p += 1
    return p


@compile_with(nogil=True)
def _cell(data: Any, p: int, separator: int) -> Any:
    """Where the cell of text at p begins and ends, what follows it, and whether its quotation marks match."""
    quoted = data[p] == QUOTE if p < len(data) else False
    begin = p + 1 if quoted else p
    if quoted:
        p = begin
        while p < len(data) and data[p] != QUOTE and data[p] != NEWLINE:
            p += 1
        behind = _skip_blanks(data, p + 1, separator)
        closed = p < len(data) and data[p] == QUOTE
        ends = behind >= len(data) or data[behind] == NEWLINE or data[behind] == RETURN or data[behind] == separator
        return begin, p, behind, closed and (ends or separator == BLANK)
    while p < len(data) and data[p] != NEWLINE and data[p] != separator and (separator != BLANK or data[p] != TAB):
        p += 1
    end = p
    while end > begin and (data[end - 1] == BLANK or data[end - 1] == TAB or data[end - 1] == RETURN):
        end -= 1
    return begin, end, p, True


@compile_with(nogil=True)
def cut_lines(data: Any, separator: int, columns: Any, width: int, line: int) -> Any:
    """Cut lines of text into cells, comments and empty lines left out; a blank as separator stands for blanks and tabs.

    Returns where the cells of these columns begin, their lengths, the numbers of their lines, and that of the first line that has
    another number of cells, or quotation marks that do not match, else -1.
    """
    count = 1
    for byte in data:
        count += byte == NEWLINE
    starts, lengths = np.zeros((len(columns), count), np.int64), np.zeros((len(columns), count), np.int64)
    lines, found, p, wrong = np.empty(count, np.int64), 0, 0, -1
    while p < len(data) and wrong < 0:
        p, cell = _skip_blanks(data, p, separator), 0
        if p < len(data) and (data[p] == ord("#") or data[p] == ord("%")):
            p = _line_end(data, p)
        more = p < len(data) and data[p] != NEWLINE and data[p] != RETURN
        while more:
            begin, end, p, good = _cell(data, p, separator)
            for k in range(len(columns)):
                if columns[k] == cell:
                    starts[k, found], lengths[k, found] = begin, end - begin
            cell += 1
            wrong = wrong if good else line
            if separator == BLANK:
                p = _skip_blanks(data, p, separator)
                more = good and p < len(data) and data[p] != NEWLINE and data[p] != RETURN
            else:
                more = good and p < len(data) and data[p] == separator
                p = _skip_blanks(data, p + 1, separator) if more else p
        if cell > 0:
            wrong = line if cell != width else wrong
            lines[found] = line
            found += 1
        p = _line_end(data, p) + 1
        line += 1
    return starts[:, :found].copy(), lengths[:, :found].copy(), lines[:found].copy(), wrong


@compile_with(nogil=True)
def whole_numbers(cells: Cells) -> Any:
    """Cells of text as whole numbers of at least 0 without leading zeros, and the first cell that is none, or -1."""
    values = np.empty(len(cells.starts), np.int64)
    for i in range(len(values)):
        begin, length, value = cells.starts[i], cells.lengths[i], np.int64(0)
        good = 0 < length <= 18 and not (length > 1 and cells.data[begin] == ord("0"))
        for p in range(begin, begin + length):
            digit = np.int64(cells.data[p]) - 48
            good = good and 0 <= digit <= 9
            value = 10 * value + digit
        if not good:
            return values, i
        values[i] = value
    return values, -1


def weights(cells: Cells) -> tuple[FloatArray, int]:
    """Cells of text as weights in ordinary notation, rounded as Python does, and the first cell that is no number, or -1."""
    values, unsure = _short_numbers(cells)
    for row in np.flatnonzero(unsure).tolist():
        try:
            text = cells.bytes(row)
            values[row] = float(text)
        except ValueError:
            return values, row
        if b"_" in text:
            return values, row
    return values, -1


@compile_with(nogil=True)
def _short_numbers(cells: Cells) -> Any:
    """Cells of text as numbers of few digits, which are exact or divided once; others are marked."""
    values, unsure = np.zeros(len(cells.starts)), np.zeros(len(cells.starts), np.bool_)
    for i in range(len(values)):
        begin, end = cells.starts[i], cells.starts[i] + cells.lengths[i]
        mantissa, digits, behind, point = 0.0, 0, 0, False
        for p in range(begin, end):
            byte = cells.data[p]
            if byte == ord(".") and not point:
                point = True
            elif ord("0") <= byte <= ord("9"):
                mantissa = 10.0 * mantissa + (byte - ord("0"))
                digits += 1
                behind += point
            else:
                digits = EXACT_DIGITS + 1
        unsure[i] = digits == 0 or digits > EXACT_DIGITS
        values[i] = mantissa / POWERS[min(behind, EXACT_POWER)]
    return values, unsure


@compile_with(nogil=True)
def hashes(cells: Cells) -> Any:
    """Two independent hashes of 64 bits of each cell of text: one to find it by, one to tell it from others of the same."""
    first, second = np.empty(len(cells.starts), np.uint64), np.empty(len(cells.starts), np.uint64)
    for i in range(len(first)):
        a, b = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15)
        for p in range(cells.starts[i], cells.starts[i] + cells.lengths[i]):
            byte = np.uint64(cells.data[p])
            a = (a ^ byte) * np.uint64(0x100000001B3)
            b = mixed_bits(b + byte)
        first[i], second[i] = mixed_bits(a + np.uint64(cells.lengths[i])), b
    return first, second


@compile_with(nogil=True)
def joined_cells(cells: Cells, rows: Any) -> Any:
    """The bytes of some cells of text one after the other."""
    size = 0
    for row in rows:
        size += cells.lengths[row]
    data, place = np.empty(size, np.uint8), 0
    for row in rows:
        for p in range(cells.starts[row], cells.starts[row] + cells.lengths[row]):
            data[place] = cells.data[p]
            place += 1
    return data
