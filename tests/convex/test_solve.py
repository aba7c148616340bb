import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
import oracles
from builders import random_counts, random_graph, stored_graph
from cvxnmf import Status
from cvxnmf.convex.methods import METHODS, Accelerated, ProjectedGradient

TERMS = [{"trace": 0.0}, {"trace": 1.2}, {"trace": 1.2, "diagonal": "ignore"}]
CONES = ["conditional", "psd"]
FREE_METHODS = [name for name in METHODS if name != "splitting"]


def data(n, seed):
    return random_counts(n, seed) if n % 2 else random_graph(n, seed, weighted=n > 10)


def solved(problem, **options):
    solution = cvxnmf.solve(problem, **{"tol": 1e-7, "max_iter": 5000, **options})
    assert solution.status is Status.OPTIMAL
    return solution


@pytest.mark.parametrize("terms", TERMS, ids=str)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("n", [8, 11, 12])
def test_kl_agrees_with_clarabel(n, cone, terms):
    A = data(n, n)
    problem = cvxnmf.symmetric(A, cone=cone, **terms)
    expected = oracles.clarabel_kl(problem.A, cone, problem.metric, problem.trace, problem.statement.diagonal)
    assert solved(problem).value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("terms", TERMS, ids=str)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("n", [8, 11, 12])
def test_mse_agrees_with_full_rank_descent(n, cone, terms):
    A = data(n, n)
    problem = cvxnmf.symmetric(A, loss="mse", cone=cone, **terms)
    expected = oracles.full_rank_mse(problem.A, cone, problem.metric, problem.trace, problem.statement.diagonal)
    assert solved(problem).value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("terms", TERMS, ids=str)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("n", [8, 11])
def test_the_papers_mse_agrees_with_an_augmented_lagrangian(n, cone, terms):
    A = data(n, n)
    problem = cvxnmf.symmetric(A, loss="mse-paper", cone=cone, **terms)
    expected = oracles.full_rank_mse(problem.A, cone, problem.metric, problem.trace, problem.statement.diagonal, paper=True)
    solution = solved(problem)
    assert solution.value == pytest.approx(expected, rel=1e-6)
    off = ~np.eye(n, dtype=bool) if problem.statement.diagonal == "ignore" else np.ones((n, n), dtype=bool)
    assert np.all(2 * np.exp(solution.X)[off] >= problem.A[off] * (1 - 1e-12))


@pytest.mark.parametrize("method", FREE_METHODS)
@pytest.mark.parametrize("loss", ["kl", "mse"])
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("metric", ["degree", "uniform"])
def test_every_method_reaches_the_same_optimum(method, loss, cone, metric):
    A = random_counts(12, 4)
    problem = cvxnmf.symmetric(A, loss=loss, cone=cone, metric=metric, trace=0.8)
    best = solved(problem)
    solution = solved(problem, method=method, tol=1e-6, max_iter=2000)
    assert solution.value == pytest.approx(best.value, rel=2e-6)
    assert solution.certificate.relative_gap <= 1e-6
    np.testing.assert_array_equal(problem.A, A)


def test_without_momentum_acceleration_is_projected_gradient():
    component = cvxnmf.symmetric(random_counts(10, 0), trace=0.5).components[0]
    start = component.independent_model()
    plain, still = ProjectedGradient(component, start), Accelerated(component, start, momentum=False)
    still.shrink = plain.shrink
    for _ in range(15):
        plain.step()
        still.step()
        np.testing.assert_allclose(still.X, plain.X, atol=1e-13)


@pytest.mark.parametrize("method", ["projected-gradient", "factored"])
def test_values_never_rise(method):
    problem = cvxnmf.symmetric(random_counts(12, 1), trace=0.5)
    values = [iterate.value for iterate in solved(problem, method=method, tol=1e-6).history]
    assert np.all(np.diff(values) <= 1e-12 * values[0])


