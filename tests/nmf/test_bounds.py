"""Bounds for all nonnegative factorisations of a rank, and verify."""

import dataclasses
import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

import cvxnmf
from cvxnmf.nmf import bounds
from cvxnmf.nmf.bound_goal import Limits
from cvxnmf.nmf.squared_error_bounds import DISTANCE, best_dual_matrix, lowered_leading, squared_error_bounds


def factors(m, n, k, seed=0):
    rng = np.random.default_rng(seed)
    return rng.gamma(0.5, 1.0, (m, k)), rng.gamma(0.5, 1.0, (n, k))


def multiplicative(A, k, seed, steps=300):
    """Any local optimum."""
    U, V = factors(*A.shape, k, seed)
    for _ in range(steps):
        U *= (A @ V) / (U @ (V.T @ V) + 1e-12)
        V *= (A.T @ U) / (V @ (U.T @ U) + 1e-12)
    return U, V


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans())
def test_no_factorisation_is_below_the_bound(seed, k, noisy):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(k + 1, 12, 2)
    U, V = factors(m, n, k, seed)
    A = U @ V.T + (rng.gamma(0.3, 1.0, (m, n)) if noisy else 0.0)
    certificate = cvxnmf.verify(A, U, V, effort=40)
    assert certificate.bound <= certificate.value == pytest.approx(np.sum((A - U @ V.T) ** 2), rel=1e-9, abs=1e-20)
    W, H = multiplicative(A, k, seed)
    assert certificate.bound <= np.sum((A - W @ H.T) ** 2)
    assert certificate.check(A) <= certificate.value
    if not noisy:
        assert certificate.bound == 0
    tail = np.sum(np.linalg.svd(A, compute_uv=False)[k:] ** 2)
    assert certificate.bound >= min(certificate.value, tail * (1 - 1e-9) - 1e-10 * np.sum(A * A))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_no_symmetric_factorisation_is_below_the_bound(seed, k):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k + 1, 12))
    A = rng.gamma(0.3, 1.0, (n, n))
    A = A + A.T
    U = np.abs(rng.standard_normal((n, k)))
    certificate = cvxnmf.verify(A, U, effort=40)
    for _ in range(300):
        U *= 0.5 + 0.5 * (A @ U) / (U @ (U.T @ U) + 1e-12)
    assert certificate.bound <= np.sum((A - U @ U.T) ** 2) * (1 + 1e-12)
    assert certificate.check(A) <= certificate.value


def test_the_ascent_beats_the_tail_on_real_data():
    A = load_digits().data[:100]
    model = NMF(5, init="nndsvda", max_iter=500, random_state=0)
    U = model.fit_transform(A)
    tail, dual = (cvxnmf.verify(A, U, model.components_.T, effort=effort) for effort in (0, 150))
    assert tail.kind == "tail"
    assert dual.kind == "dual"
    assert dual.relative_gap < 0.75 * tail.relative_gap
    assert dual.check(A) == dual.bound


def test_a_perturbed_factor_has_a_larger_gap():
    A = load_digits().data[:60]
    model = NMF(4, init="nndsvda", max_iter=500, random_state=0)
    U, V = model.fit_transform(A), model.components_.T
    assert cvxnmf.verify(A, U + 0.1, V).relative_gap > cvxnmf.verify(A, U, V).relative_gap


def test_the_symmetric_bound_is_tight_on_the_karate_club():
    A = nx.to_numpy_array(nx.karate_club_graph(), weight=None)
    d = np.sqrt(A.sum(axis=1))
    A = A / np.outer(d, d)
    U = np.abs(np.linalg.eigh(A)[1][:, -2:])
    assert cvxnmf.verify(A, U).bound == pytest.approx(4.0090424, abs=2e-6)


def test_rank_one_is_solved_by_the_singular_vectors():
    A = np.random.default_rng(0).random((9, 6))
    left, values, right = np.linalg.svd(A)
    U, V = np.abs(left[:, :1]) * values[0], np.abs(right[:1].T)
    assert cvxnmf.verify(A, U, V).relative_gap < 1e-9


