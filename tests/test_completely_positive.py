import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cvxnmf
from conftest import random_counts, random_graph

BOUNDARY = np.array(
    [[41, 43, 80, 56, 50], [43, 62, 89, 78, 51], [80, 89, 162, 120, 93], [56, 78, 120, 104, 62], [50, 51, 93, 62, 65.0]]
)


def measured(U, E):
    """Errors of a factor by the plain formulas."""
    difference = np.abs(U @ U.T - E)
    return np.max(difference / E), np.linalg.norm(difference) / np.linalg.norm(E)


def kept_promise(factor, X, tol):
    E = np.exp(X)
    assert factor.U.min() >= 0
    largest, frobenius = measured(factor.U, E)
    assert factor.max_relative_error == pytest.approx(largest, rel=1e-6, abs=1e-13)
    assert factor.frobenius_error == pytest.approx(frobenius, rel=1e-6, abs=1e-13)
    assert factor.max_relative_error <= tol


@pytest.mark.parametrize(("method", "counts"), [("lattice", {1e-2: 7, 1e-4: 11}), ("series", {1e-2: 27, 1e-4: 34})])
def test_columns_of_one_factor(method, counts):
    v = np.linspace(-2, 2, 200)
    X = np.outer(v, v)
    for tol, columns in counts.items():
        factor = cvxnmf.exp_factor(X, method=method, tol=tol)
        kept_promise(factor, X, tol)
        assert factor.U.shape[1] <= columns


@given(seed=st.integers(0, 10**6), rank=st.integers(1, 5), spread=st.sampled_from([0.05, 0.3, 0.6]))
@settings(max_examples=30, deadline=None)
def test_the_lattice_keeps_its_promise(seed, rank, spread):
    rng = np.random.default_rng(seed)
    W, v = rng.normal(0, spread, (12, rank)), rng.normal(0, 2, 12)
    X = W @ W.T + np.add.outer(v, v)
    kept_promise(cvxnmf.exp_factor(X, tol=0.05), X, 0.05)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_series_keeps_its_promise(rank):
    W = np.random.default_rng(rank).normal(0, 0.4, (15, rank))
    X = W @ W.T
    kept_promise(cvxnmf.exp_factor(X, method="series", tol=1e-2), X, 1e-2)


def test_fewer_columns_than_the_series_at_a_smaller_error():
    W = np.random.default_rng(0).normal(0, 0.5, (150, 3))
    X = W @ W.T
    lattice = cvxnmf.exp_factor(X, tol=1e-2)
    light = cvxnmf.exp_factor(X, tol=5e-3, reduce="weights")
    assert lattice.U.shape[1] <= 223
    assert light.U.shape[1] <= 223
    assert light.frobenius_error <= 0.0012
    series = cvxnmf.exp_factor(X, method="series", tol=0.1)
    assert lattice.max_relative_error < series.max_relative_error
    assert 10 * lattice.U.shape[1] < series.U.shape[1]


def test_far_groups_need_points_near_their_midpoints():
    """Two groups at -3 and 3: the products across the groups live around 0, where no row is."""
    w = np.concatenate([np.full(5, -3.0), np.full(5, 3.0)]) + np.linspace(-0.1, 0.1, 10)
    X = np.outer(w, w)
    kept_promise(cvxnmf.exp_factor(X, tol=1e-2), X, 1e-2)


def test_many_rows_keep_the_promise_too():
    W = np.random.default_rng(0).normal(0, 0.4, (400, 2))
    X = W @ W.T
    kept_promise(cvxnmf.exp_factor(X, tol=1e-2), X, 1e-2)


@pytest.mark.parametrize("loss", ["kl", "mse"])
@pytest.mark.parametrize("cone", ["conditional", "psd"])
def test_solutions_are_factored(loss, cone):
    A = random_counts(10, 0)
    solution = cvxnmf.solve(cvxnmf.symmetric(A, loss=loss, cone=cone, trace=2.0 if loss == "kl" else 6.0))
    assert 1 <= solution.rank <= 6
    kept_promise(cvxnmf.exp_factor(solution, tol=0.05), solution.X, 0.05)
    kept_promise(cvxnmf.exp_factor(solution.X, tol=0.05), solution.X, 0.05)


def test_components_and_empty_rows_have_separate_columns():
    A = np.zeros((11, 11))
    A[:5, :5], A[6:, 6:] = random_graph(5, 1), random_graph(5, 2)
    solution = cvxnmf.solve(cvxnmf.symmetric(A))
    factor = cvxnmf.exp_factor(solution, tol=0.1)
    E = np.exp(solution.X)
    assert factor.U.min() >= 0
    assert not factor.U[5].any()
    assert np.abs(factor.U @ factor.U.T - E)[E > 0].max() <= 0.1 * E.max()
    assert not (factor.U @ factor.U.T)[E == 0].any()


