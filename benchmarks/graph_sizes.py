"""Time, memory and agreement by the size of a graph: ``python -m benchmarks.graph_sizes planted-1e6 ...`` measures some cases.

Every case runs in a process of its own. What is measured is kept in ``graph_sizes.json`` beside this file, from which the table
of docs/scale.md is written; a case that is measured again replaces its last result.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp

from benchmarks import child, objective

RESULTS = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
#: Edges that are drawn at a time.
PIECE = 5_000_000
#: Where the table stands on the page.
MARKS = "<!-- table of graph sizes -->", "<!-- end of the table -->"


class Case(NamedTuple):
    """A graph: nodes, mean degree, whether it is an LFR graph, and the share of edges across groups; 50 groups if planted."""

    n: int
    degree: int = 10
    lfr: bool = False
    mixing: float = 0.3
    k: int = 50

    def make(self) -> tuple[sp.csr_array, np.ndarray]:
        """The graph and the group of each node."""
        if self.lfr:
            return stub_graph(self.n, self.mixing)
        return planted_graph(self.n, self.k, self.degree, self.mixing)


CASES = {
    "planted-1e5": Case(100_000),
    "tiny": Case(2_000, k=5),
    "planted-3e5": Case(300_000),
    "planted-1e6": Case(1_000_000),
    "planted-3e6": Case(3_000_000),
    "lfr-1e6": Case(1_000_000, lfr=True, mixing=0.4),
    "dense-1e6": Case(1_000_000, 20),
    "dense-1e7": Case(10_000_000, 20),
}
#: Cases over whose edges the growth of the time is fitted.
GROWING = ("planted-1e5", "planted-3e5", "planted-1e6", "planted-3e6")


# Graphs, made within little more memory than they take ----------------------------------------------------------------------


def planted_graph(n: int, k: int, degree: int, mixing: float) -> tuple[sp.csr_array, np.ndarray]:
    """Groups of random sizes; both ends of an edge are in one group unless it is drawn anywhere, which a share of them is."""
    labels = np.random.default_rng(0).integers(0, k, n)
    order = np.argsort(labels, kind="stable").astype(np.int32)
    starts = np.searchsorted(labels[order], np.arange(k + 1))

    def piece(number: int) -> tuple[np.ndarray, np.ndarray]:
        rng, count = np.random.default_rng([1, number]), min(PIECE, n * degree // 2 - number * PIECE)
        tails, heads = rng.integers(0, n, count), rng.integers(0, n, count)
        inside = rng.random(count) >= mixing
        first, last = starts[labels[tails[inside]]], starts[labels[tails[inside]] + 1]
        heads[inside] = order[first + (rng.random(len(first)) * (last - first)).astype(np.int64)]
        return tails.astype(np.int32), heads.astype(np.int32)

    return _from_pieces(n, piece, -(-(n * degree // 2) // PIECE)), labels


def stub_graph(n: int, mixing: float) -> tuple[sp.csr_array, np.ndarray]:
    """Degrees of 8 to 100 and groups of 30 to 1,000 nodes by power laws of exponents 2.5 and 1.5, as LFR graphs have them."""
    rng = np.random.default_rng(0)
    degrees, sizes = _power_law(rng, 8, 100, 2.5, n), _power_law(rng, 30, 1000, 1.5, n // 15)
    labels = np.repeat(np.arange(len(sizes)), sizes)[:n][rng.permutation(n)]
    inside = np.round((1.0 - mixing) * degrees).astype(np.int64)
    own = np.repeat(np.arange(n, dtype=np.int32), inside)
    own = own[np.lexsort((rng.random(len(own)), labels[own]))]
    other = rng.permutation(np.repeat(np.arange(n, dtype=np.int32), degrees - inside))
    ends = np.concatenate([own[: len(own) // 2 * 2], other[: len(other) // 2 * 2]])
    return _from_pieces(n, lambda _: (ends[::2], ends[1::2]), 1), labels


def _power_law(rng: np.random.Generator, least: int, most: int, exponent: float, count: int) -> np.ndarray:
    values = np.arange(least, most + 1)
    shares = values**-exponent
    return np.asarray(rng.choice(values, count, p=shares / shares.sum()))


def _from_pieces(n: int, piece: Any, count: int) -> sp.csr_array:
    """The graph of edges that are drawn twice, to count and to place them; loops are dropped, repeated edges count once."""
    degrees = np.zeros(n + 1, dtype=np.int64)
    for number in range(count):
        for ends in piece(number):
            degrees[1:] += np.bincount(ends, minlength=n)
    indptr = np.cumsum(degrees)
    indices, place = np.empty(indptr[-1], dtype=np.int32), indptr[:-1].copy()
    for number in range(count):
        _place(*piece(number), indices, place)
    rows = sp.csr_array((np.empty(len(indices), dtype=np.int8), indices, indptr.astype(np.int32)), shape=(n, n))
    rows.sort_indices()
    indptr = _distinct(indptr, rows.indices)
    return sp.csr_array((np.ones(indptr[-1]), rows.indices[: indptr[-1]], indptr.astype(np.int32)), shape=(n, n))


@numba.njit
def _place(tails: Any, heads: Any, indices: Any, place: Any) -> None:
    for e in range(len(tails)):
        a, b = tails[e], heads[e]
        indices[place[a]] = b
        place[a] += 1
        indices[place[b]] = a
        place[b] += 1


@numba.njit
def _distinct(indptr: Any, indices: Any) -> Any:
    """Leave the node itself and repeated neighbours out of every sorted row, in place; where rows then begin."""
    kept, filled = np.zeros_like(indptr), 0
    for i in range(len(indptr) - 1):
        last = -1
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j != i and j != last:
                indices[filled] = j
                filled += 1
            last = j
        kept[i + 1] = filled
    return kept


# One case in a process of its own -------------------------------------------------------------------------------------------


def ours(name: str) -> dict[str, Any]:
    """Our labels of a case; the peak is that of the process with the interpreter, its libraries and the graph."""
    import cvxnmf

    cvxnmf.partition(planted_graph(60_000, 20, 10, 0.3)[0])  # compiled code is loaded
    return _measure(name, lambda A: cvxnmf.partition(A).labels)


def igraph(name: str) -> dict[str, Any]:
    """The labels of igraph's Leiden, which raises the modularity, as it is by default but for two iterations."""
    import random

    import igraph

    random.seed(0)

    def work(A: sp.csr_array) -> np.ndarray:
        upper = sp.triu(A, 1)
        graph = igraph.Graph(n=A.shape[0], edges=np.column_stack([upper.row, upper.col]))
        return np.array(graph.community_leiden("modularity", n_iterations=2).membership)

    return _measure(name, work)


