"""The scikit-learn face of the package."""

from cvxnmf.estimators.graphs import GraphPartitioner
from cvxnmf.estimators.nmf import NMF
from cvxnmf.estimators.similarities import SymmetricNMF
from cvxnmf.nmf.encoding import encode

__all__ = ["NMF", "GraphPartitioner", "SymmetricNMF", "encode"]
