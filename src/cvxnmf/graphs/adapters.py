"""Graphs of other packages as node names and a symmetric, sparse adjacency matrix.

What can be read in one way only is read; what might be an adjacency matrix, a list of edges or a table of something else is
refused with a sentence that says how to pass it.
"""

from __future__ import annotations

import warnings
from collections.abc import Set
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.linalg.arrays import csr_without_zeros
from cvxnmf.linalg.symmetry import asymmetry, mirror_upper, rounding_asymmetry

#: Headings that name the ends of an edge, and its weight, in a data frame.
ENDS = (("source", "target"), ("from", "to"), ("node_1", "node_2"), ("u", "v"))
WEIGHTS = ("weight", "weights")
#: How a data frame of edges is made unmistakable.
HOW_TO_PASS = 'name two columns of it "source" and "target", and one of weights "weight", or pass an adjacency matrix'


class NamedGraph(NamedTuple):
    """A graph read by an adapter: names of nodes, symmetric adjacency matrix, a note, what it was read from, its name."""

    nodes: tuple[Any, ...]
    A: Any
    note: str | None = None
    origin: str = "an adjacency matrix"
    name: str = ""


def named_graph(graph: Any, weight: str | None = "weight", signed: bool = False) -> NamedGraph:
    """Adapt a graph of any kind that is understood to names and a matrix; directed ones are symmetrised, with a note.

    The kinds of graphs and the attribute `weight` are those of :func:`partition`; `signed` weights may be negative. Weights of
    repeated edges add up; edges of weight 0 are left out; a self-loop stands once on the diagonal.
    """
    require_attribute(weight)
    if hasattr(graph, "adj") and hasattr(graph, "is_directed"):
        name = str(getattr(graph, "name", "") or "")
        return _from_networkx(graph, weight, signed)._replace(origin="a networkx graph", name=name)
    if hasattr(graph, "get_edgelist") and hasattr(graph, "vs"):
        name = str(graph["name"] or "") if "name" in graph.attributes() else ""
        return _from_igraph(graph, weight, signed)._replace(origin="an igraph graph", name=name)
    if hasattr(graph, "columns") and hasattr(graph, "to_numpy"):
        return _from_frame(graph, weight, signed)
    if isinstance(graph, str | bytes):
        validation.refuse(
            "The graph is a string; read the file first, for example with networkx, run: cvxnmf partition FILE, or give a "
            "memory_limit to work on a file of edges."
        )
    if hasattr(graph, "obsp"):
        validation.refuse('The graph is an AnnData; pass the graph of its cells, such as adata.obsp["connectivities"].')
    if isinstance(graph, list | tuple | Set) and graph and all(isinstance(edge, tuple) for edge in graph):
        in_order = sorted(graph, key=repr) if isinstance(graph, set | frozenset) else graph  # that of a set changes with each run
        return _from_tuples(list(in_order), weight, signed)
    return _from_array(graph, weight, signed)


def announced_graph(graph: Any, weight: str | None, objective: str | None, signed: bool = False) -> NamedGraph:
    """A graph of any kind for labels of an objective, with warnings of what was decided, and of loops that count otherwise."""
    named = named_graph(graph, weight, signed)
    notes = [named.note] if named.note else []
    if objective == "modularity" and named.origin in ("a networkx graph", "an igraph graph") and named.A.diagonal().any():
        notes.append(
            "The graph has self-loops, which count once in degrees here, and twice in networkx's and igraph's modularity; for "
            "theirs pass its adjacency matrix with the diagonal doubled."
        )
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=3)
    return named


def _from_networkx(graph: Any, weight: str | None, signed: bool) -> NamedGraph:
    _require_weights(weight, any(weight in data for _, _, data in graph.edges(data=True)))
    edges = [(u, v, data.get(weight, 1.0)) for u, v, data in graph.edges(data=True)]  # list(...) would count the edges first
    return _from_edges(tuple(graph.nodes), edges, bool(graph.is_directed()), signed)


def _from_igraph(graph: Any, weight: str | None, signed: bool) -> NamedGraph:
    attributes = graph.vs.attributes()
    label = next((name for name in ("name", "label", "id") if name in attributes), None)
    names = list(graph.vs[label]) if label else []
    nodes = tuple(names) if label and len(set(names)) == len(names) else tuple(range(graph.vcount()))
    _require_weights(weight, weight in graph.es.attributes())
    weights = graph.es[weight] if weight in graph.es.attributes() else [1.0] * graph.ecount()
    edges = [(nodes[i], nodes[j], w) for (i, j), w in zip(graph.get_edgelist(), weights, strict=True)]
    return _from_edges(nodes, edges, bool(graph.is_directed()), signed)