def test_kernels_get_nonnegative_features():
    points = np.random.default_rng(0).random((40, 2))
    distances = np.sum((points[:, None] - points[None]) ** 2, axis=2)
    kept_promise(cvxnmf.exp_factor(-distances, tol=1e-3), -distances, 1e-3)


def test_rank_two_pieces_or_a_sentence():
    w = np.linspace(-0.3, 0.3, 20)
    small = cvxnmf.exp_factor(np.outer(w, w), method="rank-two", tol=0.05)
    assert small.U.shape[1] == 2
    assert small.U.min() >= 0
    assert small.max_relative_error <= 0.05
    wide = np.linspace(-2, 2, 60)
    with pytest.warns(UserWarning, match="1 of 1 rank-two pieces have negative entries"):
        factor = cvxnmf.exp_factor(np.outer(wide, wide), method="rank-two", tol=0.05)
    kept_promise(factor, np.outer(wide, wide), 0.05)


def test_a_method_that_falls_short_says_so():
    W = np.random.default_rng(0).normal(0, 0.4, (20, 2))
    with pytest.warns(UserWarning, match="above tol"):
        factor = cvxnmf.exp_factor(W @ W.T, method="rank-two", tol=1e-6)
    assert factor.U.min() >= 0


def test_weights_lower_the_count_and_the_error():
    W = np.random.default_rng(0).normal(0, 0.5, (60, 4))
    plain = cvxnmf.exp_factor(W @ W.T, tol=0.1)
    light = cvxnmf.exp_factor(W @ W.T, tol=0.1, reduce="weights")
    assert light.U.shape[1] < plain.U.shape[1]
    assert light.frobenius_error < plain.frobenius_error


def test_caratheodory_keeps_the_product():
    W = np.random.default_rng(0).normal(0, 0.6, (4, 2))
    plain = cvxnmf.exp_factor(W @ W.T, tol=1e-6)
    few = cvxnmf.exp_factor(W @ W.T, tol=1e-6, reduce="caratheodory")
    assert plain.U.shape[1] > 10 >= few.U.shape[1]
    assert few.U.min() >= 0
    np.testing.assert_allclose(few.U @ few.U.T, plain.U @ plain.U.T, rtol=1e-9)


def test_high_rank_takes_its_centres_from_the_data():
    W = np.random.default_rng(0).normal(0, 0.25, (40, 9))
    factor = cvxnmf.exp_factor(W @ W.T, tol=0.1)
    assert factor.U.min() >= 0
    assert factor.frobenius_error <= 0.1


def test_rank_two_doubly_nonnegative_matrices_are_exact():
    rng = np.random.default_rng(0)
    for columns in (1, 2):
        C = rng.random((8, columns))
        C[3] = 0.0
        factor = cvxnmf.factor_rank_two(C @ C.T)
        assert factor.U.min() >= 0
        assert factor.U.shape[1] == 2
        np.testing.assert_allclose(factor.U @ factor.U.T, C @ C.T, atol=1e-13)


def test_matrices_beyond_rank_two_are_refused_honestly():
    C = np.abs(np.random.default_rng(0).standard_normal((6, 12)))
    for A in (BOUNDARY, C @ C.T):
        with pytest.raises(ValueError, match="rank above two"):
            cvxnmf.factor_rank_two(A)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        cvxnmf.factor_rank_two([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("X", "options", "sentence"),
    [
        (np.eye(3), {"method": "taylor"}, "'lattice', 'series', 'rank-two'"),
        (np.eye(3), {"tol": 0.0}, "tol must be a finite number above 0"),
        (np.eye(3), {"tol": np.nan}, "tol must be a finite number"),
        (np.eye(3), {"reduce": "more"}, "'weights', 'caratheodory'"),
        (np.eye(3), {"max_columns": 0}, "max_columns"),
        (-np.eye(3), {}, "not conditionally positive semidefinite"),
        (np.ones((2, 3)), {}, "it must be"),
        ([[0.0, -np.inf], [-np.inf, 0.0]], {}, "-inf entries"),
        ([[0.0, np.nan], [np.nan, 0.0]], {}, "NaN"),
        (None, {}, "must be"),
        (np.diag([3.0, 3, 3, 3, 3, 3]) * 20, {"tol": 1e-6, "max_columns": 100}, "columns, more than max_columns=100"),
    ],
)
def test_bad_input_gets_a_sentence(X, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.exp_factor(X, **options)


def test_a_factor_prints_itself():
    assert "columns" in repr(cvxnmf.exp_factor(np.eye(3)))