def test_kl_of_rank_one_and_above():
    A = np.random.default_rng(0).poisson(2.0, (8, 5)).astype(float) + 1
    U, V = A.sum(axis=1)[:, None] / A.sum(), A.sum(axis=0)[:, None]
    certificate = cvxnmf.verify(A, U, V, loss="kl")
    assert certificate.kind == "independence"
    assert certificate.relative_gap < 1e-9
    expected = np.sum(A * np.log(A / (U @ V.T)) - A + U @ V.T)
    assert certificate.value == pytest.approx(expected, rel=1e-12)
    above = cvxnmf.verify(A, *factors(8, 5, 2), loss="kl")
    assert 0 < above.check(A) == above.bound < above.value
    full = cvxnmf.verify(A, *factors(8, 5, 5), loss="kl")
    assert full.kind == "zero"
    assert full.check(A) == 0
    assert "unless the rank reaches a side of the data" in str(full)


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_sparse_input_gives_the_dense_answer(loss):
    A = sp.random_array((40, 30), density=0.1, rng=np.random.default_rng(0))
    U, V = factors(40, 30, 1)
    sparse, dense = (cvxnmf.verify(data, U, V, loss=loss) for data in (A, A.toarray()))
    assert sparse.value == pytest.approx(dense.value, rel=1e-12)
    assert sparse.bound == pytest.approx(dense.bound, rel=1e-12)
    assert sparse.check(A) == sparse.bound


def test_large_sparse_input_is_not_filled():
    A = sp.random_array((60, 40), density=0.1, rng=np.random.default_rng(0)).tocsr()
    value = cvxnmf.verify(A, *factors(60, 40, 3), effort=0).value
    certificate = bounds.rank_certificate(A, 3, value, "mse", limits=Limits(unasked_size=20))
    exact = np.sum(np.linalg.svd(A.toarray(), compute_uv=False)[3:] ** 2)
    assert certificate.kind == "lanczos"
    assert not certificate.rigorous
    assert certificate.bound == pytest.approx(exact, rel=1e-6)
    assert certificate.check(A) <= certificate.bound


def test_missing_entries():
    rng = np.random.default_rng(0)
    U, V = factors(20, 15, 2)
    A = U @ V.T + rng.random((20, 15))
    A[3, 4] = A[5] = np.nan
    A[5, 0] = 1.0
    certificate = cvxnmf.verify(A, U, V)
    assert certificate.value == pytest.approx(np.nansum((A - U @ V.T) ** 2), rel=1e-12)
    assert 0 < certificate.bound <= certificate.value
    assert certificate.check(A) == certificate.bound
    assert certificate.kind == "rectangles"
    hopeless = A.copy()
    hopeless[np.arange(20), np.arange(20) % 15] = np.nan
    hopeless[np.arange(20), (np.arange(20) + 1) % 15] = np.nan
    assert cvxnmf.verify(hopeless, U, V).bound >= 0


