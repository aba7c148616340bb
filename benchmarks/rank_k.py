"""Rank-k factorisations against their peers: one thread on either side, same data, one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import cvxnmf
from benchmarks import datasets, objective, solvers
from benchmarks.report import Table
from benchmarks.scale import Scale

Case = tuple[str, Any, int]


def _speed_cases(scale: Scale) -> list[Case]:
    if scale.tiny:
        return [("digits, 100 rows", datasets.digits()[:100], 5), ("planted 60 x 40", datasets.planted_counts(60, 40, 3, 0.2), 3)]
    if not scale.full:
        return [
            ("digits", datasets.digits(), 10),
            ("planted 2,000 x 1,000, 1%", datasets.planted_counts(2000, 1000, 10, 0.01), 10),
        ]
    faces, samson = datasets.from_mat("cbcl_faces", "M"), datasets.from_mat("samson", "Y")
    cases = [("digits", datasets.digits(), 10), ("CBCL faces", faces, 49), ("Samson", samson, 3)]
    cases.append(("planted 10,000 x 5,000, 1%", datasets.planted_counts(10_000, 5_000, 20, 0.01), 20))
    return [case for case in cases if case[1] is not None]


def speed(scale: Scale) -> list[Table]:
    """Time to the loss that scikit-learn reaches in 200 iterations, from the same start."""
    tables = []
    with threadpool_limits(1):
        for loss, solver, goal in (("mse", "cd", 3), ("kl", "mu", 5)):
            rows = []
            for name, A, k in _speed_cases(scale):
                once = scale.tiny or (scale.full and (sp.issparse(A) or (loss == "kl" and A.size > 200_000)))
                rows.append([name, str(k), *_race(A, k, loss, solver, 1 if once else 3, 10 if scale.tiny else 200)])
            header = ["data", "k", f"scikit-learn {solver}, s", "ours to the same loss, s", "times faster", "our steps"]
            title = f"{loss.upper()}: time to the loss of scikit-learn's {solver} after 200 iterations (goal: {goal} times)"
            tables.append(
                Table(title, header, rows, "One thread each; both start after one iteration of scikit-learn from nndsvda.")
            )
    return tables


def _race(A: Any, k: int, loss: str, solver: str, repeats: int, max_iter: int) -> list[str]:
    """Seconds of both, in turns after a short warm-up, how many times faster we are, and our steps."""
    start = solvers.common_start(A, k, loss, solver)
    cvxnmf.classical_nmf(A, k, loss=loss, init=start, max_iter=2)
    target = objective.factor_loss(A, *solvers.sklearn_nmf(A, start, loss, solver, max_iter, tol=0), loss)
    works = {
        "theirs": lambda: solvers.sklearn_nmf(A, start, loss, solver, max_iter, tol=0),
        "ours": lambda: solvers.our_descent(A, start, loss, target),
    }
    times, answers = objective.interleaved(works, repeats, warm_up=False)
    ours = answers["ours"]
    reached = objective.factor_loss(A, ours.U, ours.V, loss) <= target * (1 + 1e-9)
    faster = f"{times['theirs'].median / times['ours'].median:.1f}" if reached else "not reached"
    return [str(times["theirs"]), str(times["ours"]), faster, str(len(ours.history))]


def _quality_cases(scale: Scale) -> list[Case]:
    digits = datasets.digits()
    if scale.tiny:
        return [("digits, 60 rows", digits[:60], 3)]
    if not scale.full:
        return [("digits", digits, 6), ("random planted 400 x 150", datasets.dense_counts(), 12)]
    faces, samson = datasets.from_mat("cbcl_faces", "M"), datasets.from_mat("samson", "Y")
    cases = [("digits", digits, k) for k in (6, 10, 16, 25)] + [("CBCL faces", faces, k) for k in (25, 49)]
    cases += [("Samson", samson, 3), ("random planted 400 x 150", datasets.dense_counts(), 12)]
    return [case for case in cases if case[1] is not None]


def quality(scale: Scale) -> list[Table]:
    """Factorize with its defaults against the best of 10 random starts of scikit-learn, and the cost of the bound."""
    rows, runs = [], 2 if scale.tiny else 10
    with threadpool_limits(1):
        for name, A, k in _quality_cases(scale):
            spent, result = objective.seconds(lambda A=A, k=k: cvxnmf.factorize(A, k))
            proving, certificate = objective.seconds(lambda A=A, r=result: cvxnmf.verify(A, r.U, r.V))
            restarts, found = objective.seconds(lambda A=A, k=k: solvers.sklearn_random(A, k, runs, tol=1e-6, max_iter=2000))
            best = min(objective.factor_loss(A, *factors) for factors in found)
            ratio = f"{objective.factor_loss(A, result.U, result.V) / best:.5f}"
            gap = f"{100 * certificate.relative_gap:.2g}%"
            rows.append([name, str(k), ratio, f"{spent:.1f}", f"{restarts:.1f}", f"{proving:.2f}", gap])
    header = ["data", "k", f"loss / best of {runs} random", "ours, s", f"{runs} runs, s", "verify, s", "certified gap"]
    title = f"factorize against the best of {runs} random starts of scikit-learn (tol 1e-6, at most 2000 iterations)"
    return [Table(title, header, rows, "One thread each; one run.")]


def symmetric(scale: Scale) -> list[Table]:
    """Factorize on normalised adjacency matrices against 20 random starts of our own symmetric coordinate descent."""
    rows, runs = [], 2 if scale.tiny else 20
    with threadpool_limits(1):
        for name, A, k in datasets.normalised_graphs()[: 1 if scale.tiny else None]:
            cvxnmf.factorize(A, k, symmetric=True, effort=1)  # compile
            spent, result = objective.seconds(lambda A=A, k=k: cvxnmf.factorize(A, k, symmetric=True, effort=0))
            restarts, found = objective.seconds(lambda A=A, k=k: _random_symmetric(A, k, runs))
            certificate = cvxnmf.verify(A, result.U, effort=5 if scale.tiny else 300)
            best = min(objective.factor_loss(A, U, U) for U in found)
            ratio = f"{objective.factor_loss(A, result.U, result.U) / best:.6f}"
            rows.append([name, str(k), ratio, f"{spent:.3f}", f"{restarts:.3f}", f"{certificate.relative_gap:.1e}"])
    header = ["graph", "k", f"loss / best of {runs} random", "ours, s", f"{runs} runs, s", "certified gap"]
    return [
        Table("Symmetric factorize, normalised adjacency", header, rows, "One thread; the random starts are of our own method.")
    ]


def _random_symmetric(A: np.ndarray, k: int, runs: int) -> list[np.ndarray]:
    options: dict[str, Any] = {"symmetric": True, "max_iter": 1000, "tol": 1e-6}
    return [cvxnmf.classical_nmf(A, k, init="random", rng=seed, **options).U for seed in range(runs)]


TABLES: tuple[Callable[[Scale], list[Table]], ...] = (speed, symmetric, quality)
