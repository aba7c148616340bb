"""What the methods find on their way: residuals as dual points, descents over distances, splitting of rectangles."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import check_grad

import cvxnmf
from builders import count_table, random_counts, random_graph
from cvxnmf.convex import distances
from cvxnmf.convex.losses import LimitedSquaredError
from cvxnmf.convex.methods import Accelerated, DualAscent, Factored, LossSplitting
from cvxnmf.convex.methods.augmented import AugmentedSquaredError
from cvxnmf.convex.methods.laplacian import LaplacianDescent
from cvxnmf.convex.methods.schedules import FIRST_JUDGED, free_diagonal_schedule, symmetric_schedule
from cvxnmf.results import MatrixPoint, Point

KARATE = nx.to_numpy_array(nx.karate_club_graph(), weight=None)


@pytest.mark.parametrize("loss", ["kl", "mse"])
@pytest.mark.parametrize("form", [{"cone": "psd"}, {"cone": "psd", "trace": 1.0}, {"trace": 2.0}])
def test_residuals_prove_what_they_promise(loss, form):
    A = random_counts(14, 3) + 1.0
    problem = cvxnmf.symmetric(A, loss=loss, **form)
    (component,) = problem.components
    method = Accelerated(component, component.start())
    proved = []
    for _ in range(80):
        method.step()
        candidate = method.dual_candidate()
        if candidate is not None:
            dual = component.dual_point(method.point, candidate)
            assert dual.bound == pytest.approx(method.expected_bound, rel=1e-9)
            assert dual.bound <= method.value
            proved.append((method.value - dual.bound) / method.value)
    assert min(proved) <= 1e-5


def test_a_residual_outside_the_domain_is_no_candidate():
    (component,) = cvxnmf.symmetric(KARATE).components
    method = Accelerated(component, component.start())
    method.step()
    assert method.expected_bound == -np.inf
    assert method.dual_candidate() is None


@pytest.mark.parametrize("trace", [0.0, 0.7])
@pytest.mark.parametrize("loss", ["kl", "mse"])
def test_slopes_over_distances_are_derivatives(loss, trace):
    rng = np.random.default_rng(0)
    (component,) = cvxnmf.symmetric(random_counts(6, 1) + 0.5, loss=loss, trace=trace).components
    x = distances.from_point(Point(0.1 * rng.normal(size=6), 0.3 * rng.normal(size=(6, 3))))
    error = check_grad(
        lambda y: distances.slopes(component, y.reshape(x.shape))[0],
        lambda y: distances.slopes(component, y.reshape(x.shape))[1].ravel(),
        x.ravel(),
    )
    assert error <= 1e-5 * np.linalg.norm(distances.slopes(component, x)[1])
    np.testing.assert_allclose(distances.from_point(distances.to_point(x)), x, rtol=1e-12)


@pytest.mark.parametrize("loss", ["kl", "mse"])
def test_descents_over_distances_find_the_optimum(loss):
    problem = cvxnmf.symmetric(random_graph(18, 2), loss=loss)
    component = problem.components[0]
    best = cvxnmf.solve(problem, method="accelerated", tol=1e-6, max_iter=20_000).value
    method = LaplacianDescent(
        component, cvxnmf.solve(problem, method="accelerated", max_iter=3).point.restrict_to(component.nodes)
    )
    before = method.value
    for _ in range(12):
        method.step()
        method.settle()
        assert method.value <= before * (1 + 1e-12)
        before = method.value
    assert method.value == pytest.approx(best, rel=1e-4)


def test_sparse_graphs_leave_accelerated_steps_behind():
    (component,) = cvxnmf.symmetric(KARATE).components
    kinds = []
    for method in itertools.islice(symmetric_schedule(component, component.start()), FIRST_JUDGED + 2):
        kinds.append(type(method).__name__)
        method.step()
    assert kinds == ["Accelerated"] * FIRST_JUDGED + ["Factored", "LaplacianDescent"]


@pytest.mark.parametrize("graph", [nx.karate_club_graph(), nx.les_miserables_graph(), nx.path_graph(30)], ids=len)
def test_a_graph_without_a_penalty_needs_few_steps(graph):
    """Descents in the plain metric need 17 to 200 rounds of a hundred steps each on such graphs."""
    solution = cvxnmf.solve(cvxnmf.symmetric(nx.to_numpy_array(graph)), max_iter=30)
    assert solution.status is cvxnmf.Status.OPTIMAL


@pytest.mark.parametrize("loss", ["kl", "mse"])
@pytest.mark.parametrize("effects", [True, False])
def test_splitting_solves_rectangles_of_a_wide_range(loss, effects):
    rng = np.random.default_rng(3)
    A = rng.poisson(np.outer(60 / np.arange(1, 31), 1 / np.arange(1, 25))).astype(float)
    A = A[A.sum(axis=1) > 0][:, A.sum(axis=0) > 0]
    problem = cvxnmf.nonsymmetric(A, loss=loss, trace=0.5, effects=effects)
    solution = cvxnmf.solve(problem, method="splitting", tol=1e-3, max_iter=200)
    assert solution.status is cvxnmf.Status.OPTIMAL
    assert solution.certificate.check(A) == solution.certificate.bound


@pytest.mark.parametrize(
    ("loss", "cone", "trace", "most"),
    [
        ("kl", "conditional", 0.2, 60),
        ("kl", "conditional", 5.0, 30),
        ("mse", "conditional", 0.2, 60),
        ("mse-paper", "conditional", 0.2, 100),
        ("kl", "psd", 0.2, 150),
        ("mse", "psd", 1.0, 150),
        ("mse-paper", "psd", 1.0, 150),
    ],
)
def test_an_ignored_diagonal_under_a_small_trace_takes_few_steps(loss, cone, trace, most):
    A = cvxnmf.block_graph(60, 0.3, 0.7)[0].astype(float)
    problem = cvxnmf.symmetric(A, loss=loss, cone=cone, trace=trace, diagonal="ignore")
    solution = cvxnmf.solve(problem, max_iter=most)
    assert solution.status is cvxnmf.Status.OPTIMAL
    assert solution.certificate.check(problem.A) <= solution.value
    assert cvxnmf.solve(problem, start=solution, max_iter=most).n_iter < solution.n_iter


def test_alternating_directions_find_the_optimum_of_other_methods_without_a_diagonal():
    problem = cvxnmf.symmetric(random_graph(20, seed=3), trace=0.5, diagonal="ignore")
    values = [cvxnmf.solve(problem, method=method, tol=1e-7, max_iter=3000).value for method in ("splitting", "accelerated")]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_a_low_rank_without_a_diagonal_is_left_to_descents_over_factors():
    A = cvxnmf.block_graph(60, 0.1, 0.9)[0].astype(float)
    (component,) = cvxnmf.symmetric(A, trace=20.0, diagonal="ignore").components
    schedule = free_diagonal_schedule(component, component.start())
    next(schedule).step()
    assert isinstance(next(schedule), Factored)
    (component,) = cvxnmf.symmetric(A, trace=0.1, diagonal="ignore").components
    schedule = free_diagonal_schedule(component, component.start())
    next(schedule).step()
    assert isinstance(next(schedule), LossSplitting)


def test_dense_data_with_a_small_trace_are_left_to_accelerated_steps():
    (component,) = cvxnmf.symmetric(cvxnmf.block_graph(60, 0.3, 0.7)[0].astype(float), trace=0.2).components
    for method in itertools.islice(symmetric_schedule(component, component.start()), 12):
        method.step()
    assert isinstance(method, Accelerated)
    assert method.expected_bound > 0


def test_clipping_the_spectrum_proves_more_than_shrinking():
    problem = cvxnmf.nonsymmetric(count_table(30, 20, seed=2), loss="mse", trace=0.5)
    (component,) = problem.components
    method = LossSplitting(component, component.start())
    for _ in range(8):
        method.step()
    slope = component.balanced_gradient(MatrixPoint(component.cone.matrix(method.state.Y)))
    clipped = component.dual_point(method.point, slope.copy()).bound  # which overwrites it
    shrunk = component.loss.dual_value(slope * min(1.0, 2 * component.trace / np.linalg.norm(slope, 2)))
    assert shrunk < clipped <= method.value


@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_dual_ascent_reaches_the_optimum_of_splitting(l1):
    problem = cvxnmf.sparse(random_graph(16, 4, weighted=True), l1=l1)
    (component,) = problem.components
    best = cvxnmf.solve(problem, method="splitting", tol=1e-7, max_iter=5000)
    method = DualAscent(component, component.start())
    for _ in range(400):
        method.step()
        assert method.expected_bound <= best.value * (1 + 1e-12)
        assert method.value >= best.certificate.bound * (1 - 1e-12)
        assert component.contains(method.point.matrix)
    dual = component.dual_point(method.point, method.dual_candidate())
    assert dual.bound == pytest.approx(method.expected_bound, rel=1e-9)
    assert method.value - dual.bound <= 1e-4 * method.value


def test_an_augmented_lagrangian_keeps_the_limit_and_finds_the_optimum_of_splitting():
    problem = cvxnmf.symmetric(random_graph(14, 5, weighted=True), loss="mse-paper")
    assert problem.methods == ("factored", "splitting")
    found = cvxnmf.solve(problem, tol=1e-5)
    other = cvxnmf.solve(problem, method="splitting", tol=1e-4, max_iter=20_000)
    assert found.status is cvxnmf.Status.OPTIMAL
    assert np.all(np.exp(found.X) >= 0.5 * problem.A * (1 - 1e-12))
    assert other.certificate.bound <= found.value <= other.value
    assert found.certificate.check(problem.A) == found.certificate.bound


def test_the_augmented_loss_has_the_derivatives_it_says():
    rng = np.random.default_rng(1)
    loss = AugmentedSquaredError(LimitedSquaredError(random_counts(5, 2)))
    loss.renew(rng.normal(size=(5, 5)))
    X = rng.normal(size=(5, 5))
    error = check_grad(
        lambda x: loss.value(x.reshape(5, 5)), lambda x: loss.value_and_gradient(x.reshape(5, 5))[1].ravel(), X.ravel()
    )
    assert error <= 1e-5 * np.linalg.norm(loss.value_and_gradient(X)[1])
    assert loss.value_and_gradient(X)[0] == pytest.approx(loss.value(X), rel=1e-12)


@pytest.mark.parametrize("name", ["davis_southern_women", "karate_club"])
def test_directions_enter_under_the_papers_limit(name):
    A = nx.to_numpy_array(getattr(nx, f"{name}_graph")(), weight=None)  # a rank that is too low was never left on the first
    solution = cvxnmf.solve(cvxnmf.symmetric(A, "mse-paper"), tol=1e-4, max_iter=60)
    assert solution.certificate.relative_gap <= 1e-4


def test_the_papers_limit_on_heavy_tailed_weights_needs_few_steps():
    """When one entry below its limit raised all of X, this took more than three times as many."""
    weights = np.triu(np.random.default_rng(1).pareto(1.5, (60, 60)), 1)
    solution = cvxnmf.solve(cvxnmf.symmetric(weights + weights.T, "mse-paper"), tol=1e-4, max_iter=40)
    assert solution.certificate.relative_gap <= 1e-4


@pytest.mark.parametrize("loss", ["kl", "mse"])
def test_weights_of_a_wide_range_on_the_psd_cone_take_few_steps(loss):
    """Accelerated steps alone took hundreds for squared errors: their curvature spans the square of the range."""
    rng = np.random.default_rng(3)
    weights = np.triu((rng.random((60, 60)) < 0.2) * (rng.pareto(1.5, (60, 60)) + 1.0), 1)
    problem = cvxnmf.symmetric(weights + weights.T, loss, cone="psd", trace=0.5)
    solution = cvxnmf.solve(problem, tol=1e-4, max_iter=100)
    assert solution.certificate.relative_gap <= 1e-4


def test_multipliers_of_small_entries_under_the_papers_limit_grow_soon():
    """With a penalty by the entry alone this took more than 25 steps: entries far below their rows' size followed last."""
    rng = np.random.default_rng(1)
    weights = np.triu((rng.random((60, 60)) < 0.3) * np.exp(2.0 * rng.normal(size=(60, 60))), 1)
    solution = cvxnmf.solve(cvxnmf.symmetric(weights + weights.T, "mse-paper"), tol=1e-4, max_iter=25)
    assert solution.certificate.relative_gap <= 1e-4


