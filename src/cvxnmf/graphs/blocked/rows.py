"""The rows of a graph that is opened in blocks, in pieces: what the check of a certificate reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cvxnmf.chunked.graphs.blocks import Facts
from cvxnmf.chunked.graphs.row_pieces import pieces_of
from cvxnmf.chunked.graphs.text import Reading
from cvxnmf.chunked.memory import limit_in_bytes
from cvxnmf.graphs.blocked.open import OpenedGraph, Progress, connection_of, open_graph


def row_pieces(
    graph: Any, *, weight: str | None = "weight", memory_limit: Any = None, client: Any = None, reading: Reading | None = None
) -> Iterator[Any]:
    """Rows of the adjacency matrix of a graph that is worked on in blocks, a few at a time, for the check of its certificate.

    Parameters
    ----------
    graph, weight, memory_limit, client
        As :func:`cvxnmf.partition` takes them for work in blocks: names of files of edges, a dask data frame, or a graph.
    reading : Reading, optional
        How files of text are read.

    Yields
    ------
    scipy.sparse.csr_array
        The next rows, in the order of the nodes of the partition, without those that have no edges.

    Examples
    --------
    >>> import cvxnmf
    >>> from cvxnmf.io import row_pieces
    >>> edges = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]
    >>> found = cvxnmf.partition(edges, memory_limit="8 GB")
    >>> found.certificate.check(row_pieces(edges, memory_limit="8 GB")) == found.certificate.bound
    True
    """
    limit = None if memory_limit is None else limit_in_bytes(memory_limit)
    connection, reading = connection_of(graph, client), reading or Reading(weight is not None)
    return _rows(open_graph(graph, weight, reading, limit, connection, Progress(None)))


def _rows(opened: OpenedGraph) -> Iterator[Any]:
    """The rows of a graph opened in blocks, as its nodes are listed; it is closed in the end."""
    graph, order = opened.graph, opened.order
    try:
        if order is not None:
            masses, loops, counts = graph.facts
            facts = Facts(masses[order], loops[order], counts[order])
            graph = graph.aggregate(np.argsort(order).astype(np.int32), facts)
        for block in graph.blocks():
            yield from (rows for _, rows in pieces_of(block, graph.n))
    finally:
        if graph is not opened.graph:
            graph.close()
        opened.graph.close()
