"""Partitions by family of graphs: quality and time against leidenalg, igraph, Infomap and SpectralClustering."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, objective, solvers
from benchmarks.lfr import lfr_graph
from benchmarks.report import Table, missing_row
from benchmarks.scale import Scale

#: Graphs of a family: their names, adjacency matrices and labels.
Family = Iterator[tuple[str, Any, np.ndarray]]

NOTE = (
    "Adjusted mutual information, mean over the graphs of a family; in brackets the seconds of all of them. leidenalg and igraph "
    "raise the modularity, Infomap (two levels, five trials) shortens the description of a walk. Seeds are fixed. On noise the "
    "number is the share of graphs that are one cluster."
)


def _lfr(n: int, communities: str, mixings: tuple[float, ...], seeds: int) -> Family:
    for mixing in mixings:
        for seed in range(seeds):
            yield f"mixing {mixing}", *lfr_graph(n, mixing, communities, 100 + seed)


def _real(only_karate: bool) -> Family:
    yield "karate", *datasets.karate_labelled()
    if only_karate:
        return
    for name in ("polbooks", "football"):
        if (found := datasets.labelled_gml(name)) is not None:
            yield name, *found
    for name in ("polblogs", "email_eu_core", "cora", "news_two_groups"):
        if (found := datasets.labelled_edges(name)) is not None:
            yield name, *found
    if (found := datasets.lastfm()) is not None:
        yield "lastfm", *found


def _noise(seeds: int) -> Family:
    import networkx as nx

    for seed in range(seeds):
        graphs = {
            "Erdős–Rényi": nx.gnp_random_graph(500, 0.02, seed=seed),
            "preferential attachment": nx.barabasi_albert_graph(500, 4, seed=seed),
            "regular": nx.random_regular_graph(4, 500, seed=seed),
        }
        for name, graph in graphs.items():
            yield name, nx.to_scipy_sparse_array(graph, dtype=float, format="csr"), np.zeros(500)


def _cliques(only_small: bool) -> Family:
    import networkx as nx

    for count, size in ((30, 5), (100, 5), (200, 4))[: 1 if only_small else 3]:
        graph = nx.ring_of_cliques(count, size)
        yield f"{count} of {size}", nx.to_scipy_sparse_array(graph, dtype=float, format="csr"), np.arange(count * size) // size


def _neighbours(only_iris: bool) -> Family:
    """Graphs of the ten nearest neighbours of scikit-learn's tables, columns standardised; nothing was chosen on wine."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
    from sklearn.neighbors import kneighbors_graph
    from sklearn.preprocessing import scale as standardise

    for name, load in (("iris", load_iris), ("wine", load_wine), ("cancer", load_breast_cancer), ("digits", load_digits)):
        points, labels = load(return_X_y=True)
        near = kneighbors_graph(points if name == "digits" else standardise(points), 10)
        yield name, sp.csr_array((near + near.T > 0).astype(float)), labels
        if only_iris:
            return


def families(scale: Scale) -> list[Table]:
    """The number of clusters open, and given."""
    mixings = scale.pick((0.3,), (0.3, 0.5, 0.6, 0.7), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7))
    seeds = scale.pick(1, 1, 3)
    sizes = scale.pick((300,), (1000,), (1000, 5000))
    cases: dict[str, Family] = {
        "rings of cliques": _cliques(scale.tiny),
        "noise": _noise(seeds),
        "real graphs with labels": _real(scale.tiny),
        "nearest neighbours": _neighbours(scale.tiny),
    }
    for n in sizes:
        for communities in ("small", "large"):
            cases[f"LFR, n = {n:,}, {communities} communities"] = _lfr(n, communities, mixings, seeds)
    rows: list[list[str]] = []
    for family, graphs in cases.items():
        scores, missing = _scores(list(graphs))
        rows += [[family, method, f"{np.mean(found):.3f} ({spent:.1f})"] for method, (found, spent) in scores.items()]
        rows += [[family, *missing_row(peer, why, 2)] for peer, why in missing.items()]
    return [Table("Clusters by family of graphs", ["family", "method", "AMI (seconds)"], rows, NOTE)]


def _works(A: Any, k: int) -> dict[str, Callable[[], Any]]:
    works: dict[str, Callable[[], Any]] = {
        "cvxnmf, k found": lambda: solvers.our_labels(A, None),
        "leidenalg": lambda: solvers.leiden_labels(A),
        "igraph": lambda: solvers.igraph_labels(A),
        "infomap": lambda: solvers.infomap_labels(A),
    }
    if k > 1:
        works |= {
            "cvxnmf, k given": lambda: solvers.our_labels(A, k),
            "SpectralClustering, k given": lambda: solvers.spectral_labels(A, k),
        }
    return works


def _scores(graphs: list[tuple[str, Any, np.ndarray]]) -> tuple[dict[str, tuple[list[float], float]], dict[str, str]]:
    """For each method the agreement on each graph, and the seconds of all."""
    lines: dict[str, tuple[list[float], float]] = {}
    missing: dict[str, str] = {}
    for _, A, truth in graphs:
        works, missing = solvers.present(_works(A, len(np.unique(truth))))
        for method, work in works.items():
            spent, labels = objective.seconds(work)
            found, before = lines.get(method, ([], 0.0))
            lines[method] = ([*found, objective.mutual_information(truth, labels)], before + spent)
    return lines, missing
