"""Local moves with refinement and aggregation."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.certificates.pair_objectives import pair_objective
from cvxnmf.graphs.multilevel import best_labels, labels_after_dissolving

nx = pytest.importorskip("networkx")


def same_partition(first, second):
    return len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))


def test_the_order_of_the_nodes_does_not_matter():
    A = nx.to_scipy_sparse_array(nx.les_miserables_graph())
    order = np.random.default_rng(0).permutation(77)
    labels = best_labels(pair_objective(A, "modularity", 1.0))
    again = best_labels(pair_objective(sp.csr_array(A)[order][:, order], "modularity", 1.0))
    assert same_partition(labels[order], again)


def test_a_better_partition_is_found_by_dissolving_parts_of_one():
    A = nx.to_scipy_sparse_array(nx.planted_partition_graph(5, 16, 0.3, 0.06, seed=7))
    objective = pair_objective(A, "modularity", 1.0)
    labels = best_labels(objective)
    better = labels_after_dissolving(objective, labels, None, 100)
    assert objective.value(better) > objective.value(labels)
    order = np.random.default_rng(0).permutation(80)
    again = pair_objective(sp.csr_array(A)[order][:, order], "modularity", 1.0)
    assert again.value(labels_after_dissolving(again, labels[order], None, 100)) == objective.value(better)
    few = best_labels(objective, n_clusters=3)
    assert len(set(labels_after_dissolving(objective, few, 3, 20))) <= 3
    assert same_partition(labels_after_dissolving(objective, labels, None, 0), labels)


@pytest.mark.parametrize("name", ["karate_club", "les_miserables", "davis_southern_women"])
def test_as_good_as_leiden(name):
    igraph, leidenalg = pytest.importorskip("igraph"), pytest.importorskip("leidenalg")
    graph = getattr(nx, f"{name}_graph")()
    A = nx.to_scipy_sparse_array(graph, weight=None)
    other = igraph.Graph.Adjacency(A.toarray().tolist(), mode="undirected")
    best = max(
        leidenalg.find_partition(other, leidenalg.ModularityVertexPartition, seed=s, n_iterations=-1).modularity
        for s in range(10)
    )
    objective = pair_objective(A, "modularity", 1.0)
    assert float(objective.value(best_labels(objective))) >= 0.999 * best


def test_planted_cliques_are_found_by_every_objective():
    A = sp.csr_array(nx.to_scipy_sparse_array(nx.ring_of_cliques(6, 5)))
    for name, resolution in (("modularity", 1.0), ("cpm", 0.5), ("performance", 1.0)):
        assert same_partition(best_labels(pair_objective(A, name, resolution)), np.arange(30) // 5)
    signed = sp.csr_array(2 * A.toarray() - 1)
    assert same_partition(best_labels(pair_objective(signed, "correlation", 1.0)), np.arange(30) // 5)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_at_most_so_many_clusters(k):
    A = nx.to_scipy_sparse_array(nx.karate_club_graph(), weight=None)
    assert len(set(best_labels(pair_objective(A, "modularity", 1.0), n_clusters=k))) <= k


def test_few_clusters_are_as_good_as_any():
    A = nx.to_scipy_sparse_array(nx.karate_club_graph(), weight=None)
    objective = pair_objective(A, "modularity", 1.0)
    assert float(objective.value(best_labels(objective, n_clusters=2))) == pytest.approx(0.371794871, abs=1e-9)
    ring = pair_objective(sp.csr_array(nx.to_scipy_sparse_array(nx.ring_of_cliques(12, 5))), "modularity", 1.0)
    cliques = np.arange(60) // 5
    assert float(ring.value(best_labels(ring, n_clusters=3))) >= float(ring.value(cliques // 4))


def test_starts_that_agree_are_enough():
    A = sp.csr_array(sp.block_diag([np.ones((6, 6)) - np.eye(6)] * 4))
    assert same_partition(best_labels(pair_objective(A, "modularity", 1.0)), np.arange(24) // 6)
