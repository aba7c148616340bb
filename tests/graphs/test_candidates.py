"""Candidates of large graphs: one ascent from merged nodes, from the leading directions, or from a start."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import cvxnmf
from builders import planted_graph
from cvxnmf.graphs.candidates import best_candidates, is_large, merged_nodes
from cvxnmf.graphs.description_length import describe_graph
from cvxnmf.graphs.moves import level_of
from cvxnmf.graphs.order import in_order
from cvxnmf.linalg.arrays import equal_values


@pytest.fixture(scope="module")
def planted():
    A, truth = planted_graph(1500, 6, 14, 0.25, connected=True, seed=3)
    return describe_graph(sp.csr_array(A)), np.asarray(truth)


def test_the_quick_search_finds_what_the_thorough_one_does(planted):
    graph, truth = planted
    baseline = np.zeros(len(truth), dtype=np.int64)
    _, quick = best_candidates(graph, baseline, quick=True)
    _, thorough = best_candidates(graph, baseline)
    assert [candidate.n_clusters for candidate in (quick[0], thorough[0])] == [6, 6]
    assert adjusted_rand_score(truth, quick[0].labels) > 0.95
    assert quick[0].length <= 0.99 * thorough[0].length  # both are negative


def test_large_blurred_clusters_that_no_move_finds_come_from_the_directions():
    A, truth = planted_graph(3000, 5, 14, 0.4, connected=True, seed=3)
    graph, baseline = describe_graph(sp.csr_array(A)), np.zeros(3000, dtype=np.int64)
    assert best_candidates(graph, baseline, merged_nodes(graph), quick=True)[1][0].n_clusters == 1
    found = best_candidates(graph, baseline, quick=True)[1][0]
    assert found.n_clusters == 5
    assert adjusted_rand_score(truth, found.labels) > 0.85


def test_a_large_graph_is_divided_into_as_many_clusters_as_asked():
    A = nx.to_scipy_sparse_array(nx.ring_of_cliques(96, 70), dtype=float, format="csr")
    assert is_large(describe_graph(sp.csr_array(A)))
    for k, score in ((96, 0.999), (30, 0.8)):
        labels = cvxnmf.partition(A, k).labels
        assert len(np.unique(labels)) == k
        assert normalized_mutual_info_score(np.arange(len(labels)) // 70, labels) > score


def test_a_start_is_kept_where_it_is_right_and_no_cluster_crosses_the_baseline(planted):
    graph, truth = planted
    baseline = (truth == 0).astype(np.int64)
    _, found = best_candidates(graph, baseline, truth.astype(np.int64), quick=True)
    assert adjusted_rand_score(truth, found[0].labels) > 0.95
    assert found[0].length <= graph.candidate(truth).length


def test_edges_that_are_alike_need_no_weights(planted):
    graph, _ = planted
    assert len(graph.level.weights) == 1
    assert graph.level.indices.dtype == np.int32
    weighted = graph.A.copy()
    weighted.data[0] = 2.0
    assert len(level_of(weighted, graph.model.degrees).weights) == graph.A.nnz


@pytest.mark.parametrize("loops", [False, True])
def test_a_value_that_is_held_once_stands_for_all(planted, loops):
    graph, truth = planted
    stored = 3.0 * sp.csr_array(graph.A + sp.diags_array(1.0 * loops * (truth == 0)))
    stored.sort_indices()
    lean = sp.csr_array((equal_values(3.0, stored.nnz), stored.indices, stored.indptr), shape=stored.shape)
    every, once = describe_graph(stored), describe_graph(lean)
    for ours, theirs in zip(every.level, once.level, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    baseline = np.zeros(len(truth), dtype=np.int64)
    first, second = (best_candidates(kind, baseline, quick=True)[1][0] for kind in (every, once))
    np.testing.assert_array_equal(first.labels, second.labels)
    assert first.length == second.length
    k = second.n_clusters
    assert once.model.inside(truth, 6).edges == pytest.approx(every.model.inside(truth, 6).edges)
    q = [kind.model.with_posterior(second.labels, k, second.rates).memberships for kind in (every, once)]
    np.testing.assert_array_equal(*q)
    order = np.argsort(truth, kind="stable")
    np.testing.assert_array_equal(in_order(lean, order).toarray(), stored.toarray()[np.ix_(order, order)])