class TestTheorems:
    """docs/mathematics.md, "What must hold"."""

    @pytest.mark.parametrize("parts", [(3, 4), (2, 2, 3), (1, 1, 1, 1)])
    def test_complete_multipartite_graphs_have_no_positions(self, parts):
        A = nx.to_numpy_array(nx.complete_multipartite_graph(*parts))
        solution = solved(cvxnmf.symmetric(A))
        d = A.sum(axis=1)
        M = np.outer(d, d) / d.sum()
        expected = np.sum(A[A > 0] * np.log(A[A > 0] / M[A > 0])) - A.sum() + M.sum()
        assert solution.rank == 0
        assert solution.value == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("cone", CONES)
    @pytest.mark.parametrize("loss", ["kl", "mse", "mse-paper"])
    def test_the_exponential_of_a_psd_matrix_is_fitted_exactly(self, cone, loss):
        W = np.random.default_rng(0).normal(0, 0.7, (12, 3))
        A = np.exp(W @ W.T)
        solution = cvxnmf.solve(cvxnmf.symmetric(A, loss=loss, cone=cone), tol=1e-2)
        assert solution.value <= 1e-7 * solution.certificate.scale

    @pytest.mark.parametrize(("loss", "power"), [("kl", 1), ("mse", 2)])
    @pytest.mark.parametrize("factor", [1e-3, 50.0])
    def test_scaled_data_scale_the_value(self, loss, power, factor):
        A = random_graph(12, 3, weighted=True)
        once, scaled = (solved(cvxnmf.symmetric(c * A, loss=loss)) for c in (1.0, factor))
        assert scaled.value == pytest.approx(factor**power * once.value, rel=1e-6)

    def test_karate_in_the_papers_setting_and_on_the_conditional_cone(self, karate):
        paper = solved(cvxnmf.symmetric(karate, cone="psd", metric="uniform"))
        ours = solved(cvxnmf.symmetric(karate, metric="uniform", trace=0.0), tol=1e-5)
        assert paper.value == pytest.approx(977.07, abs=0.006)
        assert ours.value == pytest.approx(102.53, abs=0.006)

    def test_miserables(self, miserables):
        assert solved(cvxnmf.symmetric(miserables, cone="psd"), tol=1e-5).value == pytest.approx(5384, abs=0.5)
        assert solved(cvxnmf.symmetric(miserables), tol=1e-4).value == pytest.approx(594.8, abs=0.1)

    def test_two_components_joined_by_a_penalty(self):
        part = random_graph(5, 1)
        A = np.kron(np.eye(2), part)
        joint = solved(cvxnmf.symmetric(A, metric="uniform", trace=0.3)).value
        apart = 2 * solved(cvxnmf.symmetric(part, metric="uniform", trace=0.3)).value
        assert joint > 1.2 * apart

    def test_large_penalty_leaves_the_model_of_degrees(self, karate):
        d = karate.sum(axis=1)
        solution = solved(cvxnmf.symmetric(karate, trace=100.0))
        assert solution.rank == 0
        np.testing.assert_allclose(np.exp(solution.X), np.outer(d, d) / d.sum(), rtol=1e-8)


@pytest.mark.parametrize("name", ["karate", "miserables"])
def test_real_graphs_without_penalty_reach_the_default_tolerance(name, request):
    solution = cvxnmf.solve(cvxnmf.symmetric(request.getfixturevalue(name)))
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.relative_gap <= 1e-4


@pytest.mark.parametrize("name", ["polbooks", "football", "dolphins"])
def test_graphs_of_the_data_folder(name):
    A = nx.to_numpy_array(stored_graph(name), weight=None)
    for options in ({}, {"trace": "auto"}):
        solution = cvxnmf.solve(cvxnmf.symmetric(A, **options))
        assert solution.status is Status.OPTIMAL
        assert solution.certificate.check(A) == solution.certificate.bound


def test_components_and_empty_rows_are_solved_apart():
    parts = [random_graph(6, 1), random_counts(4, 2)]
    A = np.zeros((12, 12))
    A[:6, :6], A[7:11, 7:11] = parts
    A[11, 11] = 3.0
    problem = cvxnmf.symmetric(A)
    solution = solved(problem)
    expected = sum(solved(cvxnmf.symmetric(part)).value for part in parts)
    assert len(problem.components) == 3
    assert solution.value == pytest.approx(expected, rel=1e-6)
    X = solution.X
    assert np.all(X[6] == -np.inf)
    assert np.all(X[:6, 7:] == -np.inf)
    assert not np.isnan(X).any()
    assert X[11, 11] == pytest.approx(np.log(3.0))
    assert problem.value(X) == pytest.approx(solution.value, rel=1e-9)
    assert solution.certificate.check(A) == solution.certificate.bound
    assert cvxnmf.certify(problem, X).relative_gap <= 1e-6
    assert cvxnmf.certify(problem, solution).relative_gap <= 1e-6


def test_empty_rows_stay_on_the_psd_cone():
    A = np.zeros((7, 7))
    A[:6, :6] = random_graph(6, 1)
    solution = solved(cvxnmf.symmetric(A, cone="psd", metric="uniform"))
    assert np.isfinite(solution.X).all()
    assert solution.value > solved(cvxnmf.symmetric(A[:6, :6], cone="psd", metric="uniform")).value


def test_two_runs_are_bit_identical(karate):
    for method in FREE_METHODS:
        first, second = (cvxnmf.solve(cvxnmf.symmetric(karate, trace="auto"), method=method) for _ in range(2))
        np.testing.assert_array_equal(first.X, second.X)
        assert first.certificate.bound == second.certificate.bound
        assert [i.value for i in first.history] == [i.value for i in second.history]


