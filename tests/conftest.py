"""Graphs and matrices the tests share."""

import networkx as nx
import numpy as np
import pytest


def random_graph(n, seed, density=0.45, weighted=False):
    """A connected random graph, 0/1 or with integer weights."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) < density, 1).astype(float)
    A[np.arange(n - 1), np.arange(1, n)] = 1.0
    if weighted:
        A *= rng.integers(1, 5, (n, n))
    return A + A.T


def random_counts(n, seed):
    """A symmetric table of counts with a diagonal."""
    counts = np.random.default_rng(seed).poisson(1.5, (n, n)).astype(float)
    return np.triu(counts) + np.triu(counts, 1).T + np.eye(n)


@pytest.fixture(scope="session")
def karate():
    return nx.to_numpy_array(nx.karate_club_graph(), weight=None)


@pytest.fixture(scope="session")
def miserables():
    return nx.to_numpy_array(nx.les_miserables_graph())
