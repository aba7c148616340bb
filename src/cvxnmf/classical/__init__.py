"""Classical rank-k factorisation: data, objectives, update rules, movers, methods by name, and one loop."""

from cvxnmf.classical.loop import classical_nmf
from cvxnmf.classical.methods import METHODS, STARTS
from cvxnmf.classical.objectives import LOSSES

__all__ = ["LOSSES", "METHODS", "STARTS", "classical_nmf"]
