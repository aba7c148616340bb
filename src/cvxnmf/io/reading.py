"""Read a graph or a matrix from a file in any of the known formats."""

from __future__ import annotations

import csv
import json
import math
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import scipy.sparse as sp

from cvxnmf.chunked.graphs.lines import SEPARATORS, find_separator, split_lines
from cvxnmf.io import arrays, edge_lists, networks, results, tables
from cvxnmf.io.adjacency import GraphFile, graph_of_matrix
from cvxnmf.io.formats import ENDINGS, WORDS, recognise_format
from cvxnmf.io.matrix_market import read_mtx
from cvxnmf.io.separated import data_pieces, text_of_parquet
from cvxnmf.io.source import FileError, Source, read_source
from cvxnmf.io.tables import MatrixFile

#: Readers of matrices other than tables.
READERS: dict[str, Callable[[Source], Any]] = {"npy": arrays.read_npy, "npz": arrays.read_npz, "mtx": read_mtx}
#: Formats that hold factors.
FACTORS = ("table", *READERS)
#: The least number of columns at which a square table is taken for an adjacency matrix.
LEAST_SQUARE = 4
#: Headings of the column of clusters.
CLUSTER_HEADS = ("cluster", "label", "community", "group", "membership", "module", "partition")


def read_graph(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    separator: str | None = None,
    header: bool | None = None,
    weights: bool = True,
) -> GraphFile:
    """Read a graph from a file: an edge list, GML, GraphML, GEXF, Pajek, JSON, Matrix Market, npy, npz or parquet.

    Parameters
    ----------
    path : str or path
        The file; ``-`` for standard input.
    format : {"edges", "table", "gml", "graphml", "gexf", "pajek", "json", "mtx", "npy", "npz", "parquet"}, optional
        Left out, it is recognised by content and name; text without a telling name is an edge list, unless it is a square
        table of numbers.
    separator : {"tab", "semicolon", "comma", "blank"}, optional
        Between the cells of text; left out, it is found.
    header : bool, optional
        Whether text begins with a header; left out, it is found.
    weights : bool
        Whether to read the weights of edges; if not, every edge counts 1.

    Returns
    -------
    GraphFile
        Names of the nodes, adjacency matrix, and notes on what was decided.

    Raises
    ------
    FileError
        A ValueError whose one sentence names file and line.
    """
    source = read_source(path)
    kind, cut = recognise_format(source, "edges", format), None if separator is None else SEPARATORS[separator]
    if kind == "parquet":
        source, kind, cut, header = text_of_parquet(source), "edges", ",", True
    if kind in networks.READERS:
        return networks.READERS[kind](source, weights)._replace(origin=WORDS[kind])
    if kind == "edges":
        square = None if format else _square_table(source, cut, header)
        if square is None:
            sure = bool(format) or source.ending in ENDINGS
            return edge_lists.read_edges(source, cut, header, weights, sure=sure)._replace(origin=WORDS[kind])
        note = f"The table is read as an adjacency matrix of {len(square.A)} nodes; --format edges reads it as an edge list."
        return graph_of_matrix(source, square._replace(notes=(*square.notes, note)), weights)
    return graph_of_matrix(source, _matrix(source, kind, cut, header), weights)


def read_matrix(
    path: str | os.PathLike[str], format: str | None = None, *, separator: str | None = None, header: bool | None = None
) -> MatrixFile:
    """Read a matrix from a table of numbers, npy, npz or Matrix Market file, or the adjacency matrix of a graph.

    The parameters are those of :func:`read_graph`, but text without a telling name is a table.

    Returns
    -------
    MatrixFile
        The matrix, its names where the file has them, and notes on what was decided.
    """
    source = read_source(path)
    kind, cut = recognise_format(source, "table", format), None if separator is None else SEPARATORS[separator]
    if kind == "parquet":
        source, kind, cut, header = text_of_parquet(source), "table", ",", True
    if kind not in networks.READERS and kind != "edges":
        return _matrix(source, kind, cut, header)
    graph = edge_lists.read_edges(source, cut, header) if kind == "edges" else networks.READERS[kind](source)
    return MatrixFile(graph.A, graph.nodes, graph.nodes, graph.notes)


