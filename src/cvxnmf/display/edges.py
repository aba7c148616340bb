"""The edges of a partitioned graph, each counted once, for pictures and tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Partition


@dataclass(frozen=True)
class EdgeList:
    """The edges of a partition, counted once, and two arrays of shape (n,) about the nodes."""

    first: NDArray[np.intp]  # ends of the edges, the smaller first
    second: NDArray[np.intp]
    weights: FloatArray
    degree: NDArray[np.intp]  # neighbours of each node other than itself
    strength: FloatArray  # row sums of A

    @classmethod
    def of(cls, partition: Partition) -> EdgeList:
        """Read the list of edges out of a partition's adjacency matrix; a graph in blocks is refused."""
        partition.require_memory()
        A = sp.csr_array(partition.A, dtype=np.float64, copy=True)
        A.sum_duplicates()
        A.eliminate_zeros()
        upper = sp.coo_array(sp.triu(A))
        loops = upper.row == upper.col
        degree = np.bincount(np.concatenate([upper.row[~loops], upper.col[~loops]]), minlength=A.shape[0])
        strength = np.asarray(A.sum(axis=1), dtype=np.float64).ravel()
        return cls(upper.row.astype(np.intp), upper.col.astype(np.intp), upper.data, degree, strength)

    @property
    def weighted(self) -> bool:
        """Whether the edges of the list differ in weight."""
        return bool(len(self.weights)) and bool(np.any(self.weights != self.weights[0]))

    @property
    def loops(self) -> int:
        """Number of self-loops in the list of edges."""
        return int(np.count_nonzero(self.first == self.second))


def grid_counts(rows: NDArray[np.intp], columns: NDArray[np.intp], n: int, size: int) -> NDArray[np.intp]:
    """Count edges in the cells of a grid of `size` by `size`, both ways round, for pictures of the matrix."""
    cells = (rows * size // n) * size + columns * size // n
    counts = np.bincount(cells, minlength=size * size).reshape(size, size)
    return np.asarray(counts + counts.T, dtype=np.intp)
