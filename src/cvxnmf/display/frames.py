"""Results as data frames of pandas and dask and as networkx graphs; the packages are imported when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxnmf.chunked.graphs.series import CLUSTER, NODE, NODES_OF_A_PART, dask_frames

if TYPE_CHECKING:
    from cvxnmf.results import Iterate, Partition, RankChoice, Top

#: What is measured for each number of components.
RANK_COLUMNS = ("n_components", "held_out", "spread", "stability", "value", "bound")


def history_frame(history: Sequence[Iterate]) -> Any:
    """Return a data frame with a line for each iterate."""
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
    """Return a data frame with a line for each number of components."""
    return _frame({name: [getattr(row, name) for row in choice.table] for name in RANK_COLUMNS})


def partition_frame(partition: Partition) -> Any:
    """Return a data frame with a line for each node: its cluster, its membership there, and its shares in all clusters.

    Of graphs in blocks the clusters only.
    """
    if partition.in_blocks:
        return _frame({"node": list(partition.nodes), "cluster": partition.labels})
    shares = partition.memberships
    own = shares[np.arange(len(shares)), partition.labels]
    each = {f"share {cluster}": shares[:, cluster] for cluster in range(shares.shape[1])}
    return _frame({"node": list(partition.nodes), "cluster": partition.labels, "membership": own} | each)


def label_series(partition: Partition) -> Any:
    """Return a dask series of the clusters by node, of the labels in this process."""
    dask, table = dask_frames(), _frame({CLUSTER: partition.labels.astype(np.int32, copy=False)}, list(partition.nodes))
    return dask.from_pandas(table[CLUSTER].rename_axis(NODE), npartitions=-(-len(table) // NODES_OF_A_PART), sort=False)


def _frame(columns: Mapping[str, Any], index: Sequence[Any] | None = None) -> Any:
    """Return a data frame with these columns."""
    try:
        import pandas
    except ImportError:
        raise ImportError("data frames need pandas; install it with: pip install pandas.") from None
    return pandas.DataFrame(dict(columns), index=index)


def networkx_graph(partition: Partition) -> Any:
    """Return the graph that was partitioned, its nodes with their clusters and memberships."""
    try:
        import networkx
    except ImportError:
        raise ImportError("graphs of networkx need networkx; install it with: pip install networkx.") from None
    graph = networkx.Graph()
    rows = zip(partition.nodes, partition.labels.tolist(), partition.memberships.tolist(), strict=True)
    graph.add_nodes_from((node, {"cluster": cluster, "membership": shares[cluster]}) for node, cluster, shares in rows)
    partition.require_memory()
    matrix = partition.A.tocoo()
    upper = matrix.row <= matrix.col
    ends = zip(matrix.row[upper].tolist(), matrix.col[upper].tolist(), matrix.data[upper].tolist(), strict=True)
    graph.add_weighted_edges_from((partition.nodes[i], partition.nodes[j], weight) for i, j, weight in ends)
    return graph


def igraph_clustering(partition: Partition) -> Any:
    """Return the clusters of the graph that was partitioned as igraph has them."""
    try:
        import igraph
    except ImportError:
        raise ImportError("graphs of igraph need igraph; install it with: pip install igraph.") from None
    partition.require_memory()
    matrix = partition.A.tocoo()
    upper = matrix.row <= matrix.col
    graph = igraph.Graph(n=len(partition.nodes), edges=np.column_stack([matrix.row[upper], matrix.col[upper]]).tolist())
    graph.es["weight"] = matrix.data[upper].tolist()
    graph.vs["name"], graph.vs["cluster"] = list(partition.nodes), partition.labels.tolist()
    graph.vs["membership"] = partition.memberships[np.arange(len(partition.nodes)), partition.labels].tolist()
    return igraph.VertexClustering(graph, membership=partition.labels.tolist())