def test_sparse_and_single_precision_are_the_same_problem(miserables):
    dense = cvxnmf.solve(cvxnmf.symmetric(miserables, trace="auto"))
    sparse = cvxnmf.solve(cvxnmf.symmetric(sp.csr_array(miserables), trace="auto"))
    np.testing.assert_array_equal(dense.X, sparse.X)
    rough = (miserables / 3).astype(np.float32)
    fine = cvxnmf.solve(cvxnmf.symmetric(miserables / 3, trace="auto"), tol=1e-6)
    single = cvxnmf.solve(cvxnmf.symmetric(rough, trace="auto"), tol=1e-6)
    assert single.X.dtype == np.float64
    assert single.value == pytest.approx(fine.value, rel=1e-5)


def test_relabelled_nodes_give_the_relabelled_solution(karate):
    order = np.random.default_rng(0).permutation(34)
    first = solved(cvxnmf.symmetric(karate, trace="auto"))
    second = solved(cvxnmf.symmetric(karate[np.ix_(order, order)], trace="auto"))
    assert second.value == pytest.approx(first.value, rel=1e-9)
    np.testing.assert_allclose(second.X, first.X[np.ix_(order, order)], atol=1e-4)


@pytest.mark.parametrize("cone", CONES)
def test_warm_starts_in_every_form_save_steps(cone):
    problem = cvxnmf.symmetric(random_counts(12, 4), cone=cone, trace=0.8)
    cold = solved(problem, method="projected-gradient", tol=1e-6)
    for start in (cold, cold.X, (cold.v, cold.W), [cold.v, cold.W]):
        warm = cvxnmf.solve(problem, method="projected-gradient", tol=1e-6, start=start)
        assert warm.n_iter < cold.n_iter
        assert warm.value == pytest.approx(cold.value, rel=2e-6)
    for poor in (np.full((12, 12), 900.0), np.full((12, 12), -1000.0), np.full((12, 12), -np.inf)):
        assert solved(problem, start=poor).value == pytest.approx(cold.value, rel=2e-6)


def test_a_conditional_solution_can_start_the_psd_problem():
    A = random_graph(9, 0)
    start = solved(cvxnmf.symmetric(A))
    problem = cvxnmf.symmetric(A, cone="psd")
    assert solved(problem, start=start).value == pytest.approx(solved(problem).value, rel=1e-6)


def test_path_is_warm_started_and_monotone(karate):
    problem = cvxnmf.symmetric(karate)
    traces = [9.0, "auto", 4.0, 1.0, 0.0]
    solutions = cvxnmf.path(problem, traces, tol=1e-5)
    assert [s.status for s in solutions] == [Status.OPTIMAL] * 5
    assert np.all(np.diff([s.value for s in solutions]) < 0)
    for trace, solution in zip(traces, solutions, strict=True):
        alone = cvxnmf.solve(problem.with_trace(trace), tol=1e-5)
        assert solution.value == pytest.approx(alone.value, rel=2e-5)


def test_history_and_callback_tell_the_same_story():
    seen = []
    solution = cvxnmf.solve(cvxnmf.symmetric(random_counts(10, 0)), method="accelerated", callback=seen.append)
    assert tuple(seen) == tuple(solution.history)
    assert [i.iteration for i in seen] == list(range(1, solution.n_iter + 1))
    assert np.all(np.diff([i.seconds for i in seen]) > 0)
    assert np.all(np.diff([i.bound for i in seen]) >= 0)
    assert all(i.gap >= -1e-12 * i.value for i in seen)
    assert seen[-1].rank >= 1
    assert solution.seconds >= seen[-1].seconds


def test_a_callback_can_stop_and_keeps_the_best_point():
    problem = cvxnmf.symmetric(random_counts(10, 0))
    solution = cvxnmf.solve(problem, method="projected-gradient", tol=0, callback=lambda iterate: iterate.iteration == 3)
    assert solution.status is Status.INTERRUPTED
    assert solution.n_iter == 3
    assert solution.certificate.bound <= solution.value == pytest.approx(problem.value(solution.X))


@pytest.mark.parametrize("answer", [True, 1, np.bool_(True)])
def test_any_true_answer_stops(answer):
    solution = cvxnmf.solve(cvxnmf.symmetric(random_counts(10, 0)), tol=0, callback=lambda iterate: answer)
    assert (solution.status, solution.n_iter) == (Status.INTERRUPTED, 1)


