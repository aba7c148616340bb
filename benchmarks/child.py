"""Work that is measured in a process of its own: ``python -m benchmarks.child name '{"n": 1200}'`` prints JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def ask(name: str, **settings: Any) -> dict[str, Any] | None:
    """Run one of the functions below in a new process and return what it tells; None where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return None
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.child", name, json.dumps(settings)]
    folder = Path(__file__).parents[1]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return dict(json.loads(answer.stdout))


def _status(key: str) -> int:
    """Bytes of an entry of this process's status."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(key + r":\s+(\d+) kB", text)
    assert found is not None
    return 1024 * int(found[1])


def _growth_of_peak(work: Callable[[], Any]) -> int:
    """Bytes by which the peak during the work exceeds what was held before."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    before = _status("VmRSS")
    work()
    return _status("VmHWM") - before


def planted(n: int, tol: float, degree: int = 20, scored: bool = True) -> dict[str, Any]:
    """Solve a planted graph; the peak is that of the whole process, interpreter and libraries included."""
    import cvxnmf
    from benchmarks import datasets, objective

    A, _ = datasets.planted_graph(n, degree=degree)
    cvxnmf.solve(cvxnmf.symmetric(datasets.planted_graph(500)[0], trace="auto"), tol=1e-2)  # compiled code is loaded

    def work() -> tuple[Any, Any]:
        problem = cvxnmf.symmetric(A, trace="auto")
        return problem, cvxnmf.solve(problem, tol=tol)

    spent, (problem, solution) = objective.seconds(work)
    peak = _status("VmHWM")  # before the scoring
    gap = objective.proved_gap(A, problem, solution) if scored else None
    facts = {"rigorous": solution.certificate.rigorous, "rank": solution.rank, "steps": solution.n_iter}
    return {"seconds": spent, "gap": gap, "peak": peak} | facts


def dense_solve(n: int, method: str, terms: dict[str, Any]) -> dict[str, Any]:
    """Growth of the peak during two steps of a method on a block graph."""
    import numpy as np
    import scipy.linalg as sl

    import cvxnmf

    cvxnmf.solve(cvxnmf.symmetric(cvxnmf.block_graph(400, 0.3, 0.7)[0], trace="auto"))  # large enough for compiled loops
    sl.eigh(np.eye(700))  # the threads' own memory
    A, _ = cvxnmf.block_graph(n, 0.3, 0.7)
    return {"peak": _growth_of_peak(lambda: cvxnmf.solve(cvxnmf.symmetric(A, **terms), method=method, max_iter=2))}


def factor(n: int, rank: int, sigma: float, tol: float) -> dict[str, Any]:
    """Growth of the peak while the factors of ``exp(WW')`` are computed."""
    import numpy as np

    import cvxnmf
    from benchmarks import datasets

    cvxnmf.exp_factor(np.zeros((20, 20)))
    W = datasets.positions(n, rank, sigma)
    X = W @ W.T
    return {"peak": _growth_of_peak(lambda: cvxnmf.exp_factor(X, tol=tol))}


def sweeps(path: str, k: int, count: int, limit: str | None) -> dict[str, Any]:
    """Seconds per sweep and peak of a whole process that factors the matrix in a file, in memory or within a limit."""
    import numpy as np

    import cvxnmf

    A = np.load(path) if limit is None else np.load(path, mmap_mode="r")
    found = cvxnmf.classical_nmf(A, k, init="random", max_iter=count, tol=0.0, memory_limit=limit)
    return {"peak": peak(), "seconds": found.history[-1].seconds / len(found.history)}


def one_fit(library: str, rows: int, columns: int, k: int, sparse: bool) -> dict[str, Any]:
    """Growth of the peak during a single descent of scikit-learn's NMF or of ours, after a small one."""
    from sklearn import decomposition

    import cvxnmf
    from benchmarks import datasets

    def fit(A: Any) -> None:
        options: dict[str, Any] = {"solver": "cd", "init": "nndsvda", "max_iter": 20, "tol": 0.0}
        (decomposition if library == "sklearn" else cvxnmf).NMF(k, **options).fit(A)

    make = (lambda m, n: datasets.topic_counts(m, n, k, 80, 4)) if sparse else (lambda m, n: datasets.mixture(m, n, k, 0.2, 12))
    fit(make(200, 150))  # compiled code is loaded
    A = make(rows, columns)
    return {"grown": _growth_of_peak(lambda: fit(A))}


