"""The recursion and its pieces."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cvxnmf
import oracles
from builders import positive_symmetric, random_counts, random_graph
from cvxnmf.cp import recursion
from cvxnmf.cp.cliques import heavy_clique
from cvxnmf.cp.exp_factor import factor_point
from cvxnmf.cp.stages import CliqueStages, refit_stages
from cvxnmf.results import Point


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_refitted_weights_are_clarabels(seed):
    rng = np.random.default_rng(seed)
    A = positive_symmetric(7, seed)
    parts = [np.abs(rng.standard_normal((7, k))) for k in (1, 2, 1)]
    c = refit_stages(A, parts, np.ones((7, 7), dtype=bool))
    total = sum(w * (U @ U.T) for w, U in zip(c, parts, strict=True))
    assert c.min() >= 0
    assert np.all(total <= A * (1 + 1e-8))
    assert np.sum((A - total) ** 2) == pytest.approx(oracles.weights_below(A, parts), rel=1e-6)


def test_a_heavy_clique_is_a_clique():
    A = random_graph(30, 0)
    nodes = heavy_clique(A, 0.0, ignore_diagonal=True)
    assert A[np.ix_(nodes, nodes)].sum() == len(nodes) * (len(nodes) - 1)
    assert len(nodes) >= 5
    assert len(heavy_clique(A, 0.0, ignore_diagonal=False)) == 0


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (random_graph(20, 1), {}),
        (random_graph(20, 1, weighted=True), {}),
        (random_graph(12, 1, weighted=True), {"trace": 2.0}),
        (random_counts(15, 2), {}),
        (random_counts(15, 2), {"diagonal": "ignore"}),
        (positive_symmetric(10, 3), {"trace": 1.0}),
    ],
)
def test_residuals_stay_nonnegative_and_the_value_falls(data, options):
    before = data.copy()
    result = cvxnmf.recursive(data, n_stages=4, **options)
    assert np.array_equal(data, before)
    counted = np.ones(data.shape, dtype=bool)
    if options.get("diagonal") == "ignore" or not np.diag(data).any():
        np.fill_diagonal(counted, False)
    E = result.U @ result.U.T
    assert result.U.min() >= 0
    assert result.V is result.U
    assert np.all(E[counted] <= data[counted])
    assert result.value == pytest.approx(np.sum((data - E)[counted] ** 2), rel=1e-9)
    values = [np.sum(data[counted] ** 2)] + [line.value for line in result.history]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in zip(values, values[1:], strict=False))
    assert values[-1] < 0.9 * values[0]
    assert result.certificate.check(data if counted.all() else data * counted) <= result.value
    sizes = np.linalg.norm(result.U, axis=0)
    assert np.all(np.diff(sizes) <= 1e-12 * sizes[0])


def test_disjoint_cliques_are_found_exactly():
    A = nx.to_numpy_array(nx.disjoint_union(nx.complete_graph(5), nx.complete_graph(4)))
    result = cvxnmf.recursive(A, n_stages=2)
    assert result.value < 1e-15 * A.size
    assert result.status is cvxnmf.Status.CONVERGED
    assert sorted(np.count_nonzero(result.U, axis=0)) == [4, 5]


def test_nothing_left_is_said():
    A = nx.to_numpy_array(nx.complete_graph(4))
    result = cvxnmf.recursive(A, n_stages=3)
    assert result.status is cvxnmf.Status.CONVERGED
    assert result.message == "Stage 2 has nothing left to take: no two nodes have a positive residual."
    assert len(result.history) == 1


def test_a_stage_without_a_minimiser_ends_at_finite_effects():
    """Almost a star, with an ignored diagonal: the hub's effect could grow for ever."""
    A = np.array([[0, 1, 0.4], [1, 0, 1e-5], [0.4, 1e-5, 0]])
    result = cvxnmf.recursive(A, 1)
    assert np.isfinite(result.U).all()
    assert result.value < 0.01 * np.sum(A * A)


class StoppedStages(CliqueStages):
    """Ctrl-C while the second stage is looked for."""

    def next_stage(self, R, number):
        if number == 2:
            raise KeyboardInterrupt
        return super().next_stage(R, number)


