"""Large and regular edge lists, read as arrays of bytes.

A file of short names without quotes, comments between its lines or cells left empty is cut into cells by comparing bytes, and
names of up to eight bytes are numbers of 64 bits, so that no line is ever looked at alone. Anything irregular is left to the
reader of lines, which knows what to say about it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray

#: Files are cut into blocks of about this many bytes.
BLOCK = 1 << 24
#: Longest names and weights, in bytes.
LONGEST_NAME, LONGEST_WEIGHT = 8, 32
#: Bytes that only the reader of lines understands: quotes, dictionaries, underscores in numbers.
SPECIAL = b'"{}'
NEWLINE, TAB, SPACE = 10, 9, 32
Numbers = NDArray[np.int64]


class PlainEdges(NamedTuple):
    """Names in the order in which they first occur, their numbers by edge, and the weights of the edges."""

    names: tuple[str, ...]
    ends: Numbers
    weights: FloatArray | None


class Irregular(Exception):
    """The file needs a closer look."""


def read_plain(data: bytes, first_line: int, separator: str, width: int, weighted: bool) -> PlainEdges | None:
    """Read the edges from a line on; None if a line is in any way out of the ordinary.

    Parameters
    ----------
    data : bytes
        Valid UTF-8.
    first_line : int
        Number of the first line to read, counted from 1.
    separator : str
        A blank stands for any blanks and tabs.
    width : int
        Cells on every line, 2 or 3: two names and perhaps a third, which is a weight if `weighted`.
    weighted : bool
        Whether to read the third.
    """
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if b"\r" in data or any(special in data for special in map(bytes, zip(SPECIAL))):
        return None
    place = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    for _ in range(first_line - 1):
        place = data.index(b"\n", place) + 1
    codes: list[NDArray[np.uint64]] = []
    weights: list[FloatArray] = []
    try:
        while place < len(data):
            end = data.find(b"\n", min(place + BLOCK, len(data) - 1))
            end = len(data) if end < 0 else end + 1
            starts, stops, array = _cells(data[place:end], separator, width)
            codes.append(_codes(array, starts[:, :2].ravel(), stops[:, :2].ravel()))
            if weighted:
                weights.append(_weights(array, starts[:, 2], stops[:, 2]))
            place = end
    except Irregular:
        return None
    names, ends = _numbered(np.concatenate(codes))
    return PlainEdges(names, ends, np.concatenate(weights) if weighted else None)


def _cells(block: bytes, separator: str, width: int) -> tuple[Numbers, Numbers, NDArray[np.uint8]]:
    """Where the cells of a block start and stop, one row for each line, and the block with some room behind it."""
    array = np.frombuffer(block + b"\n" * (LONGEST_WEIGHT + 1), dtype=np.uint8)
    new, between = array == NEWLINE, array == ord(separator)
    if separator == " ":
        between |= array == TAB
    apart = new | between
    if np.any((array <= SPACE) & ~apart) or np.any(array == 127):
        raise Irregular
    inside = np.diff(np.concatenate(([False], ~apart, [False])).astype(np.int8))
    starts, stops = np.flatnonzero(inside == 1), np.flatnonzero(inside == -1)
    counts = np.diff(np.searchsorted(starts, np.flatnonzero(new)), prepend=0)
    if not np.isin(counts, (0, width)).all() or len(starts) == 0:
        raise Irregular
    if separator != " " and np.count_nonzero(between) != (width - 1) * (len(starts) // width):  # an empty cell
        raise Irregular
    if np.isin(array[starts[::width]], (ord("#"), ord("%"))).any():
        raise Irregular
    return starts.reshape(-1, width), stops.reshape(-1, width), array


def _codes(array: NDArray[np.uint8], starts: Numbers, stops: Numbers) -> NDArray[np.uint64]:
    """Names as numbers: their bytes, the first one lowest."""
    lengths = stops - starts
    if lengths.max() > LONGEST_NAME:
        raise Irregular
    overlapping: NDArray[np.uint64] = np.ndarray((len(array) - 7,), dtype="<u8", buffer=array, strides=(1,))
    masks = np.array([(1 << 8 * length) - 1 for length in range(LONGEST_NAME + 1)], dtype=np.uint64)
    return np.asarray(overlapping[starts] & masks[lengths])


def _weights(array: NDArray[np.uint8], starts: Numbers, stops: Numbers) -> FloatArray:
    """Cells as finite numbers of at least 0."""
    length = int((stops - starts).max())
    if length > LONGEST_WEIGHT:
        raise Irregular
    places = np.arange(length)
    letters = np.where(places < (stops - starts)[:, None], array[starts[:, None] + places], np.uint8(0))
    if np.isin(letters, (ord("_"), ord(","))).any() or letters.max(initial=0) > 127:
        raise Irregular
    try:
        values = np.ascontiguousarray(letters).view(f"S{length}").ravel().astype(np.float64)
    except ValueError:
        raise Irregular from None
    if not np.all((values >= 0) & (values < np.inf)):
        raise Irregular
    return values


def _numbered(codes: Any) -> tuple[tuple[str, ...], Numbers]:
    """Names in the order in which they first occur, and the number of each code."""
    distinct, first, which = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    names = distinct[order].astype("<u8").view("S8").tolist()
    return tuple(name.decode() for name in names), rank[which].reshape(-1, 2)
