"""Nonsymmetric problems: value, optimum, certificate, noise edge, bad input."""

import dataclasses
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import cvxnmf
import naive
import oracles
from builders import count_table, wide_range_table
from tiers import slow_but

FORMS = [
    {"loss": "kl", "effects": True},
    {"loss": "kl", "effects": False},
    {"loss": "mse", "effects": True},
    {"loss": "mse", "effects": False},
    {"loss": "kl", "effects": False, "penalty": "paper"},
]
METHODS = ["adaptive", "splitting", "accelerated", "factored", "projected-gradient"]
#: The factored method takes thousands of steps on squared error.
LONG = [("factored", form) for form in FORMS if form["loss"] == "mse"]
PAIRS = [(method, form) for method in METHODS for form in FORMS]


def loss_of(name, A, X):
    return sum(naive.LOSS[name](a, x) for a, x in zip(A.ravel(), X.ravel(), strict=True))


def centre(X):
    return X - X.mean(axis=1, keepdims=True) - X.mean(axis=0, keepdims=True) + X.mean()


@pytest.mark.parametrize("form", FORMS[:4])
def test_the_value_is_the_formula(form):
    A, X = count_table(), np.random.default_rng(1).normal(0, 1, (12, 9))
    problem = cvxnmf.nonsymmetric(A, trace=1.5, **form)
    Q = centre(X) if form["effects"] else X
    expected = loss_of(form["loss"], A, X) + 2 * 1.5 * np.linalg.svd(Q, compute_uv=False).sum()
    assert problem.value(X) == pytest.approx(expected, rel=1e-12)


def test_the_papers_value_is_the_formula():
    A = count_table()
    W = np.random.default_rng(1).normal(0, 0.5, (21, 3))
    X = W @ W.T
    expected = loss_of("kl", A, X[:12, 12:]) + 1.5 * np.exp(np.diag(X)).sum()
    problem = cvxnmf.nonsymmetric(A, trace=1.5, effects=False, penalty="paper")
    assert problem.value(X) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_the_gradient_is_the_slope(form):
    A, rng = count_table(), np.random.default_rng(2)
    problem = cvxnmf.nonsymmetric(A, trace=1.5, **form)
    shape = (21, 21) if form.get("penalty") == "paper" else (12, 9)
    X, D = rng.normal(0, 1, shape), rng.normal(0, 1, shape)
    if shape == (21, 21):
        X, D = X + X.T, D + D.T
    h = 1e-6
    slope = (problem.value(X + h * D) - problem.value(X - h * D)) / (2 * h)
    assert np.vdot(problem.gradient(X), D) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("trace", [0.7, 4.0])
def test_the_optimum_is_the_oracles(form, trace):
    A = count_table(seed=3)
    problem = cvxnmf.nonsymmetric(A, trace=trace, **form)
    solution = cvxnmf.solve(problem, tol=1e-8, max_iter=20_000)
    expected = oracles.rectangular(A, trace=trace, **form)
    assert solution.status is cvxnmf.Status.OPTIMAL
    assert solution.value == pytest.approx(expected, rel=1e-6)
    assert solution.certificate.bound <= expected * (1 + 1e-7)
    assert solution.certificate.check(A) <= solution.value


@cache
def optimum(**form):
    """A close bound and value of the problem of the next test."""
    best = cvxnmf.solve(cvxnmf.nonsymmetric(count_table(seed=4), trace=2.0, **form), tol=1e-9, max_iter=20_000)
    return best.certificate.bound, best.value


@pytest.mark.parametrize(("method", "form"), slow_but([pair for pair in PAIRS if pair not in LONG], PAIRS))
def test_every_method_finds_the_optimum(form, method):
    A = count_table(seed=4)
    before = A.copy()
    problem = cvxnmf.nonsymmetric(A, trace=2.0, **form)
    assert set(METHODS) - set(problem.methods) == ({"splitting"} if form.get("penalty") == "paper" else set())
    solution = cvxnmf.solve(problem, method=method if method in problem.methods else "auto", tol=1e-6, max_iter=5000)
    bound, best = optimum(**form)
    assert solution.certificate.relative_gap <= 1e-6
    assert bound - 1e-12 * best <= solution.value <= best * (1 + 2e-6)
    assert np.array_equal(A, before)


