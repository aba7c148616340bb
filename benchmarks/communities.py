"""Partitions: time against SpectralClustering and Leiden, and agreement with known groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import cvxnmf
from benchmarks import datasets, objective, solvers
from benchmarks.report import Table, missing_row, quality_picture
from benchmarks.scale import Scale

NOTE = (
    "They solve different problems: SpectralClustering (scikit-learn's defaults, seed 0) is given k and rounds eigenvectors, "
    "Leiden (`ModularityVertexPartition`, defaults, seed 0) raises the modularity and chooses k. Only ours proves a bound."
)

SPEED_HEADER = ["method", "threads", "seconds", "in units of SpectralClustering", "clusters", "ARI", "NMI", "gap proved"]


def speed(scale: Scale) -> list[Table]:
    """A planted graph of 1,000 nodes, certified to 1e-3."""
    n, k = (120, 3) if scale.tiny else (1000, 10)
    A, truth = datasets.planted_graph(n, k, degree=12 if scale.tiny else 20)
    rows = [row for threads in (None, 1) for row in _speed_rows(A, truth, k, threads, 1 if scale.tiny else 3)]
    title = f"Partition of a planted graph, n = {n:,}, mean degree {12 if scale.tiny else 20}, certified 1e-3"
    return [Table(title, SPEED_HEADER, rows, f"Goal: at most 3 times SpectralClustering. {NOTE}")]


def _speed_rows(A: Any, truth: np.ndarray, k: int, threads: int | None, repeats: int) -> list[list[str]]:
    """Everybody on all threads (None) or on so many."""
    works, missing = solvers.present(
        {
            "cvxnmf.partition, k given": lambda: cvxnmf.partition(A, k, tol=1e-3),
            "cvxnmf.partition, k found": lambda: cvxnmf.partition(A, tol=1e-3),
            "SpectralClustering": lambda: solvers.spectral_labels(A, k),
            "leidenalg": lambda: solvers.leiden_labels(A),
        }
    )
    with threadpool_limits(threads):
        times, answers = objective.interleaved(works, repeats)
    rows = []
    for name, answer in answers.items():
        labels = answer if isinstance(answer, np.ndarray) else answer.labels
        gap = "" if isinstance(answer, np.ndarray) else f"{_partition_gap(A, answer):.1e}"
        scores = [f"{score:.3f}" for score in objective.agreement(truth, labels)]
        units = objective.ratio(times, name, "SpectralClustering")
        allowed = "all" if threads is None else str(threads)
        rows.append([name, allowed, str(times[name]), units, str(len(np.unique(labels))), *scores, gap])
    return rows + [missing_row(name, reason, len(SPEED_HEADER)) for name, reason in missing.items()]


def _partition_gap(A: Any, found: cvxnmf.Partition) -> float:
    problem = cvxnmf.symmetric(A, trace=found.certificate.statement["trace"])
    return objective.proved_gap(A, problem, found.solution)


def _methods(A: Any, k: int) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    return solvers.present(
        {
            "cvxnmf, k given": lambda: solvers.our_labels(A, k),
            "cvxnmf, k found": lambda: solvers.our_labels(A, None),
            "SpectralClustering": lambda: solvers.spectral_labels(A, k),
            "leidenalg": lambda: solvers.leiden_labels(A),
        }
    )


def real_quality(scale: Scale) -> list[Table]:
    """Agreement with the labels that come with real graphs."""
    cases = {"karate": datasets.karate_labelled()}
    if not scale.tiny:
        cases |= {name: found for name in ("polbooks", "football") if (found := datasets.labelled_gml(name)) is not None}
    if scale.full and (found := datasets.lastfm()) is not None:
        cases["lastfm"] = found
    header = ["graph", "method", "seconds", "clusters", "ARI", "NMI"]
    rows = []
    for name, (A, truth) in cases.items():
        works, missing = _methods(A, len(np.unique(truth)))
        for method, work in works.items():
            spent, labels = objective.seconds(work)
            scores = [f"{score:.3f}" for score in objective.agreement(truth, labels)]
            rows.append([f"{name}, {len(truth):,} nodes", method, f"{spent:.2f}", str(len(np.unique(labels))), *scores])
        rows += [[f"{name}, {len(truth):,} nodes", *missing_row(peer, why, len(header) - 1)] for peer, why in missing.items()]
    note = f"One run each; labels that come with a graph need not be its densest groups. {NOTE}"
    return [Table("Agreement with the labels of real graphs", header, rows, note)]


def planted_quality(scale: Scale) -> list[Table]:
    """Agreement with planted groups, degrees even or heavy-tailed, and paired differences."""
    cases = [(500, 5, 15, 0.45, None), (500, 5, 15, 0.45, 2.5)]
    if scale.full:
        cases += [(1000, 10, 20, 0.45, None), (1000, 10, 20, 0.45, 2.5)]
    if scale.tiny:
        cases = [(120, 3, 12, 0.3, None)]
    header = ["graphs", "method", "mean ARI", "mean NMI", "clusters", "ours, k given, less this: ARI", "NMI"]
    rows: list[list[str]] = []
    pictured: dict[str, list[float]] = {}
    for n, k, degree, mixing, tail in cases:
        words = f"n = {n}, k = {k}, {'even' if tail is None else 'heavy-tailed'} degrees"
        graphs = [datasets.degree_corrected(n, k, degree, mixing, tail, seed) for seed in range(2 if scale.tiny else 10)]
        scores, missing = _scores(graphs, k)
        for method, found in scores.items():
            pictured.setdefault(method, []).extend(found[:, 0])
            differences = ["", ""]
            if method != "cvxnmf, k given":
                differences = [objective.paired(scores["cvxnmf, k given"][:, c], found[:, c]) for c in (0, 1)]
            means = [f"{found[:, 0].mean():.3f}", f"{found[:, 1].mean():.3f}", f"{found[:, 2].mean():.1f}"]
            rows.append([words, method, *means, *differences])
        rows += [[words, *missing_row(peer, why, len(header) - 1)] for peer, why in missing.items()]
    note = f"Ten seeds each, 45% of the edges across groups, mean degree 15 (20 for n = 1000); mean ± standard error. {NOTE}"
    return [Table("Agreement with planted groups", header, rows, note, quality_picture(pictured))]


def _scores(graphs: list[datasets.Labelled], k: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """For each method, one line per graph: both scores and the number of clusters."""
    lines: dict[str, list[list[float]]] = {}
    missing: dict[str, str] = {}
    for A, truth in graphs:
        works, missing = _methods(A, k)
        for method, work in works.items():
            labels = work()
            lines.setdefault(method, []).append([*objective.agreement(truth, labels), len(np.unique(labels))])
    return {method: np.array(found) for method, found in lines.items()}, missing
