"""Rank-k methods of other packages at their own settings, scored by our objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import cvxnmf
from benchmarks import datasets, environments, objective, solvers
from benchmarks.environments import Unavailable
from benchmarks.objective import Timing
from benchmarks.report import Table, missing_row
from benchmarks.scale import Scale

HEADER = ["method", "settings", "seconds", "loss", "loss / best"]
#: Peers in environments of their own: name, package, method, iterations, settings in words.
FOREIGN = (
    ("nimfa Nmf", "nimfa", "nmf", 30, "30 iterations, its default"),
    ("nimfa Nmf", "nimfa", "nmf", 200, "200 iterations"),
    ("nimfa Lsnmf", "nimfa", "lsnmf", 30, "at most 30 iterations, its default"),
    ("torchnmf", "torchnmf", "nmf", 200, "tol 1e-4, at most 200 iterations, its defaults; single precision"),
)

#: Settings of karateclub's SymmNMF: its own, under which it moves slowly, and some that let it converge.
KARATECLUB = (("its defaults (200 iterations, rho 100)", 200, 100.0), ("2000 iterations, rho 1", 2000, 1.0))


def same_start(scale: Scale) -> list[Table]:
    """Time and loss of every method from one start, all entries of which are positive."""
    A, k = (datasets.digits()[:60], 4) if scale.tiny else (datasets.digits(), 10)
    cases: list[tuple[str, Any, int]] = [("digits", A, k)]
    if scale.full and (faces := datasets.from_mat("cbcl_faces", "M")) is not None:
        cases.append(("CBCL faces", faces, 49))
    with threadpool_limits(1):
        return [_compared(name, A, k, loss, scale) for name, A, k in cases for loss in ("mse", "kl")]


def _works(A: Any, start: solvers.Factors, loss: str) -> dict[tuple[str, str], Callable[[], solvers.Factors]]:
    def ours() -> solvers.Factors:
        result = solvers.our_descent(A, start, loss)
        return result.U, result.V

    default = "tol 1e-4, at most 200 iterations, its defaults"
    works: dict[tuple[str, str], Callable[[], solvers.Factors]] = {("cvxnmf.classical_nmf", default): ours}
    if loss == "mse":
        works["scikit-learn cd", default] = lambda: solvers.sklearn_nmf(A, start, loss, "cd")
    works["scikit-learn mu", default] = lambda: solvers.sklearn_nmf(A, start, loss, "mu")
    works["scikit-learn MiniBatchNMF", "its defaults"] = lambda: solvers.sklearn_minibatch(A, start, loss)
    return works


def _compared(name: str, A: Any, k: int, loss: str, scale: Scale) -> Table:
    start = solvers.common_start(A, k, loss, "mu")
    times, answers = objective.interleaved(_works(A, start, loss), repeats=1 if scale.tiny else 3)
    missing: dict[tuple[str, str], str] = {}
    for peer, package, method, max_iter, words in FOREIGN:
        if loss == "kl" and method == "lsnmf":
            continue
        try:
            given = {"A": A, "U": start[0], "V": start[1], "loss": loss, "method": method, "max_iter": max_iter}
            found = environments.run(package, scale.full, **given)
        except Unavailable as reason:
            missing[peer, words] = str(reason)
            continue
        times[peer, words], answers[peer, words] = Timing((float(found["seconds"]),)), (found["U"], found["V"])
    losses = {key: objective.factor_loss(A, *factors, loss) for key, factors in answers.items()}
    best = min(losses.values())
    rows = [[*key, str(times[key]), f"{value:.6g}", f"{value / best:.4f}"] for key, value in losses.items()]
    rows += [[peer, words, f"not run: {reason}", "", ""] for (peer, words), reason in missing.items()]
    note = (
        "One thread each, the same start (nndsvda after one multiplicative iteration). nimfa and torchnmf, in environments of "
        "their own, run once after a warm-up."
    )
    return Table(f"{loss.upper()}, {name}, k = {k}: every method at its own settings from one start", HEADER, rows, note)


def symmetric_peer(scale: Scale) -> list[Table]:
    """SymmNMF of karateclub and ours on the matrix that it factors, scored by `cvxnmf.verify`."""
    header = ["graph", "method", "seconds", "loss", "certified gap"]
    rows = []
    with threadpool_limits(1):
        for name, A, k in datasets.walk_kernels()[: scale.pick(1, 1, None)]:
            walk = A / A.sum(axis=1, keepdims=True)
            kernel, effort = walk @ walk.T, 5 if scale.tiny else 300
            label = f"{name}, k = {k}"
            cvxnmf.factorize(kernel, k, symmetric=True, effort=0)
            spent, ours = objective.seconds(lambda K=kernel, k=k: cvxnmf.factorize(K, k, symmetric=True, effort=0))
            rows.append([label, "cvxnmf.factorize", f"{spent:.3f}", *_verified(kernel, ours.U, effort)])
            for words, max_iter, rho in KARATECLUB:
                try:
                    found = environments.run("karateclub", scale.full, A=A, k=k, max_iter=max_iter, rho=rho)
                except Unavailable as reason:
                    rows.append([label, *missing_row(f"karateclub SymmNMF, {words}", str(reason), len(header) - 1)])
                    continue
                U = found["U"] * _best_scale(kernel, found["U"])
                score = _verified(kernel, U, effort)
                rows.append([label, f"karateclub SymmNMF, {words}", f"{found['seconds']:.3f}", *score])
    note = (
        "Both factor `K = D^-1 A (D^-1 A)'`, karateclub's matrix, as `UU'`. Its embedding (seed 42) is U, times the number "
        "that makes the loss least; its time includes building K from a networkx graph. Ours is `factorize` without its bound."
    )
    return [Table("Symmetric NMF of random-walk kernels against karateclub", header, rows, note)]


def _best_scale(K: np.ndarray, U: np.ndarray) -> float:
    """The number c for which ``||K - c² UU'||`` is least."""
    return float(np.sqrt(np.vdot(K @ U, U) / np.sum((U.T @ U) ** 2)))


def _verified(K: np.ndarray, U: np.ndarray, effort: int) -> list[str]:
    certificate = cvxnmf.verify(K, U, effort=effort)
    return [f"{certificate.value:.6g}", f"{certificate.relative_gap:.1e}"]
