"""Uniqueness of factors: proved, refuted by other factors, or unknown; against enumeration by another program."""

import itertools

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import cvxnmf
from cvxnmf.linalg.uniqueness import Cone, factor_uniqueness, whole_numbers
from exact_rays import exactly_scattered, extreme_rays
from tiers import slow_but


def permutations_of(*entries):
    return np.array(sorted(set(itertools.permutations(entries))), dtype=float)


def farthest(F):
    """The largest norm on ``{y : Fy >= 0, 1'y = 1}`` without the axes, by Qhull."""
    points = F / F.sum(axis=1, keepdims=True)
    facets = ConvexHull(points[:, :-1], qhull_options="Qt").equations
    rays = np.column_stack([-(facets[:, :-1] + facets[:, -1:]), -facets[:, -1]])
    rays /= rays.sum(axis=1, keepdims=True)
    axes = np.abs(rays[:, None, :] - np.eye(rays.shape[1])).max(axis=2).min(axis=1) < 1e-9
    return np.linalg.norm(rays[~axes], axis=1).max(initial=0.0)


@pytest.mark.parametrize(("share", "status"), [(0.0, "proved"), (0.49, "proved"), (0.5, "unknown"), (0.51, "unknown")])
def test_six_points_on_a_triangle_are_scattered_up_to_one_half(share, status):
    """Rows that are permutations of (1, a, 0) touch the circle inside of the triangle at a = 1/2, where the theorem ends."""
    F = permutations_of(1.0, share, 0.0)
    assert factor_uniqueness(F, F.copy()).status == status
    assert factor_uniqueness(F, F).status == status


@pytest.mark.parametrize("k", [2, 3, 12, 40])
def test_pure_rows_of_both_factors_prove_it_for_every_number_of_components(k):
    rng = np.random.default_rng(k)
    U, V = (np.vstack([np.diag(1 + rng.random(k)), rng.random((5, k))]) for _ in range(2))
    found = factor_uniqueness(U, V)
    assert found.status == "proved"
    assert "order" not in found.reason


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_other_factors_of_the_same_product(k, symmetric):
    rng = np.random.default_rng(k)
    U = np.vstack([np.eye(k), rng.random((6, k))])
    U[0] = 1.0  # no row of its own for component 0
    V = U if symmetric else np.vstack([np.eye(k), rng.random((4, k))])
    U[1:, 1] += 0.1 * (U[1:, 0] > 0)
    found = factor_uniqueness(U, V)
    other_U, other_V = found.alternative
    assert found.status == "refuted"
    assert other_U.min() >= 0
    assert other_V.min() >= 0
    np.testing.assert_allclose(other_U @ other_V.T, U @ V.T, rtol=1e-13, atol=1e-13)
    directions = [F / np.linalg.norm(F, axis=0) for F in (U, other_U, V, other_V)]
    moved = [1 - np.max(old.T @ new, axis=1) for old, new in (directions[:2], directions[2:])]
    assert max(np.max(side) for side in moved) > 1e-4  # not only another order or scale
    assert (other_V is other_U) == symmetric


def test_two_components_are_always_decided():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        U, V = (rng.random((4, 2)) * (rng.random((4, 2)) < 0.6) for _ in range(2))
        pure = all(np.any((F[:, a] > 0) & (F[:, 1 - a] == 0)) for F in (U, V) for a in (0, 1))
        status = factor_uniqueness(U, V).status
        assert status == ("proved" if pure else "refuted")
        seen.add(status)
    assert seen == {"proved", "refuted"}


@pytest.mark.parametrize("k", [3, 4, 5])
def test_the_condition_is_that_of_an_independent_enumeration(k):
    rng = np.random.default_rng(k)
    seen = set()
    for _ in range(40):
        F = rng.random((14 * (k - 2), k)) * (rng.random((14 * (k - 2), k)) < 0.75)
        F = F[F.sum(axis=1) > 0]
        F[:k] = rng.random((k, k)) * (1 - np.eye(k))
        found = factor_uniqueness(F, F)
        if found.status == "refuted":
            continue
        largest = farthest(F)
        assert abs(largest - 1) > 1e-6
        assert found.status == ("proved" if largest < 1 else "unknown")
        seen.add(found.status)
    assert seen == {"proved", "unknown"}


