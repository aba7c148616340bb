"""Numbers for the nodes of a list of edges: by rising number, or by the hash of their names, which are kept as bytes on a shelf.

Neither depends on the order of the edges or on how they are cut into pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.chunked.graphs import cells
from cvxnmf.chunked.graphs.cells import Cells, Hashes
from cvxnmf.chunked.graphs.pieces import EdgePiece
from cvxnmf.chunked.graphs.shelf import Shelf
from cvxnmf.linalg.arrays import FloatArray

#: A table by the numbers of the nodes may have this many places for each end of an edge.
PLACES_PER_END = 4
#: Names that are looked at one after the other are fetched this many at a time.
NAMES_AT_ONCE = 1 << 16


class Spooled(NamedTuple):
    """A piece of edges on a shelf, to be numbered: keys of their ends, and weights."""

    tails: Any
    heads: Any
    weights: Any


class Numbering:
    """Numbering of nodes: takes pieces of edges, keeps the keys of their ends, and then numbers them."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.spooled = shelf, list[Spooled]()
        self.named: bool | None = None
        self.weighted: bool | None = None
        self.largest = self.ends = 0
        self.known: list[tuple[Hashes, Hashes]] = []  # sorted parts of the hashes, with the hashes that tell them apart
        self.names: list[tuple[Any, Any, Any]] = []  # keys, lengths and bytes of names as they first occur

    def add(self, piece: EdgePiece) -> None:
        """Add a piece of edges to the numbering of nodes."""
        if not len(piece.tails):
            return
        kinds = [isinstance(end, Cells) for end in (piece.tails, piece.heads)]
        if any(kind != (kinds[0] if self.named is None else self.named) for kind in kinds):
            was, now = ("text", "numbers") if (kinds[0] if self.named is None else self.named) else ("numbers", "text")
            piece.place.refuse(0, f"names of nodes are {now} here and {was} before; give names of one kind.")
        self.named, weighted = kinds[0], piece.weights is not None
        if self.weighted not in (None, weighted):
            piece.place.refuse(0, f"edges have {'' if weighted else 'no '}weights here, unlike those before.")
        self.weighted, self.ends = weighted, self.ends + 2 * len(piece.tails)
        keys = self._hash_keys(piece) if self.named else self._number_keys(piece)
        weights = None if piece.weights is None else self.shelf.keep(iter([piece.weights]), np.float64)
        tails, heads = (self.shelf.keep(iter([key]), key.dtype) for key in keys)
        self.spooled.append(Spooled(tails, heads, weights))

    def _number_keys(self, piece: EdgePiece) -> tuple[Any, Any]:
        for ends in (piece.tails, piece.heads):
            least = int(np.argmin(ends))
            if ends[least] < 0:
                piece.place.refuse(least, f"the node is {ends[least]}; numbers of nodes are at least 0.")
            self.largest = max(self.largest, int(np.max(ends)))
        return piece.tails, piece.heads

    def _hash_keys(self, piece: EdgePiece) -> tuple[Hashes, Hashes]:
        """Hashes of the names of a piece's ends, for numbering; names of nodes that are new are kept."""
        both = [cells.hashes(end) for end in (piece.tails, piece.heads)]
        keys, checks = (np.column_stack(part).ravel() for part in zip(*both, strict=True))
        order = np.argsort(keys, kind="stable")
        keys, checks = keys[order], checks[order]
        again = keys[1:] == keys[:-1]
        if np.any(again & (checks[1:] != checks[:-1])):
            piece.place.refuse(0, "two names hash alike in this piece; rename one of them.")
        first = np.append(True, ~again)
        new = first & ~self._is_known(keys, checks, piece)
        self._remember(keys[new], checks[new])
        self._keep_names(piece, np.sort(order[new]), dict(enumerate(part[0] for part in both)))
        return both[0][0], both[1][0]

    def _is_known(self, keys: Hashes, checks: Hashes, piece: EdgePiece) -> NDArray[np.bool_]:
        found = np.zeros(len(keys), dtype=bool)
        for hashes, tells in self.known:
            place = np.minimum(np.searchsorted(hashes, keys), len(hashes) - 1)
            same = hashes[place] == keys
            if np.any(same & (tells[place] != checks)):
                piece.place.refuse(0, "two names hash alike; rename one of them.")
            found |= same
        return found

    def _remember(self, keys: Hashes, checks: Hashes) -> None:
        """Remember sorted hashes of names of nodes; parts of about one size are merged, so that there are never many."""
        while len(keys) and self.known and len(self.known[-1][0]) <= 2 * len(keys):
            other = self.known.pop()
            merged = np.concatenate([other[0], keys])
            order = np.argsort(merged, kind="stable")
            keys, checks = merged[order], np.concatenate([other[1], checks])[order]
        if len(keys):
            self.known.append((keys, checks))

    def _keep_names(self, piece: EdgePiece, places: Any, keys: dict[int, Hashes]) -> None:
        """Keep the names of nodes at these places of a piece, two to an edge, in the order in which they stand."""
        if not len(places):
            return
        rows, side = places // 2, places % 2
        columns: tuple[Any, Any] = (piece.tails, piece.heads)
        starts, lengths = (
            np.where(side, getattr(columns[1], of)[rows], getattr(columns[0], of)[rows]) for of in Cells._fields[1:]
        )
        if columns[0].data is columns[1].data:
            data = cells.joined_cells(Cells(columns[0].data, starts, lengths), np.arange(len(rows)))
        else:
            texts = (columns[at].bytes(row) for row, at in zip(rows.tolist(), side.tolist(), strict=True))
            data = np.frombuffer(b"".join(texts), np.uint8)
        hashed = np.where(side, keys[1][rows], keys[0][rows])
        kinds = (np.uint64, np.int64, np.uint8)
        kept = [self.shelf.keep(iter([part]), kind) for part, kind in zip((hashed, lengths, data), kinds, strict=True)]
        self.names.append((kept[0], kept[1], kept[2]))

    def finish(self) -> tuple[NodeNames, Iterator[tuple[Any, Any, FloatArray | None]]]:
        """Finish the numbering: the names of the nodes by number, and the edges as pairs of numbers, piece by piece."""
        if not self.spooled:
            validation.refuse("The list has no edges, so there is nothing to partition.")
        if self.named:
            keys = np.sort(np.concatenate([hashes for hashes, _ in self.known]), kind="stable")
            self.known.clear()
            return NodeNames(keys, self.names, self.shelf), self._edges(lambda part: np.searchsorted(keys, part).astype(np.int32))
        if self.largest < PLACES_PER_END * self.ends + 1000:
            present = np.zeros(self.largest + 1, dtype=bool)
            for part in self.spooled:
                for ends in part[:2]:
                    present[ends[0 : len(ends)]] = True
            table = np.cumsum(present, dtype=np.int32) - np.int32(1)
            return NodeNames(np.flatnonzero(present)), self._edges(lambda part: table[part])
        distinct = np.empty(0, dtype=np.int64)
        for part in self.spooled:
            distinct = np.union1d(distinct, np.concatenate([ends[0 : len(ends)] for ends in part[:2]]))
        return NodeNames(distinct), self._edges(lambda part: np.searchsorted(distinct, part).astype(np.int32))

    def _edges(self, number: Any) -> Iterator[tuple[Any, Any, FloatArray | None]]:
        for part in self.spooled:
            tails, heads = (number(ends[0 : len(ends)]) for ends in part[:2])
            yield tails, heads, None if part.weights is None else part.weights[0 : len(part.weights)]
            for kept in part:
                if kept is not None:
                    self.shelf.discard(kept)


