"""An order of the nodes that does not depend on their numbers: whatever is found in it is found for every order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray

#: Rounds of hashing: neighbourhoods of this radius tell nodes apart.
ROUNDS = 4
MIXER = np.uint64(0x9E3779B97F4A7C15)


def canonical_order(A: Any, masses: FloatArray) -> NDArray[np.intp]:
    """Nodes by mass, then by hashes of ever wider neighbourhoods in the symmetric csr matrix A.

    Nodes that these neighbourhoods cannot tell apart keep their order. Numbers are looked at in single precision, so that the
    rounding of sums, which depends on the order, does not matter.
    """
    rows = np.flatnonzero(np.diff(A.indptr))
    with np.errstate(over="ignore"):
        weights, colours = _mixed(_bits(A.data)), _mixed(_bits(masses))
        for _ in range(ROUNDS):
            sums = np.zeros(len(masses), dtype=np.uint64)
            if len(rows):
                sums[rows] = np.add.reduceat(_mixed(colours[A.indices] * MIXER + weights), A.indptr[rows])
            colours = _mixed(colours * MIXER + sums)
    return np.lexsort((colours, np.asarray(masses, dtype=np.float32)))


def _bits(values: Any) -> NDArray[np.uint64]:
    return np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of 64 bits."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))


def in_order(A: Any, order: NDArray[np.intp]) -> Any:
    """The graph with its nodes in another order, columns of a row sorted."""
    B = A[order][:, order].tocsr()
    B.sort_indices()
    return B
