"""Everyday calls on small data, which compile the loops that they need: ``python everyday_calls.py factors`` or ``graphs``."""

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import cvxnmf
from cvxnmf.display.layout import spring_positions


def factors() -> None:
    """Factor tables of every kind: dense, sparse, of single precision, with missing entries, narrow and with many components."""
    rng = np.random.default_rng(0)
    table = rng.random((60, 5)) @ rng.random((5, 40)) + 0.1 * rng.random((60, 40))
    counts = sp.csr_array(rng.poisson(0.3 * table).astype(float))
    partial = np.where(rng.random(table.shape) < 0.1, np.nan, table)
    for A in (table, counts, table.astype(np.float32), table.T):
        for beta_loss in ("frobenius", "kullback-leibler"):
            for solver in ("cd", "mu") if beta_loss == "frobenius" else ("mu",):
                model = cvxnmf.NMF(3, beta_loss=beta_loss, solver=solver).fit(A)
                model.transform(A)
            _ = cvxnmf.NMF(3, beta_loss=beta_loss).fit(A).certificate_
    cvxnmf.NMF(36).fit(table)
    for loss in ("mse", "kl"):
        cvxnmf.factorize(partial, 3, loss=loss, certificate="later")
        cvxnmf.factorize(table, 3, loss=loss)
        cvxnmf.factorize(table @ table.T, 3, loss=loss)
        cvxnmf.classical_nmf(table, 3, loss=loss)
        cvxnmf.verify(table, rng.random((60, 3)), rng.random((40, 3)), loss=loss)
    cvxnmf.choose_rank(table, range(2, 4))
    cvxnmf.solve(cvxnmf.nonsymmetric(table, trace="auto"))


def graphs() -> None:
    """Find and prove clusters of small graphs, with weights and without, and solve the convex problem."""
    for A in _small_graphs():
        found = cvxnmf.partition(A)
        _ = found.certificate, found.memberships, found.hierarchy
        cvxnmf.partition(A, 3)
        best = cvxnmf.partition(A, objective="modularity", prove=True)
        cvxnmf.verify_labels(A, best.labels)
        cvxnmf.factorize(A, 4)
        cvxnmf.solve(cvxnmf.symmetric(A, trace="auto"))
        spring_positions(A, best.labels)
    cvxnmf.exp_factor(cvxnmf.solve(cvxnmf.symmetric(A.toarray(), trace="auto")))


def _small_graphs() -> Iterator[Any]:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4), 15)
    chances = np.where(groups[:, None] == groups, 0.4, 0.05)
    for weights in (np.ones((60, 60)), rng.integers(1, 9, (60, 60)).astype(float)):
        upper = np.triu(weights * (rng.random((60, 60)) < chances), 1)
        yield sp.csr_array(upper + upper.T)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"factors": factors, "graphs": graphs}[sys.argv[1]]()
