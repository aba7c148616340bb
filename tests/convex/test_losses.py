import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from builders import random_counts
from cvxnmf.convex.losses import LOSSES, KullbackLeibler, LimitedSquaredError, SquaredError


def point(n, seed):
    X = np.random.default_rng(seed).normal(0, 1.5, (n, n))
    return (X + X.T) / 2


@pytest.mark.parametrize("name", ["kl", "mse"])
@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
def test_value_is_the_sum_of_the_formula(name, diagonal):
    A, X = random_counts(7, 0), point(7, 1)
    expected = sum(naive.LOSS[name](A[i, j], X[i, j]) for i, j in naive.entries(7, diagonal))
    loss = LOSSES[name](A, diagonal == "ignore")
    assert loss.value(X) == pytest.approx(expected, rel=1e-13)
    assert loss.value_and_gradient(X)[0] == loss.value(X)


@pytest.mark.parametrize("name", ["kl", "mse"])
@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
def test_gradient_and_curvature_have_taylor_slopes(name, diagonal):
    A, X, D = random_counts(7, 0), point(7, 1), point(7, 2)
    loss = LOSSES[name](A, diagonal == "ignore")
    gradient, curvature = loss.value_and_gradient(X)[1], loss.curvature(X)
    h = 1e-6
    slope = (loss.value(X + h * D) - loss.value(X - h * D)) / (2 * h)
    assert slope == pytest.approx(np.vdot(gradient, D), rel=1e-7)
    bend = (loss.value_and_gradient(X + h * D)[1] - loss.value_and_gradient(X - h * D)[1]) / (2 * h)
    np.testing.assert_allclose(bend, curvature * D, atol=1e-5)


@given(a=st.floats(0, 10), x=st.floats(-8, 3), w=st.floats(-10, 100), name=st.sampled_from(["kl", "mse"]))
def test_fenchel_young(a, x, w, name):
    assert naive.LOSS[name](a, x) + naive.conjugate(name, a, w) >= w * x - 1e-9 * (1 + abs(w * x))


@given(a=st.floats(1e-3, 10), x=st.floats(-8, 3), name=st.sampled_from(["kl", "mse"]))
def test_fenchel_young_is_tight_at_the_gradient(a, x, name):
    A, X = np.full((2, 2), a), np.full((2, 2), x)
    w = float(LOSSES[name](A).value_and_gradient(X)[1][0, 0])
    w = max(w, -float(LOSSES[name](A).floor()[0, 0]))
    assert naive.LOSS[name](a, x) + naive.conjugate(name, a, w) == pytest.approx(w * x, abs=1e-6 * (1 + abs(w * x)))


def test_the_gradient_never_leaves_the_domain_of_the_dual():
    A, X = random_counts(9, 3), point(9, 4) * 5
    for name in ("kl", "mse"):
        loss = LOSSES[name](A)
        assert (loss.value_and_gradient(X)[1] + loss.floor()).min() >= 0


def test_the_extension_is_never_below_the_true_squared_error():
    A, X = random_counts(9, 3), point(9, 4) * 3
    assert SquaredError(A).value(X) >= np.sum((np.exp(X) - A) ** 2)
    assert np.any(np.exp(X) < A / 2)


def test_minus_infinity_means_zero():
    A = np.array([[1.0, 0.0], [0.0, 2.0]])
    X = np.array([[0.0, -np.inf], [-np.inf, np.log(2.0)]])
    assert KullbackLeibler(A).value(X) == pytest.approx(0.0, abs=1e-15)
    assert KullbackLeibler(A).value(-np.inf * np.ones((2, 2))) == np.inf


def test_an_ignored_diagonal_does_not_drown_the_rest():
    A, X = random_counts(5, 0), point(5, 1)
    for name in ("kl", "mse"):
        loss = LOSSES[name](A, True)
        far = X + np.diag(np.full(5, 300.0))
        assert loss.value(far) == loss.value(X)


@pytest.mark.parametrize("ignore", [False, True])
def test_proximal_solves_its_scalar_problems(ignore):
    A, B = random_counts(6, 0), point(6, 1) * 6
    weights = np.exp(point(6, 2)[0])
    weight = np.outer(weights, weights)
    loss = LimitedSquaredError(A, ignore)
    with np.errstate(divide="ignore"):
        lower = loss.lower()
        expected = np.log(A / 2)
    if ignore:
        np.fill_diagonal(expected, -np.inf)
    np.testing.assert_allclose(lower, expected)
    X = loss.proximal(B, weight)
    np.testing.assert_allclose(loss.proximal(B, weight, near=point(6, 3)), X, rtol=1e-9)
    slope = 2 * np.exp(X) * (np.exp(X) - A)
    if ignore:
        np.fill_diagonal(slope, 0)
    slope += weight * (X - B)
    size = weight * (1 + np.abs(B)) + np.exp(2 * X)
    assert np.all(X >= lower)
    assert np.all(slope >= -1e-12 * size)
    assert np.all(slope[X > lower] <= 1e-10 * size[X > lower])


def test_lifting_effects_reach_the_limit_and_touch_only_nodes_below_it():
    rng = np.random.default_rng(4)
    A = random_counts(12, 5) + np.eye(12)
    loss = LimitedSquaredError(A)
    X = np.log(np.maximum(A, 1.0))
    np.testing.assert_array_equal(loss.lifting_effects(X), 0.0)
    X[:3, :3] -= rng.uniform(1.0, 5.0, size=(3, 3)) * (A[:3, :3] > 0)
    X = np.minimum(X, X.T)
    t = loss.lifting_effects(X)
    assert loss.lifting_direction(X + np.add.outer(t, t)).max() <= 1e-7
    assert not t[3:].any()
    direction = loss.lifting_direction(X)
    assert t.max() <= 0.5 * direction.max() ** 2 * (1 + 1e-12)
    assert loss.lifting_direction(X + np.outer(direction, direction)).max() <= 1e-7
