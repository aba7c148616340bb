"""Local moves: what they gain, and where they end."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from builders import planted_graph
from cvxnmf.graphs.ascent import aggregate, ascend
from cvxnmf.graphs.block_model import PlantedPartition, RateModel
from cvxnmf.graphs.description_length import describe_graph
from cvxnmf.graphs.kernighan_lin import kernighan_lin_pass
from cvxnmf.graphs.moves import (
    KEEP,
    Effort,
    cluster_sums,
    level_of,
    log_factorials,
    move_nodes,
    refine,
    renumber,
    visiting_order,
)
from cvxnmf.graphs.numbering import rising_order
from cvxnmf.graphs.refinement import likelihood_score
from cvxnmf.graphs.score import Score
from naive import naive_score

SCORES = [
    Score(1.0, 0.02),
    Score(0.0, 0.0, 1.0, 0.01, 1.0, 2.0),
    Score(0.7, 0.01, 0.5, 0.02, 1.0, 1.0, 1.0),
]


def random_case(seed, n=12, k=3, loops=True):
    """A small graph with weights, and labels."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.integers(0, 3, (n, n)), 0 if loops else 1).astype(float)
    A = A + np.triu(A, 1).T
    return A, level_of(sp.csr_array(A), A.sum(axis=1)), rng.permutation(np.arange(n) % k)


def assert_no_single_move_gains(A, labels, score, k):
    reached = naive_score(A, labels, score)
    for node in range(len(A)):
        linked = {labels[other] for other in range(len(A)) if other != node and A[node, other]}
        for cluster in linked:
            other = labels.copy()
            other[node] = cluster
            if len(np.unique(other)) == k:
                assert naive_score(A, other, score) <= reached + 1e-9


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("seed", range(6))
def test_a_pass_gains_what_it_says_and_passes_end_where_no_single_move_gains(seed, score):
    A, level, start = random_case(seed)
    logs, before = log_factorials(len(A)), start.copy()
    labels, gain = kernighan_lin_pass(level, score, logs, start, 3, len(A))
    np.testing.assert_array_equal(start, before)
    assert naive_score(A, labels, score) - naive_score(A, start, score) == pytest.approx(gain, abs=1e-9)
    assert len(np.unique(labels)) == 3
    while gain > 1e-9:
        labels, gain = kernighan_lin_pass(level, score, logs, labels, 3, len(A))
    assert_no_single_move_gains(A, labels, score, 3)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("seed", range(6))
def test_moves_never_lose_and_end_where_no_single_move_gains(seed, score):
    A, level, start = random_case(seed)
    labels, before = start.astype(np.int32), None
    while before is None or (labels != before).any():  # only neighbours of a node that moved are tried again by one call
        before = labels.copy()
        labels = move_nodes(level, score, log_factorials(len(A)), labels, visiting_order(level, False), 1e-12, 3, KEEP)
        assert naive_score(A, labels, score) >= naive_score(A, before, score) - 1e-9
    assert len(np.unique(labels)) == 3
    assert_no_single_move_gains(A, labels, score, 3)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("seed", range(6))
def test_ascents_never_lose_and_refined_parts_lie_inside_clusters(seed, score):
    A, level, start = random_case(seed, n=20, k=5)
    logs = log_factorials(len(A))
    labels = ascend(level, score, logs, start.copy(), 1e-12, bool(seed % 2), 3, len(A), Effort())
    assert naive_score(A, labels, score) >= naive_score(A, start, score) - 1e-9
    few = ascend(level, score, logs, start.copy(), 1e-12, bool(seed % 2), 3, len(set(start.tolist())), Effort())
    assert len(set(few.tolist())) <= len(set(start.tolist()))
    parts = refine(level, score, logs, labels.astype(np.int32), visiting_order(level, False), 1e-12)
    assert len(set(zip(parts.tolist(), labels.tolist(), strict=True))) == len(set(parts.tolist()))


def test_parts_become_the_nodes_of_a_smaller_graph():
    A, level, labels = random_case(0, n=15, k=4)
    labels = renumber(labels)
    smaller = aggregate(level, labels)
    Z = np.eye(4)[labels]
    expected = Z.T @ A @ Z
    found = sp.csr_array((smaller.weights, smaller.indices, smaller.indptr), shape=(4, 4)).toarray()
    np.testing.assert_allclose(found, expected - np.diag(np.diag(expected)))
    np.testing.assert_allclose(smaller.loops, np.diag(expected))
    np.testing.assert_allclose(smaller.masses, Z.T @ A.sum(axis=1))
    np.testing.assert_array_equal(smaller.counts, np.bincount(labels))
    sums = cluster_sums(level, labels, 4)
    np.testing.assert_allclose(sums["edges"], np.diag(expected))


def test_no_cluster_is_emptied():
    A = nx.to_scipy_sparse_array(nx.complete_graph(30), dtype=float, format="csr")
    lonely, logs = np.arange(30) // 29, log_factorials(30)
    level = level_of(A, np.full(30, 29.0))
    assert move_nodes(level, Score(1.0, 0.0), logs, lonely.astype(np.int32), visiting_order(level, False), 0.0, 2, KEEP)[-1] == 1
    assert kernighan_lin_pass(level, Score(1.0, 0.0), logs, lonely, 2, 30)[0][-1] == 1


def test_moves_raise_the_likelihood():
    A, labels = planted_graph(300, 3, 12, 0.3, connected=True)
    graph, rng, rates = describe_graph(sp.csr_array(A)), np.random.default_rng(0), RateModel.PER_CLUSTER
    model = PlantedPartition(sp.csr_array(A), 1.0)
    for _ in range(5):
        start = np.where(rng.random(len(labels)) < 0.3, rng.integers(0, 3, len(labels)), labels)
        score = likelihood_score(model, start, 3, rates)
        new = move_nodes(
            graph.level, score, graph.logs, start.astype(np.int32), visiting_order(graph.level, False), 1e-9, 3, KEEP
        )
        assert model.log_likelihood(new, 3, rates) > model.log_likelihood(start, 3, rates)


@pytest.mark.parametrize("n", [0, 1, 2, 37])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_order_of_visits_is_that_of_a_stable_sort(n, sign):
    keys = np.random.default_rng(n).integers(0, 9, n).astype(float)
    np.testing.assert_array_equal(rising_order(keys, sign), np.argsort(sign * keys, kind="stable"))
