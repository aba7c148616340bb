"""Update rules against their formulas and optimality conditions."""

import pkgutil
import re

import numpy as np
import pytest

from cvxnmf.nmf import updates
from cvxnmf.nmf.descent import classical_nmf
from cvxnmf.nmf.extrapolation import Extrapolation
from cvxnmf.nmf.factorize import factorize
from cvxnmf.nmf.losses import DivergenceObjective, QuadraticObjective
from cvxnmf.nmf.methods import METHODS
from cvxnmf.nmf.storage import storage_of
from cvxnmf.nmf.updates.hals import HALS, SETTLED, hals_sweeps
from cvxnmf.nmf.updates.kl_newton import KLNewton
from cvxnmf.nmf.updates.symmetric import symmetric_sweep_dense

RNG = np.random.default_rng(5)
COUNTS = RNG.poisson(1.5 * RNG.gamma(0.5, 1.0, (23, 3)) @ RNG.gamma(0.5, 1.0, (3, 17))).astype(float)
COUNTS[4, 5] += 1.0
SQUARE = COUNTS[:17] + COUNTS[:17].T
U0, V0 = 0.1 + RNG.random((23, 3)), 0.1 + RNG.random((17, 3))


def test_rows_do_not_depend_on_the_rows_beside_them():
    A, P = np.random.default_rng(0).random((100, 9)), np.random.default_rng(1).random((100, 5))
    Q, order = A[:30, :5].T @ A[:30, :5], np.random.default_rng(2).permutation(100)
    start = np.random.default_rng(3).random((100, 5))
    swept = hals_sweeps(start, P, Q, 6, SETTLED)
    np.testing.assert_array_equal(hals_sweeps(start[order], P[order], Q, 6, SETTLED), swept[order])


