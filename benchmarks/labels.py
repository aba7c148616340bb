"""Labels with a proof: the modularity of a partition, what no partition exceeds, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import cvxnmf
from benchmarks import datasets
from benchmarks.report import Table
from benchmarks.scale import Scale
from cvxnmf.graphs.label_bounds.verify import label_statement
from cvxnmf.graphs.multilevel import best_labels

HEADER = ["graph", "nodes", "edges", "modularity", "no partition above", "gap", "rests on", "seconds of one core", "to check"]
NOTE = (
    "Labels by local moves (of the planted graph the planted ones), then `verify_labels` with its usual effort, on one thread, "
    "process time; weights are left out. A gap of 0 proves that the partition is optimal."
)
#: Files of graphs whose optimum is proved, and of larger ones.
SOLVED, LARGER = (
    ("dolphins", "football", "polbooks", "netscience"),
    ("cora", "power_grid", "news_two_groups", "polblogs", "email_eu_core"),
)


def proofs(scale: Scale) -> list[Table]:
    """Small graphs and a planted one; with ``--full`` those that take minutes too."""
    with threadpool_limits(1):
        for small in (datasets.karate(), datasets.planted_graph(60, 3, degree=16)[0]):  # what they run is compiled by then
            cvxnmf.verify_labels(small, np.zeros(small.shape[0], dtype=np.int64))
        rows = [_row(name, A, labels) for name, A, labels in _graphs(scale)]
    return [Table("Labels with a proof: modularity", HEADER, rows, NOTE)]


def _graphs(scale: Scale) -> Iterator[tuple[str, Any, Any]]:
    yield "karate", datasets.karate(), None
    if scale.tiny:
        return
    yield "Les Misérables", nx.to_scipy_sparse_array(nx.les_miserables_graph(), weight=None), None
    for name in (*SOLVED, *scale.pick((), LARGER[:2], LARGER)):
        A = datasets.from_file(name)
        if A is not None:
            yield name.replace("_", " "), A, None
    n = scale.pick(0, 10_000, 100_000)
    yield "planted", *datasets.planted_graph(n, n // 200, degree=16)


def _row(name: str, A: Any, labels: Any) -> list[str]:
    A = sp.csr_array(A)
    if labels is None:
        labels = best_labels(label_statement("modularity", 1.0, None, A.shape[0]).objective_of(A))
    start = time.process_time()
    proof = cvxnmf.verify_labels(A, np.asarray(labels))
    proved = time.process_time()
    proof.check(A)
    spent = [f"{seconds:.2g}" for seconds in (proved - start, time.process_time() - proved)]
    gap = "0, optimal" if proof.gap == 0 else f"{100 * proof.relative_gap:.2f}%"
    return [
        name,
        f"{A.shape[0]:,}",
        f"{sp.triu(A, 1).nnz:,}",
        f"{proof.value:.5f}",
        f"{proof.bound:.5f}",
        gap,
        proof.kind,
        *spent,
    ]
