"""Losses against their formulas, entry by entry, and gradients against differences."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.nmf.loss_names import LOSSES
from cvxnmf.nmf.storage import storage_of

RNG = np.random.default_rng(0)
A = RNG.poisson(1.0, (12, 9)).astype(float)
U, V = 0.1 + RNG.random((12, 3)), 0.1 + RNG.random((9, 3))


def naive(name, A, E):
    divergence = np.where(A > 0, A * np.log(np.where(A > 0, A, 1.0) / E), 0.0) - A + E
    return np.nansum((A - E) ** 2 if name == "mse" else divergence)


@pytest.mark.parametrize("name", ["mse", "kl"])
def test_values(name):
    known = np.where(RNG.random(A.shape) < 0.2, np.nan, A)
    for form, full in ((A, A), (sp.csr_array(A), A), (known, known)):
        assert LOSSES[name].value(storage_of(form), U, V) == pytest.approx(naive(name, full, U @ V.T), rel=1e-12)


@pytest.mark.parametrize("name", ["mse", "kl"])
def test_values_of_nearly_exact_sparse_data_do_not_cancel(name):
    X, Y = np.kron(np.eye(3), np.ones((4, 1))), np.kron(np.eye(3), np.ones((3, 1)))
    data, near = X @ Y.T, (X + 1e-9 * U, Y + 1e-9 * V)
    value = LOSSES[name].value(storage_of(sp.csr_array(data)), *near)
    assert value == pytest.approx(naive(name, data, near[0] @ near[1].T), rel=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_the_objective_in_one_factor(name):
    objective = LOSSES[name].objective(storage_of(A), V, 0.3, 0.2, 0.0)
    gradient, step, W = objective.gradient(U), 1e-6, RNG.standard_normal(U.shape)
    slope = (objective.value(U + step * W) - objective.value(U - step * W)) / (2 * step)
    assert slope == pytest.approx(np.vdot(gradient, W), rel=1e-6)
    negative, positive = objective.gradient_parts(U)
    ratio = (positive - negative) / gradient
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-8)
    assert ratio[0, 0] > 0
    assert min(negative.min(), positive.min()) >= 0
