"""A graph from a file: names of its nodes, the adjacency matrix of its edges, and notes on the reading."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.io.source import FileError, Source
from cvxnmf.io.tables import MatrixFile
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.symmetry import mirror_upper


class GraphFile(NamedTuple):
    """A graph from a file: nodes, adjacency matrix, and notes on the reading.

    Attributes
    ----------
    nodes : tuple of str
        Names, in the order of the rows; for files without names, numbers from 0.
    A : scipy.sparse.csr_array or ndarray of shape (n, n)
        Adjacency matrix; symmetric if it comes from an edge list.
    notes : tuple of str
        Sentences about anything that was decided in reading.
    origin : str
        What it was read from, such as "an edge list".
    """

    nodes: tuple[str, ...]
    A: Any
    notes: tuple[str, ...] = ()
    origin: str = "a file"


def adjacency(n: int, tails: NDArray[np.int64], heads: NDArray[np.int64], weights: FloatArray | None) -> tuple[Any, list[str]]:
    """The symmetric adjacency matrix of undirected edges from a file, and notes.

    Without weights, repeated edges and both directions of one count once. With weights they add up, unless the edges stand
    in both directions throughout, with equal weights: then each counts once. A self-loop has its weight on the diagonal.
    """
    if weights is None:
        ones = np.ones(len(tails))
        upper = sp.csr_array((ones, (np.minimum(tails, heads), np.maximum(tails, heads))), shape=(n, n))
        upper.data[:] = 1.0
        repeated = len(tails) - upper.nnz
        return mirror_upper(upper), [f"{_say_repeated(repeated, len(tails), 'edges')}; each counts once."] if repeated else []
    directed, notes = sp.csr_array((weights, (tails, heads)), shape=(n, n)), []
    different = directed.nnz
    zeros = int(np.count_nonzero(directed.data == 0))
    directed.eliminate_zeros()
    loops = int(np.count_nonzero(directed.diagonal()))
    if zeros:
        notes.append(f"{zeros} edge{' has' if zeros == 1 else 's have'} weight 0 and {'is' if zeros == 1 else 'are'} left out.")
    if directed.nnz > loops and (directed != directed.T).nnz == 0:
        notes.append("Every edge stands in both directions with the same weight; each counts once.")
        return directed, notes
    upper = sp.csr_array(sp.triu(directed)) + sp.csr_array(sp.tril(directed, -1)).T
    if repeated := len(tails) - (upper.nnz + zeros if upper.nnz else different):
        notes.append(f"{_say_repeated(repeated, len(tails), 'weighted edges')}; their weights add up.")
    return mirror_upper(upper), notes


def graph_of_matrix(source: Source, matrix: MatrixFile, weights: bool) -> GraphFile:
    """The graph of a file whose matrix is read as the adjacency matrix."""
    A = matrix.A
    if A.shape[0] != A.shape[1]:
        source.refuse(f"holds a matrix of {A.shape[0]} by {A.shape[1]}; the adjacency matrix of a graph is square.")
    if not weights and A.dtype.kind in "fiub":
        A = sp.csr_array(A != 0, dtype=np.float64)
    numbers = tuple(map(str, range(A.shape[0])))
    rows, columns = (None if names == numbers else names for names in (matrix.rows, matrix.columns))
    nodes = rows or columns or numbers
    if len(set(nodes)) != len(nodes):
        raise FileError(f"{source.name} names two nodes alike; names must be different.")
    if columns is not None and columns != nodes:
        places = {name: place for place, name in enumerate(columns)}
        stranger = next((name for name in nodes if name not in places), None)
        if stranger is not None:
            source.refuse(f"has a row {stranger!r} and no column of this name; in an adjacency matrix both have the same names.")
        A = A[:, [places[name] for name in nodes]]
    return GraphFile(nodes, A, matrix.notes, "an adjacency matrix")


def _say_repeated(number: int, of: int, noun: str) -> str:
    """A note on how many edges of a file are given more than once."""
    verbs = "is repeated or stands" if number == 1 else "are repeated or stand"
    return f"{number} of {of} {noun} {verbs} in both directions"
