"""What the script of the page works with: nodes, edges and shares, packed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.display.page import packing
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Factorization, Partition

#: More edges than this are counted on a grid instead of listed.
EDGES = 60_000
#: Cells of that grid in each direction.
GRID = 300
#: Columns of a heat map; more nodes share columns.
COLUMNS = 1_500
#: Entries of factors kept in full, kept in single precision, and beyond that left out.
DOUBLE, SINGLE = 90_000, 220_000


@dataclass(frozen=True)
class Graph:
    """The edges of a partition, counted once.

    Attributes
    ----------
    first, second : ndarray of int
        Ends of the edges, the smaller first.
    weights : ndarray
        Their weights.
    degree : ndarray of int, shape (n,)
        Neighbours of each node other than itself.
    strength : ndarray of shape (n,)
        Row sums of A.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    weights: FloatArray
    degree: NDArray[np.intp]
    strength: FloatArray

    @classmethod
    def of(cls, partition: Partition) -> Graph:
        """Read the edges out of the adjacency matrix."""
        A = sp.csr_array(partition.A, dtype=np.float64, copy=True)
        A.sum_duplicates()
        A.eliminate_zeros()
        upper = sp.coo_array(sp.triu(A))
        loops = upper.row == upper.col
        n = A.shape[0]
        ends = np.concatenate([upper.row[~loops], upper.col[~loops]])
        degree = np.bincount(ends, minlength=n)
        strength = np.asarray(A.sum(axis=1), dtype=np.float64).ravel()
        return cls(upper.row.astype(np.intp), upper.col.astype(np.intp), upper.data, degree, strength)

    @property
    def weighted(self) -> bool:
        """Whether edges differ in weight."""
        return bool(len(self.weights)) and bool(np.any(self.weights != self.weights[0]))

    @property
    def loops(self) -> int:
        """Number of edges from a node to itself."""
        return int(np.count_nonzero(self.first == self.second))

    @property
    def listed(self) -> bool:
        """Whether the page holds the edges one by one."""
        return len(self.weights) <= EDGES


def of_partition(partition: Partition, graph: Graph) -> dict[str, Any]:
    """Return everything the script needs for a partition."""
    n = len(partition.nodes)
    own = packing.shares(partition.memberships)[np.arange(n), partition.labels]
    return {
        "names": [packing.text(name) for name in partition.nodes],
        "clusters": partition.n_clusters,
        "labels": packing.integers(partition.labels),
        "order": packing.integers(partition.order),
        "share": {"type": "u2", "data": packing.packed(np.round(own * 10_000), "u2")},
        "degree": packing.integers(graph.degree),
        "strength": {"type": "f4", "data": packing.packed(np.nan_to_num(graph.strength), "f4")} if graph.weighted else None,
        "edges": _edges(graph) if graph.listed else None,
        "grid": None if graph.listed else _grids(partition, graph),
        "heat": [heat(packing.shares(partition.memberships)[partition.order], 1.0, "mean")],
    }


def _edges(graph: Graph) -> dict[str, Any]:
    """Return the edges one by one, with weights when they differ."""
    weights = {"type": "f4", "data": packing.packed(np.nan_to_num(graph.weights), "f4")} if graph.weighted else None
    return {"first": packing.integers(graph.first), "second": packing.integers(graph.second), "weights": weights}


def _grids(partition: Partition, graph: Graph) -> dict[str, Any]:
    """Return how densely the cells of a grid are filled, before and after the permutation."""
    n = len(partition.nodes)
    place = np.empty(n, dtype=np.intp)
    place[partition.order] = np.arange(n)
    size = min(n, GRID)
    before, after = (grid(at[graph.first], at[graph.second], n, size) for at in (np.arange(n), place))
    top = max(int(before.max()), int(after.max()), 1)
    cells = [packing.packed(np.ceil(255 * np.sqrt(count / top)), "u1") for count in (before, after)]
    return {"size": size, "before": cells[0], "after": cells[1]}


def grid(rows: NDArray[np.intp], columns: NDArray[np.intp], n: int, size: int) -> NDArray[np.intp]:
    """Count edges in the cells of a grid, both ways round."""
    cells = (rows * size // n) * size + columns * size // n
    counts = np.bincount(cells, minlength=size * size).reshape(size, size)
    return np.asarray(counts + counts.T, dtype=np.intp)


def heat(values: FloatArray, top: float, how: str) -> dict[str, Any]:
    """Return a matrix, items by rows, as bytes in bins of items: their mean, or their largest."""
    starts = packing.bins(len(values), COLUMNS)
    gather = np.add if how == "mean" else np.maximum
    binned = gather.reduceat(values, starts, axis=0) if len(starts) else values
    if how == "mean" and len(starts):
        binned = binned / np.diff(np.append(starts, len(values)))[:, None]
    level = np.round(255 * packing.shares(binned / top if top > 0 else binned * 0.0))
    return {"items": len(values), "bins": len(starts), "rows": values.shape[1], "data": packing.packed(level.T, "u1")}


def of_factorization(result: Factorization) -> dict[str, Any]:
    """Return everything the script needs for a factorisation."""
    factors = [result.U] if result.V is result.U else [result.U, result.V]
    clean = [np.nan_to_num(np.asarray(factor, dtype=np.float64), posinf=0.0, neginf=0.0) for factor in factors]
    width = precision(result)
    return {
        "heat": [heat(factor, float(factor.max(initial=0.0)), "max") for factor in clean],
        "factors": [{"type": width, "data": packing.packed(factor, width)} for factor in factors] if width else None,
        "names": [],
    }


def precision(result: Factorization) -> str:
    """Return the width of the numbers the page keeps of the factors; nothing when there are too many."""
    entries = result.U.size + (0 if result.V is result.U else result.V.size)
    if entries > SINGLE:
        return ""
    return "f8" if entries <= DOUBLE else "f4"
