import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
import naive
from builders import random_counts, random_graph


def point(n, seed):
    X = np.random.default_rng(seed).normal(0, 1.0, (n, n))
    return (X + X.T) / 2


@pytest.mark.parametrize("loss", ["kl", "mse", "mse-paper"])
@pytest.mark.parametrize("cone", ["conditional", "psd"])
@pytest.mark.parametrize("metric", ["degree", "uniform"])
@pytest.mark.parametrize(("trace", "diagonal"), [(0.0, "fit"), (1.7, "fit"), (1.7, "ignore")])
def test_value_and_gradient_are_the_formula(loss, cone, metric, trace, diagonal):
    A, X, D = random_graph(7, 0, weighted=True), point(7, 1), point(7, 2)
    problem = cvxnmf.symmetric(A, loss=loss, cone=cone, metric=metric, trace=trace, diagonal=diagonal)
    s = np.ones(7) if metric == "uniform" else naive.degree_metric(A)
    np.testing.assert_allclose(problem.metric, s, rtol=1e-14)
    assert problem.value(X) == pytest.approx(naive.value(loss, A, X, cone, s, trace, diagonal), rel=1e-12)
    slope = (problem.value(X + 1e-6 * D) - problem.value(X - 1e-6 * D)) / 2e-6
    assert slope == pytest.approx(np.vdot(problem.gradient(X), D), rel=1e-6)


def test_a_metric_of_ones_own():
    s = np.linspace(1, 2, 6)
    problem = cvxnmf.symmetric(random_graph(6, 0), metric=s, trace=1.0)
    np.testing.assert_array_equal(problem.metric, s)


def test_empty_rows_are_set_aside_on_the_conditional_cone_only():
    A = np.zeros((6, 6))
    A[:4, :4] = random_counts(4, 0)
    aside = cvxnmf.symmetric(A, trace=1.0)
    np.testing.assert_array_equal(aside.kept, np.arange(4))
    np.testing.assert_allclose(aside.metric[:4], naive.degree_metric(A[:4, :4]))
    assert not aside.metric[4:].any()
    assert len(cvxnmf.symmetric(A, cone="psd").kept) == 6


def test_components_are_split_only_without_a_penalty_on_the_conditional_cone():
    A = np.kron(np.eye(2), random_graph(5, 0))
    assert len(cvxnmf.symmetric(A).components) == 2
    assert len(cvxnmf.symmetric(A, trace=0.3).components) == 1
    assert len(cvxnmf.symmetric(A, cone="psd").components) == 1


def test_with_trace_changes_the_trace_alone():
    problem = cvxnmf.symmetric(random_graph(8, 0), trace=1.0)
    other = problem.with_trace(2.5)
    assert (other.trace, other.statement.loss, other.statement.cone) == (2.5, "kl", "conditional")
    np.testing.assert_array_equal(other.metric, problem.metric)
    assert problem.with_trace("auto").trace == cvxnmf.symmetric(random_graph(8, 0), trace="auto").trace


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factor", [1e-3, 7.0])
def test_automatic_trace_follows_the_scale_of_the_data(weighted, factor, miserables, karate):
    A = miserables if weighted else karate
    once, scaled = (cvxnmf.symmetric(c * A, trace="auto") for c in (1.0, factor))
    # s^2 scales as sqrt(c), so A - M in the metric, and with it the edge, scales as sqrt(c) too
    assert scaled.trace == pytest.approx(once.trace * np.sqrt(factor), rel=1e-9)


def test_automatic_trace_counts_planted_groups_with_unequal_weights():
    rng = np.random.default_rng(0)
    n, k = 300, 4
    labels = np.arange(n) % k
    chance = np.where(labels[:, None] == labels[None, :], 0.3, 0.04)
    A = np.triu((rng.random((n, n)) < chance) * rng.gamma(2.0, 2.0, (n, n)), 1)
    problem = cvxnmf.symmetric(A + A.T, trace="auto")
    assert cvxnmf.solve(problem).rank == k - 1


def test_automatic_trace_keeps_noise_out():
    rng = np.random.default_rng(0)
    A = np.triu(rng.poisson(0.5, (300, 300)), 1).astype(float)
    assert cvxnmf.solve(cvxnmf.symmetric(3.0 * (A + A.T), trace="auto")).rank == 0


@pytest.mark.parametrize("options", [{"loss": "mse"}, {"cone": "psd"}])
def test_automatic_trace_is_refused_where_it_is_not_known(options):
    with pytest.raises(ValueError, match="give trace as a number"):
        cvxnmf.symmetric(random_graph(6, 0), trace="auto", **options)


def test_a_star_with_free_diagonal_is_refused():
    star = np.zeros((5, 5))
    star[0, 1:] = star[1:, 0] = 1.0
    with pytest.raises(ValueError, match="every edge touches node 0"):
        cvxnmf.symmetric(star, trace=1.0, diagonal="ignore")
    assert cvxnmf.symmetric(star, trace=1.0, diagonal="ignore", cone="psd").trace == 1.0


@pytest.mark.parametrize(
    "container", [sp.csr_array, sp.coo_matrix, sp.csc_matrix, sp.lil_array, sp.dok_array, sp.bsr_array, list]
)
def test_any_container_gives_the_same_problem(container):
    A = random_graph(6, 0)
    given = A.tolist() if container is list else container(A)
    np.testing.assert_array_equal(cvxnmf.symmetric(given).A, A)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, bool])
def test_any_number_type_gives_the_same_problem(dtype):
    A = random_graph(6, 0)
    np.testing.assert_array_equal(cvxnmf.symmetric(A.astype(dtype)).A, A)


def test_data_are_copied():
    A = random_graph(6, 0)
    problem = cvxnmf.symmetric(A)
    A[0, 1] = 99.0
    assert problem.A[0, 1] != 99.0


def test_rounding_asymmetry_is_mended():
    A = random_counts(6, 0) / 3
    A[0, 1] *= 1 + 2e-16
    problem = cvxnmf.symmetric(A)
    np.testing.assert_array_equal(problem.A, problem.A.T)


def test_values_are_never_nan():
    A = random_graph(4, 0)
    for options in ({}, {"trace": 1.0}, {"cone": "psd", "trace": 1.0}, {"loss": "mse"}):
        problem = cvxnmf.symmetric(A, **options)
        holes = np.zeros((4, 4))
        holes[0, 0] = -np.inf
        for X in (np.full((4, 4), 1e308), np.full((4, 4), -np.inf), holes):
            assert not np.isnan(problem.value(X))
    assert cvxnmf.symmetric(A, cone="psd", trace=1.0).value(np.full((4, 4), -np.inf)) == np.inf
