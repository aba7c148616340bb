"""The scikit-learn face of the package."""

from cvxnmf.estimators.function import non_negative_factorization
from cvxnmf.estimators.graph_partitioner import GraphPartitioner
from cvxnmf.estimators.minibatch_nmf import MiniBatchNMF
from cvxnmf.estimators.nmf import NMF
from cvxnmf.estimators.symmetric_nmf import SymmetricNMF
from cvxnmf.nmf.encoding import encode

__all__ = ["NMF", "GraphPartitioner", "MiniBatchNMF", "SymmetricNMF", "encode", "non_negative_factorization"]
