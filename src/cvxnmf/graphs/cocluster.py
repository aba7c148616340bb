"""Clusters of the rows and columns of a table, and of the two sides of bipartite and directed graphs."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.convex.noise import rectangular_noise_edge
from cvxnmf.convex.rectangular import nonsymmetric
from cvxnmf.convex.solve import solve
from cvxnmf.graphs.adapters import require_attribute
from cvxnmf.graphs.clusters import Division, divide_into, find_clusters, in_any_order
from cvxnmf.linalg.arrays import FloatArray, csr_without_zeros
from cvxnmf.results import Solution
from cvxnmf.results.coclusters import CoClusters
from cvxnmf.typing import GraphLike

#: Entries up to which the spectrum of a table is asked whether it differs from noise.
SPECTRUM = 4_000_000


def cocluster(table: GraphLike, n_clusters: int | None = None, *, weight: str | None = "weight", tol: float = 1e-4) -> CoClusters:
    """Divide rows and columns of a table into clusters together: the same ones every time, with a proof of the model.

    The table is the graph that joins its rows with its columns, whose clusters are those of :func:`partition`; the convex model
    behind it is :func:`nonsymmetric`, solved when it is first looked at.

    Parameters
    ----------
    table : array-like, scipy.sparse matrix, data frame or networkx graph
        Nonnegative, of shape (m, n). A bipartite graph of networkx has the attribute ``bipartite`` on its nodes, 0 for rows. A
        directed graph keeps its directions: every node has a cluster as a source and one as a target of edges.
    n_clusters : int, optional
        Number of clusters; left out, it is that of the shortest description.
    weight : str or None
        Edge attribute with the weights of a networkx graph; None counts every edge as 1.
    tol : float
        Relative gap of the convex model.

    Returns
    -------
    CoClusters

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> found = cvxnmf.cocluster(np.kron(np.eye(3), np.ones((6, 5))))
    >>> found.n_clusters, found.column_labels[:6].tolist(), found.row_labels[:7].tolist()
    (3, [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1])
    """
    require_attribute(weight)
    rows, columns, A = _named_table(table, weight)
    if A.nnz:
        validation.magnitude(A, "kl")
    m = A.shape[0]
    graph = sp.csr_array(sp.block_array([[None, A], [A.T, None]]))
    asked = None if n_clusters is None else validation.clusters(n_clusters, sum(A.shape))
    division = in_any_order(graph, lambda ordered: _find(ordered, A, asked))
    return CoClusters(
        rows=rows,
        columns=columns,
        row_labels=division.labels[:m].astype(np.intp),
        column_labels=division.labels[m:].astype(np.intp),
        A=A,
        row_memberships=partial(_side, division, slice(None, m)),
        column_memberships=partial(_side, division, slice(m, None)),
        solution=partial(_solve, A, tol),
        alternatives=division.alternatives,
    )


def _find(graph: sp.csr_array, A: sp.csr_array, asked: int | None) -> Division:
    """The co-clusters of a table as a graph; where nothing shortens its description, the spectrum of the table decides."""
    if asked is not None:
        return divide_into(graph, asked)
    return find_clusters(graph, lambda: _directions_above_noise(A))


def _directions_above_noise(A: sp.csr_array) -> int:
    """In how many directions a table to be co-clustered differs from noise; 0 if it is too large to tell."""
    if A.shape[0] * A.shape[1] > SPECTRUM:
        return 0
    dense = A.toarray()
    dense = dense[dense.any(axis=1)][:, dense.any(axis=0)]
    residual = dense - np.outer(dense.sum(axis=1), dense.sum(axis=0)) / dense.sum()
    return int(np.count_nonzero(sl.svdvals(residual) > max(rectangular_noise_edge(dense), 1e-9 * float(dense.max()))))


def _side(division: Division, nodes: slice) -> FloatArray:
    return division.memberships()[nodes]


def _solve(A: sp.csr_array, tol: float) -> Solution:
    return solve(nonsymmetric(A, trace="auto"), tol=tol)


class _NamedTable(NamedTuple):
    rows: tuple[Any, ...]
    columns: tuple[Any, ...]
    A: sp.csr_array


def _named_table(table: Any, weight: str | None) -> _NamedTable:
    """Names of rows and columns of a table to be co-clustered, and the table in compressed rows."""
    if hasattr(table, "adj") and hasattr(table, "is_directed"):
        return _from_networkx(table, weight)
    if hasattr(table, "columns") and hasattr(table, "to_numpy"):
        names = tuple(table.index), tuple(table.columns)
        return _NamedTable(*names, csr_without_zeros(validation.nonnegative_matrix(table.to_numpy(), "the table")[0]))
    if sp.issparse(table):
        A = csr_without_zeros(table)
        validation.nonnegative_matrix(A.data[:, None] if A.nnz else np.zeros((1, 1)), "the table")
    else:
        A = csr_without_zeros(validation.nonnegative_matrix(table, "the table")[0])
    return _NamedTable(tuple(range(A.shape[0])), tuple(range(A.shape[1])), A)


def _from_networkx(graph: Any, weight: str | None) -> _NamedTable:
    import networkx as nx

    sides = nx.get_node_attributes(graph, "bipartite")
    if graph.is_directed():
        rows = columns = tuple(graph)
    elif len(sides) == len(graph) and set(sides.values()) == {0, 1}:
        rows, columns = (tuple(node for node in graph if sides[node] == side) for side in (0, 1))
    else:
        validation.refuse(
            "An undirected graph is co-clustered if all its nodes have the attribute 'bipartite', 0 or 1; "
            "for other graphs call partition."
        )
    A = csr_without_zeros(nx.bipartite.biadjacency_matrix(graph, rows, columns, weight=weight, dtype=float))
    validation.nonnegative_matrix(A.data[:, None] if A.nnz else np.zeros((1, 1)), "the table")
    return _NamedTable(rows, columns, A)
