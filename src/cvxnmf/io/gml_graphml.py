"""GML and GraphML, by way of networkx."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from cvxnmf.io.adjacency import GraphFile, adjacency
from cvxnmf.io.separated import quote
from cvxnmf.io.source import Source

#: Attributes of edges that can be weights, in this order.
WEIGHTS = ("weight", "value")


def read_gml(source: Source, weights: bool = True) -> GraphFile:
    """Read a GML file: nodes by their labels if all have different ones, else by their ids."""
    networkx, text = _networkx(), source.text()
    notes: list[str] = []
    with source.parsed_as("a GML file"):
        for _ in range(3):  # a missing label and a repeated edge can each be mended once
            try:
                graph = networkx.parse_gml(text, label=None if notes else "label")
                break
            except networkx.NetworkXError as error:
                if "label" in str(error) and not notes:
                    notes.append("Labels are missing or not unique; nodes go by their ids.")
                elif "duplicated" in str(error) and "multigraph 1" not in text:
                    text = re.sub(r"\bgraph\s*\[", "graph [ multigraph 1 ", text, count=1, flags=re.IGNORECASE)
                else:
                    _refuse_gml(source, str(error))
    return _graph(source, graph, weights, notes)


def _refuse_gml(source: Source, words: str) -> NoReturn:
    """Say in which line networkx stopped, and what may have happened there."""
    found = re.search(r"(.*) at \((\d+), \d+\)\Z", " ".join(words.split()))
    if not found:
        source.refuse(f"cannot be read as a GML file: {' '.join(words.split())[:200].rstrip('.')}.")
    lines = max(len(source.text().splitlines()), 1)
    line = min(int(found[2]), lines)
    cut_off = "; is the file cut off?" if "EOF" in found[1] or line == lines else "."
    source.refuse(f"cannot be read as a GML file: {found[1].replace('EOF', 'the end of the file')[:200]}{cut_off}", line)


def read_graphml(source: Source, weights: bool = True) -> GraphFile:
    """Read a GraphML file: nodes by their ids."""
    networkx = _networkx()
    with source.parsed_as("a GraphML file"):
        graph = networkx.parse_graphml(source.text())
    return _graph(source, graph, weights, [])


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise ImportError("GML and GraphML files need networkx; install it with: pip install 'cvxnmf[app]'.") from None
    return networkx


def _graph(source: Source, graph: Any, weights: bool, notes: list[str]) -> GraphFile:
    """The nodes and the adjacency matrix; directed if the graph is."""
    if graph.number_of_nodes() == 0:
        source.refuse("holds no nodes; give a graph with at least one edge.")
    nodes = list(graph.nodes)
    place = {node: index for index, node in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    tails = np.array([place[tail] for tail, _, _ in edges], dtype=np.int64)
    heads = np.array([place[head] for _, head, _ in edges], dtype=np.int64)
    name = next((name for name in WEIGHTS if any(name in data for _, _, data in edges)), None) if weights else None
    if name == "value":
        notes.append("The edges' attribute 'value' is taken for their weights; --weights ignore leaves it out.")
    values = None if name is None else np.array(list(_weights(source, edges, name)))
    if not graph.is_directed():
        A, more = adjacency(len(nodes), tails, heads, values)
        return GraphFile(tuple(map(str, nodes)), A, (*notes, *more))
    A = sp.csr_array((np.ones(len(edges)) if values is None else values, (tails, heads)), shape=(len(nodes), len(nodes)))
    if values is None:
        A.data[:] = 1.0
    return GraphFile(tuple(map(str, nodes)), A, tuple(notes))


def _weights(source: Source, edges: list[tuple[Any, Any, dict[str, Any]]], name: str) -> Iterator[float]:
    """The weights of the edges; 1 where the attribute is missing, as networkx has it."""
    for tail, head, data in edges:
        weight = data.get(name, 1.0)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < np.inf:
            source.refuse(
                f"has an edge between {quote(str(tail))} and {quote(str(head))} of weight {weight!r}; weights are finite "
                "numbers of at least 0 (--weights ignore leaves them out)."
            )
        yield float(weight)


READERS: dict[str, Callable[..., GraphFile]] = {"gml": read_gml, "graphml": read_graphml}
