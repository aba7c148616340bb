"""Update rules against their formulas and optimality conditions."""

import numpy as np

from cvxnmf.nmf.descent import classical_nmf
from cvxnmf.nmf.updates.hals import SETTLED, hals_sweeps
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


def test_a_sweep_equals_its_formula():
    Q, P = V0.T @ V0, COUNTS @ V0
    X = U0.copy()
    for column in range(3):
        X[:, column] = np.maximum(0.0, X[:, column] + (P[:, column] - X @ Q[:, column]) / Q[column, column])
    np.testing.assert_allclose(hals_sweeps(U0, P, Q, 1, SETTLED), X, rtol=1e-12, atol=1e-14)


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