@pytest.mark.parametrize("copies", [1, 3])
def test_an_interrupt_ends_loops_and_loses_nothing(copies):
    def interrupt(iterate):
        if iterate.iteration == 12:
            raise KeyboardInterrupt

    A = np.kron(np.eye(copies), random_counts(10, 0))
    with pytest.raises(cvxnmf.Interrupted) as stop:
        cvxnmf.solve(cvxnmf.symmetric(A), method="projected-gradient", tol=0, callback=interrupt)
    solution = stop.value.solution
    assert isinstance(stop.value, KeyboardInterrupt)
    assert solution.status is Status.INTERRUPTED
    assert 0 <= solution.certificate.bound <= solution.value
    assert (solution.certificate.bound > 0) == (copies == 1)  # components not reached prove nothing yet
    assert solution.certificate.check(A) == solution.certificate.bound


def test_a_stopped_solve_still_certifies_all_components():
    A = np.kron(np.eye(2), random_graph(6, 0))
    problem = cvxnmf.symmetric(A)
    solution = cvxnmf.solve(problem, tol=0, callback=lambda iterate: True)
    assert solution.status is Status.INTERRUPTED
    assert solution.n_iter == 1
    assert 0 < solution.certificate.bound <= cvxnmf.certify(problem, solution).bound <= solution.value


def test_the_iteration_limit_is_kept():
    solution = cvxnmf.solve(cvxnmf.symmetric(random_counts(10, 0)), method="projected-gradient", tol=1e-9, max_iter=4)
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == 4
    assert solution.certificate.relative_gap > 1e-9


def test_an_unreachable_tolerance_stalls_instead_of_spinning():
    solution = cvxnmf.solve(cvxnmf.symmetric(random_counts(10, 0), trace=0.5), tol=0.0)
    assert solution.status is Status.STALLED
    assert solution.certificate.relative_gap <= 1e-10


def test_statuses_read_as_sentences():
    for status in Status:
        assert status.sentence.endswith(".")
        assert str(status) == f"{status.name}: {status.sentence}"


def test_a_solution_prints_itself(karate):
    solution = cvxnmf.solve(cvxnmf.symmetric(karate, trace="auto"))
    for word in ("34 nodes", "value", "proved bound", "relative gap", "1 step in", "OPTIMAL"):
        assert word in str(solution)
    assert "\n" not in repr(solution)
    assert solution == solution
    assert len({solution, solution}) == 1


class TestExactData:
    """Optimum zero: nothing but rounding is left of the value."""

    def test_gaussian_kernels_are_fitted_at_once(self):
        rng = np.random.default_rng(0)
        points = np.vstack([rng.normal(centre, 0.6, (20, 4)) for centre in (0, 2, 4)])
        distances = np.sum((points[:, None] - points[None]) ** 2, axis=2)
        for loss in ("kl", "mse"):
            solution = cvxnmf.solve(cvxnmf.symmetric(np.exp(-distances), loss=loss))
            assert solution.status is Status.OPTIMAL
            assert solution.n_iter <= 1

    def test_products_of_wide_range(self):
        rng = np.random.default_rng(3)
        rng.random(8)
        W = rng.normal(size=(8, 2))
        solution = cvxnmf.solve(cvxnmf.symmetric(np.exp(W @ W.T), cone="psd", metric="uniform"))
        assert solution.status is Status.OPTIMAL

    def test_values_never_round_below_zero(self):
        A = np.array([[1, 0.1], [0.1 + 1e-7, 1]], dtype=np.float32)
        u = np.random.default_rng(0).random(8)
        for data in (A, np.outer(u, u), np.diag([0.02932027988584751, 0, 0, 0])):
            certificate = cvxnmf.solve(cvxnmf.symmetric(data)).certificate
            assert certificate.gap >= 0
            assert certificate.check(data) == certificate.bound


@pytest.mark.parametrize("factor", [1e-12, 1e-6, 1e6, 1e12])
def test_the_scale_of_the_data_does_not_cost_steps(karate, factor):
    plain = cvxnmf.solve(cvxnmf.symmetric(karate))
    scaled = cvxnmf.solve(cvxnmf.symmetric(factor * karate))
    assert scaled.n_iter <= plain.n_iter + 2
    assert scaled.value == pytest.approx(factor * plain.value, rel=1e-4)


@pytest.mark.parametrize("factor", [1e-9, 1e-5, 1.0, 1e5])
@pytest.mark.parametrize("loss", ["kl", "mse"])
def test_an_ignored_diagonal_does_not_limit_the_scale(loss, factor):
    A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    trace = 0.1 * factor if loss == "kl" else 0.1 * factor**2
    problem = cvxnmf.symmetric(factor * A, loss=loss, metric="uniform", trace=trace, diagonal="ignore")
    solution = cvxnmf.solve(problem, tol=1e-5)
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize("trace", [0.0, 5.0])
def test_large_entries_under_the_papers_constraint(trace):
    A = np.random.default_rng(0).random((5, 5)) * 500 + 100
    solution = cvxnmf.solve(cvxnmf.symmetric(A + A.T, loss="mse-paper", cone="psd", trace=trace), max_iter=3000)
    assert solution.status is Status.OPTIMAL
