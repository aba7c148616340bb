"""Graphs, tables, factors and forged certificates that the tests build their cases from; the same seed gives the same data."""

import dataclasses
import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from cvxnmf.certificates import parse_statement

# Graphs ------------------------------------------------------------------------------------------------------------------------


def random_graph(n, seed, density=0.45, weighted=False):
    """A connected random graph, 0/1 or with integer weights."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) < density, 1).astype(float)
    A[np.arange(n - 1), np.arange(1, n)] = 1.0
    if weighted:
        A *= rng.integers(1, 5, (n, n))
    return A + A.T


def planted_graph(n, k, degree, mixing=0.2, *, tail=None, shuffled=True, connected=False, weights=None, seed=0):
    """A degree-corrected graph with k planted clusters, and its labels.

    A node has the share `mixing` of its expected degree outside its cluster; degrees are even, or Pareto with exponent `tail`.
    `connected` adds a path through all nodes; ``weights(rng, shape)`` draws weights for the edges.
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(n) * k // n
    labels = rng.permutation(labels) if shuffled else labels
    activity = np.ones(n) if tail is None else np.minimum(1.0 + rng.pareto(tail, n), 10.0)
    same = labels[:, None] == labels[None, :]
    rates = np.outer(activity, activity)
    inside, outside = (rates * same).sum(axis=1).mean(), (rates * ~same).sum(axis=1).mean()
    rates *= degree * np.where(same, (1.0 - mixing) / inside, mixing / outside)
    A = np.triu(rng.random((n, n)) < rates, 1).astype(float)
    if connected:
        A[np.arange(n - 1), np.arange(1, n)] = 1.0
    if weights is not None:
        A *= weights(rng, (n, n))
    return A + A.T, labels


def stochastic_block_graph(n, k, inside, between, seed=0):
    """A random graph with k clusters: edges with probability `inside` within them, `between` across."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    A = np.triu(rng.random((n, n)) < np.where(labels[:, None] == labels, inside, between), 1).astype(float)
    return A + A.T


def chain_of_cliques(sizes):
    """Cliques, neighbours joined by one edge."""
    n, starts = sum(sizes), np.cumsum([0, *sizes])
    A = np.zeros((n, n))
    for first, last in zip(starts, starts[1:], strict=False):
        A[first:last, first:last] = 1.0
        if last < n:
            A[last - 1, last] = A[last, last - 1] = 1.0
    np.fill_diagonal(A, 0.0)
    return A


def stored_graph(name):
    """A graph of the folder in CVXNMF_DATA; the test is skipped where it is not there."""
    path = Path(os.environ.get("CVXNMF_DATA", "no-folder"), f"{name}.gml")
    if not path.exists():
        pytest.skip(f"{path.name} is not in the folder CVXNMF_DATA")
    return nx.read_gml(path, label="id")


# Matrices ----------------------------------------------------------------------------------------------------------------------


def random_counts(n, seed):
    """A symmetric table of counts with a diagonal."""
    counts = np.random.default_rng(seed).poisson(1.5, (n, n)).astype(float)
    return np.triu(counts) + np.triu(counts, 1).T + np.eye(n)


def wide_range_table(rows=60, columns=45):
    """Counts of a wide range."""
    rng = np.random.default_rng(3)
    mean = 900.0 * np.outer(1 / np.arange(1, rows + 1), 1 / np.arange(1, columns + 1))
    A = rng.poisson(mean * rng.gamma(2, 0.5, mean.shape)).astype(float)
    return A[A.any(axis=1)][:, A.any(axis=0)]


def count_table(m=12, n=9, seed=0, mean=2.0):
    """A table of counts with two groups of rows, without empty rows or columns."""
    rng = np.random.default_rng(seed)
    A = rng.poisson(mean * (1 + 3 * np.kron(np.eye(2), np.ones((m, n)))[:m, :n]), (m, n)).astype(float)
    A[np.arange(m), np.arange(m) % n] += 1.0
    A[np.arange(n) % m, np.arange(n)] += 1.0
    return A


def positive_symmetric(n, seed):
    """A symmetric matrix of positive numbers, none below 1."""
    A = np.random.default_rng(seed).gamma(2.0, 2.0, (n, n))
    return 1.0 + (A + A.T)


def random_symmetric(n, seed):
    """A symmetric matrix of normal numbers."""
    B = np.random.default_rng(seed).standard_normal((n, n))
    return B + B.T


def low_rank(m, n, k, seed=0, noise=0.05):
    """A positive matrix of about rank k."""
    rng = np.random.default_rng(seed)
    return rng.random((m, k)) @ rng.random((k, n)) + noise * rng.random((m, n))


def random_factors(shape, k, seed=1):
    """Positive factors U, m by k, and V, n by k."""
    rng = np.random.default_rng(seed)
    return rng.random((shape[0], k)) + 0.1, rng.random((shape[1], k)) + 0.1


def point_in_cone(problem, rng, spread):
    """A random X in the cone of a symmetric problem, of rank three but for its effects."""
    n = problem.size
    W = spread * rng.standard_normal((n, 3))
    v = spread * rng.standard_normal(n) if problem.statement.cone == "conditional" else np.zeros(n)
    return v[:, None] + v[None, :] + W @ W.T


# Certificates ------------------------------------------------------------------------------------------------------------------


def prove(A, kind, terms, witness):
    """What the check proves, with the statement given by its terms."""
    return parse_statement(terms).prove(A, kind, witness)


def altered(certificate, **changes):
    """The certificate with other entries, its old digest kept."""
    return dataclasses.replace(certificate, **changes)


def forged(certificate, **changes):
    """The certificate with other entries and a digest to match: only the proof can tell."""
    return dataclasses.replace(certificate, digest="", **changes)


def three_clusters():
    """Similarities with three clear clusters."""
    noise = np.random.default_rng(0).random((12, 12))
    return np.kron(np.diag([3.0, 2.0, 1.0]), np.ones((4, 4))) + 0.1 * (noise + noise.T)