class NodeNames(Sequence[Any]):
    """Names of the numbered nodes as they are listed: whole numbers rising, or text in the order in which it first occurred.

    `order` says which number the listed nodes have. Names are fetched when they are looked at.
    """

    def __init__(self, keys: Any, names: list[tuple[Any, Any, Any]] | None = None, shelf: Shelf | None = None) -> None:
        self.keys, self._names, self._shelf = keys, names, shelf  # the shelf lives as long as names are on it

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def are_text(self) -> bool:
        """Whether the nodes are named by text instead of whole numbers."""
        return self._names is not None

    def order(self) -> Any:
        """The numbers of the nodes in the order in which their names are listed; None if that is their own."""
        if self._names is None:
            return None
        return np.concatenate([np.searchsorted(self.keys, hashed[0 : len(hashed)]) for hashed, _, _ in self._names])

    def between(self, first: int, stop: int) -> NodeNames:
        """The names of the nodes that are listed from one place up to another, in memory; text stays bytes."""
        if self._names is None:
            return NodeNames(self.keys[first:stop])
        parts = [_names_between(part, first - before, stop - before) for part, before in self._parts_and_places()]
        return NodeNames(np.sort(np.concatenate([part[0] for part in parts])), parts)

    def _parts_and_places(self) -> Iterator[tuple[Any, int]]:
        before = 0
        for part in self._names or ():
            yield part, before
            before += len(part[0])

    def __iter__(self) -> Iterator[Any]:
        if self._names is None:
            for first in range(0, len(self.keys), NAMES_AT_ONCE):
                yield from self.keys[first : first + NAMES_AT_ONCE].tolist()
            return
        for _, lengths, data in self._names:
            ends, text = np.cumsum(lengths[0 : len(lengths)]).tolist(), data[0 : len(data)].tobytes()
            yield from (text[begin:end].decode("utf-8", "replace") for begin, end in zip([0, *ends], ends, strict=False))

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        number = range(len(self))[place]
        if self._names is None:
            return int(self.keys[number])
        for hashed, lengths, data in self._names:
            if number < len(hashed):
                ends = np.cumsum(lengths[0 : number + 1])
                return data[int(ends[-1] - lengths[number : number + 1][0]) : int(ends[-1])].tobytes().decode("utf-8", "replace")
            number -= len(hashed)
        raise IndexError(place)


def _names_between(part: tuple[Any, Any, Any], first: int, stop: int) -> tuple[Any, Any, Any]:
    """Keys, lengths and bytes of those names of nodes in a part that stand from one place up to another."""
    first, stop = min(max(first, 0), len(part[0])), min(max(stop, 0), len(part[0]))
    keys, lengths, data = part
    begin = int(np.sum(lengths[0:first]))
    found = lengths[first:stop]
    return keys[first:stop], found, data[begin : begin + int(np.sum(found))]
