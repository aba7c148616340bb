"""Which graphs are worked on in blocks of rows, and how they are opened: edges in files or in memory, or a matrix."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from cvxnmf import validation
from cvxnmf.chunked.graphs.pieces import EdgeSource, NpyEdges, NpzRows, ParquetEdges
from cvxnmf.chunked.graphs.text import Reading, TextEdges
from cvxnmf.chunked.memory import RESERVE

#: Bytes that each node takes: names, pointers, facts, labels, sums of clusters or positions; and for each block at work.
NODE_BYTES, NODE_BYTES_AT_WORK = 150, 16
#: Bytes that a block takes at work.
BLOCK_BYTES = 40 << 20
#: Readers by the ending of the name; all other files are text.
READERS: dict[str, Callable[[str, bool], EdgeSource]] = {
    ".npy": NpyEdges,
    ".npz": NpzRows,
    ".parquet": ParquetEdges,
    ".pq": ParquetEdges,
}
#: Endings of formats that are read as a whole or not at all.
READ_WHOLE = (".gml", ".graphml", ".xml", ".gexf", ".net", ".paj", ".json", ".mtx", ".mm")


def is_path(graph: Any) -> bool:
    """Whether a graph is given as the name of a file."""
    return isinstance(graph, str | os.PathLike)


def is_paths(graph: Any) -> bool:
    """Whether a graph is given as a list of names of files, which are the pieces of one list of edges."""
    return isinstance(graph, list | tuple) and bool(graph) and all(map(is_path, graph))


def is_dask_frame(graph: Any) -> bool:
    """Whether a graph is a dask data frame; dask is not imported for the question."""
    return hasattr(graph, "to_delayed") and hasattr(graph, "npartitions") and hasattr(graph, "columns")


def edge_files(graph: Any, reading: Reading) -> list[EdgeSource]:
    """Open the files of edges with this name, or with these; of a folder all files in it."""
    names = [os.fspath(name) for name in ([graph] if is_path(graph) else graph)]
    paths = [path for name in names for path in _files_in(name)]
    for path in paths:
        if not os.path.exists(path):
            validation.refuse(f"{path} does not exist; check the name and the folder.")
    found = [_source(path, reading) for path in paths]
    _set_first_rows([source for source in found if isinstance(source, NpzRows)])
    return found


def _source(path: str, reading: Reading) -> EdgeSource:
    ending = os.path.splitext(path.removesuffix(".gz"))[1].lower()
    if ending in READ_WHOLE:
        validation.refuse(
            f"{path} cannot be read in blocks; give an edge list as text, npy, npz or parquet, or leave out the limit of memory "
            "and the client."
        )
    reader = READERS.get(os.path.splitext(path)[1].lower())
    return TextEdges(path, reading) if reader is None else reader(path, reading.weighted)


def _set_first_rows(pieces: list[NpzRows]) -> None:
    """Number the rows of a matrix in several npz files, which follow each other."""
    first = 0
    for piece in pieces:
        piece.first, first = first, first + piece.height
    for piece in pieces:
        if piece.width != first:
            validation.refuse(
                f"{piece.path} has {piece.width:,} columns, but the rows of all pieces are {first:,}; give all of them."
            )


def _files_in(name: str) -> Sequence[str]:
    if not os.path.isdir(name):
        return [name]
    found = sorted(entry.path for entry in os.scandir(name) if entry.is_file() and not entry.name.startswith((".", "_")))
    return found or validation.refuse(f"{name} is an empty folder; give one with files of edges.")


def threads_within(limit: int | None, n: int, threads: int, resident: int) -> int:
    """How many blocks of a graph fit into the memory limit at a time, or a refusal that says how much is needed.

    `resident` are the bytes that the process held before it began to read.
    """
    if limit is None:
        return threads
    held, nodes = resident + RESERVE, NODE_BYTES * n
    each = BLOCK_BYTES + NODE_BYTES_AT_WORK * n
    if held + nodes + each > limit:
        needed = -(-(held + nodes + each) // 10**6)
        validation.refuse(
            f"A memory limit of {limit / 1e6:,.0f} MB is too little{f' for {n:,} nodes' if n else ''}: the program itself takes "
            f"{held / 1e6:,.0f} MB, what is known of the nodes {nodes / 1e6:,.0f} MB and a block {each / 1e6:,.0f} MB; give at "
            f"least {needed:,} MB{'' if n else f', and {NODE_BYTES + NODE_BYTES_AT_WORK} bytes more for each node'}."
        )
    return max(1, min(threads, (limit - held - nodes) // each))
