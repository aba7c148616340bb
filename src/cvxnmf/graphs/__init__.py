"""Graphs: the paper's block graphs, what is measured on a partition, and partitions themselves."""

from cvxnmf.graphs.blocks import block_graph
from cvxnmf.graphs.partitioning import partition
from cvxnmf.graphs.quality import modularity, performance

__all__ = ["block_graph", "modularity", "partition", "performance"]