@pytest.mark.parametrize("k", range(1, 10))
def test_a_sweep_equals_its_formula(k):
    """Components are swept four at a time, and what is left of them."""
    rng = np.random.default_rng(k)
    V, start = rng.random((17, k)), rng.random((23, k))
    V[:, k // 2] *= k != 7  # a component of zeros stays
    Q, P = V.T @ V, COUNTS @ V
    X = start.copy()
    for column in np.flatnonzero(Q.diagonal()):
        X[:, column] = np.maximum(0.0, X[:, column] + (P[:, column] - X @ Q[:, column]) / Q[column, column])
    np.testing.assert_allclose(hals_sweeps(start, P, Q, 1, SETTLED), X, rtol=1e-11, atol=1e-13)


def test_a_symmetric_coordinate_is_at_its_minimum():
    """After one sweep over a single entry's coordinate, no other nonnegative value of it is better."""
    n, U = len(SQUARE), U0[:17]
    X = symmetric_sweep_dense(SQUARE, U, 0.0, 0.0)
    last = X.copy()

    def value(x):
        last[n - 1, 2] = x  # the coordinate that moved last
        return np.sum((SQUARE - last @ last.T) ** 2)

    best = value(X[n - 1, 2])
    assert all(value(x) >= best * (1 - 1e-12) for x in np.linspace(0.0, 5.0, 1001))


def test_least_squares_solves_for_its_factor():
    result = classical_nmf(COUNTS, 3, "als", init=(U0, V0), max_iter=1, tol=0.0)
    U, V = result.U, result.V
    gradient = V @ (U.T @ U) - COUNTS.T @ U  # the optimality conditions of V given U
    scale = np.abs(COUNTS.T @ U).max()
    assert gradient.min() >= -1e-10 * scale
    assert np.abs(gradient[V > 0]).max() <= 1e-10 * scale


def divergence_objective(k, dtype=np.float64, seed=4):
    rng = np.random.default_rng(seed)
    A, U, V = rng.poisson(3.0, (30, 17)).astype(dtype), rng.random((30, k)), rng.random((17, k))
    return DivergenceObjective(storage_of(A), V, 0.0, 0.0, 0.0), U


@pytest.mark.parametrize("k", [1, 2, 5, 6])
def test_newton_steps_lower_the_divergence_row_by_row(k):
    objective, U = divergence_objective(k)
    new = KLNewton(count=True).update(objective, U)
    assert objective.value(new) < objective.value(U)
    rows = DivergenceObjective(storage_of(objective.A.A[7:8]), objective.V, 0.0, 0.0, 0.0)
    np.testing.assert_allclose(KLNewton(count=True).update(rows, U[7:8]), new[7:8])


def test_counted_logarithms_are_those_of_the_new_point():
    objective, U = divergence_objective(5)
    new = KLNewton(count=True).update(objective, U)
    assert objective.logarithms is not None
    np.testing.assert_allclose(objective.logarithms[1], np.sum(objective.A.A * np.log(new @ objective.V.T)))


def test_a_newton_pair_is_exact_in_its_second_coordinate_where_one_entry_counts():
    A, V = np.array([[6.0]]), np.array([[1.0, 2.0]])
    new = KLNewton(count=False).update(DivergenceObjective(storage_of(A), V, 0.0, 0.0, 0.0), np.array([[2.0, 1.0]]))
    x = 2.0 + 1.5 * (1.5 - 1.0) / (6.0 / 16.0)  # N = 6/4, q = 6/16, S = 1
    w = x + 2.0
    y = 1.0 + (6.0 / w) * (12.0 / w - 2.0) / (24.0 / w**2)
    np.testing.assert_allclose(new, [[x, y]])


def test_newton_steps_in_single_precision_are_nearly_those_in_double():
    objective, U = divergence_objective(5)
    single, _ = divergence_objective(5, np.float32)
    new = KLNewton(count=True).update(single, U)
    assert new.dtype == np.float64
    np.testing.assert_allclose(new, KLNewton(count=True).update(objective, U), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("k", "loss"), [(5, "kl"), (36, "mse")])
def test_starts_that_race_in_single_precision_give_values_of_the_data(k, loss):
    rng = np.random.default_rng(8)
    A = rng.gamma(1.0, 1.0, (60, 5)) @ rng.gamma(1.0, 1.0, (5, 40)) + rng.gamma(1.0, 1.0, (60, 40))
    result = factorize(A, k, loss)
    model = result.U @ result.V.T
    expected = np.sum(A * np.log(A / model) - A + model) if loss == "kl" else np.sum((A - model) ** 2)
    np.testing.assert_allclose(result.value, expected, rtol=1e-9)


@pytest.mark.parametrize("k", [3, 8, 10, 33, 49, 64])
@pytest.mark.parametrize("l1", [0.0, 0.5])
def test_one_pass_is_products_sweeps_and_extrapolation(k, l1):
    """Blocks of rows of the pass end within the data."""
    rng = np.random.default_rng(k)
    A, U, last, V = rng.random((701, 97)), rng.random((701, k)), rng.random((701, k)), rng.random((97, k))
    new, ahead = np.empty_like(U), np.empty_like(U)
    rule, extrapolation = HALS(2), Extrapolation(wait=0, weight=0.6)
    products, gram = rule.one_pass(V, (l1, 0.25), extrapolation)(A, (U, last), (ahead, new))
    objective = QuadraticObjective(A @ V, V.T @ V, l1, 0.25, 0.0)
    np.testing.assert_allclose(new, rule.update(objective, U), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ahead, extrapolation.point(new, last), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(products, A.T @ ahead, rtol=1e-12)
    np.testing.assert_allclose(gram, ahead.T @ ahead, rtol=1e-12)


def test_sweeps_of_any_layout_are_the_same():
    rng = np.random.default_rng(0)
    X, P, V = rng.random((50, 7)), rng.random((50, 9)), rng.random((20, 7))
    swept = hals_sweeps(X, np.ascontiguousarray(P[:, :7]), V.T @ V, 3, SETTLED)
    np.testing.assert_array_equal(hals_sweeps(np.asfortranarray(X), P[:, :7], V.T @ V, 3, SETTLED), swept)


def test_a_start_of_any_layout_gives_the_same_factors():
    A, start = np.random.default_rng(1).random((60, 30)), (np.ones((60, 3)) + np.eye(60, 3), np.ones((30, 3)) + np.eye(30, 3))
    results = [classical_nmf(A, 3, init=tuple(np.array(X, order=order) for X in start), max_iter=9, tol=0.0) for order in "CF"]
    np.testing.assert_allclose(results[0].U, results[1].U, rtol=1e-9, atol=1e-12)


def test_methods_and_rules_are_named_where_people_look():
    assert [name for name in METHODS if f'"{name}"' not in classical_nmf.__doc__] == []
    families = {module.name for module in pkgutil.iter_modules(updates.__path__)} - {"rule"}
    assert [name for name in families if not re.search(rf"^{name} ", updates.__doc__, re.MULTILINE)] == []
