"""The scikit-learn face of the package."""

from cvxnmf.codes import encode
from cvxnmf.estimators.graphs import GraphPartitioner
from cvxnmf.estimators.nmf import NMF
from cvxnmf.estimators.similarities import SymmetricNMF

__all__ = ["NMF", "GraphPartitioner", "SymmetricNMF", "encode"]
