"""Graphs whose rows come in pieces, one after the other, of which only sums over pairs of groups are kept.

A piece is a sparse matrix of some rows and all columns. With L the entries below the diagonal, and half of those on it, the
graph is ``A = L + L'``: sums, degrees and logarithms are those of L, so that what is proved holds for a symmetric matrix whatever
stands above the diagonal. That this is the same is seen by a fingerprint, a sum over entries that does not depend on their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.certificates.data import real_matrix
from cvxnmf.certificates.losses import log
from cvxnmf.certificates.rounding import is_finite
from cvxnmf.certificates.statement import Array, CertificateError

#: Odd numbers that mix the bits of an entry.
MIXERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


class GroupSums(NamedTuple):
    """Sums over row pieces that a bound for groups needs of a symmetric graph without empty rows.

    `pairs` are its sums over pairs of groups; of its entries a there are ``sum a log a`` and, as the size of its rounding,
    ``sum |a log a| + a``, the largest, and whether all are whole numbers.
    """

    pairs: Any
    degrees: Array
    logs: float
    size: float
    largest: float
    whole: bool


class PieceSums(NamedTuple):
    """Sums of one row piece on and below the diagonal: of L, and of the entries as in :class:`GroupSums`."""

    pairs: Any
    logs: float
    size: float
    largest: float
    whole: bool


def is_in_pieces(A: Any) -> bool:
    """Whether data are a series of row pieces, and no matrix."""
    if isinstance(A, list | tuple):
        return len(A) > 0 and all(map(sp.issparse, A))
    return isinstance(A, Iterable) and not any(hasattr(A, name) for name in ("shape", "__array__"))


def sum_pieces(pieces: Iterable[Any], groups: NDArray[np.intp], count: int) -> GroupSums:
    """Sums of a graph over the groups of its nodes that carry entries; its rows come in pieces, from the first to the last."""
    sums = _RunningSums(groups, count)
    for piece in pieces:
        sums.add(piece)
    return sums.finish()


class _RunningSums:
    """Running sums of the row pieces so far: a node of a lower number has had its row, so whether it carries entries is known."""

    def __init__(self, groups: NDArray[np.intp], count: int) -> None:
        self.groups, self.count = groups, count
        self.parts: list[PieceSums] = []
        self.pairs: Any = sp.csr_array((count, count))
        self.group_of, self.degrees = np.empty(0, dtype=np.intp), np.empty(0)
        self.rows = self.carrying = self.balance = 0

    def add(self, piece: Any) -> None:
        """Add the next row piece to the running sums."""
        rows, first = self._canonical_rows(piece), self.rows
        stop = self.rows = first + rows.shape[0]
        carries = np.diff(rows.indptr) > 0
        before, self.carrying = self.carrying, self.carrying + int(np.count_nonzero(carries))
        if self.rows > len(self.group_of) or self.carrying > len(self.groups):
            raise CertificateError("The pieces have more rows than the data, or than the groups of the witness match.")
        self.group_of[first:stop][carries] = self.groups[before : self.carrying]
        lower = lower_half(rows, first)
        if np.any(self.group_of[lower.indices] < 0):
            raise not_symmetric()
        self.degrees[first:stop] += np.asarray(lower.sum(axis=1)).ravel()
        np.add.at(self.degrees, lower.indices, lower.data)
        self.balance += fingerprint(rows, first)
        part = sum_piece(lower, first, self.group_of, self.count)
        self.pairs = self.pairs + part.pairs
        self.parts.append(part._replace(pairs=None))

    def _canonical_rows(self, piece: Any) -> Any:
        """A row piece as canonical compressed rows without zeros; the first one says how many columns there are."""
        rows = real_matrix(piece) if sp.issparse(piece) else None
        if rows is None or not (is_finite(rows.data) and rows.data.min(initial=0.0) >= 0):
            raise CertificateError("A piece of the data must be a sparse matrix of finite nonnegative numbers.")
        if not self.rows:
            self.group_of, self.degrees = np.full(rows.shape[1], -1, dtype=np.intp), np.zeros(rows.shape[1])
        if rows.shape[1] != len(self.group_of):
            raise CertificateError(f"A piece has {rows.shape[1]:,} columns, but the first one has {len(self.group_of):,}.")
        rows.eliminate_zeros()
        return rows

    def finish(self) -> GroupSums:
        """The sums over all row pieces, if every row was there and the graph is symmetric."""
        if self.rows != len(self.group_of):
            raise CertificateError(f"The pieces have {self.rows:,} rows in all, but {len(self.group_of):,} columns.")
        if self.balance % 2**64:
            raise not_symmetric()
        if not self.carrying or self.carrying != len(self.groups):
            raise CertificateError("The groups of the witness do not match the data.")
        return total_sums(self.pairs, self.degrees[self.group_of >= 0], self.parts)


def not_symmetric() -> CertificateError:
    """The error for row pieces that do not mirror each other."""
    return CertificateError("The pieces are not those of a symmetric matrix: a row is missing, repeated or altered.")


def total_sums(pairs: Any, degrees: Array, parts: list[PieceSums]) -> GroupSums:
    """The sums of a graph from sums of L over pairs of groups, degrees, and the sums of its row pieces."""
    logs, size = (math.fsum(getattr(part, name) for part in parts) for name in ("logs", "size"))
    largest, whole = max(part.largest for part in parts), all(part.whole for part in parts)
    return GroupSums(sp.csr_array(pairs + pairs.T), degrees, logs, size, largest, whole)


def lower_half(rows: Any, first: int) -> Any:
    """Lower half L of a row piece from row `first` on: entries below the diagonal, and half of those on it."""
    numbers = np.repeat(np.arange(first, first + rows.shape[0]), np.diff(rows.indptr))
    below = rows.indices <= numbers
    halves = np.where(rows.indices == numbers, 0.5, 1.0)[below]
    ends = np.append(0, np.cumsum(below))[rows.indptr]
    return sp.csr_array((rows.data[below] * halves, rows.indices[below], ends), shape=rows.shape)


def sum_piece(lower: Any, first: int, group_of: Any, count: int) -> PieceSums:
    """Sums of the lower half L of a row piece from row `first` on, given the groups of all nodes up to there."""
    height = lower.shape[0]
    numbers = np.repeat(np.arange(first, first + height), np.diff(lower.indptr))
    times = np.where(lower.indices == numbers, 1.0, 2.0)  # an entry below the diagonal stands above it, too
    entries = lower.data * (2.0 / times)
    by_group = sp.csr_array((lower.data, group_of[lower.indices], lower.indptr), shape=(height, count))
    carries = np.flatnonzero(np.diff(lower.indptr))
    own = (np.ones(len(carries)), (group_of[first + carries], carries))
    logs = entries * log(entries)
    return PieceSums(
        sp.csr_array(sp.csr_array(own, shape=(count, height)) @ by_group),
        float(np.sum(times * logs)),
        float(np.sum(times * (np.abs(logs) + entries))),
        float(entries.max(initial=0.0)),
        bool(np.all(entries == np.floor(entries))),
    )


def fingerprint(rows: Any, first: int) -> int:
    """Fingerprint of a row piece: mixed bits of entries below the diagonal less those above it, read as if below; modulo 2^64."""
    numbers = np.repeat(np.arange(first, first + rows.shape[0]), np.diff(rows.indptr))
    mixed = np.maximum(numbers, rows.indices).astype(np.uint64)
    for mixer, bits in zip(
        MIXERS, (np.minimum(numbers, rows.indices).astype(np.uint64), rows.data.view(np.uint64), 0), strict=True
    ):
        mixed *= np.uint64(mixer)
        mixed ^= mixed >> np.uint64(29)
        mixed += np.asarray(bits, dtype=np.uint64)
    below, above = numbers > rows.indices, numbers < rows.indices
    return int(np.sum(mixed[below])) - int(np.sum(mixed[above]))
