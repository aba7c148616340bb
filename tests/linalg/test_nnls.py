"""Nonnegative least squares by block principal pivoting."""

import numpy as np
import pytest
import scipy.optimize as so

from cvxnmf.linalg.nnls import nnls_rows


def problems(count=40, k=5, shared=True, seed=0):
    """Normal equations ``Q = HH'``, ``P = xH'`` and the solution of each row by an active-set method."""
    rng = np.random.default_rng(seed)
    H = rng.random((1 if shared else count, k, 15))
    X = rng.random((count, 15))
    expected = np.array([so.nnls(H[0 if shared else row].T, x)[0] for row, x in enumerate(X)])
    return H @ H.transpose(0, 2, 1), np.einsum("ri,rki->rk", X, np.broadcast_to(H, (count, k, 15))), expected


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("guess", ["none", "all", "wrong"])
def test_solutions_are_those_of_an_active_set_method(shared, guess):
    Q, P, expected = problems(shared=shared)
    positive = {"none": np.zeros(P.shape, dtype=bool), "all": np.ones(P.shape, dtype=bool), "wrong": expected <= 0}[guess]
    before = positive.copy()
    np.testing.assert_allclose(nnls_rows(Q, P, positive), expected, atol=1e-9)
    np.testing.assert_array_equal(positive, before)


@pytest.mark.parametrize("shared", [True, False])
def test_rows_that_cycle_are_finished_by_another_method(shared):
    Q, P, expected = problems(shared=shared)
    np.testing.assert_allclose(nnls_rows(Q, P, expected <= 0, pivots=1), expected, atol=1e-6)


def test_a_singular_matrix_is_regularised():
    Q, P, _ = problems(k=4)
    Q, P = np.tile(Q, (1, 2, 2)), np.tile(P, (1, 2))
    X = nnls_rows(Q, P, np.ones(P.shape, dtype=bool), regularise=True)
    gradient = X @ Q[0] - P
    assert X.min() >= 0
    assert gradient.min() >= -1e-9
    assert np.abs(gradient[X > 1e-9]).max() <= 1e-9


def test_nothing_to_solve():
    Q, P, _ = problems()
    assert nnls_rows(Q, P[:0], np.zeros((0, 5), dtype=bool)).shape == (0, 5)
    np.testing.assert_array_equal(nnls_rows(Q, -P, P > 0), 0.0)