def test_light_components_do_not_spoil_the_bound_of_heavy_ones_under_the_papers_limit():
    """Rows that do not quite sum to zero are balanced where that is cheap, not on the diagonal, which must not be negative."""
    rng = np.random.default_rng(7)
    A = np.zeros((80, 80))
    for first, scale in ((0, 0.1), (20, 1.0), (40, 10.0), (60, 100.0)):
        A[first : first + 20, first : first + 20] = scale * np.triu(
            (rng.random((20, 20)) < 0.3) * rng.uniform(0.1, 1.1, (20, 20)), 1
        )
    solution = cvxnmf.solve(cvxnmf.symmetric(A + A.T, "mse-paper", trace=2.0), max_iter=6)
    assert solution.certificate.bound >= 0.95 * solution.certificate.value  # it was half of it


@pytest.mark.parametrize("loss", ["kl", "mse-paper"])
def test_parts_of_a_disconnected_graph_take_as_few_steps_as_alone(loss):
    first, second = nx.relaxed_caveman_graph(4, 8, 0.2, seed=3), nx.barabasi_albert_graph(30, 2, seed=1)
    both = cvxnmf.symmetric(nx.to_numpy_array(nx.disjoint_union(first, second)), loss, metric="uniform")
    assert all(component.loss.A.flags.c_contiguous for component in both.components)
    alone = [cvxnmf.solve(cvxnmf.symmetric(nx.to_numpy_array(part), loss, metric="uniform")) for part in (first, second)]
    solution = cvxnmf.solve(both)
    assert solution.n_iter == sum(part.n_iter for part in alone)
    assert solution.certificate.relative_gap <= 1e-4


