"""Graphs to measure on; files are read from the folder in CVXNMF_DATA."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.io import loadmat

import cvxnmf


def karate() -> np.ndarray:
    """Zachary's karate club, 34 nodes."""
    return nx.to_numpy_array(nx.karate_club_graph(), weight=None)


def miserables() -> np.ndarray:
    """Les Misérables with its weights, 77 nodes."""
    return nx.to_numpy_array(nx.les_miserables_graph())


def from_file(name: str) -> np.ndarray | None:
    """A GML graph of the data folder, or None if it is not there."""
    path = Path(os.environ.get("CVXNMF_DATA", "")) / f"{name}.gml"
    if not os.environ.get("CVXNMF_DATA") or not path.exists():
        return None
    return nx.to_numpy_array(nx.read_gml(path, label="id"), weight=None)


def blocks(n: int) -> np.ndarray:
    """One of the paper's block graphs."""
    return cvxnmf.block_graph(n, 0.3, 0.7)[0]


def near_points(n: int) -> np.ndarray:
    """Points in the unit square, joined when they are near."""
    points = np.random.default_rng(0).random((n, 2))
    return (((points[:, None] - points[None]) ** 2).sum(axis=-1) < 10.0 / n).astype(float)


def digits() -> np.ndarray:
    """Images of handwritten digits, 1797 by 64."""
    from sklearn.datasets import load_digits

    return load_digits().data


def from_mat(name: str, key: str) -> np.ndarray | None:
    """A matrix of the data folder, or None if it is not there."""
    path = Path(os.environ.get("CVXNMF_DATA", "")) / f"{name}.mat"
    if not os.environ.get("CVXNMF_DATA") or not path.exists():
        print(f"{name}.mat is skipped: set CVXNMF_DATA to the folder that holds it.")
        return None
    return np.maximum(np.ascontiguousarray(loadmat(path)[key], dtype=np.float64), 0.0)


def planted(rows: int, columns: int, rank: int, density: float) -> sp.csr_array:
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


def rank_k() -> list[tuple[str, Any, int]]:
    """Data and ranks that speed is measured on."""
    cases = [("digits", digits(), 10), ("CBCL faces", from_mat("cbcl_faces", "M"), 49), ("Samson", from_mat("samson", "Y"), 3)]
    cases.append(("planted 10,000 x 5,000, 1%", planted(10_000, 5_000, 20, 0.01), 20))
    return [case for case in cases if case[1] is not None]


def quality_cases() -> list[tuple[str, Any, int]]:
    """Data and ranks that quality is measured on; the first three are the goals."""
    faces, samson = from_mat("cbcl_faces", "M"), from_mat("samson", "Y")
    rng = np.random.default_rng(5)
    random = rng.poisson(rng.gamma(0.5, 1.0, (400, 12)) @ rng.gamma(0.5, 1.0, (12, 150))).astype(float)
    cases = [("digits", digits(), 10), ("Samson", samson, 3), ("CBCL faces", faces, 49)]
    cases += [("digits", digits(), k) for k in (6, 16, 25)] + [
        ("CBCL faces", faces, 25),
        ("random planted 400 x 150", random, 12),
    ]
    return [case for case in cases if case[1] is not None]


def normalised_graphs() -> list[tuple[str, np.ndarray, int]]:
    """Adjacency matrices over the square roots of their degrees."""
    cases = [("karate", karate(), 4), ("polbooks", from_file("polbooks"), 3), ("football", from_file("football"), 12)]
    found = [(name, A, k) for name, A, k in cases if A is not None]
    return [(name, A / np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=1))), k) for name, A, k in found]


def positions(n: int, rank: int, sigma: float) -> np.ndarray:
    """Normal positions."""
    return np.random.default_rng(0).normal(0.0, sigma, (n, rank))


def real_graphs() -> dict[str, np.ndarray]:
    """The graphs of the second table, smallest first."""
    graphs = {"karate": karate(), "Les Misérables": miserables()}
    for name in ("polbooks", "football"):
        A = from_file(name)
        if A is None:
            print(f"{name}.gml is skipped: set CVXNMF_DATA to the folder that holds it.")
        else:
            graphs[name] = A
    return graphs | {"blocks, n = 500": blocks(500), "blocks, n = 1500": blocks(1500)}
