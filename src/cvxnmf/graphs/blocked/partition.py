"""Partition a graph in blocks of rows: out of core, on Dask, or in memory as the same blocks."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from cvxnmf import validation
from cvxnmf.certificates import LabelStatement
from cvxnmf.chunked.conductor import conduct
from cvxnmf.chunked.dask_connection import Connection
from cvxnmf.chunked.graphs import open as sources
from cvxnmf.chunked.graphs.blocks import BlockedGraph, RowBlock
from cvxnmf.chunked.graphs.frames import Columns
from cvxnmf.chunked.graphs.text import Reading
from cvxnmf.chunked.graphs.worker_labels import WorkerLabels, WorkerNames
from cvxnmf.chunked.memory import limit_in_bytes
from cvxnmf.convex.coarsening import MOST_DIRECTIONS
from cvxnmf.graphs.block_model import size_order
from cvxnmf.graphs.blocked.description import Outline, describe_blocks
from cvxnmf.graphs.blocked.groups import SummedGraph, sum_over_groups
from cvxnmf.graphs.blocked.model import BlockedModel
from cvxnmf.graphs.blocked.open import OpenedGraph, Progress, connection_of, frame_columns, open_frame, open_graph
from cvxnmf.graphs.blocked.search import Report, exactly, find_clusters, find_modular
from cvxnmf.graphs.label_bounds.verify import label_statement
from cvxnmf.results import Iterate, Partition
from cvxnmf.results.hierarchy import Code
from cvxnmf.results.partition import REFUSED


class Aim(NamedTuple):
    """Aim of a search in blocks: a number of clusters, if that is asked for, by likelihood, or by modularity at a resolution."""

    n_clusters: int | None
    likelihood: bool
    resolution: float


class Summary(NamedTuple):
    """What a search in blocks found, but for what is as long as there are nodes."""

    entries: int
    sizes: Any
    measures: dict[str, float]
    alternatives: tuple[tuple[int, float], ...]
    code: Code | None
    statement: LabelStatement
    origin: str
    #: Clusters that the model tells apart.
    modelled: int


class Outcome(NamedTuple):
    """Outcome of a search in blocks: nodes as they are listed, their labels, sums for the convex model, and the rest."""

    nodes: Any
    labels: Any
    summed: SummedGraph
    summary: Summary

    @property
    def named(self) -> bool:
        """Whether text names the nodes of a data frame, instead of whole numbers."""
        return bool(self.nodes.are_text)


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
    aim, report = Aim(n_clusters, likelihood, resolution), Progress(callback)
    limit = None if memory_limit is None else limit_in_bytes(memory_limit)
    connection = connection_of(graph, client)
    if connection is not None and sources.is_dask_frame(graph):
        return _partition_frame(connection, graph, weight, aim, report, options)
    opened = open_graph(graph, weight, reading or Reading(weight is not None), limit, connection, report)
    found = search(opened, aim, report)
    return as_partition(found.summary, found.nodes, found.labels, lambda: found.summed, options)


def search(opened: OpenedGraph, aim: Aim, report: Report) -> Outcome:
    """Search the clusters of an opened graph, and close it."""
    with ExitStack() as stack:
        stack.callback(opened.graph.close)
        graph = opened.graph
        asked = None if aim.n_clusters is None else validation.clusters(aim.n_clusters, graph.n)
        described = describe_blocks(graph, aim.likelihood)
        if described.blocks is not graph:
            stack.callback(described.blocks.close)
        found = find_clusters(described, report) if aim.likelihood else find_modular(described, aim.resolution, report)
        found = found if asked is None else exactly(found, asked)
        report("sums over groups", 0.95)
        few = found if int(found.labels.max()) < MOST_DIRECTIONS else exactly(found, MOST_DIRECTIONS)  # more would take long
        summed = sum_over_groups(graph, few.labels, described.simple)
        labels = np.argsort(size_order(found.labels)).astype(np.int32)[found.labels]
        listed = opened.as_listed(labels)
        summary = Summary(
            entries=graph.entries + int(np.count_nonzero(graph.facts.loops)),
            sizes=np.bincount(listed),
            measures=_measures(graph, labels, len(opened.nodes)),
            alternatives=found.alternatives,
            code=found.description.code,
            statement=label_statement("modularity", 1.0 if aim.likelihood else aim.resolution, asked, graph.n),
            origin=opened.origin,
            modelled=int(few.labels.max()) + 1,
        )
        return Outcome(opened.nodes, listed, summed if opened.order is None else summed.in_order(opened.order), summary)


def as_partition(
    found: Summary,
    nodes: Any,
    labels: Any,
    summed: Callable[[], SummedGraph],
    options: dict[str, Any],
    series: Callable[[], Any] | None = None,
) -> Partition:
    """The partition of a graph in blocks; labels and sums may be somewhere else until they are looked at."""
    n, model = len(nodes), BlockedModel(summed, found.modelled, options)
    nowhere: dict[str, Any] = dict.fromkeys(("memberships", "hierarchy", "factors", "label_proof"), _refuse)
    proof: dict[str, Any] = {"solution": model.solve, "spectrum": model.spectrum, "noise_edge": model.noise_edge}
    known: Callable[[], Any] = cache(labels if callable(labels) else lambda: labels)
    return Partition(
        nodes=nodes,
        labels=cast(Any, known),
        A=Outline((n, n), found.entries, None),
        **cast(dict[str, Any], found.measures),
        **nowhere,
        **proof,
        order=cast(Any, lambda: np.argsort(known(), kind="stable")),
        label_statement=found.statement,
        alternatives=found.alternatives,
        code=found.code,
        origin=found.origin,
        in_blocks=True,
        known_sizes=found.sizes,
        series=series,
    )


def _refuse() -> NoReturn:
    validation.refuse(REFUSED)


# A dask data frame: one of the workers conducts the search -----------------------------------------------------------------


def _partition_frame(
    connection: Connection, frame: Any, weight: str | None, aim: Aim, report: Progress, options: dict[str, Any]
) -> Partition:
    """Partition a dask data frame of edges on the workers, where labels, names and sums stay until they are looked at.

    They are fetched at once if the connection ends with the call.
    """
    try:
        arguments = frame.to_delayed(), frame_columns(frame, weight), aim
        found = conduct(connection, f"cvxnmf-search-{uuid.uuid4().hex}", search_frame, arguments, report)
        if connection.owned:
            here = Outcome(*map(found.fetch, Outcome._fields))
            return as_partition(here.summary, here.nodes, here.labels, lambda: here.summed, options)
        summary, labels, summed = found.fetch("summary"), partial(found.fetch, "labels"), partial(found.fetch, "summed")
        n = int(summary.sizes.sum())
        there = WorkerLabels(found, n, found.fetch("named"))
        return as_partition(summary, WorkerNames(found, n), labels, summed, options, there.series)
    finally:
        connection.close()


def search_frame(connection: Connection, report: Report, partitions: list[Any], columns: Columns, aim: Aim) -> Outcome:
    """Search the clusters of a data frame's edges as the conductor."""
    opened = open_frame(connection, partitions, columns, report)
    return search(opened, aim, report)._replace(nodes=opened.nodes.between(0, len(opened.nodes)))


# Measures ------------------------------------------------------------------------------------------------------------------


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
