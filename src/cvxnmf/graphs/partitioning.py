"""Partition a graph: draft."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf import starts
from cvxnmf.certificates.rank import rank_certificate
from cvxnmf.classical import classical_nmf
from cvxnmf.graphs.quality import modularity, performance
from cvxnmf.problems import symmetric
from cvxnmf.results import Partition
from cvxnmf.solvers import solve


def partition(graph: Any, n_clusters: int | None = None, trace: Any = "auto", *, tol: float = 1e-4, max_iter: int = 1000, callback: Any = None) -> Partition:
    """Partition a graph into clusters, with a proof (draft)."""
    if hasattr(graph, "edges") and hasattr(graph, "nodes"):
        import networkx as nx

        nodes, A = tuple(graph.nodes), nx.to_numpy_array(graph)
    else:
        A = graph.toarray() if sp.issparse(graph) else np.asarray(graph, dtype=np.float64)
        nodes = tuple(range(len(A)))
    problem = symmetric(A, trace=trace)
    solution = solve(problem, tol=tol, max_iter=max_iter, callback=callback)
    k = n_clusters or solution.rank + 1
    U, _ = starts.convex(A, k, True)
    run = classical_nmf(A, k, "hals", "kl", U, symmetric=True, max_iter=1000, tol=1e-6)
    U = run.U
    memberships = U / U.sum(axis=1, keepdims=True)
    labels = memberships.argmax(axis=1)
    order = np.lexsort((-memberships.max(axis=1), labels))
    s, d = problem.metric, A.sum(axis=1)
    spectrum = np.linalg.eigvalsh((A - np.outer(d, d) / d.sum()) / np.outer(s, s))[::-1]
    return Partition(
        nodes, labels, memberships, U, performance(A, labels), performance(A, labels, False), modularity(A, labels), order, solution,
        rank_certificate(A, k, float(np.sum((A - U @ U.T) ** 2)), "mse", True, 50), sp.csr_array(A), spectrum, problem.trace,
    )
