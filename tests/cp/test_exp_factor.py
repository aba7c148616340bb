import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cvxnmf
from builders import random_counts, random_graph
from cvxnmf.cp import lattice, reduction
from cvxnmf.cp.hadamard_exponential import Features, HadamardExponential
from cvxnmf.results import MatrixPoint, PairedPoint, Point, Solution, Status

BOUNDARY = np.array(
    [[41, 43, 80, 56, 50], [43, 62, 89, 78, 51], [80, 89, 162, 120, 93], [56, 78, 120, 104, 62], [50, 51, 93, 62, 65.0]]
)


def measured(factor, E):
    """Errors of a factor by the plain formulas."""
    difference = np.abs(factor.U @ factor.V.T - E)
    return np.max(difference / E), np.linalg.norm(difference) / np.linalg.norm(E)


def honest(factor, X):
    """U, V >= 0 and the stated errors are the measured ones."""
    assert factor.U.min() >= 0
    assert factor.V.min() >= 0
    largest, frobenius = measured(factor, np.exp(X))
    assert factor.max_relative_error == pytest.approx(largest, rel=1e-6, abs=1e-12)
    assert factor.frobenius_error == pytest.approx(frobenius, rel=1e-6, abs=1e-12)


def kept_promise(factor, X, tol):
    honest(factor, X)
    assert factor.max_relative_error <= tol


def solution_at(point, groups=None):
    """A solution that holds a given point; exp_factor never looks at its certificate."""
    return Solution(point, Status.OPTIMAL, None, (), 0, 0.0, groups)


def paired(m, n, rank, seed=0, spreads=(0.4, 0.4), effects=1.0):
    """A rectangular solution with random positions away from the origin."""
    rng = np.random.default_rng(seed)
    W = np.vstack([rng.normal(1.0, spreads[0], (m, rank)), rng.normal(-0.5, spreads[1], (n, rank))])
    return solution_at(PairedPoint(rng.normal(0, effects, m + n), W, m))


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
    factor = cvxnmf.exp_factor(X, tol=0.05)
    assert factor.V is factor.U
    kept_promise(factor, X, 0.05)


@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 14), st.integers(1, 14)),
    rank=st.integers(1, 5),
    spreads=st.tuples(*[st.sampled_from([0.05, 0.3, 0.5])] * 2),
)
@settings(max_examples=30, deadline=None)
def test_the_lattice_keeps_its_promise_for_rectangles(seed, shape, rank, spreads):
    solution = paired(*shape, rank, seed, spreads, effects=2.0)
    kept_promise(cvxnmf.exp_factor(solution, tol=0.05), solution.X, 0.05)


@given(seed=st.integers(0, 10**6), rank=st.integers(1, 4), symmetric=st.booleans())
@settings(max_examples=20, deadline=None)
def test_weights_keep_their_promise(seed, rank, symmetric):
    solution = paired(12, 9, rank, seed)
    X = solution.point.W @ solution.point.W.T if symmetric else solution.X
    plain, light = (cvxnmf.exp_factor(X if symmetric else solution, tol=0.05, reduce=how) for how in (None, "weights"))
    honest(light, X)
    assert light.frobenius_error <= min(0.05, plain.frobenius_error + 1e-6)
    assert light.U.shape[1] <= plain.U.shape[1]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_series_keeps_its_promise_for_rectangles(rank):
    solution = paired(15, 10, rank)
    kept_promise(cvxnmf.exp_factor(solution, method="series", tol=1e-2), solution.X, 1e-2)


def test_positions_of_both_halves_may_be_moved_and_stretched():
    """Only W_1 W_2' matters: offsets become effects, and scales of the halves cancel."""
    near = paired(30, 20, 2)
    a, b, W_1, W_2 = near.v[:30], near.v[30:], near.W[:30], near.W[30:]
    stretch = np.array([1e3, 1e-2])
    point = PairedPoint(np.concatenate([a - W_1 @ [3, 4], b + 7]), np.vstack([W_1 * stretch, (W_2 + [3, 4]) / stretch]), 30)
    factors = [cvxnmf.exp_factor(solution) for solution in (near, solution_at(point))]
    kept_promise(factors[1], point.dense(), 1e-2)
    assert factors[0].U.shape == factors[1].U.shape


