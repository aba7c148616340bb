"""Seeds: first clusters that do not depend on the order of the nodes."""

import numpy as np
import pytest

from cvxnmf.graphs.seeds import quick_seed, seeds


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
