"""Mistakes people make; mypy --strict must find each, else it calls the comment behind it unused. Nobody runs it."""

import numpy as np

import cvxnmf


def mistaken() -> None:
    """Each line is wrong."""
    cvxnmf.factorise(np.eye(3))  # type: ignore[attr-defined]
    cvxnmf.partition(np.eye(3), n_clusters="three")  # type: ignore[arg-type]
    cvxnmf.solve(np.eye(3))  # type: ignore[arg-type]
    cvxnmf.factorize("counts.csv", 3)  # type: ignore[arg-type]
    cvxnmf.partition(3.5)  # type: ignore[arg-type]
    cvxnmf.factorize(np.eye(3)).certificate.bonud  # type: ignore[attr-defined]  # noqa: B018