def test_a_rectangle_with_both_halves_alike_needs_no_more_columns_than_the_square():
    W = np.random.default_rng(0).normal(0, 0.4, (40, 3))
    solution = solution_at(PairedPoint(np.zeros(80), np.vstack([W, W]), 40))
    square = solution_at(Point(np.zeros(40), W))
    assert cvxnmf.exp_factor(solution).U.shape[1] == cvxnmf.exp_factor(square).U.shape[1]


def test_dropped_rows_and_columns_are_zero():
    whole = paired(12, 8, 2)
    v, W = whole.v.copy(), whole.W.copy()
    v[[2, 5, 14]], W[[2, 5, 14]] = -np.inf, 0.0
    factor = cvxnmf.exp_factor(solution_at(PairedPoint(v, W, 12)), tol=1e-2)
    assert not factor.U[[2, 5]].any()
    assert not factor.V[2].any()
    rows, columns = np.delete(np.arange(12), [2, 5]), np.delete(np.arange(8), 2)
    E = np.exp(whole.X[np.ix_(rows, columns)])
    np.testing.assert_allclose((factor.U @ factor.V.T)[np.ix_(rows, columns)], E, rtol=1e-2)
    assert factor.frobenius_error <= 1e-2
    empty = cvxnmf.exp_factor(solution_at(PairedPoint(np.full(5, -np.inf), np.zeros((5, 1)), 3)))
    assert (empty.U.shape, empty.V.shape, empty.frobenius_error) == ((3, 0), (2, 0), 0.0)


def test_groups_of_a_rectangle_have_separate_columns():
    whole = paired(6, 5, 1)
    groups = np.array([0, 0, 0, 1, 1, 2, 0, 0, 1, 1, -1])
    factor = cvxnmf.exp_factor(solution_at(whole.point, groups))
    product, together = factor.U @ factor.V.T, groups[:6, None] == groups[None, 6:]
    np.testing.assert_allclose(product[together], np.exp(whole.X)[together], rtol=1e-2)
    assert not product[~together].any()


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


def test_weights_at_rank_five():
    """No more columns and no larger error than measured when the reduction was first tried, 251 and .0073."""
    W = np.random.default_rng(0).normal(0, 0.3, (100, 5))
    light = cvxnmf.exp_factor(W @ W.T, tol=0.05, reduce="weights")
    assert light.U.shape[1] <= 251
    assert light.frobenius_error <= 0.0073


@pytest.mark.parametrize("exchanges", [0, 300])
@pytest.mark.parametrize("columns", [3, 30, 80])
def test_nonnegative_least_squares_is_optimal(columns, exchanges):
    """Also by the slower method: weights >= 0, no descent direction, and none along the positive weights."""
    rng = np.random.default_rng(columns)
    F = np.abs(rng.standard_normal((60, columns)))
    F /= np.linalg.norm(F, axis=0)
    H, b = (F.T @ F) ** 2 + 1e-12 * np.eye(columns), rng.random(columns)
    c = reduction.nonnegative_least_squares(H, b, exchanges)
    slope = H @ c - b
    assert c.min() >= 0
    assert slope.min() >= -1e-8
    assert np.abs(c * slope).max() <= 1e-8


def test_weights_survive_columns_that_are_the_same():
    half = Point(np.zeros(10), np.linspace(-1, 1, 10)[:, None])
    both = HadamardExponential(half, half)
    once = lattice.lattice_features(both, 0.1, 100)
    doubled = np.repeat(once.left, 3, axis=1)
    light = reduction.refit_weights(both, Features(doubled, doubled))
    expected = reduction.refit_weights(both, once)
    np.testing.assert_allclose(light.left @ light.right.T, expected.left @ expected.right.T, rtol=1e-5)


