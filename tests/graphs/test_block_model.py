"""The degree-corrected planted partition model: likelihood, posterior memberships, mean field, repair of empty clusters."""

import numpy as np
import pytest
import scipy.sparse as sp

from builders import planted_graph
from cvxnmf.graphs.block_model import PlantedPartition, RateModel, Stopping, fill_empty_clusters
from naive import naive_block_likelihood, naive_posterior


@pytest.fixture(scope="module")
def case():
    A, labels = planted_graph(40, 3, 12, 0.3, connected=True)
    return A + np.diag(np.arange(40) % 3), labels


@pytest.mark.parametrize("rates", RateModel)
def test_the_likelihood_is_that_of_the_poisson_model_less_that_of_one_cluster(case, rates):
    A, labels = case
    model = PlantedPartition(sp.csr_array(A), 0.7)
    common = rates is RateModel.COMMON
    expected = naive_block_likelihood(A, labels, 3, common) - naive_block_likelihood(A, 0 * labels, 1, common)
    assert model.log_likelihood(labels, 3, rates) == pytest.approx(expected / 0.7)
    sides = PlantedPartition(sp.csr_array(np.kron([[0.0, 1.0], [1.0, 0.0]], np.ones((4, 4)))), 1.0)
    assert sides.log_likelihood(np.arange(8) // 4, 2, rates) == 0.0  # nowhere denser inside than across


@pytest.mark.parametrize("rates", RateModel)
def test_the_posterior_is_that_of_the_formula(case, rates):
    A, _ = case
    model, rng = PlantedPartition(sp.csr_array(A), 0.7), np.random.default_rng(1)
    q = rng.dirichlet(np.ones(3), 40)
    prior = rng.random(3)
    new, (largest, total) = model.posterior(q, rates, prior)
    expected = naive_posterior(A, q, 0.7, prior, rates is RateModel.COMMON)
    np.testing.assert_allclose(new, expected, rtol=1e-10)
    assert (largest, total) == pytest.approx((np.abs(new - q).max(), np.abs(new - q).sum()))


def test_the_free_energy_of_certain_memberships_is_that_of_labels_and_mean_field_lowers_it(case):
    A, labels = case
    model = PlantedPartition(sp.csr_array(A), 0.7)
    shares = np.bincount(labels) / 40
    told = -40 * np.sum(shares * np.log(shares))
    certain = model.free_energy(np.eye(3)[labels])
    assert certain == pytest.approx(told - model.log_likelihood(labels, 3, RateModel.PER_CLUSTER))
    assert model.free_energy(model.mean_field(labels, 3, Stopping(200, 1e-10, 0.0))) <= certain


def test_mean_field_ends_at_a_fixed_point_near_the_planted_clusters():
    A, labels = planted_graph(200, 3, 14, 0.2)
    model = PlantedPartition(sp.csr_array(A), 1.0)
    told = []
    q = model.mean_field(labels, 3, Stopping(200, 1e-10, 0.0), lambda share: told.append(share))
    again, (largest, _) = model.posterior(q, RateModel.PER_CLUSTER, np.log(q.mean(axis=0) + 1e-12))
    assert largest < 1e-9
    assert np.mean(q.argmax(axis=1) == labels) > 0.95
    assert told == [(step + 1) / 200 for step in range(len(told))]
    assert len(told) < 200
    assert np.array_equal(again.argmax(axis=1), q.argmax(axis=1))


def test_a_true_answer_ends_mean_field(case):
    A, labels = case
    model = PlantedPartition(sp.csr_array(A), 1.0)
    one = model.mean_field(labels, 3, Stopping(1, 0.0, 0.0))
    np.testing.assert_array_equal(model.mean_field(labels, 3, Stopping(50, 0.0, 0.0), lambda share: True), one)


def test_empty_clusters_take_the_nodes_that_fit_least():
    labels, misfit = np.array([0, 0, 0, 2, 2]), np.array([0.1, 0.5, 0.2, 0.9, 0.8])
    filled, count = fill_empty_clusters(labels, 4, lambda _: misfit)
    assert count == 2
    assert filled.tolist() == [0, 3, 0, 1, 2]  # the last of cluster 2 stays, though it fits badly
    assert labels.tolist() == [0, 0, 0, 2, 2]


def test_a_label_has_the_largest_membership(case):
    A, labels = case
    model = PlantedPartition(sp.csr_array(A), 1.0)
    for rates in RateModel:
        found = model.with_posterior(labels, 3, rates)
        np.testing.assert_array_equal(found.memberships.argmax(axis=1), labels)
        np.testing.assert_allclose(found.memberships.sum(axis=1), 1.0)
