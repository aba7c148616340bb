"""What people write with the package; mypy --strict reads it, nobody runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cvxnmf
from cvxnmf import NMF, Certificate, GraphPartitioner, Partition, Status, SymmetricNMF, plots, report
from cvxnmf.typing import GraphLike, MatrixLike


def divided(A: NDArray[np.float64], folder: Path) -> dict[object, int]:
    """Partition a graph and keep everything."""
    found: Partition = cvxnmf.partition(A, n_clusters=3, trace="auto", tol=1e-6)
    labels: NDArray[np.intp] = found.labels
    shares: NDArray[np.float64] = found.memberships
    quality: float = found.performance + found.modularity + shares[0, labels[0]]
    report.write(found, folder / "page.html", title=f"{quality:.3f}")
    plots.figure1(found.A, found.order, found.labels).savefig(folder / "figure.png")
    cvxnmf.save(found, folder / "result.npz")
    found.to_frame().to_csv(folder / "labels.csv")
    found.to_networkx()
    return found.to_dict()


def passed(graph: GraphLike, table: MatrixLike) -> float:
    """Hand over what comes, in any form that is taken."""
    pairs = cvxnmf.partition([("a", "b"), ("b", "c")])
    rows = cvxnmf.factorize([[1.0, 2.0], [3.0, 4.0]], 1, weights=[1.0, 2.0], row_names=("a", "b"), memory_limit="2 GB")
    dense = cvxnmf.classical_nmf(table, 2, rng=np.random.default_rng(0))
    proof = cvxnmf.verify_labels(graph, {"a": 0, "b": 1})
    return pairs.modularity + rows.value + dense.value + proof.bound + cvxnmf.performance(np.eye(3), [0, 1, 1])


def solved(A: NDArray[np.float64]) -> Certificate:
    """Solve a convex problem step by step."""

    def told(step: cvxnmf.Iterate) -> bool:
        return step.gap < 1e-3 and step.seconds > 1.0

    problem = cvxnmf.symmetric(A, loss="kl", cone="conditional", metric="degree", trace=1.0)
    try:
        solution = cvxnmf.solve(problem, callback=told)
    except cvxnmf.Interrupted as stopped:
        raise SystemExit(stopped.solution.status.sentence) from stopped
    if solution.status is not Status.OPTIMAL:
        solution = cvxnmf.path(problem, [2.0, 1.0], tol=1e-5)[-1]
    U: NDArray[np.float64] = cvxnmf.exp_factor(solution).U
    assert U.min() >= 0
    assert solution.rank <= U.shape[1]
    return cvxnmf.certify(problem, solution.X)


def factored(A: NDArray[np.float64]) -> tuple[float, float]:
    """Factor a table, and judge factors."""
    result = cvxnmf.factorize(A, 4, loss="mse")
    proof = cvxnmf.verify(A, result.U, result.V)
    proof.save("proof.npz")
    steps = [step.value for step in result.history]
    quick = cvxnmf.classical_nmf(A, 4, method="hals", l1=(0.1, 0.0), init=(result.U, result.V))
    quick = cvxnmf.factorize(A, 4, start=quick)
    result.to_frame("V", names=[str(column) for column in range(A.shape[1])])
    return Certificate.load("proof.npz").check(A), min(steps) + quick.value + proof.relative_gap


def estimated(A: NDArray[np.float64]) -> list[object]:
    """Use the estimators."""
    return [NMF(3).fit_transform(A), SymmetricNMF(3).fit_predict(A @ A.T), GraphPartitioner().fit(A @ A.T).labels_]
