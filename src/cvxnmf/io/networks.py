"""Files of graphs: GML, GraphML, GEXF and Pajek by way of networkx, and node-link JSON."""

from __future__ import annotations

import io
import json
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
#: Two nodes and the attributes of the edge between them.
Edge = tuple[Any, Any, dict[str, Any]]


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
    """Refuse a GML file, saying in which line networkx stopped, and what may have happened there."""
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


def read_gexf(source: Source, weights: bool = True) -> GraphFile:
    """Read a GEXF file, as Gephi writes it: nodes by their labels if all have different ones, else by their ids."""
    networkx = _networkx()
    source.must_be_text()
    with source.parsed_as("a GEXF file"):
        graph = networkx.read_gexf(io.BytesIO(source.data))
        labels = [str(data.get("label") or node) for node, data in graph.nodes(data=True)]
        if len(set(labels)) == len(labels):
            graph = networkx.relabel_nodes(graph, dict(zip(graph.nodes, labels, strict=True)))
    return _graph(source, graph, weights, [])


def read_pajek(source: Source, weights: bool = True) -> GraphFile:
    """Read a Pajek file, .net: nodes by their labels."""
    networkx = _networkx()
    with source.parsed_as("a Pajek file"):
        graph = networkx.parse_pajek(source.text().splitlines())
    if weights and all(data.get("weight") == 1.0 for _, _, data in graph.edges(data=True)):
        weights = False  # Pajek writes 1 where there are none
    return _graph(source, graph, weights, [])


def read_json(source: Source, weights: bool = True) -> GraphFile:
    """Read node-link JSON, as networkx and d3 write it: lists "nodes" of objects with ids, and "links" with source and target."""
    with source.parsed_as("node-link JSON"):
        content = json.loads(source.text())
    links = next((content[name] for name in ("links", "edges") if name in content), None) if isinstance(content, dict) else None
    nodes = content.get("nodes") if isinstance(content, dict) else None
    if not isinstance(links, list) or not isinstance(nodes, list):
        source.refuse('is not node-link JSON; it needs lists "nodes" and "links", as networkx.node_link_data makes them.')
    names = {str(_identity(node, place)): place for place, node in enumerate(nodes)}
    if len(names) < len(nodes):
        source.refuse("names two nodes alike; ids must be different.")
    with source.parsed_as("node-link JSON"):
        edges = [(_end(names, link["source"]), _end(names, link["target"]), link) for link in links]
    return _adjacency(source, list(names), edges, bool(content.get("directed")), weights, [])


def _identity(node: Any, place: int) -> Any:
    """The name of a node in node-link JSON: its id, else its key, name or label, else its number."""
    if not isinstance(node, dict):
        return node
    return next((node[key] for key in ("id", "key", "name", "label") if key in node), place)


def _end(names: dict[str, int], end: Any) -> str:
    """The node at the end of a link in node-link JSON: by its id, else by its number, as old versions of d3 write it."""
    found = str(_identity(end, 0))
    if found in names:
        return found
    if isinstance(end, int) and 0 <= end < len(names):
        return list(names)[end]
    raise ValueError(f"a link names the node {found!r}, which is not among the nodes")


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise ImportError("GML, GraphML, GEXF and Pajek files need networkx; install it with: pip install networkx.") from None
    return networkx


def _graph(source: Source, graph: Any, weights: bool, notes: list[str]) -> GraphFile:
    """A networkx graph read from a file as nodes and adjacency matrix."""
    if graph.number_of_nodes() == 0:
        source.refuse("holds no nodes; give a graph with at least one edge.")
    return _adjacency(source, list(graph.nodes), list(graph.edges(data=True)), graph.is_directed(), weights, notes)


def _adjacency(source: Source, nodes: list[Any], edges: list[Edge], directed: bool, weights: bool, notes: list[str]) -> GraphFile:
    """The nodes and the adjacency matrix of a network file's edges with attributes; directed or not."""
    place = {node: index for index, node in enumerate(nodes)}
    tails = np.array([place[tail] for tail, _, _ in edges], dtype=np.int64)
    heads = np.array([place[head] for _, head, _ in edges], dtype=np.int64)
    name = next((name for name in WEIGHTS if any(name in data for _, _, data in edges)), None) if weights else None
    if name == "value":
        notes.append("The edges' attribute 'value' is taken for their weights; --weights ignore leaves it out.")
    values = None if name is None else np.array(list(_weights(source, edges, name)))
    if not directed:
        A, more = adjacency(len(nodes), tails, heads, values)
        return GraphFile(tuple(map(str, nodes)), A, (*notes, *more))
    A = sp.csr_array((np.ones(len(edges)) if values is None else values, (tails, heads)), shape=(len(nodes), len(nodes)))
    if values is None:
        A.data[:] = 1.0
    return GraphFile(tuple(map(str, nodes)), A, tuple(notes))


def _weights(source: Source, edges: list[Edge], name: str) -> Iterator[float]:
    """The weights of a network file's edges; 1 where the attribute is missing, as networkx has it."""
    for tail, head, data in edges:
        weight = data.get(name, 1.0)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < np.inf:
            source.refuse(
                f"has an edge between {quote(str(tail))} and {quote(str(head))} of weight {weight!r}; weights are finite "
                "numbers of at least 0 (--weights ignore leaves them out)."
            )
        yield float(weight)


READERS: dict[str, Callable[..., GraphFile]] = {
    "gml": read_gml,
    "graphml": read_graphml,
    "gexf": read_gexf,
    "pajek": read_pajek,
    "json": read_json,
}