@pytest.mark.parametrize(("k", "count"), slow_but([(3, 150)], [(3, 150), (4, 60)]))
def test_rows_on_the_hyperplanes_of_others(k, count):
    """Small whole numbers, where many rows meet in a ray and rays lie on the condition's boundary."""
    rng = np.random.default_rng(k)
    seen = set()
    for _ in range(count):
        F = rng.integers(0, 4, (3 * k, k)) * (rng.random((3 * k, k)) < 0.7)
        F = F[F.any(axis=1)].astype(float)
        if np.linalg.matrix_rank(F) < k:
            continue
        found = factor_uniqueness(F, F)
        if found.status != "refuted":
            assert found.status == ("proved" if exactly_scattered(F) else "unknown")
            seen.add(found.status)
    assert seen == {"proved", "unknown"}


@pytest.mark.parametrize(("k", "count"), slow_but([(3, 40), (4, 30)], [(3, 40), (4, 30), (5, 15)]))
def test_a_cone_has_all_of_its_rays_in_whatever_order_rows_are_taken(k, count):
    """Rows through rays that are there already make faces that later rows cut."""
    rng = np.random.default_rng(k)
    for _ in range(count):
        F = rng.integers(0, 3, (k + 4, k)).astype(float)
        if np.linalg.matrix_rank(F) == k:
            cone = Cone(F, [1] * k)
            assert cone.begin()
            for row in rng.permutation(cone.F):
                cone.cut(whole_numbers(row))
            assert sorted(map(tuple, cone.rays)) == sorted(extreme_rays(F))


def test_order_scale_and_size_do_not_matter():
    rng = np.random.default_rng(3)
    U, V = permutations_of(1.0, 0.4, 0.0), permutations_of(1.0, 0.45, 0.0)
    for _ in range(10):
        scale, order = np.exp(3 * rng.standard_normal(3)), rng.permutation(3)
        rows = np.exp(rng.standard_normal((2, 6, 1)))
        alike = factor_uniqueness((U * rows[0])[:, order], (V * rows[1])[:, order])  # rows of any length: scales are tried
        assert alike.status in {"proved", "unknown"}
        assert factor_uniqueness((U * scale)[:, order] * 1e-200, (V / scale)[:, order] * 1e150).status == "proved"


def test_tiny_entries_count_as_zero_and_are_named():
    F = permutations_of(1.0, 0.4, 1e-10)
    found = factor_uniqueness(F, F.copy())
    assert found.status == "proved"
    assert "count as zero" in found.reason


def test_what_cannot_be_decided_is_said():
    F = permutations_of(1.0, 0.45, 0.0)
    dependent = np.column_stack([F, F[:, 0] + F[:, 1]])[:, [0, 1, 3]]
    assert factor_uniqueness(F, F, most_rays=2).reason == "there are more than 2 extreme rays to look at."
    assert factor_uniqueness(dependent, F).status == "refuted"
    square = np.array([[1.0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])  # of rank 3
    assert factor_uniqueness(square, square.copy()).reason == "the components depend linearly on each other."
    assert factor_uniqueness(F * [1, 0, 1], F).reason == "a component is zero, so that its other factor can be anything."
    assert factor_uniqueness(F[:, :1], F[:, :1]).status == "proved"
    for bad in (-F, F[0], F[:, :2], F * np.nan):
        assert "two nonnegative tables" in factor_uniqueness(bad, F).reason


def test_of_a_result():
    rng = np.random.default_rng(0)
    U, V = (np.vstack([np.eye(3), rng.random((20, 3))]) for _ in range(2))
    result = cvxnmf.factorize(U @ V.T, n_components=3)
    assert result.uniqueness.status == "proved"
    assert str(result.uniqueness).startswith("proved: no other 3 nonnegative components")
    assert cvxnmf.factorize(np.ones((5, 4)) + np.eye(5, 4), n_components=2).uniqueness.status in {"proved", "refuted"}
