"""The spectral baselines: the best cut where brute force knows it, and graphs that strain a formula."""

from itertools import product

import numpy as np
import pytest

import cvxnmf
from builders import chain_of_cliques, random_graph
from cvxnmf.paper.spectral import min_max_cut, min_max_cut_value, normalised_cut


def naive_cut(A, labels):
    """The min-max cut as its formula has it."""
    total = 0.0
    for cluster in np.unique(labels):
        inside = labels == cluster
        total += A[np.ix_(inside, ~inside)].sum() / A[np.ix_(inside, inside)].sum()
    return total


def best_cut(A, k):
    """The least min-max cut over all partitions into k clusters that have weight inside."""
    best = np.inf
    for rest in product(range(k), repeat=len(A) - 1):
        labels = np.array((0, *rest))
        if len(set(labels)) == k and all(A[np.ix_(labels == c, labels == c)].any() for c in range(k)):
            best = min(best, naive_cut(A, labels))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_two_blocks_have_the_best_cut(seed):
    A, _ = cvxnmf.block_graph(11, 0.2, 0.8, rng=seed)
    assert min_max_cut_value(A, min_max_cut(A, 2)) == pytest.approx(best_cut(A, 2))


@pytest.mark.parametrize("seed", range(6))
def test_graphs_without_clusters_come_within_a_percent_of_the_best_cut(seed):
    A = random_graph(11, seed, weighted=seed % 2 == 1)
    assert min_max_cut_value(A, min_max_cut(A, 2)) <= 1.01 * best_cut(A, 2)


@pytest.mark.parametrize("sizes", [(4, 3), (3, 3, 4), (5, 4)])
def test_cliques_are_found(sizes):
    A = chain_of_cliques(sizes)
    labels = min_max_cut(A, len(sizes))
    truth = np.repeat(np.arange(len(sizes)), sizes)
    assert np.array_equal(labels[:, None] == labels, truth[:, None] == truth)
    assert min_max_cut_value(A, labels) == pytest.approx(best_cut(A, len(sizes)))


def test_the_value_is_the_formula():
    A, labels = random_graph(15, 3, weighted=True), np.arange(15) % 3
    assert min_max_cut_value(A, labels) == pytest.approx(naive_cut(A, labels))
    assert min_max_cut_value(7.5 * A, labels) == pytest.approx(naive_cut(A, labels))


def test_refinement_lowers_the_cut_and_nothing_is_random():
    for seed in range(5):
        A, _ = cvxnmf.block_graph(40, 0.5, 0.5, rng=seed)
        refined, start = min_max_cut(A, 2), min_max_cut(A, 2, refine=False)
        assert min_max_cut_value(A, refined) <= min_max_cut_value(A, start)
        np.testing.assert_array_equal(refined, min_max_cut(A, 2))


def test_relabelled_nodes_have_the_same_cut():
    A, order = random_graph(30, 1, density=0.3), np.random.default_rng(0).permutation(30)
    labels, permuted = min_max_cut(A, 2), min_max_cut(A[np.ix_(order, order)], 2)
    same = labels[order][:, None] == labels[order]
    assert np.array_equal(same, permuted[:, None] == permuted)


@pytest.mark.parametrize("cut", [min_max_cut, normalised_cut])
@pytest.mark.parametrize("k", [2, 3])
def test_components_are_clusters(cut, k):
    A = np.kron(np.eye(k), np.ones((4, 4)))
    labels = cut(A, k)
    assert np.array_equal(labels[:, None] == labels, A > 0)


def test_lone_nodes_join_the_smallest_cluster():
    A = np.zeros((9, 9))
    A[:7, :7] = chain_of_cliques((4, 3))
    labels = min_max_cut(A, 2)
    assert len({*labels[4:]}) == 1
    assert labels[0] != labels[4]


@pytest.mark.parametrize("A", [np.diag([1.0, 0, 0, 0]), np.eye(4), np.ones((4, 4)), 1.0 - np.eye(4)])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_every_cluster_has_a_node(A, k):
    assert set(min_max_cut(A, k)) == set(range(k))


def test_a_star_has_clusters_without_inside_weight():
    A = np.zeros((6, 6))
    A[0, 1:] = A[1:, 0] = 1.0
    labels = min_max_cut(A, 2)
    assert set(labels) == {0, 1}
    assert np.isfinite(min_max_cut_value(A, labels))
    assert len(set(normalised_cut(A, 2))) == 2


@pytest.mark.parametrize("cut", [min_max_cut, normalised_cut])
def test_clear_blocks_are_found(cut):
    A, truth = cvxnmf.block_graph(60, 0.2, 0.8)
    assert cvxnmf.performance(A, cut(A, 2)) == cvxnmf.performance(A, truth)
    assert set(cut(A, 1)) == {0}


@pytest.mark.parametrize("cut", [min_max_cut, normalised_cut])
def test_more_clusters_than_nodes_are_refused(cut):
    with pytest.raises(ValueError, match="n_clusters must be at most the number of nodes, 3, not 4"):
        cut(np.ones((3, 3)), 4)
