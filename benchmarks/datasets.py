"""Data to measure on: made on the spot, shipped with a dependency, or read from the folder in CVXNMF_DATA."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import cvxnmf

Labelled = tuple[Any, np.ndarray]
#: What is looked for in the data folder.
FILES = (
    "polbooks.gml",
    "football.gml",
    *(f"{name}_{part}.csv" for name in ("polblogs", "email_eu_core", "cora", "news_two_groups") for part in ("edges", "labels")),
    "lastfm_asia_edges.csv",
    "lastfm_asia_target.csv",
    "cbcl_faces.mat",
    "samson.mat",
)


def data_file(name: str) -> Path | None:
    """A file of the data folder, or None if it is not there."""
    folder = os.environ.get("CVXNMF_DATA")
    path = Path(folder) / name if folder else None
    return path if path is not None and path.exists() else None


def absent_files() -> list[str]:
    """Files that benchmarks could use but do not find."""
    return [name for name in FILES if data_file(name) is None]


# Graphs ------------------------------------------------------------------------------------------------------------------------


def karate() -> np.ndarray:
    """Zachary's karate club, 34 nodes."""
    import networkx as nx

    return nx.to_numpy_array(nx.karate_club_graph(), weight=None)


def miserables() -> np.ndarray:
    """Les Misérables with its weights, 77 nodes."""
    import networkx as nx

    return nx.to_numpy_array(nx.les_miserables_graph())


def labelled_gml(name: str) -> Labelled | None:
    """A GML graph of the data folder and the `value` of its nodes, or None if it is not there."""
    import networkx as nx

    path = data_file(f"{name}.gml")
    if path is None:
        return None
    graph = nx.read_gml(path, label="id")
    values = [str(graph.nodes[node].get("value", "")) for node in graph]
    return nx.to_numpy_array(graph, weight=None), np.unique(values, return_inverse=True)[1]


def from_file(name: str) -> np.ndarray | None:
    """The adjacency matrix alone."""
    found = labelled_gml(name)
    if found is not None:
        return found[0]
    path = data_file(f"{name}_edges.csv")
    return None if path is None else _from_edges(_integers(path))


def _from_edges(edges: np.ndarray) -> np.ndarray:
    """The adjacency matrix of pairs of nodes."""
    A = np.zeros((edges.max() + 1,) * 2)
    A[edges[:, 0], edges[:, 1]] = A[edges[:, 1], edges[:, 0]] = 1.0
    return A


def karate_labelled() -> Labelled:
    """The karate club and its two sides."""
    import networkx as nx

    graph = nx.karate_club_graph()
    return karate(), np.array([graph.nodes[node]["club"] == "Officer" for node in graph]).astype(int)


def lastfm() -> Labelled | None:
    """LastFM users in Asia, 7,624 nodes with their countries, or None if it is not there."""
    edges, target = data_file("lastfm_asia_edges.csv"), data_file("lastfm_asia_target.csv")
    if edges is None or target is None:
        return None
    pairs, countries = _integers(edges), _integers(target)
    n = len(countries)
    A = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    labels = np.empty(n, dtype=int)
    labels[countries[:, 0]] = countries[:, 1]
    return sp.csr_array(((A + A.T) > 0).astype(float)), labels


def labelled_edges(name: str) -> Labelled | None:
    """A graph and labels in two files of the data folder, or None if they are not there."""
    edges, labels = data_file(f"{name}_edges.csv"), data_file(f"{name}_labels.csv")
    if edges is None or labels is None:
        return None
    with labels.open(encoding="utf8") as lines:
        rows = list(csv.reader(lines))[1:]
    place, pairs = (
        {row[0]: number for number, row in enumerate(rows)},
        [row[:2] for row in csv.reader(edges.open(encoding="utf8"))],
    )
    ends = np.array([[place[u], place[v]] for u, v in pairs[1:]])
    A = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(rows), len(rows)))
    return sp.csr_array(((A + A.T) > 0).astype(float)), np.unique([row[1] for row in rows], return_inverse=True)[1]


def _integers(path: Path) -> np.ndarray:
    with path.open(encoding="utf8") as lines:
        return np.array([[int(cell) for cell in row] for row in list(csv.reader(lines))[1:]])


