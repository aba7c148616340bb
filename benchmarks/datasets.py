"""Graphs to measure on; files are read from the folder in CVXNMF_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import networkx as nx
import numpy as np

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
