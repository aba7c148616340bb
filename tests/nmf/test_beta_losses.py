"""Beta divergences: values, gradients, descent, sparse as dense, single as double precision, missing entries, bad data."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf import NMF, classical_nmf, factorize, verify
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.beta_encoding import _ScaledRows
from cvxnmf.nmf.encoding import encode
from cvxnmf.nmf.loss_names import find_loss
from cvxnmf.nmf.storage import storage_of

BETAS = (-1.0, 0.0, 0.5, 0.7, 1.2, 1.5, 2.5, 3.0)


def divergence(A, E, beta):
    """The formula."""
    if beta == 0:
        return float(np.nansum(A / E - np.log(A / E) - 1))
    return float(np.nansum((A**beta + (beta - 1) * E**beta - beta * A * E ** (beta - 1)) / (beta * (beta - 1))))


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    U, V = rng.random((14, 3)) + 0.1, rng.random((9, 3)) + 0.1
    return U @ V.T * rng.gamma(5.0, 0.2, (14, 9)), U, V


@pytest.mark.parametrize("beta", BETAS)
def test_value_and_gradient_are_those_of_the_formula(data, beta):
    A, U, V = data
    loss = find_loss(beta)
    assert loss.value(storage_of(A), U, V) == pytest.approx(divergence(A, U @ V.T, beta), rel=1e-11)
    assert loss.value(storage_of(sp.csr_array(A)), U, V) == pytest.approx(divergence(A, U @ V.T, beta), rel=1e-11)
    objective = loss.objective(storage_of(A), V, 0.3, 0.2, 0.0)
    G = objective.gradient(U)
    for place in ((0, 0), (5, 1), (13, 2)):
        ahead, behind = U.copy(), U.copy()
        ahead[place] += 1e-6
        behind[place] -= 1e-6
        slope = (objective.value(ahead) - objective.value(behind)) / 2e-6
        assert G[place] == pytest.approx(slope, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("method", ["hals", "multiplicative", "gradient"])
def test_no_step_raises_the_objective(data, beta, method):
    A = data[0]
    result = classical_nmf(A, 3, method, beta, max_iter=60, tol=0.0, l1=0.01, l2=(0.0, 0.02))
    values = [iterate.value for iterate in result.history]
    assert all(later <= before for before, later in zip(values, values[1:], strict=False))
    penalties = 0.01 * (result.U.sum() + result.V.sum()) + 0.02 * np.vdot(result.V, result.V)
    assert result.value == pytest.approx(divergence(A, result.U @ result.V.T, beta) + penalties, rel=1e-9)


@pytest.mark.parametrize("beta", [0.5, 1.5, 2.5])
def test_sparse_is_as_dense(beta):
    rng = np.random.default_rng(5)
    A = rng.random((20, 12)) * (rng.random((20, 12)) < 0.4)
    A[:, 0] += 0.1
    A[0] += 0.1
    dense, sparse = (classical_nmf(B, 3, loss=beta, max_iter=30, tol=0.0, init="random") for B in (A, sp.csr_array(A)))
    np.testing.assert_allclose(sparse.U, dense.U, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.2, 1.5])
def test_single_precision_is_as_double(data, beta):
    A = data[0].astype(np.float32)
    single, double = classical_nmf(A, 3, loss=beta), classical_nmf(A.astype(np.float64), 3, loss=beta)
    assert single.U.dtype == np.float32
    np.testing.assert_allclose(single.value, double.value, rtol=1e-5)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.2, 1.5, 3.0])
def test_missing_entries_do_not_count(data, beta):
    A, U, V = data
    exact = U @ V.T
    exact[3, 4] = exact[7, 1] = np.nan
    result = classical_nmf(exact, 3, loss=beta, init=(U, V), tol=1e-12)
    assert result.value <= 1e-6
    holes = np.where(np.random.default_rng(0).random(A.shape) < 0.2, np.nan, A)
    result = factorize(holes, 2, beta)
    assert result.value == pytest.approx(divergence(holes, result.U @ result.V.T, beta), rel=1e-9)


@pytest.mark.parametrize("beta", BETAS)
def test_codes_are_stationary_and_each_row_is_on_its_own(data, beta):
    A, _, V = data
    W = encode(A, V.T, find_loss(beta).name, 0.01, 0.02)
    objective = find_loss(beta).objective(storage_of(A), V, 0.01, 0.02, 0.0)
    G = objective.gradient(W)
    assert np.abs(np.where(W > 0, G, np.minimum(G, 0.0))).max() < 1e-5 * np.abs(objective.gradient_parts(W)[1]).max()
    np.testing.assert_allclose(encode(A[4:5], V.T, find_loss(beta).name, 0.01, 0.02), W[4:5], rtol=1e-6, atol=1e-12)


def test_same_bits_for_any_number_of_threads():
    A = np.random.default_rng(1).gamma(1.0, 1.0, (400, 300))
    many = classical_nmf(A, 4, loss=0.5, max_iter=5)
    with single_thread():
        one = classical_nmf(A, 4, loss=0.5, max_iter=5)
    assert np.array_equal(many.U, one.U)


def test_zeros_need_a_positive_beta():
    A = np.ones((4, 3))
    A[1, 2] = 0.0
    for fit in (classical_nmf, factorize):
        for loss in ("itakura-saito", -0.5):
            with pytest.raises(ValueError, match="1 of the entries of A are 0; mark them as missing with NaN, add a small"):
                fit(A, 2, loss=loss)
            with pytest.raises(ValueError, match="needs positive data"):
                fit(sp.csr_array(A), 2, loss=loss)
    with pytest.raises(ValueError, match="needs positive data"):
        NMF(2, beta_loss="itakura-saito").fit(A)


def test_names_and_numbers_are_one_loss(data):
    A = data[0]
    for first, second in (("mse", 2), ("kl", 1.0), ("itakura-saito", 0), (0.5, "beta=0.5")):
        one, other = classical_nmf(A, 2, loss=first), classical_nmf(A, 2, loss=second)
        assert np.array_equal(one.U, other.U)
    for bad in ("beta=x", "euclid", np.nan, None, True):
        with pytest.raises(ValueError, match="is not known; choose one of 'mse', 'kl', .*or the number beta"):
            classical_nmf(A, 2, loss=bad)


def test_no_bound_is_claimed(data):
    A, U, V = data
    certificate = verify(A, U, V, loss=0.5)
    assert certificate.bound == 0.0
    assert "no bound for this loss is known" in str(certificate)
    assert certificate.check(A) == 0.0
    with pytest.raises(ValueError, match="has no symmetric form"):
        factorize(A @ A.T, 2, 0.5, symmetric=True)
    assert factorize(A @ A.T, 2, 0.5).V is not None


@pytest.mark.parametrize("beta", [3.0, 1.5, 0.0])
@pytest.mark.parametrize("unit", [1.0, 1e-12])
def test_nothing_is_called_global_for_small_units(beta, unit):
    """Nothing is proved but that the loss is not negative; the value of badly fitted data is small in small units."""
    result = factorize(unit * (0.1 + np.random.default_rng(2).gamma(1.0, 1.0, (9, 7))), 2, beta)
    assert result.certificate.relative_gap == 1.0
    assert "better factors may exist" in result.message


def test_factors_of_a_negative_beta_stay_of_the_same_size():
    """Bold steps let one factor grow and the other shrink, until they overflowed."""
    rng = np.random.default_rng(0)
    A = rng.gamma(1.0, 1.0, (40, 3)) @ rng.gamma(0.5, 1.0, (3, 12)) * rng.gamma(8.0, 1 / 8, (40, 12)) + 1e-3
    result = classical_nmf(A, 3, loss=-1, tol=1e-9, max_iter=2000)
    np.testing.assert_allclose(np.linalg.norm(result.U, axis=0), np.linalg.norm(result.V, axis=0))
    E = result.U @ result.V.T
    assert result.value == pytest.approx(np.sum(1 / A - 2 / E + A / E**2) / 2)
    assert np.isfinite(NMF(3, solver="cd", beta_loss=-1, tol=0, max_iter=500).fit_transform(A)).all()


def test_rows_whose_curvature_overflows_take_that_of_data_like_the_model():
    G, none = np.random.default_rng(0).random((6, 5)), np.zeros((2, 5))
    rows = _ScaledRows(np.repeat([[1e300], [1.0]], 6, axis=1), np.ones((2, 6)), G, none, none, 0.0)
    with np.errstate(all="ignore"):
        _, curvature = rows.slope_and_curvature(np.repeat([[1e-40], [1.0]], 5, axis=1))
    assert np.isfinite(curvature).all()


@pytest.mark.parametrize("beta", [*BETAS, 1.0, 2.0])
def test_values_of_rows_differ_as_those_of_the_formula(data, beta):
    A, U, V = data
    weights, none = np.random.default_rng(5).random(A.shape), np.zeros(U.shape)
    rows = _ScaledRows(A, weights, V, none, none, beta)
    changes = rows.value(2.0 * U) - rows.value(U)
    parts = [find_loss(f"weighted {find_loss(beta).name}").entrywise(A, c * U @ V.T) for c in (2.0, 1.0)]
    unit = 2.0 if beta == 2.0 else 1.0  # the squared error is not halved
    np.testing.assert_allclose(unit * changes, (weights * (parts[0] - parts[1])).sum(axis=1), rtol=1e-9)