@pytest.mark.parametrize("form", FORMS)
def test_value_and_point_belong_together(form):
    A = count_table(seed=5)
    problem = cvxnmf.nonsymmetric(A, trace=1.0, **form)
    solution = cvxnmf.solve(problem)
    if form.get("penalty") == "paper":
        value = problem.value(solution.W @ solution.W.T)
        assert solution.X.shape == A.shape
    else:
        value = problem.value(solution.X)
    assert solution.value == pytest.approx(value, rel=1e-10)
    again = cvxnmf.certify(problem, solution)
    assert again.value == pytest.approx(solution.value, rel=1e-12)
    assert again.relative_gap <= 1.1e-4


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(FORMS), st.floats(0.01, 50.0), st.floats(0.1, 6.0))
def test_a_bound_never_exceeds_a_value(seed, form, trace, spread):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 9, 2)
    A = count_table(int(m), int(n), seed)
    problem = cvxnmf.nonsymmetric(A, trace=trace, **form)
    shape = (m + n, m + n) if form.get("penalty") == "paper" else (m, n)
    X = rng.normal(0, spread, shape)
    if shape[0] == m + n:
        X = X + X.T
    certificate = cvxnmf.certify(problem, X)
    best = cvxnmf.solve(problem, tol=1e-5, max_iter=2000)
    assert certificate.bound <= best.value * (1 + 1e-12)
    assert best.certificate.bound <= certificate.value * (1 + 1e-12)
    assert certificate.check(A) <= certificate.value


class TestIdentities:
    """What the mathematics promises."""

    def test_above_gamma_max_the_model_is_the_independent_one(self):
        A = count_table()
        problem = cvxnmf.nonsymmetric(A, trace=(1.0 + 1e-6) * cvxnmf.nonsymmetric(A).gamma_max)
        solution = cvxnmf.solve(problem, tol=1e-9)
        assert solution.rank == 0
        np.testing.assert_allclose(np.exp(solution.X), np.outer(A.sum(1), A.sum(0)) / A.sum(), rtol=1e-12)

    @pytest.mark.parametrize("loss", ["kl", "mse"])
    @pytest.mark.parametrize("effects", [True, False])
    def test_just_below_gamma_max_a_direction_enters(self, loss, effects):
        A = count_table()
        top = cvxnmf.nonsymmetric(A, loss=loss, effects=effects).gamma_max
        for factor, rank in ((1.0001, 0), (0.98, 1)):
            problem = cvxnmf.nonsymmetric(A, loss=loss, effects=effects, trace=factor * top)
            assert cvxnmf.solve(problem, tol=1e-9).rank == rank

    def test_gamma_max_without_effects(self):
        A = count_table()
        assert cvxnmf.nonsymmetric(A, effects=False).gamma_max == pytest.approx(np.linalg.norm(A - 1, 2) / 2, rel=1e-10)

    def test_margins_agree_at_the_optimum(self):
        A = count_table()
        E = np.exp(cvxnmf.solve(cvxnmf.nonsymmetric(A, trace=1.0), tol=1e-9).X)
        np.testing.assert_allclose(E.sum(axis=0), A.sum(axis=0), rtol=1e-8)
        np.testing.assert_allclose(E.sum(axis=1), A.sum(axis=1), rtol=1e-8)

    def test_the_gap_of_the_kl_pair(self):
        """KL(Z||E) + 2 trace ||X||_* + <Y, X> with Y = Z - A."""
        A = count_table()
        problem = cvxnmf.nonsymmetric(A, trace=1.0)
        solution = cvxnmf.solve(problem, tol=1e-2)
        Z, X = solution.certificate.witness["Z"], solution.X
        E = np.exp(X)
        gap = np.sum(Z * np.log(Z / E) - Z + E) + 2 * np.linalg.svd(centre(X), compute_uv=False).sum() + np.vdot(Z - A, X)
        assert solution.certificate.gap == pytest.approx(gap, abs=1e-9 * A.sum())

    def test_the_block_problem_with_traces_of_the_logs_is_the_nuclear_norm(self):
        A = count_table(6, 5)
        nuclear = cvxnmf.solve(cvxnmf.nonsymmetric(A, trace=1.5, effects=False), tol=1e-9).value
        assert nuclear == pytest.approx(oracles.log_trace_blocks(A, 1.5), rel=1e-6)

    @pytest.mark.parametrize("loss", ["kl", "mse"])
    def test_transposed_data_give_the_transposed_solution(self, loss):
        A = count_table(14, 6)
        one = cvxnmf.solve(cvxnmf.nonsymmetric(A, loss=loss, trace=2.0), tol=1e-9)
        other = cvxnmf.solve(cvxnmf.nonsymmetric(A.T, loss=loss, trace=2.0), tol=1e-9)
        assert one.value == pytest.approx(other.value, rel=1e-8)
        np.testing.assert_allclose(np.exp(one.X), np.exp(other.X).T, atol=1e-3 * A.max())

    def test_same_input_same_bits(self):
        A = count_table()
        one, other = (cvxnmf.solve(cvxnmf.nonsymmetric(A, trace=1.0)) for _ in range(2))
        assert np.array_equal(one.W, other.W)


