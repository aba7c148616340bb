"""Deterministic initialise."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition._nmf import _initialize_nmf

from cvxnmf.linalg.leading import leading_eigenpairs
from cvxnmf.nmf import initialise

RNG = np.random.default_rng(8)
A = RNG.gamma(0.5, 1.0, (40, 4)) @ RNG.gamma(0.5, 1.0, (4, 25)) + 0.05 * RNG.random((40, 25))
STARTS = [initialise.nndsvd, initialise.successive_projection, initialise.merge]


def loss(M, U, V):
    return np.sum((M - U @ V.T) ** 2)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("k", [1, 4, 12])
def test_starts_are_nonnegative_deterministic_and_leave_the_data_alone(start, k):
    before = A.copy()
    U, V = start(A, k)
    again = start(A, k)
    assert U.shape == (40, k)
    assert V.shape == (25, k)
    assert (U >= 0).all()
    assert (V >= 0).all()
    assert np.isfinite(U).all()
    assert np.isfinite(V).all()
    assert U.tobytes() == again[0].tobytes()
    assert V.tobytes() == again[1].tobytes()
    np.testing.assert_array_equal(A, before)


@pytest.mark.parametrize("start", STARTS)
def test_starts_know_compressed_rows_scale_and_order(start):
    U, V = start(A, 3)
    sparse = start(sp.csr_array(A), 3)
    np.testing.assert_allclose(sparse[0] @ sparse[1].T, U @ V.T, rtol=1e-6, atol=1e-7)
    scaled = start(100.0 * A, 3)
    np.testing.assert_allclose(scaled[0] @ scaled[1].T, 100.0 * U @ V.T, rtol=1e-6, atol=1e-6)
    order = np.random.default_rng(0).permutation(40)
    moved = start(A[order], 3)
    np.testing.assert_allclose(moved[0] @ moved[1].T, U[order] @ V.T, rtol=1e-6, atol=1e-7)


def test_nndsvd_has_the_parts_of_the_singular_vectors():
    W, H = _initialize_nmf(A, 5, init="nndsvd", random_state=0)
    U, V = initialise._parts(A, 5, initialise.leading_triples(A, 5))
    np.testing.assert_allclose(U @ V.T, W @ H, atol=1e-3)  # scikit-learn's decomposition is a randomised one
    U, V = initialise.nndsvd(A, 5)
    assert (U > 0).all()
    assert (V > 0).all()


def test_the_eigen_version():
    S = A @ A.T
    U, V = initialise.eigen_nndsvd(S, 3)
    assert V is U
    assert (U > 0).all()
    values, vectors = np.linalg.eigh(S)
    np.testing.assert_allclose(
        initialise._parts(S, 1, initialise.leading_triples(S, 1, symmetric=True))[0][:, 0],
        np.sqrt(values[-1]) * np.abs(vectors[:, -1]),
    )


def test_lanczos_agrees_with_the_full_decomposition():
    full = initialise.leading_triples(A, 3)
    few = initialise.leading_triples(A, 3, full_gram=1)
    np.testing.assert_allclose(few[1], full[1], rtol=1e-6)
    np.testing.assert_allclose((few[0] * few[1]) @ few[2].T, (full[0] * full[1]) @ full[2].T, atol=1e-5)
    np.testing.assert_allclose(leading_eigenpairs(A @ A.T, 3)[0], full[1] ** 2, rtol=1e-6)


def test_refined_values_lie_between_the_first_and_the_exact_ones():
    noise = np.random.default_rng(28).random((300, 200))
    exact, (_, first, right) = np.linalg.svd(noise, compute_uv=False)[:10], initialise.leading_triples(noise, 10)
    refined = initialise.refined_values(noise, right)
    assert np.sum(first**2) < np.sum(refined**2) <= np.sum(exact**2) * (1 + 1e-12)
    np.testing.assert_allclose(initialise.refined_values(sp.csr_array(noise), right), refined)


def test_pure_rows_are_found():
    V = RNG.random((25, 3))
    U = np.vstack([np.eye(3), RNG.dirichlet(np.ones(3), 30)])
    found = initialise.successive_projection(U @ V.T, 3)
    assert loss(U @ V.T, *found) < 1e-8 * np.sum((U @ V.T) ** 2)


def test_merging_beats_the_start_it_came_from():
    assert loss(A, *initialise.merge(A, 4)) < loss(A, *initialise.nndsvd(A, 4))


def test_recombined_columns_stem_from_one_of_two_like_ones():
    rng = np.random.default_rng(6)
    U, V, order = rng.random((9, 4)), rng.random((7, 4)), [2, 0, 3, 1]
    other = initialise.balance_columns(U + 0.1 * rng.random(U.shape), V)
    child = initialise.recombine((3.0 * U, V), tuple(side[:, order] for side in other), rng)
    own = initialise.balance_columns(3.0 * U, V)
    taken = [[np.allclose(x, y) for x, y in zip(child[0].T, parent[0].T, strict=True)] for parent in (own, other)]
    assert np.logical_xor(*taken).all()
    assert 0 < sum(taken[0]) < 4
    for column, first in enumerate(taken[0]):
        np.testing.assert_allclose(child[1][:, column], (own if first else other)[1][:, column])


def test_the_cheapest_pair_and_its_merger():
    U, V = RNG.random((9, 4)), RNG.random((7, 4))
    lost = {
        (i, j): np.linalg.svd(np.outer(U[:, i], V[:, i]) + np.outer(U[:, j], V[:, j]))[1][1]
        for i in range(4)
        for j in range(i + 1, 4)
    }
    pair = initialise.cheapest_pair(U, V)
    assert pair == min(lost, key=lost.get)
    M = U[:, list(pair)] @ V[:, list(pair)].T
    u, v = initialise.rank_one(U[:, list(pair)], V[:, list(pair)])
    assert np.linalg.norm(M - np.outer(u, v)) == pytest.approx(lost[pair])
    assert (u >= 0).all()