def blocks(n: int) -> np.ndarray:
    """One of the paper's block graphs."""
    return cvxnmf.block_graph(n, 0.3, 0.7)[0]


def near_points(n: int) -> np.ndarray:
    """Points in the unit square, joined when they are near."""
    points = np.random.default_rng(0).random((n, 2))
    return (((points[:, None] - points[None]) ** 2).sum(axis=-1) < 10.0 / n).astype(float)


def planted_graph(n: int, k: int = 10, degree: int = 20, mixing: float = 0.2, seed: int = 0) -> Labelled:
    """A sparse graph of k equal groups with ``n degree / 2`` edges, the share `mixing` of them across groups.

    Edges are distinct pairs drawn evenly; time and memory are proportional to their number. k divides n.
    """
    if n % k:
        raise ValueError(f"{n} nodes cannot be divided into {k} equal groups; choose a multiple.")
    rng = np.random.default_rng(seed)
    total = n * degree // 2
    across = round(mixing * total)

    def inside_pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
        i = rng.integers(0, n, count)
        return i, i % k + k * rng.integers(0, n // k, count)

    def across_pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
        i = rng.integers(0, n, count)
        return i, (i + rng.integers(1, k, count)) % k + k * rng.integers(0, n // k, count)

    codes = np.concatenate([_distinct(inside_pairs, total - across, n), _distinct(across_pairs, across, n)])
    i, j = np.divmod(codes, n)
    A = sp.coo_array((np.ones(len(codes)), (i, j)), shape=(n, n))
    return sp.csr_array(A + A.T), np.arange(n) % k


def _distinct(draw: Callable[[int], tuple[np.ndarray, np.ndarray]], count: int, n: int) -> np.ndarray:
    """The first `count` distinct pairs of different nodes that are drawn, as numbers ``i n + j`` with i < j."""
    codes = np.empty(0, dtype=np.int64)
    while len(codes) < count:
        i, j = draw(count + 10)
        low, high = np.minimum(i, j), np.maximum(i, j)
        codes = np.concatenate([codes, (low * n + high)[low < high]])
        codes = codes[np.sort(np.unique(codes, return_index=True)[1])]
    return codes[:count]


def degree_corrected(n: int, k: int, degree: float, mixing: float, tail: float | None, seed: int) -> Labelled:
    """A planted graph with even (tail None) or Pareto degrees, of which no node is left without an edge."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.arange(n) * k // n)
    weights = np.ones(n) if tail is None else np.minimum(1.0 + rng.pareto(tail, n), 10.0)
    same = groups[:, None] == groups[None, :]
    rates = np.outer(weights, weights)
    inside, outside = (rates * same).sum(axis=1).mean(), (rates * ~same).sum(axis=1).mean()
    rates *= degree * np.where(same, (1.0 - mixing) / inside, mixing / outside)
    A = np.triu(rng.random((n, n)) < rates, 1).astype(float)
    kept = np.flatnonzero((A + A.T).any(axis=1))
    return sp.csr_array((A + A.T)[np.ix_(kept, kept)]), groups[kept]


def sparse_degree_corrected(n: int, k: int, degree: float, mixing: float, tail: float | None, seed: int) -> Labelled:
    """The same for millions of nodes: ends of edges are drawn by their weights, and repeated edges count once."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) * k // n)
    weights = np.ones(n) if tail is None else np.minimum(rng.pareto(tail, n) + 1.0, 0.3 * np.sqrt(n))
    order = np.argsort(labels, kind="stable")
    summed = np.append(0.0, np.cumsum(weights[order]))
    first = summed[np.searchsorted(labels[order], np.arange(k + 1))]

    def drawn(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        places = np.searchsorted(summed, low + (high - low) * rng.random(len(low)), side="right") - 1
        return np.asarray(order[np.minimum(places, n - 1)])

    edges = int(n * degree / 2)
    tails = drawn(np.zeros(edges), np.full(edges, summed[-1]))
    group = labels[tails]
    across = np.flatnonzero(rng.random(edges) < mixing)
    group[across] = (group[across] + rng.integers(1, k, len(across))) % k
    heads = drawn(first[group], first[group + 1])
    different = tails != heads
    A = sp.csr_array((np.ones(int(different.sum())), (tails[different], heads[different])), shape=(n, n))
    A = sp.csr_array(A + A.T)
    A.data[:] = 1.0
    return A, labels


def real_graphs(largest: int) -> dict[str, np.ndarray]:
    """Small graphs, smallest first, and block graphs of at most the given size."""
    graphs = {"karate": karate(), "Les Misérables": miserables()}
    graphs |= {name: A for name in ("polbooks", "football") if (A := from_file(name)) is not None}
    return graphs | {f"blocks, n = {n}": blocks(n) for n in (500, 1500) if n <= largest}


def normalised_graphs() -> list[tuple[str, np.ndarray, int]]:
    """Adjacency matrices over the square roots of their degrees."""
    cases = [("karate", karate(), 4), ("polbooks", from_file("polbooks"), 3), ("football", from_file("football"), 12)]
    found = [(name, A, k) for name, A, k in cases if A is not None]
    return [(name, A / np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=1))), k) for name, A, k in found]