def test_ctrl_c_keeps_the_stages():
    objective = recursion.SquaredError(random_graph(12, 0), ignore_diagonal=True)
    with pytest.raises(cvxnmf.Interrupted) as stopped:
        recursion._Recursion(objective, StoppedStages(objective.A, objective.counted, None)).run(4)
    assert stopped.value.solution.n_components == 1
    assert stopped.value.solution.status is cvxnmf.Status.INTERRUPTED


def test_the_bound_is_below_every_factorisation():
    A = random_counts(10, 0)
    result = cvxnmf.recursive(A, n_stages=3)
    assert 0 < result.certificate.bound <= result.value
    U = np.linalg.cholesky(A @ A / np.linalg.norm(A) + np.eye(10))
    U = np.abs(U)
    assert np.sum((A - U @ U.T) ** 2) >= result.certificate.bound


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_the_papers_form_reports_what_forbids_the_second_stage(loss):
    W = np.random.default_rng(0).normal(0, 0.5, (8, 2))
    A = np.exp(W @ W.T)
    with pytest.warns(UserWarning, match=r"Stage 2 is infeasible: the residual is \S+ at row \d+, column \d+"):
        result = cvxnmf.recursive(A, n_stages=3, loss=loss, form="paper")
    assert result.status is cvxnmf.Status.INFEASIBLE
    assert result.message.startswith("Stage 2 is infeasible")
    assert len(result.history) == 1
    assert result.value < 1e-4 * A.sum()


@pytest.mark.parametrize(
    ("A", "sentence"),
    [
        (random_graph(6, 0), "Stage 1 is infeasible: the residual is 0 at row 0, column 0"),
        (np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 1.0], [1.0, 1.0, 2.0]]), "the residual is 0 at row 0, column 1, where exp"),
        (np.array([[2.0, 0.1], [0.1, 2.0]]), "the residual is 0.1 at row 0, column 1, where exp"),
    ],
)
def test_the_papers_form_names_the_entry_of_the_first_stage(A, sentence):
    with pytest.warns(UserWarning, match=sentence):
        result = cvxnmf.recursive(A, form="paper")
    assert result.n_components == 0
    assert result.value == np.sum(A * A)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_stages": 0}, "n_stages must be an integer of at least 1"),
        ({"form": "greedy"}, "form='greedy' is not known"),
        ({"loss": "kl"}, "infinite wherever no stage covers"),
        ({"diagonal": "free"}, "diagonal='free' is not known"),
        ({"trace": -1.0}, "trace must be a finite number"),
        ({"form": "paper", "trace": 1.0}, "has no penalty"),
        ({"form": "paper", "diagonal": "ignore"}, "counts the diagonal"),
    ],
)
def test_bad_terms(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.recursive(random_counts(6, 0), **arguments)


def test_bad_data():
    with pytest.raises(ValueError, match="must be square"):
        cvxnmf.recursive(np.ones((3, 4)))
    with pytest.raises(ValueError, match="NaN"):
        cvxnmf.recursive(np.full((3, 3), np.nan))


def test_stages_with_a_trace_converge_on_dense_matrices():
    rng = np.random.default_rng(0)
    points = rng.normal([6.0, 3.0, 4.0, 1.0], 0.5, (50, 4)).clip(0.1)
    result = cvxnmf.recursive(points @ points.T, 3, trace=123.0)
    assert "stopped before" not in result.message
    assert len(result.history) == 3


def test_stages_of_a_middling_rank_need_few_columns():
    """A grid of rank 5 or 6 has tens of thousands of points, more than a stage may have columns."""
    rng = np.random.default_rng(0)
    point = Point(np.zeros(20), 0.5 * rng.normal(size=(20, 6)))
    U = factor_point(point, 1e-3)
    assert U.min() >= 0
    assert U.shape[1] <= 40
    E = np.exp(point.dense())
    assert np.linalg.norm(U @ U.T - E) <= 2e-3 * np.linalg.norm(E)
