"""Weights of rows and entries, against an independent computation."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf import classical_nmf, factorize, verify
from cvxnmf.nmf.beta_divergence import BetaDivergence
from cvxnmf.nmf.streaming import Streaming
from cvxnmf.nmf.weights import row_scales

RNG = np.random.default_rng(4)
A = RNG.gamma(1.0, 1.0, (20, 3)) @ RNG.gamma(1.0, 1.0, (3, 12)) * RNG.gamma(6.0, 1 / 6, (20, 12)) + 0.01
WEIGHTS = RNG.random(A.shape) * (RNG.random(A.shape) < 0.8)
WEIGHTS[0], WEIGHTS[:, 0] = 1.0, 1.0


def divergence(loss, a, e):
    """Entry by entry."""
    return {
        "mse": (a - e) ** 2,
        "kl": a * np.log(a / e) - a + e,
        "itakura-saito": a / e - np.log(a / e) - 1,
        1.5: (a**1.5 + 0.5 * e**1.5 - 1.5 * a * e**0.5) / 0.75,
    }[loss]


@pytest.mark.parametrize("loss", ["mse", "kl", "itakura-saito", 1.5])
@pytest.mark.parametrize("method", ["hals", "multiplicative"])
def test_value_is_weighted_and_never_rises(loss, method):
    result = classical_nmf(A, 3, method, loss, weights=WEIGHTS, max_iter=80, tol=0.0)
    assert result.value == pytest.approx(np.sum(WEIGHTS * divergence(loss, A, result.U @ result.V.T)), rel=1e-9)
    values = [iterate.value for iterate in result.history]
    assert all(later <= before for before, later in zip(values, values[1:], strict=False))
    slope = WEIGHTS * {"mse": 2.0, "kl": 1.0, "itakura-saito": 1.0, 1.5: 1.0}[loss]
    E, beta = result.U @ result.V.T, {"mse": 2.0, "kl": 1.0, "itakura-saito": 0.0, 1.5: 1.5}[loss]
    G = (slope * E ** (beta - 2) * (E - A)) @ result.V
    assert np.abs(result.U * G).max() < 0.05 * np.abs(result.U * ((slope * E ** (beta - 1)) @ result.V)).max()


@pytest.mark.parametrize("loss", ["mse", "kl", 1.5])
def test_weight_zero_is_missing_and_ones_change_nothing(loss):
    holes = np.where(WEIGHTS > 0, A, np.nan)
    missing = classical_nmf(holes, 3, loss=loss, max_iter=300, tol=1e-7)
    weighted = classical_nmf(A, 3, loss=loss, weights=WEIGHTS > 0, init=(missing.U, missing.V), max_iter=50)
    assert 0.98 * missing.value <= weighted.value <= missing.value * (1 + 1e-9)
    assert factorize(holes, 3, loss, weights=np.ones(20)).value == pytest.approx(factorize(holes, 3, loss).value, rel=1e-2)


@pytest.mark.parametrize("loss", ["mse", "kl", "itakura-saito"])
def test_a_row_of_weight_two_counts_twice(loss):
    weights = np.ones(20)
    weights[3] = 2.0
    start = RNG.random((20, 2)) + 0.1, RNG.random((12, 2)) + 0.1
    twice = np.vstack([A, A[3]])
    weighted = classical_nmf(A, 2, loss=loss, weights=weights, init=start, max_iter=500, tol=1e-9)
    repeated = classical_nmf(twice, 2, loss=loss, init=(np.vstack([start[0], start[0][3]]), start[1]), max_iter=500, tol=1e-9)
    assert weighted.value == pytest.approx(repeated.value, rel=5e-3)
    sparse = classical_nmf(sp.csr_array(A), 2, loss=loss, weights=weights, init=start, max_iter=500, tol=1e-9)
    assert sparse.value == pytest.approx(weighted.value, rel=1e-9)


def test_bounds_and_bad_weights():
    result = factorize(A, 3, weights=WEIGHTS)
    assert 0 < result.certificate.bound < result.value
    unbounded = factorize(A, 3, "itakura-saito", weights=WEIGHTS).certificate
    assert unbounded.bound == 0.0
    assert "no bound for this loss is known" in str(unbounded)
    again = factorize(A, 3, weights=WEIGHTS, start=result)
    assert again.value <= result.value * (1 + 1e-12)
    for bad, words in (
        (np.ones(3), "shape"),
        (-WEIGHTS, "not negative"),
        (0 * WEIGHTS, "All weights are zero"),
        ("x", "numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            classical_nmf(A, 3, weights=bad)
    with pytest.raises(ValueError, match="in blocks cannot be verified with weights"):
        verify(A, result, weights=WEIGHTS, memory_limit="10 GB")
    with pytest.raises(ValueError, match="give V as well"):
        verify(A @ A.T, A, weights=np.ones(20))
    with pytest.raises(ValueError, match="not 'weighted mse'; use data in memory"):
        classical_nmf(A, 3, weights=WEIGHTS, memory_limit="10 GB")
    with pytest.raises(ValueError, match="has no symmetric form"):
        factorize(A @ A.T, 3, symmetric=True, weights=np.ones(20))


def test_losses_that_are_no_beta_divergences_take_no_weights_of_rows_and_no_streams():
    with pytest.raises(ValueError, match="takes no sample_weight"):
        row_scales(np.ones(3), np.nan)
    other = BetaDivergence("another", np.nan)
    other.kind = "another"
    with pytest.raises(ValueError, match="loss='another' is not known in streams; fit all data at once with NMF"):
        Streaming(A[:3].T, other, (0.0, 0.0), (0.0, 0.0))
