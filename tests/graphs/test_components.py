"""Connected components: parts, or what noise leaves beside a giant one."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxnmf.graphs.components import separate_parts, subgraph


def csr(graph):
    graph = graph.subgraph([node for node, degree in graph.degree if degree])
    return sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))


@pytest.mark.parametrize("degree", [1.5, 3, 5])
def test_small_trees_beside_a_random_graph_are_noise(degree):
    parts = separate_parts(csr(nx.gnp_random_graph(2000, degree / 2000, seed=1)))
    assert set(parts.tolist()) <= {-1, int(np.argmax(np.bincount(parts[parts >= 0])))}


@pytest.mark.parametrize("piece", [nx.path_graph(2), nx.path_graph(10), nx.star_graph(6), nx.balanced_tree(2, 3)])
def test_trees_that_stand_apart_are_parts(piece):
    assert len(set(separate_parts(csr(nx.disjoint_union_all([piece] * 20))).tolist())) == 20


def test_more_trees_than_noise_leaves_are_parts():
    dense = nx.gnp_random_graph(200, 0.1, seed=0)
    assert len(set(separate_parts(csr(nx.disjoint_union_all([dense, *[nx.path_graph(3)] * 10]))).tolist())) == 11


def test_components_with_cycles_are_parts():
    both = nx.disjoint_union(nx.gnp_random_graph(2000, 0.0015, seed=1), nx.complete_graph(4))
    assert len(set(separate_parts(csr(both)).tolist()) - {-1}) == 2


@pytest.mark.parametrize("seed", range(3))
def test_components_are_those_of_scipy_and_are_cut_out(seed):
    A = csr(nx.gnp_random_graph(300, 0.004, seed=seed))
    count, components = connected_components(A, directed=False)
    assert count > 10
    parts = separate_parts(A)
    np.testing.assert_array_equal(parts[parts >= 0], components[parts >= 0])
    nodes = np.flatnonzero(components % 3 == 1)
    cut = subgraph(A, nodes)
    np.testing.assert_array_equal(cut.toarray(), A[nodes][:, nodes].toarray())
