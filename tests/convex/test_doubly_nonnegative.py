"""The doubly nonnegative problem: optimum, certificate, exact restoration, bad input."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cvxnmf
import oracles
from builders import prove, random_counts, random_graph

BOUNDARY = [[41, 43, 80, 56, 50], [43, 62, 89, 78, 51], [80, 89, 162, 120, 93], [56, 78, 120, 104, 62], [50, 51, 93, 62, 65]]
WEIGHTS = [(0.0, 0.0), (0.5, 0.0), (0.0, 1.5), (0.7, 2.0)]


def is_exactly_psd(X):
    """Elimination in exact fractions: every pivot must be positive, or zero with a zero row."""
    rows = [[Fraction(float(x)) for x in row] for row in X]
    while rows:
        pivot, *rest = rows[0]
        if pivot < 0 or (pivot == 0 and any(rest)):
            return False
        rows = [[y - (row[0] * x / pivot if pivot else 0) for x, y in zip(rest, row[1:], strict=True)] for row in rows[1:]]
    return True


@pytest.mark.parametrize(("l1", "trace"), WEIGHTS)
@pytest.mark.parametrize("data", [random_graph(20, 0), random_counts(12, 1)])
def test_the_optimum_is_clarabels(data, l1, trace):
    solution = cvxnmf.solve(cvxnmf.sparse(data, l1, trace), tol=1e-7, max_iter=20_000)
    expected = oracles.clarabel_doubly_nonnegative(data, l1, trace)
    assert solution.value == pytest.approx(expected, rel=1e-6)
    assert solution.certificate.bound <= expected * (1 + 1e-7)
    assert solution.status is cvxnmf.Status.OPTIMAL
    assert solution.certificate.check(data) <= solution.value


@pytest.mark.parametrize(("l1", "trace"), WEIGHTS)
def test_the_solution_is_exactly_doubly_nonnegative_and_counted_there(l1, trace):
    A = random_graph(15, 3)
    problem = cvxnmf.sparse(A, l1, trace)
    solution = cvxnmf.solve(problem)
    X = solution.X
    assert X.min() >= 0
    assert np.array_equal(X, X.T)
    assert is_exactly_psd(X)
    expected = np.sum((A - X) ** 2) + l1 * X.sum() + trace * np.trace(X)
    assert solution.value == pytest.approx(expected, rel=1e-12)
    assert problem.value(X) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(solution.W @ solution.W.T, X, atol=1e-10)


def test_the_gap_identity():
    """gap = ||X - Z||^2 + 2 <X, S + N>, Z = B + S + N."""
    A = random_graph(12, 5)
    solution = cvxnmf.solve(cvxnmf.sparse(A, 0.3, 0.5), tol=1e-2)
    S, N, X = solution.certificate.witness["S"], solution.certificate.witness["N"], solution.X
    B = A - 0.15 - 0.25 * np.eye(12)
    gap = np.sum((X - B - S - N) ** 2) + 2 * np.sum(X * (S + N))
    assert solution.certificate.gap == pytest.approx(gap, rel=1e-6)


def test_without_penalties_the_bound_holds_for_every_symmetric_factorisation():
    A = random_graph(14, 7)
    bound = cvxnmf.solve(cvxnmf.sparse(A), tol=1e-6).certificate.bound
    rng = np.random.default_rng(0)
    for rank in (1, 3, 14, 40):
        U = np.abs(rng.standard_normal((14, rank))) / rank**0.5
        for _ in range(300):  # Ding's symmetric rule
            U *= 0.5 + 0.5 * (A @ U) / (U @ (U.T @ U) + 1e-12)
        assert np.sum((A - U @ U.T) ** 2) >= bound


def test_a_doubly_nonnegative_matrix_is_its_own_solution():
    for A in (np.array(BOUNDARY, dtype=float), (lambda C: C @ C.T)(np.abs(np.random.default_rng(0).normal(size=(6, 12))))):
        solution = cvxnmf.solve(cvxnmf.sparse(A), tol=1e-6)
        assert solution.value <= 1e-9 * np.sum(A * A)
        np.testing.assert_allclose(solution.X, A, rtol=1e-3)


def test_large_weights_leave_nothing():
    A = random_graph(8, 0)
    solution = cvxnmf.solve(cvxnmf.sparse(A, l1=10.0))
    assert solution.value == pytest.approx(np.sum(A * A), rel=1e-4)
    assert np.abs(solution.X).max() < 0.05


def test_more_weight_makes_more_zeros():
    A = random_graph(20, 2)
    zeros = [np.mean(cvxnmf.solve(cvxnmf.sparse(A, l1), tol=1e-6, max_iter=5000).X == 0) for l1 in (0.0, 0.3, 1.0)]
    assert zeros[0] < zeros[1] < zeros[2]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(0, 3), st.floats(0, 5), st.floats(0.01, 10))
def test_a_bound_never_exceeds_a_value(seed, l1, trace, spread):
    rng = np.random.default_rng(seed)
    A = random_graph(7, seed, weighted=True)
    problem = cvxnmf.sparse(A, l1, trace)
    X = rng.normal(0, spread, (7, 7))
    certificate = cvxnmf.certify(problem, X + X.T)
    solution = cvxnmf.solve(problem, tol=1e-5, max_iter=3000)
    assert certificate.restored or np.linalg.eigvalsh(X + X.T)[0] >= 0
    assert certificate.bound <= solution.value * (1 + 1e-12)
    assert solution.certificate.bound <= certificate.value * (1 + 1e-12)
    assert certificate.check(A) <= certificate.value


def test_certify_needs_nothing_but_the_point():
    A = random_graph(16, 4)
    problem = cvxnmf.sparse(A, 0.2)
    solution = cvxnmf.solve(problem, tol=1e-5, max_iter=5000)
    again = cvxnmf.certify(problem, solution.X)
    assert not again.restored
    assert again.value == solution.value
    assert again.relative_gap < 1e-3


def test_a_warm_start_is_never_worse():
    A = random_graph(16, 4)
    problem = cvxnmf.sparse(A, 0.2)
    solution = cvxnmf.solve(problem, tol=1e-6, max_iter=5000)
    for start in (solution, solution.X):
        assert cvxnmf.solve(problem, max_iter=1, start=start).value <= solution.value
    assert [s.status.name for s in cvxnmf.path(problem, [2.0, 0.0])] == ["OPTIMAL"] * 2


def test_the_certificate_survives_a_file_and_not_an_alteration(tmp_path):
    A = random_graph(10, 0)
    certificate = cvxnmf.solve(cvxnmf.sparse(A, 0.1)).certificate
    certificate.save(tmp_path / "proof.npz")
    assert cvxnmf.Certificate.load(tmp_path / "proof.npz").check(A) == certificate.bound
    for name, change in (("S", -1e-6), ("N", 1e-3)):
        witness = {key: value.copy() for key, value in certificate.witness.items()}
        witness[name] += change * np.eye(10)
        with pytest.raises(cvxnmf.CertificateError):
            dataclasses.replace(certificate, witness=witness, digest="").check(A)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"l1": -1.0}, "l1 must be a finite number of at least 0"),
        ({"trace": -1.0}, "trace must be a finite number of at least 0"),
        ({"trace": "auto"}, "not known for sparse problems"),
        ({"l1": np.nan}, "l1 must be a finite number"),
        ({"l1": 1e60}, "must not exceed"),
    ],
)
def test_bad_terms(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.sparse(random_graph(5, 0), **arguments)


def test_bad_data_and_points():
    with pytest.raises(ValueError, match=r"use cvxnmf\.nonsymmetric"):
        cvxnmf.sparse(np.ones((3, 4)))
    with pytest.raises(ValueError, match="NaN"):
        cvxnmf.sparse(np.full((3, 3), np.nan))
    problem = cvxnmf.sparse(random_graph(5, 0))
    with pytest.raises(ValueError, match="infinite entries"):
        problem.value(np.full((5, 5), -np.inf))
    with pytest.raises(ValueError, match="cannot solve this problem"):
        cvxnmf.solve(problem, method="factored")
    with pytest.raises(ValueError, match="must be"):
        cvxnmf.solve(problem, start=np.zeros((4, 4)))


def test_the_bound_is_summed_pairwise():
    """The optimum is exactly n^2 (c^2 - z^2), z = c - l1/2; a sum in sequence came out above it."""
    for n in (200, 300, 500):
        c, l1 = 1.7323608373256045, 0.0006438078010979979
        zero = np.zeros((n, n))
        terms = {"form": "doubly-nonnegative", "l1": l1, "trace": 0.0}
        bound = prove(np.full((n, n), c), "dual", terms, {"S": zero, "N": zero}).bound
        z = Fraction(c) - Fraction(l1) / 2
        assert Fraction(bound) <= n * n * (Fraction(c) ** 2 - z**2)


def test_tiny_data_are_not_certified():
    A = np.full((3, 3), 1e-160)
    terms = {"form": "doubly-nonnegative", "l1": 0.0, "trace": 0.0}
    with pytest.raises(cvxnmf.CertificateError, match="no bound is safe"):
        prove(A, "dual", terms, {"S": np.zeros((3, 3)), "N": np.zeros((3, 3))})


def test_solutions_of_other_problems_are_refused():
    A = random_graph(6, 0)
    log_solution = cvxnmf.solve(cvxnmf.symmetric(A))
    with pytest.raises(ValueError, match="Solution of another problem"):
        cvxnmf.certify(cvxnmf.sparse(A), log_solution)
    with pytest.raises(ValueError, match="Solution of another kind"):
        cvxnmf.solve(cvxnmf.sparse(A), start=log_solution)
    with pytest.raises(ValueError, match="Solution of another problem"):
        cvxnmf.certify(cvxnmf.symmetric(A), cvxnmf.solve(cvxnmf.sparse(A)))
