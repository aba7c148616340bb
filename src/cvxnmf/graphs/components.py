"""Connected components: which of them are clusters, and which are what noise leaves beside a giant component."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxnmf.graphs.moves import Labels
from cvxnmf.linalg.arrays import FloatArray

#: Nodes beside the giant component are noise up to this multiple of the number expected, and so many standard deviations more.
MORE_THAN_EXPECTED, DEVIATIONS = 1.5, 5.0


def separate_parts(A: sp.csr_array) -> Labels:
    """The number of the component of each node of a graph without empty rows, and -1 for those that noise explains.

    In a random graph with given degrees a giant component leaves small trees beside it. Where there are as many of them as
    degrees alone explain, they are noise. Without a giant component, or with more beside it, every component is a part.
    """
    count, component = connected_components(A, directed=False)
    parts = np.asarray(component, dtype=np.int64)
    if count == 1:
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


def _nodes_beside_giant(degrees: FloatArray) -> float:
    """How many nodes of a random graph with these degrees are not in its giant component (Molloy and Reed 1995)."""
    numbers = np.bincount(degrees.astype(np.int64)).astype(np.float64)
    k, ends, u = np.arange(len(numbers)), float(np.arange(len(numbers)) @ numbers), 0.0
    for _ in range(1000):
        u, before = float(np.sum(k[1:] * numbers[1:] * u ** (k[1:] - 1.0))) / ends, u
        if abs(u - before) < 1e-12:
            break
    return float(np.sum(numbers[1:] * u ** k[1:]))
