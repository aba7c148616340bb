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
from cvxnmf.linalg.centres import farthest_points, nearest_centres
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.hashing import mixed_bits
from cvxnmf.linalg.sparse_products import shares_of_rows
from cvxnmf.linalg.threads import map_in_threads

Positions = NDArray[np.float32]
#: Numbers of each node, and steps; a row of single precision is one line of the cache.
WIDTH, STEPS = 16, 8
#: Clusters that nodes are dealt out to, nodes that their centres are found from, rounds of this, and nodes worked on at a time.
CENTRES, SAMPLE, ROUNDS, PIECE = 200, 20_000, 8, 1 << 18


def smoothed_clusters(level: Level, labels: Labels) -> Labels:
    """Clusters by positions that were averaged over neighbours, from those of their first clusters."""
    positions = _signs(labels)
    for _ in range(STEPS):
        positions = _averaged(level, positions)
    n = len(labels)
    sample = positions[:: max(1, n // SAMPLE)].astype(np.float64)
    centres = farthest_points(sample, min(CENTRES, len(sample)))
    nearest = nearest_centres(sample, centres, ROUNDS)
    used = np.unique(nearest)
    means = np.array([sample[nearest == c].mean(axis=0) for c in used])
    found = [_nearest(positions[first : first + PIECE], means) for first in range(0, n, PIECE)]
    return np.asarray(renumber(np.concatenate(found)))


def _nearest(positions: Positions, means: Any) -> Labels:
    distances = np.sum(means**2, axis=1) - 2.0 * (positions.astype(np.float64) @ means.T)
    return np.asarray(np.argmin(distances, axis=1), dtype=np.int64)


@compile_with(nogil=True)
def _signs(labels: Any) -> Any:
    """Of each cluster the same signs for all of its nodes, by a hash of its number."""
    signs = np.empty((len(labels), WIDTH), np.float32)
    for i in range(len(labels)):
        bits = mixed_bits(np.uint64(labels[i] + 1))
        for r in range(WIDTH):
            signs[i, r] = 1.0 if (bits >> np.uint64(r)) & np.uint64(1) else -1.0
    return signs


def _averaged(level: Level, positions: Positions) -> Positions:
    """Means of the neighbours, less the mean over all ends of edges, in units of the spread."""
    averaged = np.empty_like(positions)
    map_in_threads(lambda rows: _average(level, positions, averaged, *rows), shares_of_rows(level.indptr))
    ends = np.diff(level.indptr).astype(np.float32)
    averaged -= (ends @ averaged) / ends.sum()
    averaged /= np.sqrt(np.einsum("ir,ir->r", averaged, averaged) / np.float32(len(averaged))) + np.float32(1e-30)
    return averaged


@compile_with(**EXACT)
def _average(level: Level, positions: Any, averaged: Any, first: int, last: int) -> None:
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
