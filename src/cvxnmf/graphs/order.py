"""An order of the nodes that does not depend on their numbers: whatever is found in it is found for every order."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import LARGE_SPARSE, FloatArray, equal_values, is_uniform
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.hashing import mixed_bits
from cvxnmf.linalg.sparse_products import over_rows

#: Rounds of hashing: neighbourhoods of this radius tell nodes apart.
ROUNDS = 4
MIXER = np.uint64(0x9E3779B97F4A7C15)


def canonical_order(A: Any, masses: FloatArray) -> NDArray[np.intp]:
    """Nodes by mass, then by hashes of ever wider neighbourhoods in the symmetric csr matrix A.

    Nodes that these neighbourhoods cannot tell apart keep their order. Numbers are looked at in single precision, so that the
    rounding of sums, which depends on the order, does not matter.
    """
    bits = np.ascontiguousarray(A.data[:1] if is_uniform(A) else A.data, dtype=np.float32).view(np.uint32)
    colours = _first_colours(np.ascontiguousarray(masses, dtype=np.float32).view(np.uint32))
    for _ in range(ROUNDS):
        colours = _widen(A, bits, colours)
    return np.lexsort((colours, np.asarray(masses, dtype=np.float32)))


@compile_with(nogil=True)
def _first_colours(bits: Any) -> Any:
    colours = np.empty(len(bits), np.uint64)
    for i in range(len(bits)):
        colours[i] = mixed_bits(np.uint64(bits[i]))
    return colours


def _widen(A: Any, bits: Any, colours: Any) -> Any:
    """Hashes of wider neighbourhoods, in threads over shares of the rows."""
    wider = np.empty_like(colours)
    over_rows(A, lambda first, last: _wider(A.indptr, A.indices, bits, colours, wider, first, last))
    return wider


@compile_with(nogil=True)
def _wider(indptr: Any, indices: Any, bits: Any, colours: Any, wider: Any, first: int, last: int) -> None:
    """Hashes of the hashes of the neighbours, of the weights that lead to them, one if all are alike, and of the node's own."""
    several, common = len(bits) > 1, mixed_bits(np.uint64(bits[0] if len(bits) else 0))
    for i in range(first, last):
        total = np.uint64(0)
        for p in range(indptr[i], indptr[i + 1]):
            total += mixed_bits(colours[indices[p]] * MIXER + (mixed_bits(np.uint64(bits[p])) if several else common))
        wider[i] = mixed_bits(colours[i] * MIXER + total)


def in_order(A: Any, order: NDArray[np.intp], lean: bool = False) -> Any:
    """The graph, a symmetric csr matrix, with its nodes in another order, columns of a row sorted.

    With `lean` the values of a large graph that are all alike are held once.
    """
    rank = np.empty(len(order), dtype=A.indices.dtype)
    rank[order] = np.arange(len(order), dtype=rank.dtype)
    once = lean and A.nnz >= LARGE_SPARSE and is_uniform(A)
    data = np.ascontiguousarray(A.data[:1] if once else A.data)
    values, columns, starts = _reordered(A.indptr, A.indices, data, np.asarray(order), rank)
    return sp.csr_array((equal_values(float(data[0]), A.nnz) if once else values, columns, starts), shape=A.shape)


@compile_with(nogil=True)
def _reordered(indptr: Any, indices: Any, data: Any, order: Any, rank: Any) -> Any:
    """Entries, columns and starts of the rows: taken by the rising new number of their column, every row is sorted."""
    n, valued = len(order), len(data) == len(indices)
    starts, columns, values = np.zeros_like(indptr), np.empty_like(indices), np.empty_like(data)
    for i in range(n):
        starts[i + 1] = starts[i] + indptr[order[i] + 1] - indptr[order[i]]
    place = starts[:-1].copy()
    for column in range(n):
        for p in range(indptr[order[column]], indptr[order[column] + 1]):
            row = rank[indices[p]]
            columns[place[row]] = column
            if valued:
                values[place[row]] = data[p]
            place[row] += 1
    return values, columns, starts
