"""Connected components: which of them are clusters, and which are what noise leaves beside a giant component."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.graphs.moves import Labels, renumber
from cvxnmf.linalg.arrays import FloatArray, is_held_once
from cvxnmf.linalg.compiled import compile_with

#: Nodes beside the giant component are noise up to this multiple of the number expected, and so many standard deviations more.
MORE_THAN_EXPECTED, DEVIATIONS = 1.5, 5.0


def separate_parts(A: sp.csr_array) -> Labels:
    """The number of the connected component of each node with edges, and -1 for those that noise explains.

    In a random graph with given degrees a giant component leaves small trees beside it. Where there are as many of them as
    degrees alone explain, they are noise. Without a giant component, or with more beside it, every component is a part.
    """
    parts = np.asarray(renumber(_roots(A.indptr, A.indices)), dtype=np.int64)
    if (count := int(parts.max()) + 1) == 1:
        return parts
    sizes = np.bincount(parts)
    giant, beside = int(np.argmax(sizes)), A.shape[0] - int(sizes.max())
    expected = _nodes_beside_giant(np.diff(A.indptr))
    if 2 * sizes[giant] < A.shape[0] or beside > MORE_THAN_EXPECTED * expected + DEVIATIONS * np.sqrt(expected):
        return parts
    edges = np.bincount(parts, np.diff(A.indptr), count) / 2.0
    trees = edges < np.maximum(sizes, 3)
    trees[giant] = False
    parts[trees[parts]] = -1
    return parts


@compile_with(nogil=True)
def _roots(indptr: Any, indices: Any) -> Any:
    """The first node of the connected component of each node; every path that is walked is halved."""
    root = np.arange(len(indptr) - 1).astype(np.int32)
    for i in range(len(root)):
        for p in range(indptr[i], indptr[i + 1]):
            a, b = i, indices[p]
            if b > i:  # the other end meets this edge
                continue
            while root[a] != a:
                root[a] = root[root[a]]
                a = root[a]
            while root[b] != b:
                root[b] = root[root[b]]
                b = root[b]
            root[max(a, b)] = min(a, b)
    for i in range(len(root)):
        root[i] = root[root[i]]
    return root


def subgraph(A: sp.csr_array, nodes: Labels) -> sp.csr_array:
    """The subgraph of some nodes, rising, such as components, that no edge joins to any other."""
    if len(nodes) == A.shape[0]:
        return A
    kept = np.zeros(A.shape[0], dtype=np.bool_)
    kept[nodes] = True
    numbers, entries = np.cumsum(kept, dtype=A.indices.dtype) - A.indices.dtype.type(1), np.repeat(kept, np.diff(A.indptr))
    indptr = np.append(A.indptr[:1], np.cumsum(np.diff(A.indptr)[nodes], dtype=A.indptr.dtype))
    data = A.data[: indptr[-1]] if is_held_once(A) else A.data[entries]
    return sp.csr_array((data, numbers[A.indices[entries]], indptr), shape=(len(nodes), len(nodes)))


def _nodes_beside_giant(degrees: FloatArray) -> float:
    """How many nodes of a random graph with these degrees are not in its giant component (Molloy and Reed 1995)."""
    numbers = np.bincount(degrees.astype(np.int64)).astype(np.float64)
    k, ends, u = np.arange(len(numbers)), float(np.arange(len(numbers)) @ numbers), 0.0
    for _ in range(1000):
        u, before = float(np.sum(k[1:] * numbers[1:] * u ** (k[1:] - 1.0))) / ends, u
        if abs(u - before) < 1e-12:
            break
    return float(np.sum(numbers[1:] * u ** k[1:]))
