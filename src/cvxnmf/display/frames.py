"""Results as data frames of pandas and dask and as networkx graphs; the packages are imported when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxnmf.chunked.graphs.worker_labels import CLUSTER, NODE, NODES_OF_A_PART, dask_frames
from cvxnmf.display.edges import EdgeList

if TYPE_CHECKING:
    from cvxnmf.results import Iterate, Partition, RankChoice, Top

#: What is measured for each number of components.
RANK_COLUMNS = ("n_components", "held_out", "spread", "stability", "value", "bound")


def history_frame(history: Sequence[Iterate]) -> Any:
    """Return a data frame of a history with a line for each iterate."""
    names = ("iteration", "seconds", "value", "bound", "gap", "rank")
    return _frame({name: [getattr(step, name) for step in history] for name in names})


def factor_frame(factor: Any, names: Sequence[Any] | None) -> Any:
    """Return a data frame of a factor with a line for each row and a column for each component."""
    return _frame({f"component {number}": factor[:, number] for number in range(factor.shape[1])}, names)


def top_frame(top: Top) -> Any:
    """Return a data frame with a line for each of the strongest rows and columns of each component."""
    lines = [
        (part.component, side, place, item.name, item.weight)
        for part in top
        for side, items in (("rows", part.rows), ("columns", part.columns))
        for place, item in enumerate(items, 1)
    ]
    return _frame(
        {name: [line[at] for line in lines] for at, name in enumerate(("component", "side", "place", "name", "weight"))}
    )


def rank_frame(choice: RankChoice) -> Any:
    """Return a data frame of a choice of rank with a line for each number of components."""
    return _frame({name: [getattr(row, name) for row in choice.table] for name in RANK_COLUMNS})


def partition_frame(partition: Partition) -> Any:
    """Return a data frame with a line for each node: its cluster, its membership there, and its shares in all clusters.

    Of a graph in blocks only the clusters are known.
    """
    if partition.in_blocks:
        return _frame({"node": list(partition.nodes), "cluster": partition.labels})
    shares = partition.memberships
    own = shares[np.arange(len(shares)), partition.labels]
    each = {f"share {cluster}": shares[:, cluster] for cluster in range(shares.shape[1])}
    return _frame({"node": list(partition.nodes), "cluster": partition.labels, "membership": own} | each)


def label_series(partition: Partition) -> Any:
    """Return a partition's labels, which are in this process, as a dask series of clusters by node."""
    dask, table = dask_frames(), _frame({CLUSTER: partition.labels.astype(np.int32, copy=False)}, list(partition.nodes))
    return dask.from_pandas(table[CLUSTER].rename_axis(NODE), npartitions=-(-len(table) // NODES_OF_A_PART), sort=False)


def _frame(columns: Mapping[str, Any], index: Sequence[Any] | None = None) -> Any:
    """Return a pandas data frame with given columns."""
    return _package("pandas", "data frames").DataFrame(dict(columns), index=index)


def networkx_graph(partition: Partition) -> Any:
    """Return the partitioned graph as one of networkx, its nodes with their clusters and memberships."""
    graph, names = _package("networkx", "graphs of networkx").Graph(), partition.nodes
    rows = zip(names, partition.labels.tolist(), partition.memberships.tolist(), strict=True)
    graph.add_nodes_from((node, {"cluster": cluster, "membership": shares[cluster]}) for node, cluster, shares in rows)
    edges = EdgeList.of(partition)
    ends = zip(edges.first.tolist(), edges.second.tolist(), edges.weights.tolist(), strict=True)
    graph.add_weighted_edges_from((names[i], names[j], weight) for i, j, weight in ends)
    return graph


def igraph_clustering(partition: Partition) -> Any:
    """Return the clusters of the partitioned graph as igraph has them."""
    igraph, edges, labels = _package("igraph", "graphs of igraph"), EdgeList.of(partition), partition.labels
    graph = igraph.Graph(n=len(labels), edges=np.column_stack([edges.first, edges.second]).tolist())
    graph.es["weight"] = edges.weights.tolist()
    graph.vs["name"], graph.vs["cluster"] = list(partition.nodes), labels.tolist()
    graph.vs["membership"] = partition.memberships[np.arange(len(labels)), labels].tolist()
    return igraph.VertexClustering(graph, membership=labels.tolist())


def _package(name: str, purpose: str) -> Any:
    """Import a package for data frames or graphs that a plain installation lacks, or say how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"{purpose} need {name}; install it with: pip install {name}.") from None
