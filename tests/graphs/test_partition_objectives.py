"""Partitions for qualities other than the likelihood, and proofs of their labels."""

from collections import Counter
from itertools import product

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import cvxnmf
from cvxnmf.graphs.adapters import named_graph


def test_the_optimal_modularity_is_found_and_proved():
    found = cvxnmf.partition(nx.karate_club_graph(), objective="modularity", prove=True, weight=None)
    assert found.modularity == pytest.approx(0.419789612, abs=1e-9)
    assert found.label_certificate.gap == 0
    assert found.label_certificate.check(found.A) == found.label_certificate.bound
    assert not found.several_optimal
    assert "its labels, modularity" in str(found)
    assert "it is optimal" in found._repr_html_()


def test_a_better_partition_that_the_proof_meets_is_taken():
    graph = nx.les_miserables_graph()
    found = cvxnmf.partition(graph, objective="modularity", prove=True, weight=None)
    assert found.modularity == pytest.approx(0.560008370, abs=1e-9)
    assert found.modularity == pytest.approx(found.label_certificate.value)


def test_several_optimal_partitions_are_told():
    ring = cvxnmf.partition(nx.cycle_graph(7), objective="modularity", prove=True)
    assert ring.several_optimal
    assert cvxnmf.verify_labels(nx.cycle_graph(7), ring.other_optimum).gap == 0
    assert "Several partitions are optimal." in str(ring)
    pair = cvxnmf.partition(nx.barbell_graph(4, 0), objective="modularity", prove=True)
    assert pair.several_optimal is False
    assert "No other partition is optimal." in str(pair)
    assert cvxnmf.partition(nx.cycle_graph(7), objective="modularity").several_optimal is None


def test_every_objective_tells_of_several_optima():
    square = nx.cycle_graph(4)
    for objective, resolution in (("modularity", 1.0), ("cpm", 0.5), ("performance", 1.0)):
        found = cvxnmf.partition(square, objective=objective, resolution=resolution, prove=True)
        assert found.several_optimal, objective
        again = cvxnmf.verify_labels(square, found.other_optimum, objective, resolution)
        assert again.gap == 0
        assert again.value == found.label_certificate.value


@pytest.mark.parametrize(("objective", "resolution"), [("modularity", 1.0), ("cpm", 0.5), ("performance", 1.0)])
def test_the_order_of_the_nodes_does_not_matter(objective, resolution):
    graph = nx.les_miserables_graph()
    for k, seed in product((None, 3), range(3)):
        first, other = (
            cvxnmf.partition(same, k, objective=objective, resolution=resolution) for same in (graph, shuffled(graph, seed))
        )
        assert first.n_clusters == other.n_clusters
        pairs = {(label, other.to_dict()[node]) for node, label in first.to_dict().items()}
        assert len(pairs) == first.n_clusters or members_alike(graph, first) == members_alike(graph, other)


def members_alike(graph, found):
    """How many nodes with the same neighbours and weights are in each cluster: which of them no order can say."""
    return Counter(
        (tuple(sorted((v, d["weight"]) for v, d in graph[node].items())), label) for node, label in found.to_dict().items()
    )


def shuffled(graph, seed):
    """The same graph with its nodes in another order."""
    nodes, same = list(graph), nx.Graph()
    same.add_nodes_from(nodes[i] for i in np.random.default_rng(seed).permutation(len(nodes)))
    same.add_edges_from(graph.edges(data=True))
    return same


def test_nodes_that_a_symmetry_exchanges_may_change_places():
    """Of five alike neighbours of a node two join it, and no order can say which."""
    graph = nx.les_miserables_graph()
    first, other = (cvxnmf.partition(same, objective="cpm", resolution=0.2) for same in (graph, shuffled(graph, 1)))
    values = {cvxnmf.verify_labels(graph, found, "cpm", 0.2, effort=0.0).value for found in (first, other)}
    assert len(values) == 1
    assert np.array_equal(np.bincount(first.labels), np.bincount(other.labels))


