"""Points that are certified: restored into the cone, balanced, and never contradicted."""

import numpy as np
import pytest

import cvxnmf
import naive
from builders import point_in_cone, random_graph
from cvxnmf.convex import certify
from cvxnmf.convex.effects import balancing_effects
from cvxnmf.results import MatrixPoint


def test_gap_identity_of_the_kullback_leibler_dual():
    """Gap of any feasible pair = KL(Z || E) + <X, Y>."""
    A = random_graph(9, 2)
    for cone in ("conditional", "psd"):
        problem = cvxnmf.symmetric(A, cone=cone, trace=0.7)
        X = point_in_cone(problem, np.random.default_rng(0), 0.4)
        certificate = cvxnmf.certify(problem, X)
        Z, E = certificate.witness["Z"], np.exp(X)
        Y = Z - A + 0.7 * naive.penalty_matrix(cone, problem.metric)
        identity = np.sum(np.where(Z > 0, Z * np.log(np.where(Z > 0, Z, 1) / E), 0) - Z + E) + np.sum(X * Y)
        assert certificate.gap == pytest.approx(identity, rel=1e-10)


def test_a_point_outside_the_cone_is_restored():
    problem = cvxnmf.symmetric(random_graph(8, 0), cone="psd", metric="uniform")
    certificate = cvxnmf.certify(problem, -np.eye(8))
    assert certificate.restored
    assert certificate.value == pytest.approx(problem.value(np.zeros((8, 8))))
    assert not cvxnmf.certify(problem, np.eye(8)).restored


def test_the_papers_constraint_is_restored_too():
    problem = cvxnmf.symmetric(5 * np.ones((4, 4)), loss="mse-paper", cone="psd", metric="uniform")
    certificate = cvxnmf.certify(problem, np.eye(4))
    assert certificate.restored
    assert certificate.value == pytest.approx(problem.value(np.eye(4) + np.log(2.5)))


def test_rounding_does_not_count_as_outside():
    problem = cvxnmf.symmetric(random_graph(8, 0), cone="psd")
    solution = cvxnmf.solve(problem)
    assert not cvxnmf.certify(problem, solution.X - 1e-16).restored


def test_a_contradiction_is_loud_and_nothing_is_claimed():
    problem = cvxnmf.symmetric(random_graph(8, 0), cone="psd")
    dual = problem.components[0].dual_point(MatrixPoint(np.zeros((8, 8))))
    with pytest.warns(RuntimeWarning, match="report this as a bug"):
        certificate = certify.assemble(problem, 0.5 * dual.bound, [dual])
    assert (certificate.bound, certificate.kind) == (0.0, "zero")


def test_components_are_respected_when_a_solution_is_certified_elsewhere():
    A = np.kron(np.eye(2), random_graph(6, 0))
    solution = cvxnmf.solve(cvxnmf.symmetric(A))
    joint = cvxnmf.symmetric(A, trace=0.3)
    by_solution, by_matrix = cvxnmf.certify(joint, solution), cvxnmf.certify(joint, solution.X)
    assert by_solution.restored
    assert by_solution.value == by_matrix.value


def test_margins_are_matched_by_the_effects(karate):
    solution = cvxnmf.solve(cvxnmf.symmetric(karate, trace="auto"))
    np.testing.assert_allclose(np.exp(solution.X).sum(axis=1), karate.sum(axis=1), rtol=1e-10)


def test_balancing_effects_survive_absurd_points():
    problem = cvxnmf.symmetric(random_graph(9, 0))
    X = point_in_cone(problem, np.random.default_rng(0), 8.0)
    v = balancing_effects(problem.components[0].loss, problem.components[0].cone, X)
    np.testing.assert_allclose(np.exp(X + v[:, None] + v[None, :]).sum(axis=1), problem.A.sum(axis=1), rtol=1e-6)


def test_cut_off_entries_count_as_restored():
    problem = cvxnmf.symmetric(np.array([[1, 1, 0], [1, 1, 0.5], [0, 0.5, 1.0]]))
    certificate = cvxnmf.certify(problem, np.full((3, 3), -np.inf))
    assert certificate.restored
    assert np.isfinite(certificate.value)


def test_a_solution_of_another_problem_is_certified_as_a_matrix():
    A = random_graph(8, 0)
    solution = cvxnmf.solve(cvxnmf.symmetric(A))
    for other in (cvxnmf.symmetric(A, cone="psd"), cvxnmf.symmetric(A, loss="mse-paper")):
        certificate = cvxnmf.certify(other, solution)
        assert certificate.bound <= certificate.value
    with pytest.raises(ValueError, match="Solution of another problem"):
        cvxnmf.certify(cvxnmf.symmetric(random_graph(9, 0)), solution)


def test_infinite_values_have_infinite_gaps():
    problem = cvxnmf.symmetric(np.full((3, 3), 1e10), cone="psd", metric="uniform")
    for X in (np.full((3, 3), 1e300), np.diag([1e308, 1, 1]), np.full((3, 3), 800.0)):
        certificate = cvxnmf.certify(problem, X)
        assert certificate.value == certificate.relative_gap == np.inf
        assert certificate.check(problem.A) == certificate.bound


def test_zero_is_always_a_bound():
    problem = cvxnmf.symmetric(random_graph(6, 0), cone="psd")
    certificate = cvxnmf.certify(problem, 1e4 * np.eye(6))
    assert (certificate.value, certificate.bound, certificate.kind) == (np.inf, 0.0, "zero")
    assert certificate.check(problem.A) == 0.0
