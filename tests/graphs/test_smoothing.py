"""Averages over neighbours make clusters of weak ones, whatever the number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.chunked.graphs.blocks import COLOURS
from cvxnmf.chunked.graphs.build import graph_of_matrix
from cvxnmf.chunked.graphs.shelf import MemoryShelf
from cvxnmf.graphs.blocked import search
from cvxnmf.graphs.blocked import smoothing as blocked_smoothing
from cvxnmf.graphs.blocked.description import describe_blocks
from cvxnmf.graphs.moves import Effort, level_of, move_nodes
from cvxnmf.graphs.score import Score
from cvxnmf.graphs.smoothing import WIDTH, smoothed_clusters
from cvxnmf.linalg.threads import single_thread


def planted(n=20_000, k=8, degree=24, mixing=0.4, seed=0):
    """A graph of k groups and the group of each node."""
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, n, n * degree // 2), rng.integers(0, n, n * degree // 2)
    inside = rng.random(len(tails)) >= mixing
    heads[inside] = heads[inside] // k * k + tails[inside] % k
    apart = (tails != heads) & (heads < n)
    A = sp.coo_array((np.ones(apart.sum()), (tails[apart], heads[apart])), shape=(n, n)).tocsr()
    return sp.csr_array(((A + A.T) > 0).astype(np.float64)), np.arange(n) % k


A, GROUPS = planted()
LEVEL = level_of(A, np.asarray(A.sum(axis=1)).ravel())


def purity(labels):
    """The share of nodes that are in the largest group of their cluster."""
    pairs = np.zeros((labels.max() + 1, GROUPS.max() + 1))
    np.add.at(pairs, (labels, GROUPS), 1)
    return pairs.max(axis=1).sum() / len(labels)


@pytest.fixture(scope="module")
def weak():
    """Clusters of about 200 nodes, of which a fifth is of one group."""
    rng = np.random.default_rng(1)
    known = rng.random(len(GROUPS)) < 0.2
    numbers = rng.integers(0, 13, len(GROUPS)) * 8
    return numbers + np.where(known, GROUPS, rng.integers(0, 8, len(GROUPS)))


def test_weak_clusters_become_pure(weak):
    assert purity(weak) < 0.35
    assert purity(smoothed_clusters(LEVEL, weak)) > 0.95


@pytest.mark.slow
def test_threads_and_equal_weights_do_not_matter(weak):
    several = smoothed_clusters(LEVEL, weak)
    with single_thread():
        assert np.array_equal(smoothed_clusters(LEVEL, weak), several)
    weighted = LEVEL._replace(weights=np.ones(len(LEVEL.indices)))
    assert np.array_equal(smoothed_clusters(weighted, weak), several)


def test_moves_end_when_few_nodes_move(weak):
    score, order = Score(1.0, 1.0 / A.nnz), np.arange(len(weak), dtype=np.int32)
    labels = [
        move_nodes(LEVEL, score, np.zeros(1), weak.astype(np.int32), order, 1e-9, len(weak), Effort(visits, few=few))
        for visits, few in ((1, 0.0), (60, 1.0), (60, 0.0))
    ]
    assert np.array_equal(labels[0], labels[1])
    assert not np.array_equal(labels[0], labels[2])


def in_blocks(threads=1):
    return graph_of_matrix(A, MemoryShelf(), threads)


def test_blocks_make_weak_clusters_pure_whatever_the_threads(weak):
    graph = in_blocks()
    assert len(graph.rows.bounds) > COLOURS + 1  # more than one block of a colour
    found = blocked_smoothing.smoothed_clusters(graph, weak.astype(np.int32))
    assert purity(found) > 0.95
    assert np.array_equal(blocked_smoothing.smoothed_clusters(in_blocks(3), weak.astype(np.int32)), found)


def test_averages_of_a_block_are_those_of_its_rows(weak):
    graph, positions = in_blocks(), np.random.default_rng(0).standard_normal((len(weak), WIDTH)).astype(np.float32)
    parts = graph.keep(positions).map_blocks(blocked_smoothing.average_block)
    expected = (A @ positions.astype(np.float64)) / np.maximum(A.sum(axis=1), 1)[:, None]
    for first, rows in parts:
        np.testing.assert_allclose(rows, expected[first : first + len(rows)], rtol=1e-4, atol=1e-5)


def test_a_search_in_blocks_takes_averages_where_merged_nodes_tell_too_little(monkeypatch):
    stages = []
    described = describe_blocks(in_blocks(), True)
    monkeypatch.setattr(search, "LOST", -np.inf)
    found = search.find_clusters(described, lambda stage, share: stages.append(stage)).labels
    assert "averages over neighbours" in stages
    assert purity(found) > 0.95
    assert found.max() + 1 == 8
    monkeypatch.setattr(search, "LOST", np.inf)
    stages.clear()
    search.find_clusters(described, lambda stage, share: stages.append(stage))
    assert "averages over neighbours" not in stages