def _from_frame(frame: Any, weight: str | None, signed: bool) -> NamedGraph:
    """Adapt a data frame: an adjacency matrix with names, or a list of edges."""
    found = edge_columns(frame, weight)
    if found is None:
        columns, rows = list(frame.columns), {str(name): number for number, name in enumerate(frame.index)}
        same_order = [rows[str(name)] for name in columns]
        return _from_matrix(frame.to_numpy()[same_order], weight, signed)._replace(nodes=tuple(columns))
    ends, column = found
    weights = [1.0] * len(frame) if column is None else list(frame[column])
    first, second = (list(frame[name]) for name in ends)
    if any(name is None or name != name for name in (*first, *second)):
        validation.refuse("The data frame of edges has missing node names; drop those rows first.")
    edges = list(zip(first, second, weights, strict=True))
    named = _from_edges(_nodes_of_edges(edges), edges, False, signed)
    return named._replace(origin=f"a data frame of edges in the columns {ends[0]!r} and {ends[1]!r}")


def edge_columns(frame: Any, weight: str | None) -> tuple[list[Any], Any] | None:
    """The columns of node names of a data frame of edges, and that of weights or None; None if it is an adjacency matrix."""
    columns = list(frame.columns)
    if len(set(columns)) < len(columns):
        validation.refuse(f"The data frame has several columns of the same name; {HOW_TO_PASS}.")
    kinds = {name: _kind(frame[name]) for name in columns}
    rows = set(map(str, getattr(frame, "index", ()))) if len(frame) == len(columns) else set()
    if len(rows) == len(columns) and rows == set(map(str, columns)) and "names" not in kinds.values():
        return None
    _require_weights(weight, weight in columns or weight in [str(name).lower() for name in columns])
    ends, column = _edge_columns(kinds, weight, len(frame))
    return ends, None if weight is None else column


def _edge_columns(kinds: dict[Any, str], weight: str | None, n_rows: int) -> tuple[list[Any], Any]:
    """The two columns of a frame's node names, and the one of weights or None; refused if they can be chosen in several ways."""
    if len(kinds) < 2:
        validation.refuse("A data frame of edges needs two columns of node names, and perhaps one of weights.")
    known = {str(name).lower(): name for name in kinds}
    column = weight if weight in kinds else next((known[name] for name in (weight, *WEIGHTS) if name in known), None)
    ends = next(([known[a], known[b]] for a, b in ENDS if a in known and b in known), None)
    if ends is None:
        others = [name for name in kinds if name != column]
        names = [name for name in others if kinds[name] == "names"]
        whole = [name for name in others if kinds[name] == "whole numbers"]
        ends = names or whole
        if len(ends) != 2 or len(others) > (3 if column is None else 2) or (not names and whole != others[:2]):
            validation.refuse(
                f"The data frame of {n_rows} rows and {len(kinds)} columns is neither an adjacency matrix, whose rows and "
                f"columns have the same names, nor clearly a list of edges; {HOW_TO_PASS}."
            )
    rest = [name for name in kinds if name not in ends]
    return ends, rest[0] if column is None and len(rest) == 1 else column


def _kind(column: Any) -> str:
    """What a column of a data frame of edges holds: whole numbers, other numbers, or names."""
    values = np.asarray(column)
    if values.dtype.kind != "O":
        return {"i": "whole numbers", "u": "whole numbers", "f": "numbers", "b": "numbers"}.get(values.dtype.kind, "names")
    if not all(isinstance(value, Real) for value in values):
        return "names"
    return "whole numbers" if all(isinstance(value, Integral) for value in values) else "numbers"


def _from_tuples(edges: list[tuple[Any, ...]], weight: str | None, signed: bool) -> NamedGraph:
    """Adapt edges as pairs (u, v), or triples (u, v, weight), whose weight may stand in a dictionary, as networkx lists edges."""
    if any(len(edge) not in (2, 3) for edge in edges):
        validation.refuse(
            "A list of tuples is a list of edges (u, v) or (u, v, weight), and a tuple here has another length; "
            "pass an adjacency matrix as numpy.array(rows)."
        )
    if len(edges) == 3 and all(len(edge) == 3 and all(isinstance(x, Real) for x in edge) for edge in edges):
        validation.refuse(
            "Three tuples of three numbers may be edges with weights or an adjacency matrix; "
            'pass numpy.array(rows), or a data frame with columns "source", "target" and "weight".'
        )
    if any(name is None or (isinstance(name, float) and np.isnan(name)) for edge in edges for name in edge[:2]):
        validation.refuse("An edge of the list lacks the name of a node (None or NaN); leave it out, or name its nodes.")
    _require_weights(weight, any(len(edge) == 3 and isinstance(edge[2], dict) and weight in edge[2] for edge in edges))
    weighted = [(edge[0], edge[1], _weight_of(edge, weight)) for edge in edges]
    return _from_edges(_nodes_of_edges(weighted), weighted, False, signed)._replace(origin="a list of edges")