def test_a_metric_that_is_singular_by_rounding_becomes_its_diagonal():
    M = np.array([[2.9e11, 2.9e11, 0.0], [2.9e11, 2.9e11, 0.0], [0.0, 0.0, 175.0]])
    np.testing.assert_allclose(distances._inverse(M.copy()), np.diag(1 / M.diagonal()), rtol=1e-6)
    G = np.random.default_rng(0).standard_normal((6, 6))
    np.testing.assert_allclose(distances._inverse(G @ G.T + np.eye(6)), np.linalg.inv(G @ G.T + np.eye(6)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["kl", "mse", "mse-paper"])
def test_early_dual_points_of_an_ignored_diagonal_prove_something(loss):
    """Their rows must sum to zero to rounding; on sparse graphs scaling by turns does not get there."""
    A = nx.to_numpy_array(nx.les_miserables_graph())
    (component,) = cvxnmf.symmetric(A, loss=loss, trace=0.2, diagonal="ignore").components
    method = LossSplitting(component, component.start())
    for _ in range(12):
        method.step()
    dual = component.dual_point(method.point, method.dual_candidate())
    assert 0.5 * method.value < dual.bound <= method.value


def test_acceleration_takes_half_the_steps():
    problem = cvxnmf.symmetric(KARATE, cone="psd", trace=0.05, diagonal="ignore")
    (component,) = problem.components
    best = cvxnmf.solve(problem, tol=1e-8).value

    def steps(plain_steps):
        kind = type("Splitting", (LossSplitting,), {"plain_steps": plain_steps})
        method = kind(component, component.start())
        count = 0
        while method.distance > 1e-6 * best or count < 12:
            method.step()
            count += 1
        return count

    assert steps(LossSplitting.plain_steps) <= 0.7 * steps(10_000)