def proof(data: str) -> dict[str, Any]:
    """Seconds of one fit of scikit-learn and of the certificate of our default NMF, and the growth of the peak meanwhile."""
    from sklearn.decomposition import NMF

    import cvxnmf
    from benchmarks import datasets, nmf_limits, objective

    make, k = nmf_limits.proof_cases()[data]
    _ = cvxnmf.NMF(3).fit(datasets.digits()[:100]).certificate_  # compiled code is loaded
    _ = cvxnmf.NMF(3).fit(datasets.topic_counts(200, 150, 3, 80, 4)).certificate_
    A = make()
    fit, _ = objective.seconds(lambda: NMF(k, init="nndsvda").fit(A))
    model = cvxnmf.NMF(k).fit(A)
    spent: list[float] = []
    grown = _growth_of_peak(lambda: spent.append(objective.seconds(lambda: model.certificate_)[0]))
    return {"k": k, "fit": fit, "seconds": spent[0], "grown": grown, "gap": model.certificate_.relative_gap}


def peak() -> int:
    """Bytes of the peak of this process."""
    return _status("VmHWM")


def huge(n: int, k: int, degree: float, mixing: float) -> dict[str, Any]:
    """Partition a large planted graph and factor it; the peak is that of the whole process."""
    import cvxnmf
    from benchmarks import datasets, objective

    for nodes in (600, min(n, 6000)):  # compiled code is loaded, that of groups of nodes too
        _ = cvxnmf.partition(datasets.sparse_degree_corrected(nodes, 3, 10, 0.2, None, 0)[0], 3, n_groups=50).factorization
    A, truth = datasets.sparse_degree_corrected(n, k, degree, mixing, None, seed=0)
    spent, found = objective.seconds(lambda: cvxnmf.partition(A, k))
    factors, result = objective.seconds(lambda: found.factorization)
    peak = _status("VmHWM")  # before the scoring
    certificate = found.certificate
    gap = (certificate.value - certificate.check(A)) / certificate.value
    tail = result.certificate.relative_gap
    facts = {"seconds": spent, "factors": factors, "peak": peak, "gap": gap, "tail": tail, "groups": found.n_groups}
    return facts | {"edges": int(A.nnz) // 2, "nmi": objective.agreement(truth, found.labels)[1]}


def graph_sizes(case: str, work: str) -> dict[str, Any]:
    """Our labels, or igraph's, of a graph of `benchmarks.graph_sizes`."""
    from benchmarks.graph_sizes import WORKS

    return WORKS[work](case)


def in_blocks(folder: str, limit: str) -> dict[str, Any]:
    """Labels of the graph in a file of edges, within a limit of memory; they are left beside it, with the nodes."""
    import time

    import numpy as np

    import cvxnmf

    began = time.process_time()
    found = cvxnmf.partition(str(Path(folder, "edges.npy")), memory_limit=limit)
    spent = time.process_time() - began
    told = {"processor": spent, "peak": peak(), "clusters": found.n_clusters}
    np.save(Path(folder, "labels.npy"), np.column_stack([np.asarray(found.nodes, dtype=np.int64), found.labels]))
    return told


def on_dask(folder: str, parts: int, address: str) -> dict[str, Any]:
    """Labels of a graph on a Dask cluster, in `benchmarks.on_dask`."""
    from benchmarks.on_dask import search

    return search(folder, parts, address)


WORKS: dict[str, Callable[..., dict[str, Any]]] = {
    "planted": planted,
    "dense_solve": dense_solve,
    "factor": factor,
    "graph_sizes": graph_sizes,
    "huge": huge,
    "in_blocks": in_blocks,
    "on_dask": on_dask,
    "sweeps": sweeps,
    "one_fit": one_fit,
    "proof": proof,
}

if __name__ == "__main__":
    print(json.dumps(WORKS[sys.argv[1]](**json.loads(sys.argv[2]))))
