"""A graph in blocks of rows from a list of edges, or from a sparse matrix in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cvxnmf import validation
from cvxnmf.chunked.graphs.blocks import Entries, Facts, row_sums, sorted_entries
from cvxnmf.chunked.graphs.local import LocalGraph, Rows, rows_of
from cvxnmf.chunked.graphs.numbering import NodeNames, Numbering
from cvxnmf.chunked.graphs.pieces import EdgeSource
from cvxnmf.chunked.graphs.shelf import Shelf
from cvxnmf.linalg.arrays import FloatArray

#: Told what is done, and which share of it.
Report = Callable[[str, float], None]


class BuiltGraph(NamedTuple):
    """A graph built in blocks of rows: names of the nodes and the graph as it was given."""

    nodes: NodeNames
    graph: LocalGraph


def graph_of_edges(sources: Sequence[EdgeSource], shelf: Shelf, threads: int, report: Report) -> BuiltGraph:
    """Build a graph from lists of edges: both directions of an edge and repeated ones count once, or their weights add up."""
    numbering = Numbering(shelf)
    for number, source in enumerate(sources):
        for piece in source.pieces():
            numbering.add(piece)
            report("reading", (number + piece.share) / len(sources))
    nodes, edges = numbering.finish()
    if len(nodes) >= 2**31:
        validation.refuse(f"The graph has {len(nodes):,} nodes; up to 2,147,483,647 can be numbered.")
    loops = np.zeros(len(nodes))
    rows = rows_of(_with_report(_both_directions(edges, loops), len(numbering.spooled), report), len(nodes), shelf, in_order=True)
    return BuiltGraph(nodes, with_masses(rows, loops, shelf, threads))


def _with_report(entries: Iterator[Entries], count: int, report: Report) -> Iterator[Entries]:
    for number, part in enumerate(entries):
        yield part
        report("sorting", (number + 1) / count)


def _both_directions(edges: Iterable[tuple[Any, Any, FloatArray | None]], loops: FloatArray) -> Iterator[Entries]:
    """Entries of the symmetric matrix off the diagonal, from edges; the diagonal is added to the loops."""
    for tails, heads, weights in edges:
        entries, nodes, values = symmetric_entries(tails, heads, weights)
        add_loops(loops, nodes, values)
        yield entries


def symmetric_entries(tails: Any, heads: Any, weights: Any) -> tuple[Entries, Any, Any]:
    """Both directions of edges as entries, those of weight 0 left out, and the nodes of loops with their weights."""
    off = tails != heads
    nodes, values = tails[~off], None if weights is None else weights[~off]
    if weights is not None:
        off &= weights > 0
        weights = np.concatenate([weights[off], weights[off]])
    i, j = tails[off], heads[off]
    return sorted_entries(np.concatenate([i, j]), np.concatenate([j, i]), weights), nodes, values


def add_loops(loops: FloatArray, nodes: Any, values: Any) -> None:
    """Add weights of a graph's loops in their order; without weights a loop counts once."""
    if values is None:
        loops[nodes] = 1.0
    else:
        np.add.at(loops, nodes, values)


def graph_of_matrix(A: Any, shelf: Shelf, threads: int) -> LocalGraph:
    """Build a graph in blocks of rows from a symmetric csr matrix in memory."""
    loops = np.asarray(A.diagonal(), dtype=np.float64)
    indptr, indices, data = A.indptr.astype(np.int64), A.indices.astype(np.int32, copy=False), A.data
    if not A.has_sorted_indices:
        A = A.copy()
        A.sort_indices()
        indices, data = A.indices.astype(np.int32, copy=False), A.data
    if loops.any():
        rows = np.repeat(np.arange(len(loops), dtype=np.int32), np.diff(indptr))
        off = rows != indices
        indices, data = indices[off], data[off]
        indptr = np.append(0, np.cumsum(np.bincount(rows[off], minlength=len(loops))))
    alike = len(data) > 0 and float(data.min()) == float(data.max()) == 1.0  # stored as edges without weights are
    weights = np.ones(1) if alike else np.asarray(data, dtype=np.float64)
    return with_masses(Rows(indptr, indices, weights), loops, shelf, threads)


def with_masses(rows: Rows, loops: FloatArray, shelf: Shelf, threads: int) -> LocalGraph:
    """The graph in blocks, with the sums of its rows as masses."""
    counts = np.ones(len(loops), dtype=np.int64)
    graph = LocalGraph(rows, Facts(np.zeros(len(loops)), loops, counts), shelf, threads)
    return LocalGraph(rows, Facts(row_sums(graph), loops, counts), shelf, threads)
