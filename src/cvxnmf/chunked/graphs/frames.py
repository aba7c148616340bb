"""Dask data frames of edges: read partition by partition in this process, or turned into rows where they are, on the workers."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from cvxnmf.chunked.graphs import cells, tasks
from cvxnmf.chunked.graphs.blocks import Entries, Facts
from cvxnmf.chunked.graphs.build import Report, add_loops, symmetric_entries
from cvxnmf.chunked.graphs.cells import Cells
from cvxnmf.chunked.graphs.numbering import NodeNames, Numbering
from cvxnmf.chunked.graphs.on_dask import ClusterGraph, Workers, shuffle_entries, with_row_sums
from cvxnmf.chunked.graphs.pieces import EdgePiece, FrameEdges, Place
from cvxnmf.chunked.graphs.shelf import Shelf
from cvxnmf.chunked.tasks import Literal, Refusal

NAME = "partition {} of the dask data frame"


class Columns(NamedTuple):
    """The columns of a data frame of edges that hold their ends, and their weights if these count."""

    tail: Any
    head: Any
    weight: Any = None


def partition_pieces(frame: Any, columns: Columns, number: int) -> Iterator[EdgePiece]:
    """Pieces of edges: slices of one partition of a dask data frame, which is in memory."""
    tail, head, weight = columns
    weights = None if weight is None else frame[weight].to_numpy()
    return FrameEdges(frame[tail].to_numpy(), frame[head].to_numpy(), weights, NAME.format(number)).pieces()


class DaskEdges:
    """A dask data frame of edges, computed partition by partition in this process."""

    def __init__(self, frame: Any, columns: Columns) -> None:
        self.partitions, self.columns = frame.to_delayed(), columns

    def pieces(self) -> Iterator[EdgePiece]:
        """Pieces of edges of all partitions of the dask data frame."""
        for number, partition in enumerate(self.partitions):
            (frame,) = import_module("dask").compute(partition, scheduler="synchronous")
            for piece in partition_pieces(frame, self.columns, number):
                yield piece._replace(share=(number + piece.share) / len(self.partitions))


class FrameGraph(NamedTuple):
    """The graph of a dask data frame on the workers, with the names of its nodes in this process."""

    nodes: NodeNames
    graph: ClusterGraph


def graph_of_frame(workers: Workers, partitions: list[Any], columns: Columns, shelf: Shelf, report: Report) -> FrameGraph:
    """The graph of the delayed partitions of a dask data frame: edges go from them to the workers of their rows."""
    parts = [workers.compute(part) for part in partitions]
    nodes = _number_nodes(workers, parts, columns, shelf, report)
    keys = workers.submit(tasks.blocks_as_sent, Literal(nodes.keys))
    made = [workers.submit(partition_entries, part, columns, number, keys) for number, part in enumerate(parts)]
    facts = workers.gather([workers.submit(tasks.one_of, part, 1) for part in made])
    report("sorting", 0.5)
    loops, histogram = np.zeros(len(nodes)), np.zeros(tasks.RANGES, dtype=np.int64)
    for where, values, counts in facts:
        add_loops(loops, where, values)
        histogram += counts
    known = Facts(np.zeros(len(nodes)), loops, np.ones(len(nodes), dtype=np.int64))
    entries = [workers.submit(tasks.one_of, part, 0) for part in made]
    graph = with_row_sums(shuffle_entries(workers, entries, histogram, known, in_order=True, root=True))
    report("sorting", 1.0)
    return FrameGraph(nodes, graph)


def _number_nodes(workers: Workers, parts: list[Any], columns: Columns, shelf: Shelf, report: Report) -> NodeNames:
    """The names of the nodes of a data frame, numbered."""
    ends = [workers.submit(distinct_ends, part, columns, number) for number, part in enumerate(parts)]
    numbering = Numbering(shelf)
    for number, future in enumerate(ends):
        (found,) = workers.gather([future])
        numbering.add(EdgePiece(found, found, None, Place(NAME.format(number), "name", np.arange(len(found))), 1.0))
        ends[number] = None  # so that the workers can let go of it
        report("reading", (number + 1) / len(ends))
    nodes, rest = numbering.finish()
    for _ in rest:  # the ends are not needed again
        pass
    return nodes


def distinct_ends(frame: Any, columns: Columns, number: int) -> Any:
    """Different ends of the edges of a data frame's partition, checked like everything else in it; or what is wrong with it."""
    try:
        pieces = list(partition_pieces(frame, columns, number))
    except ValueError as error:
        return Refusal(str(error))
    if not pieces:
        return np.empty(0, dtype=np.int64)
    if not isinstance(pieces[0].tails, Cells):
        return np.unique(np.concatenate([end for piece in pieces for end in (piece.tails, piece.heads)]))
    names = dict.fromkeys(
        end.bytes(row) for piece in pieces for row in range(len(piece.tails)) for end in (piece.tails, piece.heads)
    )
    lengths = np.array([len(name) for name in names], dtype=np.int64)
    return Cells(np.frombuffer(b"".join(names), np.uint8), np.cumsum(lengths) - lengths, lengths)


def partition_entries(frame: Any, columns: Columns, number: int, keys: Any) -> tuple[list[Entries], Any]:
    """Both directions of the edges of a data frame's partition, its loops with weights, and counts of entries by row ranges."""
    pieces = list(partition_pieces(frame, columns, number))
    found, loops, values = [], [np.empty(0, dtype=np.int32)], [np.empty(0)]
    histogram = np.zeros(tasks.RANGES, dtype=np.int64)
    for piece in pieces:
        tails, heads = (np.searchsorted(keys, _keys(end)).astype(np.int32) for end in (piece.tails, piece.heads))
        entries, nodes, weights = symmetric_entries(tails, heads, piece.weights)
        found.append(entries)
        loops.append(nodes)
        values.append(np.empty(0) if weights is None else weights)
        histogram += tasks.histogram_of(entries.rows, len(keys))
    weighted = columns.weight is not None
    return found, (np.concatenate(loops), np.concatenate(values) if weighted else None, histogram)


def _keys(ends: Any) -> Any:
    return cells.hashes(ends)[0] if isinstance(ends, Cells) else ends
