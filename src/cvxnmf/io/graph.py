"""A graph from a file: names of its nodes, its adjacency matrix, and what there is to say about the reading."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray


class GraphFile(NamedTuple):
    """What a file says about a graph.

    Attributes
    ----------
    nodes : tuple of str
        Names, in the order of the rows; for files without names, numbers from 0.
    A : scipy.sparse.csr_array or ndarray of shape (n, n)
        Adjacency matrix; symmetric if it comes from an edge list.
    notes : tuple of str
        Sentences about anything that was decided in reading.
    """

    nodes: tuple[str, ...]
    A: Any
    notes: tuple[str, ...] = ()


def adjacency(n: int, tails: NDArray[np.int64], heads: NDArray[np.int64], weights: FloatArray | None) -> tuple[Any, list[str]]:
    """The symmetric adjacency matrix of undirected edges, and notes.

    Without weights, repeated edges and both directions of one count once. With weights they add up, unless the edges stand
    in both directions throughout, with equal weights: then each counts once. A self-loop has its weight on the diagonal.
    """
    return _unweighted(n, tails, heads) if weights is None else _weighted(n, tails, heads, weights)


def _unweighted(n: int, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> tuple[Any, list[str]]:
    keys = np.unique(np.minimum(tails, heads) * n + np.maximum(tails, heads))
    repeated = len(tails) - len(keys)
    notes = [f"{_repeated(repeated, len(tails), 'edges')}; each counts once."] if repeated else []
    low, high = np.divmod(keys, n)
    apart = low != high
    rows, columns = np.concatenate((low, high[apart])), np.concatenate((high, low[apart]))
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)), notes


def _weighted(n: int, tails: NDArray[np.int64], heads: NDArray[np.int64], weights: FloatArray) -> tuple[Any, list[str]]:
    directed, notes = sp.csr_array((weights, (tails, heads)), shape=(n, n)), []
    directed.sum_duplicates()
    different = directed.nnz
    zeros = int(np.count_nonzero(directed.data == 0))
    directed.eliminate_zeros()
    loops = sp.diags_array(directed.diagonal(), format="csr")
    if zeros:
        notes.append(f"{zeros} edge{' has' if zeros == 1 else 's have'} weight 0 and {'is' if zeros == 1 else 'are'} left out.")
    if directed.nnz > loops.count_nonzero() and (directed != directed.T).nnz == 0:
        notes.append("Every edge stands in both directions with the same weight; each counts once.")
        return directed, notes
    A = sp.csr_array(directed + directed.T - loops)
    A.eliminate_zeros()
    if repeated := len(tails) - (different if A.nnz == 0 else sp.triu(A).nnz + zeros):
        notes.append(f"{_repeated(repeated, len(tails), 'weighted edges')}; their weights add up.")
    return A, notes


def _repeated(number: int, of: int, noun: str) -> str:
    """How many edges are given more than once."""
    verbs = "is repeated or stands" if number == 1 else "are repeated or stand"
    return f"{number} of {of} {noun} {verbs} in both directions"
