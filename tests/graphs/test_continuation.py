"""Clusters of a changed graph, from those of before."""

import networkx as nx
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import cvxnmf


def planted(seed=0, groups=6, size=40):
    return nx.planted_partition_graph(groups, size, 0.35, 0.01, seed=seed)


def changed(graph, seed=0):
    """The graph without some nodes and edges, and with others."""
    rng, other, nodes = np.random.default_rng(seed), graph.copy(), list(graph)
    edges = list(graph.edges)
    other.remove_edges_from([edges[i] for i in rng.choice(len(edges), len(edges) // 30, replace=False)])
    other.add_edges_from((nodes[a], nodes[b]) for a, b in rng.integers(len(nodes), size=(30, 2)) if a != b)
    for new in range(5):
        other.add_edges_from((f"new {new}", nodes[j]) for j in range(40 * new + 1, 40 * new + 9))
    other.remove_nodes_from(nodes[::40])
    return other


@pytest.mark.parametrize("terms", [{}, {"objective": "modularity"}, {"n_clusters": 6}])
def test_numbers_follow_their_clusters_when_the_graph_changes(terms):
    graph = planted()
    before = cvxnmf.partition(graph, **terms)
    shuffled = {node: (before.labels[i] + 2) % before.n_clusters for i, node in enumerate(before.nodes)}
    after = cvxnmf.partition(changed(graph), start=shuffled, **terms)
    kept = [(shuffled[node], label) for node, label in zip(after.nodes, after.labels, strict=True) if node in shuffled]
    assert np.mean([old == new for old, new in kept]) > 0.98
    assert len(after.nodes) == 240 - 6 + 5
    fresh = cvxnmf.partition(changed(graph), **terms)
    assert adjusted_rand_score(after.labels, fresh.labels) > 0.98
    np.testing.assert_array_equal(np.argmax(after.memberships, axis=1), after.labels)


def test_the_same_graph_keeps_its_labels_whatever_the_form_of_the_start():
    graph = planted(1)
    before = cvxnmf.partition(graph)
    names = [f"cluster {label}" for label in before.labels]
    for start in (before, before.labels, before.labels.tolist(), names, dict(zip(before.nodes, names, strict=True))):
        again = cvxnmf.partition(graph, start=start)
        assert adjusted_rand_score(again.labels, before.labels) == 1
    np.testing.assert_array_equal(cvxnmf.partition(graph, start=before).labels, before.labels)


def test_a_poor_start_is_improved_and_clusters_come_and_go():
    graph = planted(2)
    merged = np.repeat([0, 0, 1, 1, 2, 2], 40)
    parts = np.repeat(np.arange(12), 20)
    truth = np.repeat(np.arange(6), 40)
    assert adjusted_rand_score(cvxnmf.partition(graph, start=merged).labels, truth) == 1
    found = cvxnmf.partition(graph, start=parts)
    assert adjusted_rand_score(found.labels, truth) == 1
    assert sorted(set(found.labels.tolist())) == list(range(6))


def test_the_order_of_the_nodes_does_not_matter():
    graph = planted(3)
    before = cvxnmf.partition(graph)
    after = changed(graph)
    mixed = nx.Graph()
    mixed.add_nodes_from(np.random.default_rng(0).permutation(np.array(list(after), dtype=object)).tolist())
    mixed.add_edges_from(after.edges)
    one, two = (cvxnmf.partition(each, start=before) for each in (after, mixed))
    labels = dict(zip(two.nodes, two.labels, strict=True))
    assert [labels[node] for node in one.nodes] == one.labels.tolist()


@pytest.mark.parametrize(
    ("start", "terms", "words"),
    [
        ([0, 1], {}, "labels of all 34 nodes"),
        (3, {}, "start must be a Partition"),
        ({"a": 1}, {}, "knows none of the nodes"),
        ([0] * 17 + [1] * 17, {"trace": 3.0}, "default terms"),
    ],
)
def test_a_start_that_does_not_fit_is_refused_in_a_sentence(start, terms, words):
    with pytest.raises(ValueError, match=words):
        cvxnmf.partition(nx.karate_club_graph(), start=start, **terms)


def test_a_large_graph_keeps_its_labels_when_a_few_edges_change():
    A = nx.to_scipy_sparse_array(nx.ring_of_cliques(96, 70), dtype=float, format="csr")
    before = cvxnmf.partition(A)
    other = A.tolil()
    for i in range(0, 6720, 70):
        other[i, i + 5] = other[i + 5, i] = 0.0
        other[i, (i + 1000) % 6720] = other[(i + 1000) % 6720, i] = 1.0
    after = cvxnmf.partition(other.tocsr(), start=before)
    np.testing.assert_array_equal(after.labels, before.labels)