class TestNoise:
    """trace="auto": structure enters, noise does not."""

    def simulated(self, groups, seed, m=300, n=60, dispersion=1.0):
        rng = np.random.default_rng(seed)
        rates = rng.gamma(2, 1, (m, 1)) * rng.gamma(1, 1, (1, n))
        if groups:
            rates = rates * rng.gamma(0.5, 1, (groups, n))[rng.integers(0, groups, m)]
        A = dispersion * rng.poisson(6 * rates / dispersion)
        return A[np.ix_(A.any(axis=1), A.any(axis=0))].astype(float)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("dispersion", [1.0, 4.0])
    def test_no_direction_in_noise_and_the_right_number_in_groups(self, seed, dispersion):
        for groups, rank in ((0, 0), (4, 3)):
            A = self.simulated(groups, seed, dispersion=dispersion)
            problem = cvxnmf.nonsymmetric(A, trace="auto")
            residual = A - np.outer(A.sum(axis=1), A.sum(axis=0)) / A.sum()
            assert np.count_nonzero(np.linalg.svd(residual, compute_uv=False) > 2 * problem.trace) == rank
            assert rank <= cvxnmf.solve(problem, tol=1e-3).rank <= rank + (rank > 0)  # shrinkage may cost a direction more

    def test_scaling_the_data_scales_the_trace(self):
        A = self.simulated(3, 0)
        one, ten = (cvxnmf.nonsymmetric(c * A, trace="auto").trace for c in (1.0, 10.0))
        assert ten == pytest.approx(10.0 * one, rel=1e-9)

    def test_two_valued_data(self):
        A = (np.random.default_rng(0).random((200, 80)) < 0.3).astype(float)
        assert cvxnmf.solve(cvxnmf.nonsymmetric(A, trace="auto"), tol=1e-3).rank == 0


