"""Clusters found and given: what competes, and what nodes beside the core get."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from builders import planted_graph
from cvxnmf.graphs.clusters import divide_into, find_clusters, in_any_order


def csr(graph):
    return sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))


def test_nodes_beside_the_core_go_with_the_largest_cluster():
    A, groups = planted_graph(150, 3, 14, 0.1, connected=True)
    lonely = sp.csr_array(sp.block_diag([A, np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros((2, 2))]))
    lonely.eliminate_zeros()
    found = in_any_order(lonely, find_clusters)
    assert set(np.unique(found.labels[:150])) == {0, 1, 2}
    np.testing.assert_array_equal(found.labels[150:], [3, 3, 0, 0])  # a pair that degrees do not explain stands apart
    shares = found.memberships()
    np.testing.assert_allclose(shares[-1], np.bincount(found.labels[:152]) / 152, atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert adjusted_rand_score(groups, found.labels[:150]) > 0.9


def test_where_nothing_shortens_the_description_the_spectrum_is_asked():
    A = csr(nx.karate_club_graph())
    A.data[:] = 1.0
    asked = []
    found = find_clusters(A, lambda: asked.append(1) or 0)
    assert asked == [1]
    assert found.labels.max() == 0
    assert find_clusters(A, lambda: 1).labels.max() == 1
    assert not find_clusters(csr(nx.ring_of_cliques(8, 5)), lambda: asked.append(2) or 0).labels.max() < 7
    assert asked == [1]


@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_every_given_number_is_met(k):
    A, _ = planted_graph(60, 3, 10, 0.2, connected=True)
    found = divide_into(sp.csr_array(A), k)
    assert np.bincount(found.labels, minlength=k).min() > 0
    assert (np.diff(np.bincount(found.labels)) <= 0).all()
    np.testing.assert_array_equal(found.memberships().argmax(axis=1), found.labels)


def test_more_clusters_than_there_are_divide_those_that_are():
    A, labels = planted_graph(400, 4, 12, 0.15, connected=True)
    found = divide_into(sp.csr_array(A), 16)
    sizes = np.bincount(found.labels)
    inside = [np.bincount(labels[found.labels == r]).max() / sizes[r] for r in range(16)]
    assert np.average(inside, weights=sizes) > 0.95
    assert sizes.max() <= 60


def test_alternatives_begin_with_the_shortest_description():
    found = find_clusters(csr(nx.ring_of_cliques(8, 5)))
    lengths = [length for _, length in found.alternatives]
    assert found.alternatives[0][0] == 8
    assert lengths == sorted(lengths)
