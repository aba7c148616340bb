"""Pictures of results as matplotlib figures."""

from cvxnmf.display.plots import components, figure1, gap_closing, graph, memberships, ranks, spectrum

__all__ = ["figure1", "gap_closing", "spectrum", "memberships", "graph", "components", "ranks"]
