"""The precision of the paper's rank-two factors, which the paper left to be studied."""

# ruff: noqa: T201
from cvxnmf.paper import reproduce

if __name__ == "__main__":
    print(*reproduce("rank-two", "cvxnmf-paper").files, sep="\n")
