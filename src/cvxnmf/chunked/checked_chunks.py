"""A raw chunk to checked numbers: float64, dense and contiguous or in compressed rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation


class Place(NamedTuple):
    """Place of a row chunk in the matrix: its number, and its first row."""

    number: int
    first: int

    def describe(self, height: int) -> str:
        """Name of a row chunk in sentences about its entries."""
        return f"Block {self.number} of A (rows {self.first} to {self.first + height - 1})"


def checked_chunk(raw: Any, place: Place, width: int) -> Any:
    """The row chunk as float64, refused if an entry is NaN, infinite or negative."""
    chunk = float64_chunk(raw, place, width)
    require_nonnegative(chunk, place)
    return chunk


def float64_chunk(raw: Any, place: Place, width: int) -> Any:
    """The row chunk as a contiguous float64 array, or as a csr_array if it offers `tocsr`."""
    if hasattr(raw, "tocsr"):
        matrix = raw.tocsr()
        _require_numbers(matrix.dtype, matrix.shape, place, width)
        matrix = sp.csr_array(matrix, dtype=np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    if isinstance(raw, np.ma.MaskedArray):
        validation.refuse(f"{place.describe(len(raw))} is a masked array; fill the masked entries first, for example with 0.")
    dense = np.asarray(raw)
    _require_numbers(dense.dtype, dense.shape, place, width)
    return np.ascontiguousarray(dense, dtype=np.float64)


def join_columns(pieces: Any) -> Any:
    """Join raw pieces of the same row chunk side by side."""
    if len(pieces) == 1:
        return pieces[0]
    if any(hasattr(piece, "tocsr") for piece in pieces):
        return sp.hstack([sp.csr_array(piece.tocsr() if hasattr(piece, "tocsr") else piece) for piece in pieces], format="csr")
    return np.hstack(pieces)


def _require_numbers(dtype: Any, shape: tuple[int, ...], place: Place, width: int) -> None:
    """Refuse a raw row chunk that is not a matrix of real numbers of the right width."""
    name = place.describe(shape[0] if shape else 1)
    if np.dtype(dtype).kind not in "fiub":
        validation.refuse(f"{name} has entries of type {dtype}, which are not real numbers; convert them to float.")
    if len(shape) != 2 or shape[1] != width:
        validation.refuse(f"{name} has shape {shape}, but every block must be a matrix of {width} columns.")


def require_nonnegative(chunk: Any, place: Place) -> None:
    """Refuse NaN, infinite and negative entries of a row chunk, naming the chunk, the row and the column."""
    entries = chunk.data if sp.issparse(chunk) else chunk
    lowest, highest = float(entries.min(initial=0.0)), float(entries.max(initial=0.0))
    if np.isfinite(lowest) and np.isfinite(highest) and lowest >= 0:
        return
    for wrong, words, advice in (
        (np.isnan(entries), "NaN", "data in blocks cannot have missing entries, so replace them first, for example with 0"),
        (np.isinf(entries), "an infinite entry", "replace it with a finite value"),
        (entries < 0, "a negative entry", "only nonnegative entries can be factored"),
    ):
        if wrong.any():
            row, column = _first_position(chunk, wrong)
            name = place.describe(chunk.shape[0])
            validation.refuse(f"{name} has {words} at row {place.first + row}, column {column}; {advice}.")


def _first_position(chunk: Any, wrong: Any) -> tuple[int, int]:
    """Row and column of the first wrong entry of a row chunk."""
    if sp.issparse(chunk):
        entry = int(np.argmax(wrong))
        return int(np.searchsorted(chunk.indptr, entry, side="right")) - 1, int(chunk.indices[entry])
    row, column = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return int(row), int(column)