class TestData:
    """Shapes, types and empty rows."""

    def test_sparse_frames_and_lists_give_the_same(self):
        A = count_table()
        values = {
            cvxnmf.solve(cvxnmf.nonsymmetric(data, trace=2.0)).value for data in (A, sp.csr_array(A), A.tolist(), A.astype(int))
        }
        assert len(values) == 1

    def test_empty_rows_and_columns_are_set_aside_with_effects(self):
        A = count_table()
        padded = np.zeros((14, 11))
        padded[np.ix_(np.arange(1, 13), np.arange(2, 11))] = A
        solution = cvxnmf.solve(cvxnmf.nonsymmetric(padded, trace=2.0), tol=1e-7)
        assert solution.value == pytest.approx(cvxnmf.solve(cvxnmf.nonsymmetric(A, trace=2.0), tol=1e-7).value, rel=1e-6)
        assert np.all(np.exp(solution.X)[0] == 0)
        assert np.all(np.exp(solution.X)[:, :2] == 0)
        assert solution.certificate.check(padded) <= solution.value
        assert cvxnmf.certify(cvxnmf.nonsymmetric(padded, trace=2.0), solution.X).value == pytest.approx(solution.value, rel=1e-9)

    def test_empty_rows_count_without_effects(self):
        A = np.vstack([count_table(), np.zeros((1, 9))])
        solution = cvxnmf.solve(cvxnmf.nonsymmetric(A, trace=2.0, effects=False), tol=1e-6)
        assert np.isfinite(solution.X).all()
        assert solution.certificate.check(A) <= solution.value

    def test_a_warm_start_and_a_path(self):
        A = count_table()
        problem = cvxnmf.nonsymmetric(A, trace=2.0)
        first = cvxnmf.solve(problem, tol=1e-8)
        for start in (first, first.X, (first.v, first.W)):
            assert cvxnmf.solve(problem, tol=1e-6, start=start).n_iter <= 2
        ranks = [s.rank for s in cvxnmf.path(problem, [1e4, 8.0, 1.0])]
        assert ranks == sorted(ranks)
        assert ranks[0] == 0

    @pytest.mark.parametrize("loss", ["kl", "mse"])
    def test_a_path_carries_multipliers(self, loss):
        problem, traces = cvxnmf.nonsymmetric(wide_range_table(), loss=loss, trace=1.0), [4.0, 3.0]
        cold = [cvxnmf.solve(problem.with_trace(trace), tol=1e-3) for trace in traces]
        warm = cvxnmf.path(problem, traces, tol=1e-3)
        assert warm[1].n_iter < cold[1].n_iter
        for one, other in zip(warm, cold, strict=True):
            assert one.certificate.relative_gap <= 1e-3
            assert max(one.certificate.bound, other.certificate.bound) <= min(one.value, other.value)

    @pytest.mark.parametrize("loss", ["kl", "mse"])
    def test_alternating_directions_stay_at_a_solution(self, loss):
        problem = cvxnmf.nonsymmetric(wide_range_table(), loss=loss, trace=4.0)
        solution = cvxnmf.solve(problem, tol=1e-8)
        again = cvxnmf.solve(problem, method="splitting", tol=0.0, max_iter=1, start=solution)
        assert again.history[0].value == pytest.approx(solution.value, rel=1e-4)

    def test_the_certificate_survives_a_file_and_not_an_alteration(self, tmp_path):
        A = count_table()
        certificate = cvxnmf.solve(cvxnmf.nonsymmetric(A, trace=2.0)).certificate
        certificate.save(tmp_path / "proof.npz")
        loaded = cvxnmf.Certificate.load(tmp_path / "proof.npz")
        assert loaded.check(A) == certificate.bound
        Z = certificate.witness["Z"].copy()
        Z[0, 0] *= 1.01
        with pytest.raises(cvxnmf.CertificateError, match="margins"):
            dataclasses.replace(certificate, witness={"Z": Z}, digest="").check(A)
        with pytest.raises(cvxnmf.CertificateError):
            certificate.check(A + 1)

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ({"trace": -1.0}, "trace must be a finite number above 0"),
            ({"trace": 0.0}, "trace must be a finite number above 0"),
            ({"trace": "large"}, "trace must be 'auto' or a number"),
            ({"trace": "auto", "loss": "mse"}, "known for loss='kl' with effects only"),
            ({"trace": "auto", "effects": False}, "known for loss='kl' with effects only"),
            ({"trace": np.nan}, "trace must be a finite number"),
            ({"trace": 1e200}, "out of range"),
            ({"trace": 1e-170}, "out of range"),
            ({"loss": "mse-paper"}, "is not known; choose one of 'kl', 'mse'"),
            ({"penalty": "paper"}, "set effects=False"),
            ({"penalty": "l2"}, "penalty='l2' is not known"),
            ({"effects": "yes"}, "effects must be True or False"),
        ],
    )
    def test_bad_terms(self, arguments, sentence):
        with pytest.raises(ValueError, match=sentence):
            cvxnmf.nonsymmetric(count_table(), **arguments)

    @pytest.mark.parametrize(
        ("data", "sentence"),
        [
            (np.full((3, 4), np.nan), "NaN at row 0, column 0"),
            (-np.ones((3, 4)), "Negative values"),
            (np.zeros((3, 4)), "all zeros"),
            (np.ones(4), "two-dimensional"),
            (np.ones((1, 4)), "at least two rows and two columns"),
            (np.ones((3, 4)) * 1e120, "rescale"),
        ],
    )
    def test_bad_data(self, data, sentence):
        with pytest.raises(ValueError, match=sentence):
            cvxnmf.nonsymmetric(data)

    def test_noise_free_data_have_no_noise_edge(self):
        with pytest.raises(ValueError, match="finds no noise"):
            cvxnmf.nonsymmetric(np.outer([1.0, 2.0, 3.0], [1.0, 4.0, 2.0, 5.0]), trace="auto")

    def test_a_solution_of_other_data_is_refused(self):
        T = count_table()
        transposed, square = cvxnmf.solve(cvxnmf.nonsymmetric(T.T)), cvxnmf.solve(cvxnmf.sparse(T @ T.T))
        paper = cvxnmf.nonsymmetric(T, effects=False, penalty="paper")
        for problem in (cvxnmf.nonsymmetric(T), paper):
            for solution in (transposed, square):
                with pytest.raises(ValueError, match="start must be a Solution of this kind"):
                    cvxnmf.solve(problem, start=solution)
                with pytest.raises(ValueError, match="Solution of another problem"):
                    cvxnmf.certify(problem, solution)
        with pytest.raises(ValueError, match="whole block matrix"):
            paper.value(np.zeros(T.shape))
        assert not hasattr(paper, "gamma_max")

    def test_a_point_with_effects_is_restored_for_the_papers_penalty(self):
        T = count_table()
        paper = cvxnmf.nonsymmetric(T, effects=False, penalty="paper")
        certificate = cvxnmf.certify(paper, cvxnmf.solve(cvxnmf.nonsymmetric(T)))
        assert certificate.restored
        assert certificate.bound <= cvxnmf.solve(paper).value <= certificate.value

    def test_uneven_margins_converge(self):
        rng = np.random.default_rng(0)
        A = rng.poisson(np.exp(rng.normal(0, 1.2, (100, 1)) + rng.normal(0, 1.2, (1, 60)) - 1)).astype(float)
        for loss in ("kl", "mse"):
            solution = cvxnmf.solve(cvxnmf.nonsymmetric(A, loss=loss))
            assert solution.status is cvxnmf.Status.OPTIMAL

    def test_absurd_points_have_values_and_no_warnings(self):
        problem = cvxnmf.nonsymmetric(count_table())
        assert problem.value(np.full((12, 9), 1e300)) == np.inf
        with pytest.raises(ValueError, match="no gradient there"):
            problem.gradient(np.full((12, 9), -np.inf))

    def test_a_start_of_another_shape(self):
        with pytest.raises(ValueError, match="have shape"):
            cvxnmf.solve(cvxnmf.nonsymmetric(count_table()), start=np.zeros((9, 12)))