def test_a_rectangle_needs_no_more_columns_than_its_smaller_side():
    for shape in ((20, 6), (6, 20)):
        solution = paired(*shape, 3)
        plain, few = (cvxnmf.exp_factor(solution, reduce=how) for how in (None, "caratheodory"))
        assert few.U.shape[1] == few.V.shape[1] == 6 < plain.U.shape[1]
        np.testing.assert_allclose(few.U @ few.V.T, plain.U @ plain.V.T, rtol=1e-12)
    small = paired(9, 8, 1)
    assert cvxnmf.exp_factor(small, reduce="caratheodory").U.shape == cvxnmf.exp_factor(small).U.shape


def test_caratheodory_keeps_the_product():
    W = np.random.default_rng(0).normal(0, 0.6, (4, 2))
    plain = cvxnmf.exp_factor(W @ W.T, tol=1e-6)
    few = cvxnmf.exp_factor(W @ W.T, tol=1e-6, reduce="caratheodory")
    assert plain.U.shape[1] > 10 >= few.U.shape[1]
    assert few.U.min() >= 0
    np.testing.assert_allclose(few.U @ few.U.T, plain.U @ plain.U.T, rtol=1e-9)


@pytest.mark.parametrize(("tol", "columns", "seed"), [(0.1, 12, 0), (0.01, 30, 0), *((0.001, 60, seed) for seed in range(5))])
def test_high_rank_takes_its_centres_from_the_data(tol, columns, seed):
    W = np.random.default_rng(seed).normal(0, 0.25, (40, 9))
    factor = cvxnmf.exp_factor(W @ W.T, tol=tol)
    honest(factor, W @ W.T)
    assert factor.frobenius_error <= tol
    assert factor.U.shape[1] <= columns


def test_high_rank_does_not_forget_small_rows():
    """Effects over four orders of magnitude: the norm alone would see only the largest rows."""
    rng = np.random.default_rng(0)
    W, v = rng.normal(0, 0.25, (60, 8)), np.linspace(-5, 5, 60)
    X = W @ W.T + np.add.outer(v, v)
    factor = cvxnmf.exp_factor(X, tol=1e-2)
    honest(factor, X)
    assert factor.frobenius_error <= 1e-2
    assert factor.max_relative_error <= 0.2


def test_high_rank_rectangles():
    solution = paired(80, 50, 9, spreads=(0.2, 0.5))
    factor = cvxnmf.exp_factor(solution, tol=1e-2)
    honest(factor, solution.X)
    assert factor.frobenius_error <= 1e-2
    assert factor.U.shape[1] < 50


@pytest.mark.parametrize("shape", [(30, 9), (9, 30)])
def test_a_rectangle_of_full_rank_is_its_own_factor(shape):
    solution = paired(*shape, 8)
    factor = cvxnmf.exp_factor(solution, tol=1e-8)
    kept_promise(factor, solution.X, 1e-12)
    assert factor.U.shape[1] == 9


def test_high_rank_refuses_too_many_columns():
    W = np.random.default_rng(0).normal(0, 0.4, (60, 8))
    with pytest.raises(ValueError, match="columns, more than max_columns=20"):
        cvxnmf.exp_factor(W @ W.T, tol=1e-3, max_columns=20)


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


def test_products_of_nonnegative_matrices_are_factored_or_refused():
    """A matrix with explicit nonnegative factors need not have a logarithm in the cone; then exp_factor says so."""
    C = np.abs(np.random.default_rng(0).standard_normal((6, 12)))
    with pytest.raises(ValueError, match="not conditionally positive semidefinite"):
        cvxnmf.exp_factor(np.log(BOUNDARY))
    X = np.log(C @ C.T)
    kept_promise(cvxnmf.exp_factor(X, tol=1e-2), X, 1e-2)


def test_what_cannot_be_factored_says_why():
    with pytest.raises(ValueError, match="no logarithm"):
        cvxnmf.exp_factor(solution_at(MatrixPoint(np.eye(3))))
    with pytest.raises(ValueError, match="for symmetric solutions"):
        cvxnmf.exp_factor(paired(5, 4, 2), method="rank-two")


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


@pytest.mark.parametrize("largest", [1e300, 1e3])
def test_exponentials_that_overflow_are_refused(largest):
    with pytest.raises(ValueError, match="overflows"):
        cvxnmf.exp_factor(np.full((2, 2), largest))
