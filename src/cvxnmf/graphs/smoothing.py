"""Clusters of a large graph from weak ones, by a few linear steps.

In a large sparse graph without triangles the first clusters, merged from single nodes, hold little of each group, and moves of
single nodes, which look at the strongest cluster only, may stay there. Numbers that are averaged over neighbours again and again
forget what is particular to a node before they forget its group: each step favours directions of the graph above the noise, as
products with its matrix do. First clusters, instead of random numbers, save most of the steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxnmf.graphs.moves import Labels, Level, renumber
from cvxnmf.graphs.score import EXACT
from cvxnmf.linalg.centres import farthest_points, nearest_centres, nearest_of
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.hashing import mixed_bits
from cvxnmf.linalg.sparse_products import shares_of_rows
from cvxnmf.linalg.threads import map_in_threads

Positions = NDArray[np.float32]
#: Numbers of each node, and steps; a row of single precision is one line of the cache.
WIDTH, STEPS = 16, 8
#: Clusters that nodes are dealt out to, nodes that their centres are found from, rounds of this, and nodes worked on at a time.
CENTRES, SAMPLE, ROUNDS, PIECE = 200, 20_000, 8, 1 << 13


def smoothed_clusters(level: Level, labels: Labels) -> Labels:
    """Smoothed clusters: by positions that were averaged over neighbours, from those of their first clusters."""
    positions = signs(labels)
    for _ in range(STEPS):
        positions = _average_neighbours(level, positions)
    return np.asarray(nearby_clusters(positions, np.int64))


def nearby_clusters(positions: Positions, kind: Any) -> Any:
    """Clusters, numbers of this kind, of smoothed positions that are near each other, by centres that a sample tells."""
    n = len(positions)
    sample = positions[:: max(1, n // SAMPLE)].astype(np.float64)
    centres = farthest_points(sample, min(CENTRES, len(sample)))
    nearest = nearest_centres(sample, centres, ROUNDS)
    used = np.unique(nearest)
    means = np.array([sample[nearest == c].mean(axis=0) for c in used])
    pieces = (positions[first : first + PIECE].astype(np.float64) for first in range(0, n, PIECE))
    found = [nearest_of(piece, means).astype(kind) for piece in pieces]
    return np.asarray(renumber(np.concatenate(found)))


@compile_with(nogil=True)
def signs(labels: Any) -> Any:
    """First positions to smooth: the same signs for all nodes of a cluster, by a hash of its number."""
    found = np.empty((len(labels), WIDTH), np.float32)
    for i in range(len(labels)):
        bits = mixed_bits(np.uint64(labels[i] + 1))
        for r in range(WIDTH):
            found[i, r] = 1.0 if (bits >> np.uint64(r)) & np.uint64(1) else -1.0
    return found


def _average_neighbours(level: Level, positions: Positions) -> Positions:
    """Smoothed positions: means of the neighbours, less the mean over all ends of edges, in units of the spread."""
    averaged = np.empty_like(positions)
    map_in_threads(lambda rows: average_rows(level, positions, averaged, *rows), shares_of_rows(level.indptr))
    centre_and_scale(averaged, np.diff(level.indptr).astype(np.float32))
    return averaged


def centre_and_scale(positions: Positions, ends: Any) -> None:
    """Centre smoothed positions at the mean over all ends of edges, as many at each node, and scale them to unit spread."""
    positions -= (ends @ positions) / ends.sum()
    positions /= np.sqrt(np.einsum("ir,ir->r", positions, positions) / np.float32(len(positions))) + np.float32(1e-30)


@compile_with(**EXACT)
def average_rows(level: Any, positions: Any, averaged: Any, first: int, last: int) -> None:
    """Smooth some rows of a level, or of a block: means of the neighbours' positions, weighted as its entries are."""
    row, alike = np.empty(WIDTH, np.float32), len(level.weights) == 1
    for i in range(first, last):
        total = np.float32(0.0)
        for r in range(WIDTH):
            row[r] = 0.0
        for p in range(level.indptr[i], level.indptr[i + 1]):
            near = positions[np.uint32(level.indices[p])]  # unsigned: no index counts from the end
            w = np.float32(1.0 if alike else level.weights[p])
            total += w
            for r in range(WIDTH):
                row[r] += w * near[r]
        for r in range(WIDTH):
            averaged[i, r] = row[r] / total if total > 0.0 else 0.0
