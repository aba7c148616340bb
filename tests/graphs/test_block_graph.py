"""The paper's block graphs."""

import numpy as np
import pytest

import cvxnmf


def test_block_graphs_are_symmetric_zero_one_and_repeatable():
    A, labels = cvxnmf.block_graph(31, 0.3, 0.7)
    again, _ = cvxnmf.block_graph(31, 0.3, 0.7)
    np.testing.assert_array_equal(A, A.T)
    np.testing.assert_array_equal(A, again)
    assert set(np.unique(A)) == {0.0, 1.0}
    assert sorted(np.bincount(labels)) == [15, 16]
    assert not np.array_equal(A, cvxnmf.block_graph(31, 0.3, 0.7, rng=1)[0])


def test_thresholds_set_the_densities():
    A, labels = cvxnmf.block_graph(600, 0.3, 0.8, rng=np.random.default_rng(0))
    same = labels[:, None] == labels[None, :]
    assert A[same].mean() == pytest.approx(0.7, abs=0.01)
    assert A[~same].mean() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1, 0.3, 0.7), "n must be an integer of at least 2"),
        ((10, -0.1, 0.7), "alpha must lie between 0 and 1"),
        ((10, 0.3, 1.7), "beta must lie between 0 and 1"),
        ((10, "a", 0.7), "alpha must be a finite number"),
        ((10, 0.3, 0.7, "seed"), "rng must be a seed"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.block_graph(*arguments)
