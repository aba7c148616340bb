"""Clusters of a graph in blocks from weak ones, by averages over neighbours: see :mod:`cvxnmf.graphs.smoothing`.

Blocks of one colour after the other take averages of what the others have at the time, so that one array of positions is enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.chunked.graphs.blocks import COLOURS, BlockedGraph, RowBlock
from cvxnmf.graphs.blocked.rounds import Numbers
from cvxnmf.graphs.smoothing import STEPS, WIDTH, Positions, average_rows, centre_and_scale, nearby_clusters, signs


def smoothed_clusters(graph: BlockedGraph, labels: Numbers) -> Numbers:
    """Smoothed clusters of a graph in blocks: by positions averaged over neighbours, from those of their first clusters."""
    positions = signs(labels)
    kept = graph.keep(positions)
    for colour in [*range(COLOURS)] * STEPS:
        for first, rows in kept.map_blocks(average_block, colour=colour):
            positions[first : first + len(rows)] = rows
            kept.note_changes(0, np.arange(first, first + len(rows)))
    centre_and_scale(positions, graph.facts.masses.astype(np.float32))
    return np.asarray(nearby_clusters(positions, np.int32))


def average_block(block: RowBlock, state: Any, positions: Positions) -> tuple[None, tuple[Any, ...]]:
    """The first row of a block, and smoothed positions: means over the neighbours of its rows."""
    averaged = np.empty((len(block.masses), WIDTH), dtype=np.float32)
    average_rows(block, positions, averaged, 0, len(averaged))
    return None, (((block.first, averaged),),)
