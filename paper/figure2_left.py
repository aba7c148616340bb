"""Figure 2, left: steps to a certified gap against the size of the graph."""

# ruff: noqa: T201
from cvxnmf.paper import reproduce

if __name__ == "__main__":
    print(*reproduce("figure2-left", "cvxnmf-paper").files, sep="\n")
