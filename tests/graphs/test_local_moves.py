"""Local moves: what they gain, and where they end."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from builders import planted_graph
from cvxnmf.graphs.block_model import PlantedPartition, RateModel
from cvxnmf.graphs.local_moves import Quality, greedy_sweep, kernighan_lin_pass
from naive import naive_gain


def random_case(seed, n=12, k=3):
    """A small graph with weights and loops, labels, and a quality."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.integers(0, 3, (n, n))).astype(float)
    A = A + np.triu(A, 1).T
    quality = Quality(A.sum(axis=1), rng.random(k) + 0.5, (rng.random(k) + 0.5) / A.sum())
    return A, rng.permutation(np.arange(n) % k), quality


def assert_no_single_move_gains(A, labels, quality):
    k = len(quality.rewards)
    reached = naive_gain(A, labels, quality.rewards, quality.penalties)
    for node in range(len(A)):
        for cluster in range(k):
            other = labels.copy()
            other[node] = cluster
            if len(np.unique(other)) == k:
                assert naive_gain(A, other, quality.rewards, quality.penalties) <= reached + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_a_pass_gains_what_it_says_and_passes_end_where_no_single_move_gains(seed):
    A, start, quality = random_case(seed)
    graph, before = sp.csr_array(A), start.copy()
    labels, gain = kernighan_lin_pass(graph, start, quality, len(A))
    np.testing.assert_array_equal(start, before)
    gained = [naive_gain(A, z, quality.rewards, quality.penalties) for z in (start, labels)]
    assert gained[1] - gained[0] == pytest.approx(gain, abs=1e-9)
    assert len(np.unique(labels)) == 3
    while gain > 0:
        labels, gain = kernighan_lin_pass(graph, labels, quality, len(A))
    assert_no_single_move_gains(A, labels, quality)


@pytest.mark.parametrize("seed", range(20))
def test_sweeps_never_lose_and_end_where_no_single_move_gains(seed):
    A, start, quality = random_case(seed)
    labels, moved = start, 1
    while moved:
        before = naive_gain(A, labels, quality.rewards, quality.penalties)
        last, (labels, moved) = labels, greedy_sweep(sp.csr_array(A), labels, quality)
        assert moved == np.count_nonzero(labels != last)
        assert naive_gain(A, labels, quality.rewards, quality.penalties) >= before - 1e-9
        assert len(np.unique(labels)) == 3
    assert_no_single_move_gains(A, labels, quality)


def test_no_cluster_is_emptied():
    A = nx.to_scipy_sparse_array(nx.complete_graph(30), dtype=float, format="csr")
    lonely = np.arange(30, dtype=np.intp) // 29
    for quality in (Quality(np.full(30, 29.0), np.ones(2), np.zeros(2)), Quality(np.ones(30), np.ones(2), np.zeros(2))):
        assert greedy_sweep(A, lonely, quality)[0][-1] == 1
        assert kernighan_lin_pass(A, lonely, quality, 30)[0][-1] == 1


def test_moves_raise_the_likelihood():
    A, labels = planted_graph(300, 3, 12, 0.3, connected=True)
    A = sp.csr_array(A)
    model, rng, rates = PlantedPartition(A, 1.0), np.random.default_rng(0), RateModel.PER_CLUSTER
    for _ in range(5):
        start = np.where(rng.random(len(labels)) < 0.3, rng.integers(0, 3, len(labels)), labels)
        new, moved = greedy_sweep(A, start, model.quality(model.inside(start, 3), rates))
        assert moved == np.count_nonzero(new != start) > 0
        assert model.log_likelihood(new, 3, rates) > model.log_likelihood(start, 3, rates)
