"""Performance and modularity: exact fractions, naive twins, networkx."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import cvxnmf
from cvxnmf.graphs.quality import modularity
from naive import naive_modularity, naive_performance


@pytest.mark.parametrize("m", [3, 4, 6])
@pytest.mark.parametrize("path", [0, 1, 2])
def test_performance_of_barbell_graphs_is_an_exact_fraction(m, path):
    """Two bells of m nodes and the path between them: wrong are the path's and bridges' edges and the zero diagonal."""
    A = nx.to_numpy_array(nx.barbell_graph(m, path), nodelist=range(2 * m + path))
    labels = np.array([0] * m + list(range(1, path + 1)) + [path + 1] * m)
    n = 2 * m + path
    assert cvxnmf.performance(A, labels) == float(1 - Fraction(2 * (path + 1) + n, n * n))
    assert cvxnmf.performance(A, labels, diagonal=False) == float(1 - Fraction(2 * (path + 1), n * (n - 1)))


@pytest.mark.parametrize("seed", range(5))
def test_performance_relates_to_that_of_networkx(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(15, 0.4, seed=seed)
    labels = rng.integers(0, 3, 15)
    A = nx.to_numpy_array(graph)
    theirs = nx.community.partition_quality(graph, [set(np.flatnonzero(labels == c)) for c in np.unique(labels)])[1]
    n = 15
    assert cvxnmf.performance(A, labels) == pytest.approx(1 - (n * (n - 1) * (1 - theirs) + n) / n**2, abs=1e-14)
    assert cvxnmf.performance(A, labels, diagonal=False) == pytest.approx(theirs, abs=1e-14)


@given(st.integers(1, 8), st.integers(0, 10**6))
def test_measures_equal_their_naive_twins(n, seed):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.integers(0, 3, (n, n)) * rng.random((n, n)))
    A = A + np.triu(A, 1).T
    labels = rng.integers(0, 3, n)
    assert cvxnmf.performance(A, labels) == pytest.approx(naive_performance(A, labels), abs=1e-14)
    assert cvxnmf.performance(sp.csr_array(A), labels) == cvxnmf.performance(A, labels)
    assert modularity(A, labels) == pytest.approx(naive_modularity(A, labels), abs=1e-12)


def test_performance_is_the_squared_error_of_the_indicator(karate):
    """The paper's identity: for 0/1 data n^2 (1 - perf) = ||A - XX'||^2."""
    X = np.eye(3)[np.arange(34) % 3]
    assert 34**2 * (1 - cvxnmf.performance(karate, np.arange(34) % 3)) == pytest.approx(np.sum((karate - X @ X.T) ** 2))


def test_measures_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="labels must name a cluster for each of the 3 nodes"):
        cvxnmf.performance(np.ones((3, 3)), [0, 1])
    with pytest.raises(ValueError, match="adjacency matrix must be square"):
        cvxnmf.performance(np.ones((2, 3)), [0, 1])
    assert cvxnmf.performance(np.zeros((1, 1)), ["only"], diagonal=False) == 1.0


@pytest.mark.parametrize("labels", [[None, 0], [0.0, float("nan")], ["a", None], [(0,), "a"]])
def test_labels_that_are_missing_or_cannot_be_compared_are_refused(labels):
    given = np.empty(2, dtype=object)
    given[:] = labels
    with pytest.raises(ValueError, match="labels must"):
        cvxnmf.performance(np.ones((2, 2)), given)
