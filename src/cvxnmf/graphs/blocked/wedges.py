"""How often two neighbours of a node in its cluster are neighbours themselves, against what degrees explain, on a sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.chunked.graphs.blocks import BlockedGraph, RowBlock
from cvxnmf.graphs.blocked.rounds import Numbers
from cvxnmf.graphs.description_length import WEDGE_NEIGHBOURS
from cvxnmf.graphs.score import EXACT
from cvxnmf.linalg.compiled import compile_with

#: Nodes at which wedges are looked at.
WEDGE_NODES = 4000


def closed_wedges(graph: BlockedGraph, labels: Numbers, k: int) -> tuple[float, float, float, float]:
    """Of wedges inside clusters how many are closed, how many degrees explain, how many there are; and the entries inside.

    Takes three passes: numbers of neighbours in the own cluster, neighbours of some nodes, and which of these are joined.
    """
    inside = np.concatenate(graph.map_reduce(inside_degrees_block, labels)[0]).astype(np.float64)
    totals, squares = np.bincount(labels, inside, k), np.bincount(labels, inside**2, k)
    rates = totals / np.maximum(totals**2 - squares, 1e-300) * (totals**2 > squares)
    step = max(1, graph.n // WEDGE_NODES)
    found = graph.map_reduce(neighbours_block, labels, inside.astype(np.int32), step)[0]
    centres, near = (np.concatenate([part[place] for part in found]) for place in (0, 1))
    tails, heads = _pairs(centres, near)
    expected = np.minimum(1.0, rates[labels[tails]] * inside[tails] * inside[heads])
    order = np.argsort(tails, kind="stable")
    closed = sum(graph.map_reduce(joined_pairs_block, tails[order], heads[order])[0])
    return float(closed), float(expected.sum()), float(len(tails)), float(inside.sum())


def inside_degrees_block(block: RowBlock, state: Any, labels: Numbers) -> tuple[None, tuple[Any, ...]]:
    """Numbers of neighbours in the own cluster of the rows of a block, for wedges."""
    rows = np.repeat(np.arange(len(block.masses)), np.diff(block.indptr))
    same = labels[block.first + rows] == labels[block.indices]
    return None, ((np.bincount(rows[same], minlength=len(block.masses)).astype(np.int32),),)


def neighbours_block(block: RowBlock, state: Any, labels: Numbers, inside: Numbers, step: int) -> tuple[None, tuple[Any, ...]]:
    """Centres and ends of wedges in a block: every so many nodes, with some of their neighbours in their cluster."""
    return None, ((_neighbours(block, labels, inside, step),),)


@compile_with(**EXACT)
def _neighbours(block: RowBlock, labels: Any, inside: Any, step: int) -> Any:
    most = (len(block.masses) // step + 2) * WEDGE_NEIGHBOURS
    centres, near, found = np.empty(most, np.int32), np.empty(most, np.int32), 0
    for i in range((-block.first) % step, len(block.masses), step):
        node, place = block.first + i, 0
        stride = max(1, -(-inside[node] // WEDGE_NEIGHBOURS))
        for p in range(block.indptr[i], block.indptr[i + 1]):
            if labels[block.indices[p]] == labels[node]:
                if place % stride == 0:
                    centres[found], near[found] = node, block.indices[p]
                    found += 1
                place += 1
    return centres[:found].copy(), near[:found].copy()


@compile_with(**EXACT)
def _pairs(centres: Any, near: Any) -> Any:
    """All wedges as pairs of the neighbours of each centre; those of a centre follow each other."""
    tails, heads = [np.int32(0) for _ in range(0)], [np.int32(0) for _ in range(0)]
    for a in range(len(centres)):
        b = a + 1
        while b < len(centres) and centres[b] == centres[a]:
            tails.append(near[a])
            heads.append(near[b])
            b += 1
    return np.array(tails, np.int32), np.array(heads, np.int32)


def joined_pairs_block(block: RowBlock, state: Any, tails: Numbers, heads: Numbers) -> tuple[None, tuple[Any, ...]]:
    """How many wedges, pairs by rising first node, are closed by an edge in the rows of a block."""
    first, stop = np.searchsorted(tails, (block.first, block.first + len(block.masses))).tolist()
    return None, ((_joined_pairs(block, tails[first:stop].copy(), heads[first:stop].copy()),),)


@compile_with(**EXACT)
def _joined_pairs(block: RowBlock, tails: Any, heads: Any) -> int:
    joined = 0
    for q in range(len(tails)):
        i = tails[q] - block.first
        for p in range(block.indptr[i], block.indptr[i + 1]):
            if block.indices[p] == heads[q]:
                joined += 1
                break
    return joined
