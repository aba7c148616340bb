"""Groups of nodes of a graph in blocks, and what the convex model needs of its edges: a pass for each.

Nodes of a cluster are told apart by the other cluster that has most of their weight, and by the share of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.row_pieces import GroupSums, PieceSums, lower_half, sum_piece, total_sums
from cvxnmf.chunked.graphs.blocks import BlockedGraph, RowBlock
from cvxnmf.chunked.graphs.row_pieces import pieces_of
from cvxnmf.convex.coarsening import GROUPS
from cvxnmf.graphs.blocked.description import BlockedDescription
from cvxnmf.graphs.blocked.rounds import Numbers, consecutive_labels
from cvxnmf.graphs.score import EXACT
from cvxnmf.linalg.compiled import compile_with

#: Equal parts of the shares that clusters have of the weight of their nodes, at least and at most.
FEWEST_SHARES, MOST_SHARES = 4, 64


class SummedGraph(NamedTuple):
    """Groups of the nodes of a graph in blocks and the sums over them; its dispersion unless all edges are alike."""

    groups: Numbers
    sums: GroupSums
    dispersion: float | None

    def in_order(self, nodes: Any) -> SummedGraph:
        """The groups and their sums with the nodes in another order."""
        return self._replace(groups=self.groups[nodes], sums=self.sums._replace(degrees=self.sums.degrees[nodes]))


def sum_over_groups(graph: BlockedGraph, labels: Numbers, alike: bool) -> SummedGraph:
    """Group the nodes of a graph in blocks and sum it over pairs of groups; `alike`: edges weigh the same."""
    groups = group_nodes(graph, labels, GROUPS)
    pairs, parts = graph.map_reduce(sums_block, groups, int(groups.max()) + 1, graph.n)
    sums = total_sums(pairs, graph.facts.masses, list(parts))
    loops = graph.facts.loops
    if alike and np.all((loops == 0.0) | (loops == sums.largest)):
        return SummedGraph(groups, sums, None)
    return SummedGraph(groups, sums, BlockedDescription(graph, False, 1.0).weight_dispersion(labels.astype(np.int64)))


def group_nodes(graph: BlockedGraph, labels: Numbers, most: int) -> Numbers:
    """At most so many groups of nodes, from 0: the heaviest kinds of nodes, and the rest of each cluster; at least 2."""
    k = int(labels.max()) + 1
    shares = min(max(FEWEST_SHARES, most // k**2), MOST_SHARES)
    parts = graph.map_reduce(kinds_block, labels, k, shares)[0]
    kinds = np.unique(np.concatenate(parts) + labels.astype(np.int64) * (k * shares), return_inverse=True)[1]
    weights = np.bincount(kinds, graph.facts.masses)
    heavy = np.zeros(len(weights), dtype=np.bool_)
    heavy[np.argsort(-weights, kind="stable")[: most - k]] = True
    groups = consecutive_labels(np.where(heavy[kinds], k + kinds, labels))
    return groups if groups.max() else (np.arange(graph.n) >= (graph.n + 1) // 2).astype(np.int32)  # nothing tells them apart


def kinds_block(block: RowBlock, state: Any, labels: Numbers, k: int, shares: int) -> tuple[None, tuple[Any, ...]]:
    """Kinds of a block's rows, for groups: the other cluster with most of their weight, or their own, and their own's share."""
    return None, ((_kinds(block, labels, k, shares),),)


@compile_with(**EXACT)
def _kinds(block: RowBlock, labels: Any, k: int, shares: int) -> Any:
    kinds, links, alike = np.empty(len(block.masses), np.int64), np.zeros(k), len(block.weights) == 1
    for i in range(len(block.masses)):
        own = labels[block.first + i]
        links[own] = block.loops[i]
        for p in range(block.indptr[i], block.indptr[i + 1]):
            links[labels[block.indices[p]]] += block.weights[0] if alike else block.weights[p]
        share, other, most = int(shares * links[own] / block.masses[i]), own, 0.0
        links[own] = 0.0
        for p in range(block.indptr[i], block.indptr[i + 1]):
            c = labels[block.indices[p]]
            if links[c] > most or (links[c] == most and c < other and most > 0.0):
                most, other = links[c], c
        for p in range(block.indptr[i], block.indptr[i + 1]):
            links[labels[block.indices[p]]] = 0.0
        kinds[i] = other * shares + min(share, shares - 1)
    return kinds


def sums_block(block: RowBlock, state: Any, groups: Numbers, count: int, n: int) -> tuple[None, tuple[Any, ...]]:
    """Sums of L, a block of the graph below its diagonal, over pairs of groups, and what else its row pieces bring."""
    pairs, parts = sp.csr_array((count, count)), list[PieceSums]()
    for first, rows in pieces_of(block, n):
        part = sum_piece(lower_half(rows, first), first, groups, count)
        pairs = pairs + part.pairs
        parts.append(part._replace(pairs=None))
    return None, (pairs, tuple(parts))