def test_a_certificate_survives_a_file_and_not_an_alteration(tmp_path):
    A = load_digits().data[:50]
    model = NMF(3, init="nndsvda", max_iter=1000, random_state=0)
    certificate = cvxnmf.verify(A, model.fit_transform(A), model.components_.T)
    certificate.save(tmp_path / "proof.npz")
    loaded = cvxnmf.Certificate.load(tmp_path / "proof.npz")
    assert loaded.check(A) == certificate.bound
    N = certificate.witness["N"].copy()
    N[0, 0] += 1.0
    for change in ({"witness": {"N": N}}, {"statement": {**certificate.statement, "n_components": 2}}, {"scope": "model"}):
        with pytest.raises(cvxnmf.CertificateError):
            dataclasses.replace(certificate, digest="", **change).check(A)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((np.ones((4, 3)), np.ones((3, 2)), np.ones((3, 2))), "U must be a real matrix of 4 rows"),
        ((np.ones((4, 3)), np.ones((4, 2)), np.ones((2, 3))), "transpose scikit-learn's components_"),
        ((np.ones((4, 3)), np.ones((4, 2)), np.ones((3, 1))), "U has 2 columns and V has 1"),
        ((np.ones((4, 3)), -np.ones((4, 2)), np.ones((3, 2))), "nonnegative"),
        ((np.ones((4, 3)), np.ones((4, 2))), "must be square for symmetric factors"),
        ((np.triu(np.ones((4, 4))), np.ones((4, 2))), "is not symmetric"),
        ((np.full((4, 3), np.inf), np.ones((4, 2)), np.ones((3, 2))), "infinite entry"),
        ((-np.ones((4, 3)), np.ones((4, 2)), np.ones((3, 2))), "Negative values"),
        ((np.full((4, 3), np.nan), np.ones((4, 2)), np.ones((3, 2))), "all zeros or missing"),
    ],
)
def test_bad_input(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.verify(*arguments)


def test_divergence_of_exact_and_of_tiny_factors():
    U, V = factors(4, 3, 2)
    assert 0 <= cvxnmf.verify(sp.csr_array(U @ V.T), U, V, loss="kl").value <= 1e-12
    tiny = np.full((2, 1), 1e-160)
    assert cvxnmf.verify(np.ones((2, 2)), tiny, tiny, loss="kl").value == pytest.approx(4 * (-np.log(1e-320) - 1), rel=1e-3)


def test_an_observed_part_of_zeros_proves_nothing():
    Z = np.zeros((4, 4))
    Z[3, :3] = Z[:3, 3] = np.nan
    Z[3, 3] = 5.0
    assert cvxnmf.verify(Z, np.ones((4, 1)), np.ones((4, 1))).bound == 0


def test_negative_eigenvalues_bound_symmetric_factors_of_any_rank():
    A = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert cvxnmf.verify(A, 0.5 * np.eye(2)).bound == pytest.approx(1.0, rel=1e-9)


def test_a_factorization_can_be_verified_as_it_is():
    A = np.random.default_rng(0).random((9, 7))
    result = cvxnmf.classical_nmf(A, 2)
    assert cvxnmf.verify(A, result).value == pytest.approx(result.value, rel=1e-9)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_step_of_the_splitting_minimises_its_two_terms(k, symmetric):
    """No other matrix has smaller leading singular values and is as near, where some of them meet, too."""
    rng = np.random.default_rng(k)
    left, right = (np.linalg.qr(rng.standard_normal((6, 6)))[0] for _ in range(2))
    M = (left * [5.0, 4.0, 3.9, 3.8, 1.0, -0.5]) @ (left if symmetric else right).T

    def objective(Y):
        values = np.linalg.eigvalsh(Y)[::-1] if symmetric else np.linalg.svd(Y, compute_uv=False)
        return np.sum(np.maximum(values[:k], 0.0) ** 2) + DISTANCE * np.sum((Y - M) ** 2)

    Y = lowered_leading(M, k, symmetric)
    least = objective(Y)
    assert least < objective(M)
    for size in (1e-1, 1e-2, 1e-3, 1e-4):
        for _ in range(50):
            move = size * rng.standard_normal((6, 6))
            assert objective(Y + (move + move.T if symmetric else move)) > least


def test_the_ascent_goes_on_where_singular_values_meet():
    """Left at a kink, the ascent stopped at 14.2% of the loss of the digits with ten components; the limit is 13.8%."""
    A = load_digits().data
    N = best_dual_matrix(A, 10, False, value=0.0, effort=0)
    assert not N.any()
    value = cvxnmf.factorize(A, n_components=10).value
    N = best_dual_matrix(A, 10, False, value, effort=60)
    bound = np.sum(A * A) - np.sum(np.linalg.svd(A + N, compute_uv=False)[:10] ** 2)
    assert N.min() >= 0
    assert 0.137 < 1 - bound / value < 0.1395


@pytest.mark.parametrize("certify", [cvxnmf.verify, lambda A, U, V: cvxnmf.factorize(A, 2, certificate="now", symmetric=False)])
def test_an_interrupt_brings_the_best_bound_along(certify, monkeypatch):
    rng = np.random.default_rng(0)
    A, U, V = rng.random((12, 9)), rng.random((12, 2)), rng.random((9, 2))
    expected = cvxnmf.verify(A, U, V, effort=0).bound

    def interrupted(goal):
        yield from itertools.islice(squared_error_bounds(goal), 1)
        raise KeyboardInterrupt

    monkeypatch.setitem(bounds.BOUNDS, "mse", [interrupted])
    with pytest.raises(cvxnmf.Interrupted) as stopped:
        certify(A, U, V)
    found = stopped.value.solution
    assert getattr(found, "certificate", found).bound == expected > 0


def test_a_square_factor_that_was_not_transposed_is_warned_of():
    W, H = factors(9, 5, 5)
    with pytest.warns(UserWarning, match=r"V.T fits far better"):
        cvxnmf.verify(W @ H, W, H)
    assert cvxnmf.verify(W @ H, W, H.T).value < 1e-12


def test_sparse_factors_are_factors():
    A, U, V = np.ones((5, 4)), np.ones((5, 1)), np.ones((4, 1))
    assert cvxnmf.verify(A, sp.csr_array(U), sp.csr_array(V)).value == cvxnmf.verify(A, U, V).value


@pytest.mark.parametrize("terms", [{}, {"memory_limit": "1 GB"}])
def test_names_of_files_are_no_data(terms):
    with pytest.raises(ValueError, match="A is (a string; read the file|the name of a file; open it)"):
        cvxnmf.factorize("table.npy", 2, **terms)