def _weight_of(edge: tuple[Any, ...], weight: str | None) -> Any:
    """The weight of a listed edge, 1 where it has none or none is asked for."""
    if len(edge) == 2 or weight is None:
        return 1.0
    return edge[2].get(weight, 1.0) if isinstance(edge[2], dict) else edge[2]


def _nodes_of_edges(edges: list[tuple[Any, Any, Any]]) -> tuple[Any, ...]:
    """The nodes of a list of edges, line by line as they first occur; whole numbers rising, and labels in their order."""
    names = dict.fromkeys(name for edge in edges for name in edge[:2])
    return tuple(sorted(names) if all(isinstance(name, Integral) for name in names) else names)


def _from_array(graph: Any, weight: str | None, signed: bool) -> NamedGraph:
    """Adapt an array: an adjacency matrix, or pairs of whole numbers in two columns."""
    if isinstance(graph, np.ndarray | list | tuple):
        try:
            pairs = np.asarray(graph)
        except ValueError:  # rows of several lengths
            return _from_matrix(graph, weight, signed)
        whole = pairs.dtype.kind in "iu" and pairs.shape[0] != 2
        if pairs.ndim == 2 and pairs.shape[1] == 2 and (whole or pairs.dtype.kind == "U"):
            return _from_tuples([(u, v) for u, v in pairs.tolist()], weight, signed)
        if pairs.ndim == 2 and pairs.shape[0] == 2 < pairs.shape[1] and pairs.dtype.kind in "iuUO":
            validation.refuse(
                f"Two rows of {pairs.shape[1]} entries look like the ends of edges; pass pairs, as in numpy.transpose(graph)."
            )
    return _from_matrix(graph, weight, signed)


def require_attribute(weight: Any) -> None:
    """Refuse a weight that names no attribute of a graph's edges."""
    if not isinstance(weight, str | int | None):
        validation.refuse(f"weight must be the name of an attribute of edges, or None to count every edge as 1, not {weight!r}.")


def _require_weights(weight: str | None, present: bool) -> None:
    """Refuse a name of edge weights that was asked for and that no edge has."""
    if weight not in (None, "weight") and not present:
        validation.refuse(f"No edge has the weight {weight!r}; check its name, or pass weight=None to count every edge as 1.")


def _from_edges(nodes: tuple[Any, ...], edges: list[tuple[Any, Any, Any]], directed: bool, signed: bool) -> NamedGraph:
    place = {name: number for number, name in enumerate(nodes)}
    try:
        weights = np.array([1.0 if w is None else float(w) for _, _, w in edges], dtype=np.float64)
    except (TypeError, ValueError):
        wrong = next(edge for edge in edges if not isinstance(edge[2], int | float | np.number | None))
        validation.refuse(f"The edge from {wrong[0]!r} to {wrong[1]!r} has the weight {wrong[2]!r}, which is not a number.")
    bad = np.flatnonzero(~np.isfinite(weights) | ((weights < 0) & (not signed)))
    if len(bad):
        u, v, w = edges[int(bad[0])]
        allowed = "finite weights" if signed else "finite weights of at least 0"
        validation.refuse(f"The edge from {u!r} to {v!r} has the weight {w!r}; only {allowed} are allowed.")
    rows = np.array([place[u] for u, _, _ in edges], dtype=np.intp)
    columns = np.array([place[v] for _, v, _ in edges], dtype=np.intp)
    if not directed:
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    A = csr_without_zeros(sp.coo_array((weights, (rows, columns)), shape=(len(nodes), len(nodes))))
    return _undirected_graph(nodes, A) if directed else NamedGraph(nodes, mirror_upper(A))


def _from_matrix(graph: Any, weight: str | None, signed: bool) -> NamedGraph:
    A = validation.adjacency_matrix(graph, signed)
    if weight is None:
        A = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    nodes = tuple(range(A.shape[0]))
    difference = asymmetry(A)
    if difference > rounding_asymmetry(A):
        return _undirected_graph(nodes, A)
    if difference == 0.0:
        return NamedGraph(nodes, A)
    return NamedGraph(nodes, validation.symmetrise(A, "the adjacency matrix", dtype=getattr(graph, "dtype", float)))


def _undirected_graph(nodes: tuple[Any, ...], A: Any) -> NamedGraph:
    """The undirected graph of a directed one: joined where either direction is, weights averaged."""
    if not A.nnz or np.ptp(A.data) == 0:
        how, both = "joined where either direction is", A.maximum(A.T)
    else:
        how, both = "weights of the two directions averaged", (A + A.T) / 2
    note = f"The graph is directed and was made undirected: {how}." if abs(A - A.T).nnz else None
    return NamedGraph(nodes, sp.csr_array(both), note)
