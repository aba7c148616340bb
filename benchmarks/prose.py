"""Figures that pages have in their text and no table of the benchmark has: ``python -m benchmarks.prose lastfm`` measures them.

What is measured is kept in ``prose.json`` beside this file; ``python -m benchmarks.figures`` writes it into the pages. Times are
those of the processor, so that other work beside them matters less.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import child, datasets, graph_sizes, objective, on_dask

RESULTS = Path(__file__).with_suffix(".json")
#: Graphs that are worked on in blocks, and most memory of the process in megabytes.
BLOCKED = {"planted-1e6": 500, "lfr-1e6": 500}
#: Graphs that are worked on by Dask, and the parts of their data frames.
DASKED = {"planted-1e5": 8, "planted-1e6": 8}


def results() -> dict[str, Any]:
    """What was measured, by name."""
    return dict(json.loads(RESULTS.read_text(encoding="utf8"))) if RESULTS.exists() else {}


def _processor(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    answer = work()
    return time.process_time() - began, answer


def lastfm() -> dict[str, Any]:
    """Clusters of lastfm, their number found and given, against the countries."""
    import cvxnmf

    known = datasets.lastfm()
    if known is None:
        raise SystemExit("lastfm needs the folder of its files in CVXNMF_DATA.")
    A, truth = known
    told = {}
    for name, k in (("found", None), ("given", len(set(truth)))):
        cvxnmf.partition(A, k)  # compiled code is loaded
        spent, answer = _processor(lambda k=k: cvxnmf.partition(A, k))
        ari, nmi = objective.agreement(truth, answer.labels)
        told[name] = {"seconds": spent, "ari": ari, "nmi": nmi, "modularity": answer.modularity, "clusters": answer.n_clusters}
    return told


def samson() -> dict[str, Any]:
    """The mean angle in degrees between spectra of least volume and those of experts."""
    from scipy.io import loadmat

    import cvxnmf

    scene = loadmat(Path(os.environ["CVXNMF_DATA"], "samson.mat"))
    sides = cvxnmf.classical_nmf(scene["Y"].T, 3, method="min-volume").V, scene["GT"].T
    ours, experts = (side / np.linalg.norm(side, axis=0) for side in sides)
    return {"degrees": float(np.degrees(np.arccos(np.clip(ours.T @ experts, -1, 1))).min(axis=0).mean())}


def changed() -> dict[str, Any]:
    """A search from the clusters of before in units of a new one, when a share of the edges is replaced."""
    cases = {"small": (3_000, 20, 0.02, None), "modularity": (3_000, 20, 0.02, "modularity"), "large": (100_000, 50, 0.01, None)}
    return {name: _changed(*case) for name, case in cases.items()}


def _changed(n: int, k: int, share: float, aim: str | None) -> dict[str, Any]:
    import cvxnmf

    before, _ = graph_sizes.planted_graph(n, k, 10, 0.3)
    after = _replaced(before, share)
    terms = {} if aim is None else {"objective": aim}
    old = cvxnmf.partition(before, **terms)
    times: dict[str, list[float]] = {"anew": [], "on": []}
    for _ in range(3):
        times["anew"].append(_processor(lambda: cvxnmf.partition(after, **terms).labels)[0])
        spent, found = _processor(lambda: cvxnmf.partition(after, start=old, **terms))
        times["on"].append(spent)
    return {
        "ratio": float(np.median(times["on"]) / np.median(times["anew"])),
        "moved": float(np.mean(found.labels != old.labels)),
    }


def _replaced(A: sp.csr_array, share: float) -> sp.csr_array:
    """The graph with a share of its edges gone and as many new ones anywhere."""
    rng, upper = np.random.default_rng(0), sp.coo_array(sp.triu(A, 1))
    count = round(share * upper.nnz)
    kept = rng.permutation(upper.nnz)[count:]
    rows = np.concatenate([upper.row[kept], rng.integers(0, A.shape[0], count)])
    columns = np.concatenate([upper.col[kept], rng.integers(0, A.shape[0], count)])
    B = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=A.shape)
    B = sp.csr_array(B + B.T)
    B.setdiag(0.0)
    B.eliminate_zeros()
    B.data[:] = 1.0
    return B


def blocks() -> dict[str, Any]:
    """Graphs of a million nodes from a file of edges within a limit of memory, each in a process of its own."""
    told = {}
    for name, limit in BLOCKED.items():
        edges, truth = _edges(name)
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder, "edges.npy"), edges)
            told[name] = child.ask("in_blocks", folder=folder, limit=f"{limit} MB")
            nodes, labels = np.load(Path(folder, "labels.npy")).T
        told[name] |= {"limit": limit} | _facts(edges, truth, nodes, labels)
    return told


def dask() -> dict[str, Any]:
    """Graphs in dask data frames, with the peaks of client, scheduler and workers."""
    told = {}
    for name, parts in DASKED.items():
        edges, truth = _edges(name)
        told[name], found = on_dask.measure(edges, parts)
        told[name] |= _facts(edges, truth, *found.T)
    return told


def _edges(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Edges of a case, each once, and the groups of its nodes."""
    A, truth = graph_sizes.CASES[name].make()
    upper = sp.coo_array(sp.triu(A, 1))
    return np.column_stack([upper.row, upper.col]), truth


def _facts(edges: np.ndarray, truth: np.ndarray, nodes: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Sizes of a graph, and how well labels agree with its groups."""
    sizes = {"nodes": len(truth), "edges": len(edges), "groups": int(truth.max()) + 1}
    return sizes | {"nmi": objective.agreement(truth[nodes], labels)[1]}


MEASURED = {"lastfm": lastfm, "samson": samson, "changed": changed, "blocks": blocks, "dask": dask}


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prose", description=__doc__)
    parser.add_argument("names", nargs="+", choices=list(MEASURED), help="what to measure")
    for name in parser.parse_args().names:
        known = results() | {name: MEASURED[name]()}
        ordered = {measured: known[measured] for measured in MEASURED if measured in known}
        RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
