"""What the package hands back: status, iterates, solutions, factors and partitions; data and small accessors."""

from cvxnmf.results.coclusters import CoClusters
from cvxnmf.results.consensus import Consensus
from cvxnmf.results.factorization import CPFactor, Factorization, Level
from cvxnmf.results.hierarchy import Hierarchy
from cvxnmf.results.partition import Partition
from cvxnmf.results.points import AnyPoint, FactorPoint, MatrixPoint, PairedPoint, Point
from cvxnmf.results.rank_choice import RankChoice, RankRow
from cvxnmf.results.solution import Solution
from cvxnmf.results.status import Interrupted, Iterate, Status
from cvxnmf.results.top import ComponentTop, Top

__all__ = [
    "AnyPoint",
    "CPFactor",
    "CoClusters",
    "ComponentTop",
    "Consensus",
    "FactorPoint",
    "Factorization",
    "Hierarchy",
    "Interrupted",
    "Iterate",
    "Level",
    "MatrixPoint",
    "PairedPoint",
    "Partition",
    "Point",
    "RankChoice",
    "RankRow",
    "Solution",
    "Status",
    "Top",
]
