"""Partition a graph in blocks of rows: out of core, on Dask, or in memory as the same blocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, NoReturn, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.chunked.connection import open_connection
from cvxnmf.chunked.graphs import open as sources
from cvxnmf.chunked.graphs.blocks import BlockedGraph, RowBlock
from cvxnmf.chunked.graphs.build import graph_of_edges, graph_of_matrix
from cvxnmf.chunked.graphs.cluster import Workers, sent_graph
from cvxnmf.chunked.graphs.frames import Columns, DaskEdges, graph_of_frame
from cvxnmf.chunked.graphs.local import LocalGraph
from cvxnmf.chunked.graphs.pieces import EdgeSource, FrameEdges
from cvxnmf.chunked.graphs.series import WorkerNames
from cvxnmf.chunked.graphs.shelf import DiskShelf
from cvxnmf.chunked.graphs.text import Reading
from cvxnmf.chunked.memory import DEFAULTS, limit_in_bytes, resident_bytes
from cvxnmf.convex.coarsening import MOST_DIRECTIONS
from cvxnmf.graphs.adapters import edge_columns, named_graph
from cvxnmf.graphs.blocked.description import Outline, describe_blocks
from cvxnmf.graphs.blocked.groups import sum_over_groups
from cvxnmf.graphs.blocked.model import BlockedModel
from cvxnmf.graphs.blocked.rounds import Numbers
from cvxnmf.graphs.blocked.search import Found, exactly, find_clusters, find_modular
from cvxnmf.graphs.label_bounds.verify import label_statement
from cvxnmf.linalg.threads import thread_count
from cvxnmf.results import Iterate, Partition
from cvxnmf.results.partition import REFUSED

#: Share of the whole work after which the graph is read.
READ = 0.3


def needs_blocks(graph: Any, memory_limit: Any, client: Any) -> bool:
    """Whether a graph is worked on in blocks of rows: somebody asks for it, or its edges are a dask data frame."""
    return memory_limit is not None or client is not None or sources.is_dask_frame(graph)


def partition_in_blocks(
    graph: Any,
    n_clusters: int | None,
    weight: str | None,
    objective: str,
    resolution: float,
    memory_limit: Any,
    client: Any,
    callback: Callable[[Iterate], Any] | None,
    reading: Reading | None = None,
    **options: Any,
) -> Partition:
    """The clusters of a graph in blocks, see :func:`partition`; how a file is read may be told, and options of the solver."""
    likelihood = validation.choice("objective", objective, ("likelihood", "modularity")) == "likelihood"
    if validation.number("resolution", resolution, minimum=0.0) != 1.0 and likelihood:
        validation.refuse("The objective 'likelihood' has no resolution; leave it out, or ask for 'modularity'.")
    validation.callback(callback)
    limit, report = None if memory_limit is None else limit_in_bytes(memory_limit), Progress(callback)
    opened = open_graph(graph, weight, reading or Reading(weight is not None), limit, client, report)
    with ExitStack() as stack:
        stack.callback(opened.graph.close)
        asked = None if n_clusters is None else validation.clusters(n_clusters, opened.graph.n)
        described = describe_blocks(opened.graph, likelihood)
        if described.blocks is not opened.graph:
            stack.callback(described.blocks.close)
        found = find_clusters(described, report) if likelihood else find_modular(described, resolution, report)
        found = found if asked is None else exactly(found, asked)
        report("sums over groups", 0.95)
        few = found if int(found.labels.max()) < MOST_DIRECTIONS else exactly(found, MOST_DIRECTIONS)  # more would take long
        model = opened.model(few.labels, described.simple, options)
        statement = label_statement("modularity", 1.0 if likelihood else resolution, asked, opened.graph.n)
        return opened.partition(found, statement, model)


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

    def __init__(
        self, graph: BlockedGraph, nodes: Any, listed: NDArray[np.intp] | None, origin: str, names: WorkerNames | None = None
    ) -> None:
        self.graph, self.nodes, self.listed, self.origin, self.names = graph, nodes, listed, origin, names

    @property
    def order(self) -> NDArray[np.intp] | None:
        """The rows of the nodes of a graph in blocks as they are listed, if that is another order than their own."""
        return self.listed if self.listed is not None and len(self.listed) == len(self.nodes) == self.graph.n else None

    def model(self, labels: Numbers, alike: bool, options: dict[str, Any]) -> BlockedModel:
        """The convex model of the opened graph's nodes as they are listed, from passes over its blocks now."""
        summed = sum_over_groups(self.graph, labels, alike)
        return BlockedModel(summed if self.order is None else summed.in_order(self.order), int(labels.max()) + 1, options)

    def partition(self, found: Found, statement: Any, model: BlockedModel) -> Partition:
        """The partition in blocks, clusters by decreasing size; nodes without edges go with the largest."""
        sizes = np.bincount(found.labels)
        rank = np.empty(len(sizes), dtype=np.int32)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes), dtype=np.int32)
        labels = rank[found.labels]
        measures: dict[str, Any] = _measures(self.graph, labels, len(self.nodes))
        if self.order is not None:
            labels = labels[self.order]
        elif self.listed is not None:  # rows of a matrix that are not empty
            whole = np.zeros(len(self.nodes), dtype=np.int32)
            whole[self.listed] = labels
            labels = whole
        entries = self.graph.entries + int(np.count_nonzero(self.graph.facts.loops))
        nowhere: dict[str, Any] = dict.fromkeys(("memberships", "hierarchy", "factors"), _refuse)
        proof: dict[str, Any] = {"solution": model.solve, "spectrum": model.spectrum, "noise_edge": model.noise_edge}
        return Partition(
            nodes=cast(tuple[Any, ...], self.nodes),
            labels=cast(NDArray[np.intp], labels),
            A=Outline((len(self.nodes), len(self.nodes)), entries, None),
            **measures,
            **nowhere,
            **proof,
            order=cast(Any, partial(np.argsort, labels, kind="stable")),
            label_proof=_refuse,
            label_statement=statement,
            alternatives=found.alternatives,
            code=found.description.code,
            origin=self.origin,
            in_blocks=True,
            series=None if self.names is None else partial(self.names.series, labels),
        )


