"""Figure 1: a block graph before and after its clusters are put together."""

# ruff: noqa: T201
from cvxnmf.paper import reproduce

if __name__ == "__main__":
    print(*reproduce("figure1", "cvxnmf-paper").files, sep="\n")
