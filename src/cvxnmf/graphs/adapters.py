"""Graphs of other packages as node names and a symmetric, sparse adjacency matrix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.linalg.symmetry import asymmetry, rounding_asymmetry

#: Headings that name the ends of an edge, and its weight, in a data frame.
ENDS = (("source", "target"), ("from", "to"), ("node_1", "node_2"), ("u", "v"))
WEIGHTS = ("weight", "weights")


class NamedGraph(NamedTuple):
    """Names of the nodes, their symmetric adjacency matrix in compressed rows, and what a person should know of it."""

    nodes: tuple[Any, ...]
    A: Any
    note: str | None = None


def named_graph(graph: Any, weight: str | None = "weight") -> NamedGraph:
    """Read a graph of any kind that is understood; directed ones are symmetrised, with a note.

    Parameters
    ----------
    graph : networkx or igraph graph, scipy.sparse matrix, array-like, or data frame
        A data frame is an adjacency matrix if its rows and columns have the same names, else a list of edges: the columns
        "source" and "target" (or "from" and "to"), else the first two, and perhaps one of weights: "weight", else a third one.
    weight : str or None
        The edge attribute that holds weights, where there is one; None ignores weights.

    Returns
    -------
    NamedGraph
        Weights of repeated edges add up; edges of weight 0 are left out; a self-loop stands once on the diagonal.
    """
    if hasattr(graph, "adj") and hasattr(graph, "is_directed"):
        return _from_networkx(graph, weight)
    if hasattr(graph, "get_edgelist") and hasattr(graph, "vs"):
        return _from_igraph(graph, weight)
    if hasattr(graph, "columns") and hasattr(graph, "to_numpy"):
        return _from_frame(graph, weight)
    if isinstance(graph, str | bytes):
        validation.refuse("The graph is a string; read the file first, for example with networkx, or run: cvxnmf partition FILE.")
    return _from_matrix(graph, weight)


def _from_networkx(graph: Any, weight: str | None) -> NamedGraph:
    nodes = tuple(graph.nodes)
    edges = [(u, v, 1.0 if weight is None else data.get(weight, 1.0)) for u, v, data in graph.edges(data=True)]
    _require_known(weight, any(weight in data for _, _, data in graph.edges(data=True)))
    return _from_edges(nodes, edges, bool(graph.is_directed()))


def _from_igraph(graph: Any, weight: str | None) -> NamedGraph:
    attributes = graph.vs.attributes()
    label = next((name for name in ("name", "label", "id") if name in attributes), None)
    names = list(graph.vs[label]) if label else []
    nodes = tuple(names) if label and len(set(names)) == len(names) else tuple(range(graph.vcount()))
    _require_known(weight, weight in graph.es.attributes())
    weights = graph.es[weight] if weight in graph.es.attributes() else [1.0] * graph.ecount()
    edges = [(nodes[i], nodes[j], w) for (i, j), w in zip(graph.get_edgelist(), weights, strict=True)]
    return _from_edges(nodes, edges, bool(graph.is_directed()))


def _from_frame(frame: Any, weight: str | None) -> NamedGraph:
    """A data frame: an adjacency matrix with names, or a list of edges."""
    columns = list(frame.columns)
    if len(frame) == len(columns) and hasattr(frame, "index") and list(frame.index) == columns and len(columns) > 0:
        return _from_matrix(frame.to_numpy(), weight)._replace(nodes=tuple(columns))
    if len(columns) < 2:
        validation.refuse("A data frame of edges needs two columns of node names, and perhaps one of weights.")
    known = {str(name).lower(): name for name in columns}
    ends = next(([known[a], known[b]] for a, b in ENDS if a in known and b in known), columns[:2])
    named = next((known[name] for name in (weight, *WEIGHTS) if name in known), None)
    _require_known(weight, weight in columns or weight in known)
    third = next((name for name in columns if name not in ends), None) if len(columns) == 3 else None
    column = None if weight is None else third if named is None else named
    weights = [1.0] * len(frame) if column is None else list(frame[column])
    first, second = (list(frame[name]) for name in ends)
    if any(name != name or name is None for name in (*first, *second)):
        validation.refuse("The data frame of edges has missing node names; drop those rows first.")
    return _from_edges(tuple(dict.fromkeys([*first, *second])), list(zip(first, second, weights, strict=True)), False)


def _require_known(weight: str | None, present: bool) -> None:
    """Refuse a name of weights that was asked for and is nowhere."""
    if weight not in (None, "weight") and not present:
        validation.refuse(f"No edge has the weight {weight!r}; check its name, or pass weight=None to count every edge as 1.")


def _from_edges(nodes: tuple[Any, ...], edges: list[tuple[Any, Any, Any]], directed: bool) -> NamedGraph:
    place = {name: number for number, name in enumerate(nodes)}
    try:
        weights = np.array([1.0 if w is None else float(w) for _, _, w in edges], dtype=np.float64)
    except (TypeError, ValueError):
        wrong = next(edge for edge in edges if not isinstance(edge[2], int | float | np.number | None))
        validation.refuse(f"The edge from {wrong[0]!r} to {wrong[1]!r} has the weight {wrong[2]!r}, which is not a number.")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        u, v, w = edges[int(bad[0])]
        validation.refuse(f"The edge from {u!r} to {v!r} has the weight {w!r}; only finite weights of at least 0 are allowed.")
    rows = np.array([place[u] for u, _, _ in edges], dtype=np.intp)
    columns = np.array([place[v] for _, v, _ in edges], dtype=np.intp)
    n = len(nodes)
    A = sp.csr_array((weights, (rows, columns)), shape=(n, n))
    if directed:
        return _symmetrised(nodes, _tidy(A))
    upper = sp.csr_array((weights, (np.minimum(rows, columns), np.maximum(rows, columns))), shape=(n, n))
    return NamedGraph(nodes, _tidy(upper + sp.csr_array(sp.triu(upper, 1)).T))


def _from_matrix(graph: Any, weight: str | None) -> NamedGraph:
    A = validation.adjacency_matrix(graph)
    if weight is None:
        A.data[:] = 1.0
    nodes = tuple(range(A.shape[0]))
    if asymmetry(A) > rounding_asymmetry(A):
        return _symmetrised(nodes, A)
    return NamedGraph(nodes, _tidy(validation.symmetrise(A, "the adjacency matrix", dtype=getattr(graph, "dtype", float))))


def _tidy(A: Any) -> Any:
    """Compressed rows without duplicates and zeros."""
    matrix = sp.csr_array(A)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _symmetrised(nodes: tuple[Any, ...], A: Any) -> NamedGraph:
    """An undirected graph of a directed one: joined where either direction is, weights averaged."""
    if _equal(A.data):
        how, both = "joined where either direction is", A.maximum(A.T)
    else:
        how, both = "weights of the two directions averaged", (A + A.T) / 2
    note = f"The graph is directed and was made undirected: {how}." if abs(A - A.T).nnz else None
    return NamedGraph(nodes, _tidy(both), note)


def _equal(weights: Iterable[float]) -> bool:
    values = np.asarray(weights)
    return bool(len(values) == 0 or (values == values[0]).all())
