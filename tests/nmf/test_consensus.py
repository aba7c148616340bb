"""Consensus over random starts."""

import numpy as np
import pytest

import cvxnmf
from cvxnmf.nmf.consensus import cluster_medians, local_distances, tightness


def counts():
    rng = np.random.default_rng(0)
    return rng.poisson(20 * rng.gamma(0.3, size=(60, 3)) @ rng.gamma(0.3, size=(3, 40)))


def test_starts_agree_on_planted_components_and_the_answer_is_the_same_again():
    first, again = (cvxnmf.consensus(counts(), 3, "kl", n_starts=5) for _ in range(2))
    assert first.silhouette > 0.9
    np.testing.assert_array_equal(first.result.U, again.result.U)
    assert first.result.value <= 1.001 * min(first.values)
    assert "5 starts" in repr(first)


def test_too_many_components_agree_less():
    assert cvxnmf.consensus(counts(), 7, "kl", n_starts=5).silhouette < 0.9


@pytest.mark.parametrize("loss", ["kl", "mse"])
def test_data_in_row_chunks_have_the_same_components(loss, tmp_path):
    np.save(tmp_path / "counts.npy", counts().astype(float))
    stored = np.load(tmp_path / "counts.npy", mmap_mode="r")
    chunks = cvxnmf.consensus(stored, 3, loss, n_starts=4, memory_limit="32 GB")
    memory = cvxnmf.consensus(counts(), 3, loss, n_starts=4)
    assert chunks.result.value == pytest.approx(memory.result.value, rel=1e-3)
    assert chunks.silhouette == pytest.approx(memory.silhouette, abs=0.05)


def test_losses_that_row_chunks_do_not_have_are_refused():
    with pytest.raises(ValueError, match="use data in memory"):
        cvxnmf.consensus(counts() + 1.0, 3, "itakura-saito", memory_limit="32 GB")


def test_clusters_of_known_rows():
    X = np.repeat(np.eye(3), 4, axis=0)
    medians, labels, silhouette = cluster_medians(X, 3)
    np.testing.assert_allclose(np.sort(medians, axis=0), np.sort(np.eye(3), axis=0))
    assert silhouette == pytest.approx(1.0)
    assert tightness(X, labels, 3) == (1.0, 1.0, 1.0)
    np.testing.assert_allclose(local_distances(np.vstack([X, np.full((1, 3), 3**-0.5)]), 2)[:-1], 0.0, atol=1e-7)


@pytest.mark.parametrize(("terms", "sentence"), [({"n_starts": 1}, "at least 2"), ({"density": 1e-9}, "raise it")])
def test_what_makes_no_sense_is_refused(terms, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.consensus(counts(), 7, **terms)
