"""The description length of clusters of a graph in blocks: what is summed over edges comes from passes over the blocks."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from cvxnmf.chunked.graphs.blocks import BlockedGraph, RowBlock, extremes_block
from cvxnmf.graphs import moves
from cvxnmf.graphs.block_model import PlantedPartition
from cvxnmf.graphs.blocked.rounds import Numbers, Rule, cluster_sums
from cvxnmf.graphs.blocked.wedges import closed_wedges
from cvxnmf.graphs.description_length import LEAST_GAIN, DescribedGraph
from cvxnmf.graphs.score import Score
from cvxnmf.linalg.arrays import FloatArray


class Outline(NamedTuple):
    """Shape and row lengths of the matrix of a graph in blocks, without its entries."""

    shape: tuple[int, int]
    nnz: int
    indptr: Any


class Totals(NamedTuple):
    """Masses of the nodes of a graph in blocks, and their sum, in the place of its block model."""

    degrees: FloatArray
    total: float


class BlockedDescription(DescribedGraph):
    """A graph in blocks under the code of description lengths."""

    def __init__(self, blocks: BlockedGraph, simple: bool, dispersion: float, even: bool = False) -> None:
        self.blocks, self.simple, self.dispersion, self.even = blocks, simple, dispersion, even
        masses = blocks.facts.masses
        nnz = blocks.entries + int(np.count_nonzero(blocks.facts.loops))
        self.A = Outline((blocks.n, blocks.n), nnz, np.append(0, np.cumsum(masses)).astype(np.int64) if simple else None)
        self.model = cast(PlantedPartition, Totals(masses, float(masses.sum())))

    @property
    def even_mass(self) -> float:
        """The mass of every node of a graph in blocks if all are alike, else 0."""
        return self.model.total / self.blocks.n if self.even else 0.0

    def rule(self, score: Score) -> Rule:
        """The rule of moves that raise a score on a graph in blocks."""
        return Rule(score, LEAST_GAIN, self.even_mass)

    def with_measured_code(self, labels: Any) -> BlockedDescription:
        """The graph in blocks with the dispersion and the degrees that these clusters leave."""
        return cast(BlockedDescription, super().with_measured_code(labels))

    def with_dispersion(self, dispersion: float) -> BlockedDescription:
        """The description of the same graph in blocks under another dispersion."""
        return BlockedDescription(self.blocks, self.simple, dispersion, self.even)

    def _with_even_degrees(self) -> BlockedDescription:
        return BlockedDescription(self.blocks, self.simple, self.dispersion, even=True)

    def sums(self, labels: Any) -> Any:
        """Sums inside the clusters 0, 1, ... of these labels, by a pass over the blocks."""
        k = int(labels.max()) + 1
        found = cluster_sums(self.blocks, labels.astype(np.int32, copy=False), k, self.even_mass)
        sums = np.zeros(k, moves.SUMS)
        sums["edges"], sums["masses"], sums["sizes"] = found
        sums["members"] = np.bincount(labels, minlength=k)
        return sums

    def _wedges(self, labels: Any) -> tuple[float, float, float, float]:
        """Closed wedges inside clusters, on a smaller sample than of a graph in memory."""
        return closed_wedges(self.blocks, labels.astype(np.int32, copy=False), int(labels.max()) + 1)

    def _squares(self, labels: Any, within: FloatArray, across: float) -> tuple[float, float]:
        """Sums of squares of entries, and of their products with the model, by a pass over the blocks."""
        numbers: Numbers = labels.astype(np.int32, copy=False)
        (parts,) = self.blocks.map_reduce(dispersion_block, numbers, self.model.degrees, within, across)
        squared, cross = np.sum(np.array(parts), axis=0).tolist()
        return squared, cross


def describe_blocks(graph: BlockedGraph, roots: bool) -> BlockedDescription:
    """Describe a graph in blocks without empty rows: equal edges as 1, other weights as their square roots if asked."""
    largest, least = graph.map_reduce(extremes_block)
    simple = float(largest) == -float(least)
    if simple and float(largest) == 1.0 or not (simple or roots):
        return BlockedDescription(graph, simple, 1.0)
    described = BlockedDescription(graph.with_scaled_weights(float(largest) if simple else None), simple, 1.0)
    if simple:
        return described
    return described.with_dispersion(described.weight_dispersion(np.zeros(graph.n, dtype=np.int32)))


def dispersion_block(
    block: RowBlock, state: Any, labels: Numbers, degrees: FloatArray, within: FloatArray, across: float
) -> tuple[None, tuple[Any, ...]]:
    """The sum of squares of the entries of a block, and of their products with the model, for the dispersion."""
    rows = block.first + np.repeat(np.arange(len(block.masses)), np.diff(block.indptr))
    own = labels[rows]
    rates = np.where(own == labels[block.indices], within[own], across)
    cross = float(np.sum(block.weights * rates * degrees[rows] * degrees[block.indices]))
    alone = slice(block.first, block.first + len(block.masses))
    cross += float(np.sum(block.loops * within[labels[alone]] * degrees[alone] ** 2))
    squares = np.broadcast_to(np.square(block.weights), len(rows))
    return None, (((float(np.sum(squares)) + float(np.sum(block.loops**2)), cross),),)
