"""The convex problem of a graph as an embedding of its nodes, and the clusters of their positions.

An embedding says what stands above the noise, solves the convex problem, and divides its positions into clusters. Here every
node has a position of its own; :mod:`cvxnmf.graphs.coarsen` has the one in which nodes of large graphs share theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.convex.coarsening import LARGEST_WHOLE, MOST_DIRECTIONS, floored_noise_level
from cvxnmf.convex.coarsening import directions_above_noise as count_directions
from cvxnmf.convex.noise import Noise, degree_metric, modularity_pairs
from cvxnmf.convex.solve import solve
from cvxnmf.convex.symmetric import symmetric
from cvxnmf.graphs.block_model import Clusters
from cvxnmf.graphs.description_length import DescribedGraph
from cvxnmf.graphs.order import canonical_order, in_order
from cvxnmf.graphs.refinement import Refinement, cluster_positions
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import Solution

#: If more than this share of all directions stands above the noise, there is none to speak of.
NOISELESS_SHARE = 0.25
#: Eigenvalues that are kept for looking at, beyond those above the noise.
SHOWN = 20


class Embedding(ABC):
    """Embedding of a graph: positions of the nodes of A, a symmetric csr_array of shape (n, n) with at least one edge.

    Attributes
    ----------
    kept : ndarray of int
        Nodes with edges.
    part, s : csr_array, ndarray
        The graph on those, and its degree metric.
    noise : Noise
        Edge and dispersion of the noise.
    spectrum : ndarray
        Largest eigenvalues of the modularity matrix in the metric, decreasing.
    """

    noise: Noise
    spectrum: FloatArray

    def __init__(self, A: sp.csr_array) -> None:
        self.A, self.kept = A, np.flatnonzero(np.diff(A.indptr))
        self.part = A if len(self.kept) == A.shape[0] else A[self.kept][:, self.kept].tocsr()
        self.s = degree_metric(np.asarray(self.part.sum(axis=1)).ravel())
        with single_thread():
            self.noise = floored_noise_level(self.part, self.s)

    @property
    def above_noise(self) -> int:
        """Number of directions of the embedding in which the graph differs from noise."""
        return int(np.count_nonzero(self.spectrum > self.noise.edge))

    @abstractmethod
    def solve(self, terms: dict[str, Any], options: dict[str, Any]) -> Solution:
        """The solution of the convex problem with these terms, an embedding of all nodes."""

    @abstractmethod
    def clusters(self, solution: Solution, k: int, refinement: Refinement) -> Clusters:
        """K clusters of the embedding's positions in a solution, by decreasing size, none of them empty."""


class NodeEmbedding(Embedding):
    """Embedding in which every node has a position of its own; the number k of clusters is None if it is not known.

    All directions above the noise are there, or at least so many if only these will be looked at.
    """

    def __init__(self, A: sp.csr_array, k: int | None, looked_at: int | None = None) -> None:
        super().__init__(A)
        n, count = len(self.kept), (k or 0) + SHOWN
        with single_thread():
            self.spectrum, vectors = modularity_pairs(self.part, self.s, min(count, n))
            while count < min(n, looked_at or n) and self.spectrum[-1] > self.noise.edge:
                count *= 2
                self.spectrum, vectors = modularity_pairs(self.part, self.s, min(count, n))
        self.noise = _plausible_noise(self.noise, self.spectrum, n)
        self.directions = np.zeros((A.shape[0], len(self.spectrum)))
        self.directions[self.kept] = vectors / self.s[:, None] * np.sqrt(np.maximum(self.spectrum, 0.0))

    def solve(self, terms: dict[str, Any], options: dict[str, Any]) -> Solution:
        """The solution of the convex problem with these terms, an embedding of single nodes."""
        return solve(symmetric(self.A, **terms), **options)

    def clusters(self, solution: Solution, k: int, refinement: Refinement) -> Clusters:
        """K clusters of the positions of single nodes in the embedding."""
        W = centred_positions(solution, self.directions, k)
        with single_thread():
            order = canonical_order(self.A, np.asarray(self.A.sum(axis=1)).ravel())
            graph = DescribedGraph(in_order(self.A, order), False, self.noise.dispersion)
            found = cluster_positions(graph, W[order], k, self.above_noise, refinement)
            return found.by_size().of_nodes(np.argsort(order, kind="stable"))


def directions_above_noise(A: sp.csr_array) -> int:
    """In how many directions a graph differs from noise; of large graphs counted up to a limit."""
    if A.shape[0] <= LARGEST_WHOLE:
        return NodeEmbedding(A, None).above_noise
    kept = np.flatnonzero(np.diff(A.indptr))
    return count_directions(sp.csr_array(A[kept][:, kept]), MOST_DIRECTIONS)


def _plausible_noise(noise: Noise, spectrum: FloatArray, n: int) -> Noise:
    """The noise of an embedding; where almost nothing looks like it (smooth similarities), what the widest gap leaves below."""
    above = spectrum[spectrum > noise.edge]
    if len(above) <= NOISELESS_SHARE * n or len(above) < 3:
        return noise
    leading = above[: max(3, int(np.sqrt(n)))]
    gap = int(np.argmax(leading[:-1] / leading[1:]))
    edge = float(np.sqrt(leading[gap] * leading[gap + 1]))
    return noise._replace(edge=edge, dispersion=(edge / noise.unit_edge) ** 2)


def centred_positions(solution: Solution, directions: FloatArray, k: int) -> FloatArray:
    """Positions of an embedding around their mean, in their heaviest directions; components solved apart are far apart.

    A solution of rank 0, where all directions add less than its tolerance, has the positions that would enter first: the leading
    directions of the modularity matrix.
    """
    if solution.rank == 0:
        return directions[:, : k - 1]
    present = np.isfinite(solution.v)
    W = np.where(present[:, None], solution.W, 0.0)
    W = W - np.where(present[:, None], W[present].mean(axis=0), 0.0)
    if solution.groups is None:
        _, weights, turned = np.linalg.svd(W, full_matrices=False)
        heavy = int(np.count_nonzero(weights > 1e-9 * max(weights.max(initial=0.0), 1e-9)))
        return np.asarray(W @ turned[: min(heavy, 2 * k)].T)
    apart = 2.0 * (1.0 + np.abs(W).max(initial=0.0))
    return np.column_stack([W, apart * (solution.groups[:, None] == np.unique(solution.groups)[None, :])])