def walk_kernels() -> list[tuple[str, np.ndarray, int]]:
    """What karateclub's SymmNMF factors: ``D^-1 A (D^-1 A)'`` of a graph."""
    cases = [("karate", karate(), 4), ("football", from_file("football"), 12)]
    return [(name, A, k) for name, A, k in cases if A is not None]


# Matrices ----------------------------------------------------------------------------------------------------------------------


def digits() -> np.ndarray:
    """Images of handwritten digits, 1797 by 64."""
    from sklearn.datasets import load_digits

    return load_digits().data


def from_mat(name: str, key: str) -> np.ndarray | None:
    """A matrix of the data folder, or None if it is not there."""
    from scipy.io import loadmat

    path = data_file(f"{name}.mat")
    return None if path is None else np.maximum(np.ascontiguousarray(loadmat(path)[key], dtype=np.float64), 0.0)


def planted_counts(rows: int, columns: int, rank: int, density: float) -> sp.csr_array:
    """Sparse counts with planted components."""
    rng = np.random.default_rng(0)
    U, V = rng.gamma(0.2, 1.0, (rows, rank)), rng.gamma(0.2, 1.0, (columns, rank))
    count = int(density * rows * columns)
    i, j = rng.integers(0, rows, count), rng.integers(0, columns, count)
    rates = np.einsum("ij,ij->i", U[i], V[j])
    A = sp.csr_array((rng.poisson(5.0 * rates / rates.mean()).astype(float), (i, j)), shape=(rows, columns))
    A.sum_duplicates()
    A.eliminate_zeros()
    return A


def dense_counts() -> np.ndarray:
    """Counts 400 by 150 with twelve planted components."""
    rng = np.random.default_rng(5)
    return rng.poisson(rng.gamma(0.5, 1.0, (400, 12)) @ rng.gamma(0.5, 1.0, (12, 150))).astype(float)


def zipf_counts(rows: int, columns: int) -> np.ndarray:
    """Counts whose margins fall as those of words do: their means span the square of the sizes."""
    rng = np.random.default_rng(3)
    mean = 900.0 * np.outer(1.0 / np.arange(1, rows + 1), 1.0 / np.arange(1, columns + 1))
    counts = rng.poisson(mean * rng.gamma(2.0, 0.5, (rows, columns))).astype(float)
    return counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]


def topic_counts(rows: int, columns: int, topics: int, words: int, seed: int) -> sp.csr_array:
    """Counts of words in texts: each text draws from a few topics, each topic from a few words."""
    rng = np.random.default_rng(seed)
    terms, texts = rng.dirichlet(np.full(columns, 0.02), topics), rng.dirichlet(np.full(topics, 0.2), rows)
    chunks = [rng.poisson(words * (texts[first : first + 2000] @ terms)) for first in range(0, rows, 2000)]
    return sp.csr_array(sp.vstack([sp.csr_array(chunk.astype(float)) for chunk in chunks]))


def mixture(rows: int, columns: int, rank: int, noise: float, seed: int) -> np.ndarray:
    """A dense product of random factors with noise."""
    rng = np.random.default_rng(seed)
    return rng.random((rows, rank)) @ rng.random((rank, columns)) + noise * rng.random((rows, columns))


def positions(n: int, rank: int, sigma: float) -> np.ndarray:
    """Normal positions."""
    return np.random.default_rng(0).normal(0.0, sigma, (n, rank))
