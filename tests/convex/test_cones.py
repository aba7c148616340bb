import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from builders import random_symmetric
from cvxnmf.convex.cones import CONES, PSD, ConditionallyPSD
from cvxnmf.results import Point


def metric(n, seed):
    return np.exp(np.random.default_rng(seed).normal(0, 0.7, n))


def distance(s, X):
    return np.linalg.norm(np.outer(s, s) * X)


def member(cone, n, seed):
    rng = np.random.default_rng(seed)
    v = rng.standard_normal(n) if cone == "conditional" else np.zeros(n)
    return Point(v, rng.standard_normal((n, 3))).dense()


@pytest.mark.parametrize("threshold", [0.0, 1.3])
def test_conditional_projection_equals_the_householder_twin(threshold):
    s, B = metric(9, 0), random_symmetric(9, 1)
    fast = ConditionallyPSD(s).project(B, threshold).dense()
    np.testing.assert_allclose(fast, naive.project_conditional(B, s, threshold), atol=1e-10)


def test_psd_projection_equals_its_twin():
    B = random_symmetric(9, 1)
    np.testing.assert_allclose(PSD(np.ones(9)).project(B).dense(), naive.project_psd(B), atol=1e-12)


@pytest.mark.parametrize("name", CONES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_projection_is_the_nearest_point(name, seed):
    s = metric(6, seed)
    cone, B = CONES[name](s), random_symmetric(6, seed + 1)
    projected, other = cone.project(B).dense(), member(name, 6, seed + 2)
    weight = np.outer(s, s) ** 2
    assert np.sum(weight * (B - projected) * (other - projected)) <= 1e-8 * (1 + distance(s, B) * distance(s, other))
    assert distance(s, cone.project(projected).dense() - projected) <= 1e-10 * (1 + distance(s, B))
    inside = cone.project(other).dense()
    assert distance(s, inside - other) <= 1e-10 * (1 + distance(s, other))


@pytest.mark.parametrize("name", CONES)
def test_penalty_in_factors_equals_the_matrix(name):
    s = metric(8, 0)
    cone, rng = CONES[name](s), np.random.default_rng(1)
    point = Point(rng.standard_normal(8) * (name == "conditional"), rng.standard_normal((8, 3)))
    N = naive.penalty_matrix(name, s)
    assert cone.penalty(point) == pytest.approx(np.sum(N * point.dense()), rel=1e-11)
    assert cone.inner(point.dense()) == pytest.approx(np.sum(N * point.dense()), rel=1e-11)
    np.testing.assert_allclose(cone.penalty_gradient(point.W), N @ point.W, atol=1e-12)
    np.testing.assert_allclose(cone.add_penalty(np.ones((8, 8)), 2.0), np.ones((8, 8)) + 2 * N, atol=1e-12)


@pytest.mark.parametrize("name", CONES)
def test_smallest_eigenvalue_is_taken_on_the_constrained_directions(name):
    s, G = metric(8, 0), random_symmetric(8, 3)
    scaled = G / np.outer(s, s)
    basis = np.linalg.svd(s[None, :])[2][1:].T if name == "conditional" else np.eye(8)
    expected = np.linalg.eigvalsh(basis.T @ scaled @ basis)[0]
    assert CONES[name](s).smallest_eigenvalue(G) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", CONES)
def test_tidied_factors_are_the_same_matrix(name):
    s, rng = metric(8, 0), np.random.default_rng(1)
    point = Point(rng.standard_normal(8) * (name == "conditional"), rng.standard_normal((8, 3)))
    tidy = CONES[name](s).canonical_factors(point)
    np.testing.assert_allclose(tidy.dense(), point.dense(), atol=1e-12)
    gram = tidy.W.T @ (s[:, None] ** 2 * tidy.W)
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-11)
    assert np.all(np.diff(np.diag(gram)) <= 0)
    if name == "conditional":
        np.testing.assert_allclose(s**2 @ tidy.W, 0, atol=1e-11)


def test_membership():
    for name, cone in CONES.items():
        assert cone(np.ones(6)).contains(member(name, 6, 0), 1e-10)
        assert not cone(np.ones(6)).contains(-np.eye(6), 1e-10)


def test_inputs_stay_as_they_are():
    B, s = random_symmetric(7, 0), metric(7, 1)
    before = B.copy()
    for cone in CONES.values():
        cone(s).project(B, 0.5)
        cone(s).smallest_eigenvalue(B)
        cone(s).contains(B, 0.0)
    np.testing.assert_array_equal(B, before)


def test_dense_points_are_symmetric_to_the_last_bit():
    rng = np.random.default_rng(0)
    for rank in (0, 1, 5):
        X = Point(rng.standard_normal(30), rng.standard_normal((30, rank))).dense()
        np.testing.assert_array_equal(X, X.T)
