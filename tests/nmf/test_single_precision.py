"""Large data in single precision are worked on as they are; here all data are large."""

import numpy as np
import pytest

from cvxnmf import NMF, classical_nmf, factorize
from cvxnmf.linalg import arrays
from cvxnmf.nmf.descent import Stopping
from cvxnmf.nmf.loss_names import find_loss
from cvxnmf.nmf.open import data_in_memory
from cvxnmf.nmf.race import Race

RNG = np.random.default_rng(6)
LOW_RANK = RNG.gamma(1.0, 1.0, (90, 4)) @ RNG.gamma(1.0, 1.0, (4, 60))
NOISY = (LOW_RANK + RNG.gamma(1.0, 1.0, LOW_RANK.shape)).astype(np.float32)
EXACT = LOW_RANK.astype(np.float32)


@pytest.fixture(autouse=True)
def all_data_are_large(monkeypatch):
    monkeypatch.setattr(arrays, "KEPT_SINGLE", 0)


def loss_of(A, U, V, loss):
    A, model = A.astype(np.float64), U.astype(np.float64) @ V.T.astype(np.float64)
    return np.sum((A - model) ** 2) if loss == "mse" else np.sum(A * np.log(A / model) - A + model)


@pytest.mark.parametrize(("loss", "k"), [("mse", 4), ("mse", 34), ("kl", 4)])
def test_values_are_those_of_double_precision(loss, k):
    for function in (factorize, classical_nmf):
        single, double = (function(A, k, loss=loss, max_iter=300, tol=1e-6) for A in (NOISY, NOISY.astype(np.float64)))
        assert single.U.dtype == single.V.dtype == np.float32
        assert single.value == pytest.approx(loss_of(NOISY, single.U, single.V, loss), rel=1e-9)
        assert single.value == pytest.approx(double.value, rel=1e-3 if k < 30 else 2e-2)


def test_data_stay_in_single_precision_where_that_does():
    for A, loss, symmetric, dtype in [
        (NOISY, "mse", False, np.float32),
        (NOISY, "kl", False, np.float32),
        (NOISY, "beta=0.5", False, np.float64),
        (np.where(RNG.random(NOISY.shape) < 0.1, np.float32(np.nan), NOISY), "mse", False, np.float64),
        (NOISY.T @ NOISY, "mse", True, np.float64),
        (np.float32(1e12) * NOISY, "mse", False, np.float64),
        (NOISY.astype(np.float64), "mse", False, np.float64),
    ]:
        for keep_given in (True, False):
            _, data = data_in_memory(A, find_loss(loss), symmetric, keep_given=keep_given)
            assert data.storage.entries.dtype == dtype


def test_data_of_little_noise_race_in_double_precision():
    for A, dtype in ((NOISY, np.float32), (EXACT, np.float64)):
        race = Race(data_in_memory(A, find_loss("mse"))[1], 4, find_loss("mse"), Stopping())
        race.run()
        assert race.exact.storage.entries.dtype == dtype
    assert factorize(EXACT, 4, tol=1e-10, max_iter=2000).value < 1e-6 * np.sum(EXACT.astype(np.float64) ** 2)


@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler"])
def test_the_estimator(beta_loss):
    single, double = (NMF(4, beta_loss=beta_loss).fit(A) for A in (NOISY, NOISY.astype(np.float64)))
    assert single.components_.dtype == single.transform(NOISY).dtype == np.float32
    assert single.reconstruction_err_ == pytest.approx(double.reconstruction_err_, rel=1e-3)
    assert single.certificate_.check(NOISY) == single.certificate_.bound
    np.testing.assert_allclose(single.certificate_.bound, double.certificate_.bound, rtol=1e-2)
