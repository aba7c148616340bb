"""Rank-k methods against scikit-learn: one BLAS thread on either side, same data, same start, one run."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from threadpoolctl import threadpool_limits

import cvxnmf
from benchmarks import datasets, objective

Table = Callable[[str, list[str], list[list[str]]], None]


def speed(table: Table) -> None:
    """Time to the loss that scikit-learn reaches in 200 iterations, from the same start."""
    for loss, solver, goal in (("mse", "cd", 3), ("kl", "mu", 5)):
        rows = []
        for name, A, k in datasets.rank_k():
            repeats = 1 if sp.issparse(A) or (loss == "kl" and A.size > 200_000) else 3
            theirs, ours, steps = _race(A, k, loss, solver, _common_start(A, k, loss, solver), repeats)
            rows.append([name, str(k), f"{theirs:.2f}", f"{ours:.3f}", f"{theirs / ours:.1f}", str(steps)])
        header = [
            "data",
            "k",
            f"scikit-learn {solver}, 200 iterations, s",
            "ours to the same loss, s",
            "times faster",
            "our steps",
        ]
        table(f"{loss.upper()}: time to scikit-learn's loss (goal: {goal} times)", header, rows)


def _common_start(A: Any, k: int, loss: str, solver: str) -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's own start, after one iteration of the solver that is raced against: another's zeros would lock it."""
    beta = "frobenius" if loss == "mse" else "kullback-leibler"
    model = NMF(k, init="nndsvda", solver=solver, beta_loss=beta, max_iter=1, tol=0, random_state=0)
    return model.fit_transform(A), np.ascontiguousarray(model.components_.T)


def _race(A: Any, k: int, loss: str, solver: str, start: Any, repeats: int) -> tuple[float, float, int]:
    """Median seconds of both, interleaved after a short warm-up, and our steps."""
    cvxnmf.classical_nmf(A, k, loss=loss, init=start, max_iter=2)
    theirs, ours, steps = [], [], 0
    for _ in range(repeats):
        spent, target = objective.seconds(lambda: _their_loss(A, k, loss, solver, start))
        theirs.append(spent)
        spent, result = objective.seconds(lambda target=target: _until(A, k, loss, start, target))
        ours.append(spent if result.value <= target * (1 + 1e-9) else np.inf)
        steps = len(result.history)
    return median(theirs), median(ours), steps


def _their_loss(A: Any, k: int, loss: str, solver: str, start: Any) -> float:
    beta = "frobenius" if loss == "mse" else "kullback-leibler"
    model = NMF(k, init="custom", solver=solver, beta_loss=beta, tol=0, max_iter=200)
    model.fit_transform(A, W=start[0].copy(), H=np.ascontiguousarray(start[1].T))
    return float(model.reconstruction_err_**2) if loss == "mse" else float(model.reconstruction_err_**2 / 2)


def _until(A: Any, k: int, loss: str, start: Any, target: float) -> cvxnmf.Factorization:
    reached = lambda line: line.value <= target  # noqa: E731
    return cvxnmf.classical_nmf(A, k, loss=loss, init=start, max_iter=2000, tol=0.0, callback=reached)


def quality(table: Table) -> None:
    """Factorize with its defaults against the best of 10 random starts of scikit-learn, and the cost of the bound."""
    rows = []
    for name, A, k in datasets.quality_cases():
        spent, result = objective.seconds(lambda A=A, k=k: cvxnmf.factorize(A, k))
        proving, _ = objective.seconds(lambda A=A, result=result: cvxnmf.verify(A, result.U, result.V))
        restarts, best = objective.seconds(lambda A=A, k=k: _best_of_random(A, k))
        gap = f"{100 * result.certificate.relative_gap:.2g}%"
        ratio = f"{result.value / best:.5f}"
        rows.append([name, str(k), ratio, f"{spent:.1f}", f"{restarts:.1f}", f"{proving:.2f}", gap])
    header = ["data", "k", "loss / best of 10 random", "ours, s", "10 runs, s", "verify, s", "certified gap"]
    table("factorize against the best of 10 random starts of scikit-learn (tol 1e-6, at most 2000 iterations)", header, rows)


def _best_of_random(A: Any, k: int) -> float:
    runs = (NMF(k, init="random", random_state=seed, tol=1e-6, max_iter=2000).fit(A) for seed in range(10))
    return min(float(run.reconstruction_err_) ** 2 for run in runs)


def symmetric(table: Table) -> None:
    """Factorize on normalised adjacency matrices against 20 random starts of our own symmetric coordinate descent."""
    rows = []
    for name, A, k in datasets.normalised_graphs():
        cvxnmf.factorize(A, k, symmetric=True, effort=1)  # compile
        spent, result = objective.seconds(lambda A=A, k=k: cvxnmf.factorize(A, k, symmetric=True, effort=0))
        restarts, values = objective.seconds(lambda A=A, k=k: _random_symmetric(A, k))
        certificate = cvxnmf.verify(A, result.U, effort=300)
        ratio = f"{result.value / min(values):.6f}"
        rows.append([name, str(k), ratio, f"{spent:.3f}", f"{restarts:.3f}", f"{certificate.relative_gap:.1e}"])
    header = ["graph", "k", "loss / best of 20 random", "ours, s", "20 runs, s", "certified gap"]
    table("Symmetric factorize, normalised adjacency", header, rows)


def _random_symmetric(A: np.ndarray, k: int) -> list[float]:
    options = {"symmetric": True, "max_iter": 1000, "tol": 1e-6}
    return [cvxnmf.classical_nmf(A, k, init="random", rng=seed, **options).value for seed in range(20)]


def main(table: Table) -> None:
    """Print the tables."""
    began = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns that 200 iterations are few
        speed(table)
        symmetric(table)
        quality(table)
    print(f"\nRank-k tables took {time.perf_counter() - began:.0f} s.")
