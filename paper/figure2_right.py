"""Figure 2, right: performance against spectral methods, from near-bipartite graphs to clear clusters."""

# ruff: noqa: T201
from cvxnmf.paper import reproduce

if __name__ == "__main__":
    print(*reproduce("figure2-right", "cvxnmf-paper").files, sep="\n")
