"""Matrix Market files: a header, a line of sizes, and entries with their places (coordinate) or without (array).

Read here and not by scipy, whose reader does not survive every damaged file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.chunked.graphs.lines import is_number
from cvxnmf.io.arrays import check_sparse_shape
from cvxnmf.io.separated import quote
from cvxnmf.io.source import Source
from cvxnmf.linalg.arrays import FloatArray

FIELDS = ("real", "double", "integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")


class Header(NamedTuple):
    """The first line of a Matrix Market file and its line of sizes; `line` is the number of the latter."""

    coordinate: bool
    pattern: bool
    symmetry: str
    sizes: tuple[int, ...]
    line: int


def read_mtx(source: Source) -> Any:
    """Read a Matrix Market file: coordinates as a CSR array, repeated ones added up, arrays as an array."""
    source.must_be_text()
    first, *lines = source.data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode("utf-8-sig").split("\n")
    header = _header(source, first, lines)
    entries = _entries(source, header, lines[header.line - 1 :])
    return _sparse(source, header, entries) if header.coordinate else _dense(header, entries.ravel())


def _header(source: Source, first: str, lines: list[str]) -> Header:
    words = first.lower().split()
    if len(words) != 5 or words[1] != "matrix" or words[2] not in ("coordinate", "array"):
        source.refuse("expected '%%MatrixMarket matrix coordinate real general' or the like.", 1)
    _, _, form, field, symmetry = words
    if field not in FIELDS or symmetry not in SYMMETRIES or (form == "array" and field == "pattern"):
        source.refuse(f"entries that are {field} and {symmetry} cannot be read; write them as real and general.", 1)
    place = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("%")), None)
    if place is None:
        source.refuse("is incomplete: it has no line of sizes.")
    cells, count = lines[place].split(), 3 if form == "coordinate" else 2
    if len(cells) != count or not all(cell.isascii() and cell.isdecimal() and len(cell) < 16 for cell in cells):
        source.refuse(f"expected {count} sizes, found {quote(lines[place])}.", place + 2)
    sizes = tuple(map(int, cells))
    if symmetry != "general" and sizes[0] != sizes[1]:
        source.refuse(f"a {symmetry} matrix is square, not {sizes[0]} by {sizes[1]}.", place + 2)
    return Header(form == "coordinate", field == "pattern", symmetry, sizes, place + 2)


def _entries(source: Source, header: Header, lines: list[str]) -> FloatArray:
    """The numbers of the body of a Matrix Market file, one row for each entry."""
    rows, columns = header.sizes[:2]
    width = (2 if header.pattern else 3) if header.coordinate else 1
    diagonal = {"general": rows * columns, "symmetric": rows * (rows + 1) // 2, "skew-symmetric": rows * (rows - 1) // 2}
    expected = header.sizes[2] if header.coordinate else diagonal[header.symmetry]
    cells = " ".join(line for line in lines if not line.startswith("%")).split()
    if len(cells) != width * expected:
        source.refuse(
            f"announces {expected} entries of {width} numbers and holds {len(cells)} numbers; it is incomplete or damaged."
        )
    try:
        return np.array(list(map(float, cells)), dtype=np.float64).reshape(-1, width)
    except ValueError:
        wrong = next(i for i, line in enumerate(lines) if not line.startswith("%") and not all(map(is_number, line.split())))
        return source.refuse(f"expected numbers, found {quote(lines[wrong])}.", header.line + 1 + wrong)


def _sparse(source: Source, header: Header, entries: FloatArray) -> Any:
    shape = header.sizes[:2]
    check_sparse_shape(source, shape)
    places, values = entries[:, :2], np.ones(len(entries)) if header.pattern else entries[:, 2]
    if not ((places >= 1) & (places <= shape) & (places == np.floor(places))).all():
        source.refuse(f"has an entry outside of its {shape[0]} rows and {shape[1]} columns, which are counted from 1.")
    rows, columns = (places - 1).astype(np.int64).T
    if header.symmetry != "general":
        apart, sign = rows != columns, 1.0 if header.symmetry == "symmetric" else -1.0
        values = np.concatenate((values, sign * values[apart]))
        rows, columns = np.concatenate((rows, columns[apart])), np.concatenate((columns, rows[apart]))
    return sp.csr_array((values, (rows, columns)), shape=shape)


def _dense(header: Header, values: FloatArray) -> FloatArray:
    """Entries of a Matrix Market array, column by column; of a symmetric matrix, the lower triangle."""
    rows, columns = header.sizes
    if header.symmetry == "general":
        return np.ascontiguousarray(values.reshape(columns, rows).T)
    A, offset = np.zeros((rows, rows)), 0 if header.symmetry == "symmetric" else 1
    across, down = np.triu_indices(rows, offset)
    A[across, down] = values if header.symmetry == "symmetric" else -values
    A[down, across] = values
    return A