class LabelsFile(NamedTuple):
    """The cluster of every node read from a file, and notes on the reading."""

    labels: list[str]
    notes: tuple[str, ...] = ()


def read_labels(path: str | os.PathLike[str], nodes: Sequence[str]) -> LabelsFile:
    """Read the cluster of every node: a node and its cluster on each line, or clusters alone in the order of the nodes.

    A partition that was saved has them, too. Cells stand between commas, semicolons, tabs or blanks. A header names the columns;
    of more than two it must name that of the clusters, by "cluster", "label", "community" or the like.
    """
    source = read_source(path)
    if _is_partition(source):
        found = results.load_source(source)
        clusters = dict(zip(map(str, found.nodes), map(str, found.labels), strict=True))
        return LabelsFile(_in_order(source, clusters, nodes))
    text = source.text()
    if text.lstrip().startswith("{"):
        return LabelsFile(_in_order(source, _clusters_from_json(source, text), nodes))
    rows = _cells(text)
    headings, known = [cell.lower() for cell in rows[0]] if rows else [], set(map(str, nodes))
    column = next((headings.index(name) for name in CLUSTER_HEADS if name in headings), None)
    unnamed = column is None and len(rows) > 1 and len(headings) > 1 and rows[0][0] not in known and rows[1][0] in known
    if column is None and len(headings) > 2:
        source.refuse(f"has {len(headings)} columns; call that of the clusters 'cluster' in a header, or leave out the others.")
    rows, place = rows[1:] if column is not None or unnamed else rows, len(headings) - 1 if column is None else column
    if any(len(row) <= place for row in rows) or not rows:
        source.refuse("has lines without a cluster; each needs a node and its cluster, or a cluster alone.")
    if len(headings) > 1:
        notes = ("Line 1 is taken as a header.",) if unnamed else ()
        return LabelsFile(_in_order(source, _one_cluster_each(source, rows, place), nodes), notes)
    if len(rows) != len(nodes):
        source.refuse(f"has {len(rows)} clusters and the graph {len(nodes)} nodes; give one for each, or name the nodes.")
    some = ", ".join(map(str, nodes[:3]))
    return LabelsFile([row[0] for row in rows], (f"Clusters are taken in the order of the nodes: {some}, …",))


def holds_labels(path: str | os.PathLike[str], nodes_of_graph: Callable[[], Sequence[str]]) -> bool:
    """Whether a file is about clusters of nodes rather than a factor: a partition that was saved, JSON, or a text.

    A text is if a heading names clusters, if the first of two columns has the nodes and the other one no fractions, or if it
    is one whole number for each. The nodes are asked for where that is not clear without them.
    """
    source = read_source(path)
    if recognise_format(source, "table") not in ("table", "edges", "json"):
        return _is_partition(source)
    text = source.text()
    rows = [] if text.lstrip().startswith("{") else _cells(text)
    if not rows or {cell.lower() for cell in rows[0]} & set(CLUSTER_HEADS):
        return True
    if len(rows[0]) > 2 or any(len(row) != len(rows[0]) or _is_fraction(row[-1]) for row in rows[1:]):
        return False
    nodes = list(map(str, nodes_of_graph()))
    if len(rows[0]) == 1:
        return len(rows) == len(nodes) and all(row[0].isdecimal() for row in rows)
    return {row[0] for row in rows[-len(nodes) :]} == set(nodes)


def _is_fraction(cell: str) -> bool:
    with suppress(ValueError):
        return not cell.isdecimal() and math.isfinite(float(cell))
    return False


def _is_partition(source: Source) -> bool:
    return source.data[:2] == b"PK" and arrays.saved_kind(source) == "Partition"


def _cells(text: str) -> list[list[str]]:
    """The cells of a text on clusters, line by line: between tabs, semicolons, commas or blanks, as its first line has them."""
    lines = [line for line in text.splitlines() if line.strip()]
    cut = next((sign for sign in "\t;," if lines and sign in lines[0]), None)
    return [[cell.strip() for cell in (next(csv.reader([line], delimiter=cut)) if cut else line.split())] for line in lines]