def _measure(name: str, work: Any) -> dict[str, Any]:
    A, truth = CASES[name].make()
    worked, began, before = time.process_time(), time.perf_counter(), child.peak()
    labels = work(A)
    spent = {"seconds": time.perf_counter() - began, "processor": time.process_time() - worked, "peak": child.peak()}
    agreement = objective.agreement(truth, labels)[1]
    facts = {"nodes": A.shape[0], "edges": A.nnz // 2, "before": before, "groups": int(truth.max()) + 1}
    return facts | spent | {"clusters": int(labels.max()) + 1, "nmi": agreement}


WORKS = {"ours": ours, "igraph": igraph}


def measure(name: str, work: str) -> None:
    """Measure a case in a new process and keep the result."""
    told = child.ask("graph_sizes", case=name, work=work)
    if told is not None:
        known = results()
        known.setdefault(name, {})[work] = told
        ordered = {case: known[case] for case in CASES if case in known}
        RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf8")


def results() -> dict[str, Any]:
    """What was measured: of each case our run, and perhaps igraph's."""
    return dict(json.loads(RESULTS.read_text(encoding="utf8"))) if RESULTS.exists() else {}


# The table ------------------------------------------------------------------------------------------------------------------

HEADER = "| graph | nodes | edges | groups | seconds | of processors | peak, GB | NMI | igraph: seconds | peak, GB | NMI |"


def lines(known: dict[str, Any]) -> list[str]:
    """The table of what was measured, and the exponent of its growth."""
    rows = [HEADER, "|" + "---|" * 11]
    for name, runs in known.items():
        facts, peer = runs["ours"], runs.get("igraph")
        case = CASES[name]
        words = f"LFR, {case.mixing:.0%} across" if case.lfr else f"planted, degree {case.degree}"
        beside = _beside(peer)
        sizes = [f"{facts['nodes']:,}", f"{facts['edges']:,}", f"{facts['clusters']:,} of {facts['groups']:,}"]
        spent = [f"{facts['seconds']:.1f}", f"{facts['processor']:.1f}", f"{facts['peak'] / 1e9:.2f}", f"{facts['nmi']:.4f}"]
        rows.append("| " + " | ".join([words, *sizes, *spent, *beside]) + " |")
    growing = [known[name]["ours"] for name in GROWING if name in known]
    if len(growing) > 1:
        slope = objective.exponent([run["edges"] for run in growing], [run["processor"] for run in growing])
        rows += [
            "",
            f"The time of the processors grows as the edges of the planted graphs of degree 10 to the {slope:.2f}.",
        ]
    return rows


def _beside(peer: dict[str, Any] | None) -> list[str]:
    """Seconds, peak and agreement of igraph, where it was run."""
    return ["not run", "", ""] if peer is None else [f"{peer['seconds']:.0f}", f"{peer['peak'] / 1e9:.2f}", f"{peer['nmi']:.4f}"]


def page(known: dict[str, Any]) -> str:
    """The page with the table as it should be."""
    text = PAGE.read_text(encoding="utf8")
    pattern = re.compile(f"({re.escape(MARKS[0])}).*({re.escape(MARKS[1])})", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}\n" + "\n".join(lines(known)) + f"\n\n{found[2]}", text)


def main() -> None:
    """Measure what is asked for and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph_sizes", description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="cases to measure; without, the page is written only")
    parser.add_argument("--igraph", action="store_true", help="igraph's Leiden instead of ours")
    asked = parser.parse_args()
    for name in asked.cases:
        measure(name, "igraph" if asked.igraph else "ours")
    PAGE.write_text(page(results()), encoding="utf8")


if __name__ == "__main__":
    main()
