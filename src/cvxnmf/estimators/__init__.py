"""The scikit-learn face of the package."""

from cvxnmf.estimators.graph_partitioner import GraphPartitioner
from cvxnmf.estimators.nmf import NMF
from cvxnmf.estimators.symmetric_nmf import SymmetricNMF
from cvxnmf.nmf.encoding import encode

__all__ = ["NMF", "GraphPartitioner", "SymmetricNMF", "encode"]