def _one_cluster_each(source: Source, rows: list[list[str]], place: int) -> dict[str, str]:
    """The cluster of each node that a file names, refused where it has two."""
    clusters: dict[str, str] = {}
    for row in rows:
        if clusters.setdefault(row[0], row[place]) != row[place]:
            source.refuse(f"has the node {row[0]!r} in two clusters, {clusters[row[0]]} and {row[place]}; leave one of them.")
    return clusters


def _clusters_from_json(source: Source, text: str) -> dict[str, str]:
    """Read clusters by the names of the nodes from JSON, as ``--output labels.json`` writes them or a plain object."""
    try:
        facts = json.loads(text)
        return {str(node): str(cluster) for node, cluster in facts.get("labels", facts).items()}
    except (ValueError, AttributeError):
        return source.refuse('is not JSON with a cluster for each node, such as {"Ann": 0, "Bob": 1}.')


def _in_order(source: Source, clusters: dict[str, str], nodes: Sequence[str]) -> list[str]:
    """Clusters read from a file in the order of the nodes; a node without one is refused, unknown names are warned of."""
    missing = next((str(node) for node in nodes if str(node) not in clusters), None)
    if missing is not None:
        source.refuse(f"has no cluster for the node {missing!r}; it needs a line for every node of the graph.")
    strangers = clusters.keys() - {str(node) for node in nodes}
    if strangers:
        many = f"{len(strangers):,} nodes" if len(strangers) > 1 else "a node"
        words = f"{source.name} names {many} that the graph does not have, {min(strangers)!r} for one; left out."
        warnings.warn(words, stacklevel=2)
    return [clusters[str(node)] for node in nodes]


def read_factors(path: str | os.PathLike[str]) -> tuple[MatrixFile, Any]:
    """Read a factor, or both from a file written by :func:`cvxnmf.save`; the second is None where V = U or there is none."""
    source = read_source(path)
    kind = recognise_format(source, "table")
    if kind not in FACTORS:
        source.refuse(f"is {WORDS[kind]}, not a factor; give a table of numbers, npy, npz or Matrix Market.")
    if kind == "npz" and (saved := arrays.saved_kind(source)) in ("Factorization", "CPFactor", "Partition"):
        result = results.load_source(source)
        V = getattr(result, "V", result.U)
        return MatrixFile(result.U), None if V is result.U else V
    if kind == "npz" and saved is None:
        found = MatrixFile(arrays.read_npz(source, ("U", "V", "W", "components")))
    else:
        found = _matrix(source, kind, None, None)
    if sp.issparse(found.A):
        source.check_announced_size(8 * math.prod(found.A.shape), "factors of {} by {} entries".format(*found.A.shape))
        found = found._replace(A=found.A.toarray())
    return found, None


def _matrix(source: Source, kind: str, separator: str | None, header: bool | None) -> MatrixFile:
    """Read a matrix with at least one entry from a file of a known format."""
    if kind == "table":
        return tables.read_table(source, separator, header)
    if not source.data:
        source.refuse("is empty; give a file with data in it.")
    if kind == "npz" and (saved := arrays.saved_kind(source)):
        source.refuse(f"is a {saved} written by cvxnmf, not a matrix; give the data that it was made from.")
    return MatrixFile(arrays.require_matrix(source, READERS[kind](source)))


def _square_table(source: Source, separator: str | None, header: bool | None) -> MatrixFile | None:
    """The table read from a text whose lines are as many as its columns, give or take a header; else None."""
    pieces = data_pieces(source)
    first = next(pieces, None)
    if first is None or len(first.lines) < LEAST_SQUARE:
        return None
    try:
        width = len(split_lines(first.lines[1:2], separator or find_separator(first.lines[1:]))[0])
        if width < LEAST_SQUARE:
            return None
        height = len(first.lines) + sum(len(piece.lines) for piece in pieces)
        if width not in (height, height - 1):
            return None
        return tables.read_table(source, separator, header)
    except (FileError, csv.Error, IndexError):  # no table, so that it is read as an edge list, which explains itself
        return None