def _refuse() -> NoReturn:
    validation.refuse(REFUSED)


def open_graph(graph: Any, weight: str | None, reading: Reading, limit: int | None, client: Any, report: Progress) -> OpenedGraph:
    """Open a graph to partition in blocks, on the workers of a cluster if there is one."""
    dask = sources.is_dask_frame(graph)
    connection = open_connection(client, DEFAULTS) if dask or client is not None else None
    if connection is None:
        return _open_here(graph, weight, reading, limit, report)
    try:
        workers = Workers(connection, DEFAULTS)
        if dask:
            nodes, names, spread = graph_of_frame(workers, graph, _columns(graph, weight), DiskShelf(), report)
            kept = None if connection.owned else names  # a client of ours is closed in the end
            return OpenedGraph(spread, nodes, nodes.order(), "a dask data frame of edges", kept)
        here = _open_here(graph, weight, reading, limit, report)
        there = OpenedGraph(sent_graph(workers, cast(LocalGraph, here.graph)), here.nodes, here.listed, here.origin)
        here.graph.close()
        return there
    except BaseException:
        connection.close()
        raise


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


def _columns(frame: Any, weight: str | None) -> Columns:
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
        return [DaskEdges(graph, _columns(graph, weight))], "a dask data frame of edges"
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


def _measures(graph: BlockedGraph, labels: Any, n: int) -> dict[str, Any]:
    """Modularity, and performance with and without the diagonal, of a partition in blocks, as graphs in memory have them."""
    (parts,) = graph.map_reduce(measures_block, labels)
    inside, entries = float(np.sum([part[0] for part in parts])), sum(part[1] for part in parts)
    total, masses = float(graph.facts.masses.sum()), np.bincount(labels, graph.facts.masses)
    loops = int(np.count_nonzero(graph.facts.loops))
    sizes = np.bincount(labels).astype(np.int64)
    sizes[0] += n - graph.n
    pairs = int(np.sum(sizes * sizes))
    wrong = pairs - n - entries + graph.entries - entries
    return {
        "modularity": inside / total - float(np.sum((masses / total) ** 2)),
        "performance": 1.0 - (wrong + n - loops) / (n * n),
        "off_diagonal_performance": 1.0 - wrong / (n * (n - 1)) if n > 1 else 1.0,
    }


def measures_block(block: RowBlock, state: Any, labels: Any) -> tuple[None, tuple[Any, ...]]:
    """The weight inside clusters in a block of a graph, and how many entries that is."""
    rows = np.repeat(labels[block.first : block.first + len(block.masses)], np.diff(block.indptr))
    same = rows == labels[block.indices]
    count = int(np.count_nonzero(same))
    weight = count * float(block.weights[0]) if len(block.weights) == 1 else float(np.sum(block.weights[same]))
    return None, (((weight + float(np.sum(block.loops)), count),),)
