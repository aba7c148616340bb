"""An order of the nodes that does not depend on their numbers: whatever is found in it is found for every order."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import LARGE_SPARSE, FloatArray, equal_values, is_uniform
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.hashing import mixed_bits
from cvxnmf.linalg.prefetching import look_ahead, look_along
from cvxnmf.linalg.sparse_products import over_rows, shares_of_rows
from cvxnmf.linalg.threads import map_in_threads

#: Rounds of hashing: neighbourhoods of this radius tell nodes apart.
ROUNDS = 4
MIXER = np.uint64(0x9E3779B97F4A7C15)


def canonical_order(A: Any, masses: FloatArray) -> NDArray[np.intp]:
    """Canonical order of nodes: by mass, then by hashes of ever wider neighbourhoods in the symmetric csr matrix A.

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
    """Hashes of wider neighbourhoods of nodes, for their canonical order, in threads over shares of the rows."""
    wider = np.empty_like(colours)
    over_rows(A, lambda first, last: _wider(A.indptr, A.indices, bits, colours, wider, first, last))
    return wider


@compile_with(nogil=True)
def _wider(indptr: Any, indices: Any, bits: Any, colours: Any, wider: Any, first: int, last: int) -> None:
    """Hash of a node's neighbourhood: neighbours' hashes, weights that lead to them, one if all are alike, and its own."""
    several, common = len(bits) > 1, mixed_bits(np.uint64(bits[0] if len(bits) else 0))
    for i in range(first, last):
        total = np.uint64(0)
        for p in range(indptr[i], indptr[i + 1]):
            look_along(indices, colours, p)
            total += mixed_bits(colours[indices[p]] * MIXER + (mixed_bits(np.uint64(bits[p])) if several else common))
        wider[i] = mixed_bits(colours[i] * MIXER + total)


def in_order(A: Any, order: NDArray[np.intp], lean: bool = False) -> Any:
    """The graph, a symmetric csr matrix, with its nodes in another order, columns of a row sorted.

    With `lean` the values of a large graph that are all alike are held once.
    """
    order = np.asarray(order)
    rank = np.empty(len(order), dtype=A.indices.dtype)
    rank[order] = np.arange(len(order), dtype=rank.dtype)
    once = lean and A.nnz >= LARGE_SPARSE and is_uniform(A)
    data = np.ascontiguousarray(A.data[:1] if once else A.data)
    starts, columns, values = np.zeros_like(A.indptr), np.empty_like(A.indices), np.empty_like(data)
    np.cumsum(np.diff(A.indptr)[order], out=starts[1:])
    old, new = (A.indptr, A.indices, data), (starts, columns, values)
    map_in_threads(lambda rows: _reorder_rows(*old, *new, order, rank, *rows), shares_of_rows(starts))
    return sp.csr_array((equal_values(float(data[0]), A.nnz) if once else values, columns, starts), shape=A.shape)


@compile_with(nogil=True)
def _reorder_rows(
    indptr: Any, indices: Any, data: Any, starts: Any, columns: Any, values: Any, order: Any, rank: Any, first: int, last: int
) -> None:
    """Rows of a graph's matrix in another order of nodes, their columns under their new numbers, and sorted."""
    valued = len(data) == len(indices)
    for i in range(first, last):
        look_ahead(indptr, indices, rank, order, i)
        begin, place = indptr[order[i]], starts[i]
        length = starts[i + 1] - place
        for p in range(length):
            columns[place + p] = rank[indices[begin + p]]
            if valued:  # a copy of slices would have numba compile words about their shapes, four seconds of a first call
                values[place + p] = data[begin + p]
        _shell_sort(columns[place : place + length], values[place : place + length] if valued else values[:0])


@compile_with(nogil=True)
def _shell_sort(keys: Any, values: Any) -> None:
    """Sort a row's different columns in place, mostly a few, and values, if any, with them; insertions at falling gaps."""
    gap, valued = 1, len(values) > 0
    while 3 * gap < len(keys) - 16:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(keys)):
            key, value, j = keys[i], values[i] if valued else 0.0, i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                if valued:
                    values[j] = values[j - gap]
                j -= gap
            keys[j] = key
            if valued:
                values[j] = value
        gap //= 3
