"""Seeds: first clusters that do not depend on the order of the nodes."""

import networkx as nx
import numpy as np
import pytest

from builders import planted_graph
from cvxnmf.graphs.seeds import canonical_order, quick_seed, seeds


def three_clouds(n=60):
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.arange(n) % 3)
    return np.eye(3)[truth] * 5 + 0.1 * rng.standard_normal((n, 3)), truth


@pytest.mark.parametrize("make", [seeds, lambda W, k: [quick_seed(W, k)]])
def test_clouds_that_are_far_apart_are_found_from_all_first_centres(make):
    W, truth = three_clouds()
    for labels in make(W, 3):
        assert len(set(zip(labels.tolist(), truth.tolist(), strict=True))) == 3


@pytest.mark.parametrize("k", [2, 5, 12])
def test_no_cluster_is_empty_though_positions_are_few(k):
    W = np.repeat(np.array([[0.0, 1.0], [1.0, 0.0]]), 6, axis=0)
    for labels in [*seeds(W, k), quick_seed(W, k)]:
        assert set(labels) == set(range(k))


def test_equal_positions_are_cut_in_their_order():
    assert [labels.tolist() for labels in seeds(np.ones((6, 2)), 3)] == [[0, 0, 1, 1, 2, 2]]
    assert [labels.tolist() for labels in seeds(np.zeros((4, 0)), 2)] == [[0, 0, 1, 1]]


@pytest.mark.parametrize("seed", range(3))
def test_the_canonical_order_does_not_depend_on_names(seed):
    A, _ = planted_graph(60, 3, 12, 0.3, tail=2.5, seed=seed)
    W = np.random.default_rng(seed).standard_normal((60, 2))
    names = np.random.default_rng(seed + 1).permutation(60)
    order = canonical_order(A, A.sum(axis=1), W)
    again = canonical_order(A[np.ix_(names, names)], A.sum(axis=1)[names], W[names])
    np.testing.assert_array_equal(order, names[again])


def test_nodes_that_the_graph_can_tell_apart_by_their_neighbours_only_are_ordered():
    A = nx.to_numpy_array(nx.path_graph(5))
    order = canonical_order(A, A.sum(axis=1), np.zeros((5, 0)))
    assert order[-1] == 2
    assert set(order[:2]) == {0, 4}
