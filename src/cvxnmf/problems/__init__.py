"""The convex problems, each written as its equation (docs/mathematics.md).

symmetric        loss(A, exp(X)) + trace <N, X>             X in a cone
nonsymmetric     loss(A, exp(X)) + 2 trace ||X||_*          X rectangular
sparse           ||A - X||^2 + l1 sum X + trace Tr X        X positive semidefinite and nonnegative
"""

from cvxnmf.problems.base import Problem
from cvxnmf.problems.block import Block
from cvxnmf.problems.doubly_nonnegative import DoublyNonnegativeProblem, sparse
from cvxnmf.problems.rectangular import NonsymmetricProblem, PaperNonsymmetricProblem, nonsymmetric
from cvxnmf.problems.square import SymmetricProblem, symmetric
from cvxnmf.problems.streamed import StreamedBlock

__all__ = [
    "Block",
    "DoublyNonnegativeProblem",
    "NonsymmetricProblem",
    "PaperNonsymmetricProblem",
    "Problem",
    "StreamedBlock",
    "SymmetricProblem",
    "nonsymmetric",
    "sparse",
    "symmetric",
]