@pytest.mark.parametrize(("objective", "resolution"), [("modularity", 2.0), ("cpm", 0.3), ("performance", 1.0)])
def test_label_certificates_are_about_the_objective(objective, resolution):
    A, _ = cvxnmf.block_graph(30, 0.2, 0.8)
    found = cvxnmf.partition(A, objective=objective, resolution=resolution, effort=0.05)
    certificate = found.label_certificate
    assert dict(certificate.statement) == {"form": "labels", "objective": objective, "resolution": resolution}
    assert certificate.bound >= certificate.value
    assert np.array_equal(found.memberships.argmax(axis=1), found.labels)
    if objective == "performance":
        assert certificate.value == pytest.approx(found.performance)


def test_of_the_likelihood_modularity_is_proved():
    found = cvxnmf.partition(nx.karate_club_graph())
    assert found.label_certificate_at_hand is None
    assert found.label_certificate.value == pytest.approx(found.modularity)
    assert found.label_certificate.statement["objective"] == "modularity"


def test_the_convex_model_of_a_quality_is_that_of_the_likelihood():
    quality, likelihood = (cvxnmf.partition(nx.les_miserables_graph(), objective=name) for name in ("modularity", "likelihood"))
    assert quality.certificate.bound == likelihood.certificate.bound
    assert quality.n_clusters != likelihood.n_clusters


def test_at_most_so_many_clusters():
    found = cvxnmf.partition(nx.karate_club_graph(), 2, objective="modularity", prove=True, weight=None)
    assert found.n_clusters == 2
    assert found.modularity == pytest.approx(0.371794871, abs=1e-8)
    assert found.label_certificate.gap == 0


def test_an_interrupted_proof_leaves_the_partition():
    def stop(iterate):
        if iterate.stage == "linear program":
            raise KeyboardInterrupt

    with pytest.raises(cvxnmf.Interrupted) as stopped:
        cvxnmf.partition(nx.les_miserables_graph(), objective="modularity", prove=True, callback=stop)
    assert stopped.value.solution.label_certificate_at_hand is not None


def test_signed_weights_are_read_for_agreements_only():
    graph = nx.Graph([(0, 1, {"weight": 1.0}), (1, 2, {"weight": -2.0})])
    certificate = cvxnmf.verify_labels(graph, [0, 0, 1], "correlation")
    assert certificate.value == certificate.bound == 2.0
    assert named_graph(graph, signed=True).A[1, 2] == -2.0
    with pytest.raises(ValueError, match="at least 0"):
        cvxnmf.verify_labels(graph, [0, 0, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "beauty"}, "objective"),
        ({"resolution": 2.0}, "no resolution"),
        ({"objective": "cpm", "resolution": -1}, "resolution"),
    ],
)
def test_wrong_objectives_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        cvxnmf.partition(np.ones((3, 3)), **change)


def test_labels_of_a_series_are_those_of_its_index():
    graph = nx.Graph([("d", "a"), ("a", "c"), ("c", "d"), ("c", "b"), ("b", "e"), ("e", "f"), ("f", "b")])
    labels = pd.Series({"a": 0, "b": 1, "c": 0, "d": 0, "e": 1, "f": 1})
    expected = cvxnmf.verify_labels(graph, labels.to_dict()).value
    assert cvxnmf.verify_labels(graph, labels).value == expected
    assert cvxnmf.verify_labels(graph, pd.Series([labels[node] for node in graph])).value == expected  # by their places
    with pytest.raises(ValueError, match="no entry for the node 'd'"):
        cvxnmf.verify_labels(graph, labels.rename({"d": "x"}))
    with pytest.raises(ValueError, match=r"give dict\(zip\(frame.node, frame.cluster\)\)"):
        cvxnmf.verify_labels(graph, labels.reset_index())
