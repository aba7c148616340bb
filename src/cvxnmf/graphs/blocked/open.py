"""Open a graph to work on it in blocks of rows: out of core, on Dask, or in memory as the same blocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.chunked.dask_connection import Connection, open_connection
from cvxnmf.chunked.graphs import open as sources
from cvxnmf.chunked.graphs.blocks import BlockedGraph
from cvxnmf.chunked.graphs.build import Report, graph_of_edges, graph_of_matrix
from cvxnmf.chunked.graphs.frames import Columns, DaskEdges, graph_of_frame
from cvxnmf.chunked.graphs.local import LocalGraph
from cvxnmf.chunked.graphs.on_dask import Workers, sent_graph
from cvxnmf.chunked.graphs.pieces import EdgeSource, FrameEdges
from cvxnmf.chunked.graphs.shelf import DiskShelf
from cvxnmf.chunked.graphs.text import Reading
from cvxnmf.chunked.memory import DEFAULTS, resident_bytes
from cvxnmf.graphs.adapters import edge_columns, named_graph
from cvxnmf.linalg.threads import thread_count
from cvxnmf.results import Iterate

#: Share of the whole work after which the graph is read.
READ = 0.3


def needs_blocks(graph: Any, memory_limit: Any, client: Any) -> bool:
    """Whether a graph is worked on in blocks of rows: somebody asks for it, or its edges are a dask data frame."""
    return memory_limit is not None or client is not None or sources.is_dask_frame(graph)


class Progress:
    """Progress of a partition in blocks: tells a callback the stage, and how much of the whole is done."""

    def __init__(self, callback: Callable[[Iterate], Any] | None) -> None:
        self.callback, self.began, self.count = callback, time.perf_counter(), 0

    def __call__(self, stage: str, share: float) -> None:
        """Tell of a stage of a partition in blocks, and the share of it while reading, else of the rest."""
        if self.callback is None:
            return
        self.count += 1
        reading = {"reading": 0.0, "sorting": 0.5}
        whole = READ * (reading[stage] + share / 2) if stage in reading else READ + (1.0 - READ) * share
        seconds = time.perf_counter() - self.began
        self.callback(Iterate(self.count, seconds, np.nan, np.nan, 0, stage=stage, share=whole))


class OpenedGraph:
    """A graph opened in blocks, the names of its nodes as they are listed, and which of them its rows are."""

    def __init__(self, graph: BlockedGraph, nodes: Any, listed: NDArray[np.intp] | None, origin: str) -> None:
        self.graph, self.nodes, self.listed, self.origin = graph, nodes, listed, origin

    @property
    def order(self) -> NDArray[np.intp] | None:
        """The rows of the nodes of a graph in blocks as they are listed, if that is another order than their own."""
        return self.listed if self.listed is not None and len(self.listed) == len(self.nodes) == self.graph.n else None

    def as_listed(self, labels: Any) -> Any:
        """The labels of the rows of a graph in blocks as its nodes are listed; nodes without edges have the label 0."""
        if self.order is not None:
            return labels[self.order]
        if self.listed is None:
            return labels
        whole = np.zeros(len(self.nodes), dtype=np.int32)
        whole[self.listed] = labels  # rows of a matrix that are not empty
        return whole


def connection_of(graph: Any, client: Any) -> Connection | None:
    """The connection to the Dask cluster that works on a graph in blocks; None if this process does."""
    return open_connection(client, DEFAULTS) if client is not None or sources.is_dask_frame(graph) else None


def open_graph(
    graph: Any, weight: str | None, reading: Reading, limit: int | None, connection: Connection | None, report: Progress
) -> OpenedGraph:
    """Open a graph to work on it in blocks, on the workers of a cluster if there is a connection to one."""
    if connection is None:
        return _open_here(graph, weight, reading, limit, report)
    try:
        if sources.is_dask_frame(graph):
            return open_frame(connection, graph.to_delayed(), frame_columns(graph, weight), report)
        here = _open_here(graph, weight, reading, limit, report)
        there = sent_graph(Workers(connection, DEFAULTS), cast(LocalGraph, here.graph))
        here.graph.close()
        return OpenedGraph(there, here.nodes, here.listed, here.origin)
    except BaseException:
        connection.close()
        raise


def open_frame(connection: Connection, partitions: list[Any], columns: Columns, report: Report) -> OpenedGraph:
    """Open the delayed partitions of a dask data frame on the workers of a cluster."""
    nodes, graph = graph_of_frame(Workers(connection, DEFAULTS), partitions, columns, DiskShelf(), report)
    return OpenedGraph(graph, nodes, nodes.order(), "a dask data frame of edges")


def _open_here(graph: Any, weight: str | None, reading: Reading, limit: int | None, report: Progress) -> OpenedGraph:
    """Open a graph to partition in blocks in this process."""
    shelf, threads, resident = DiskShelf(), thread_count(), resident_bytes()
    edges, origin = _edges(graph, weight, reading)
    if edges is not None:
        sources.threads_within(limit, 0, threads, resident)
        built = graph_of_edges(edges, shelf, 1, report)
        built.graph.threads = sources.threads_within(limit, len(built.nodes), threads, resident)
        return OpenedGraph(built.graph, built.nodes, built.nodes.order(), origin)
    nodes, A, _, origin, _ = named_graph(graph, weight)
    kept = np.flatnonzero(np.diff(A.indptr))
    if not len(kept):
        validation.refuse("The graph has no edges, so there is nothing to partition.")
    if len(kept) < A.shape[0]:
        A = sp.csr_array(A[kept][:, kept])
    threads = sources.threads_within(limit, len(kept), threads, resident)
    whole = len(kept) == len(nodes)
    return OpenedGraph(graph_of_matrix(A, shelf, threads), nodes, None if whole else kept, origin)


def frame_columns(frame: Any, weight: str | None) -> Columns:
    """The columns of the edges of a dask data frame to partition, by its first rows."""
    found = edge_columns(frame.head(npartitions=1), weight)
    if found is None:
        validation.refuse('The dask data frame is no list of edges; name two columns of it "source" and "target".')
    (tail, head), weights = found
    return Columns(tail, head, weights)


def _edges(graph: Any, weight: str | None, reading: Reading) -> tuple[list[EdgeSource] | None, str]:
    """Lists of edges to partition, in files or in memory; None for all other graphs."""
    if sources.is_path(graph) or sources.is_paths(graph):
        return sources.edge_files(graph, reading), "a list of edges"
    if sources.is_dask_frame(graph):
        return [DaskEdges(graph, frame_columns(graph, weight))], "a dask data frame of edges"
    if hasattr(graph, "columns") and hasattr(graph, "to_numpy"):
        columns = edge_columns(graph, weight)
        if columns is not None:
            ends, weights = columns
            values = None if weights is None else graph[weights].to_numpy()
            tails, heads = (graph[end].to_numpy() for end in ends)
            return [FrameEdges(tails, heads, values)], "a data frame of edges"
    if isinstance(graph, np.ndarray) and graph.ndim == 2 and graph.shape[1] == 2 != graph.shape[0] and graph.dtype.kind in "iu":
        return [FrameEdges(graph[:, 0], graph[:, 1], name="the array")], "a list of edges"
    return None, ""
