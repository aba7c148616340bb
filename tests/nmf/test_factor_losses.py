"""Losses against their formulas, entry by entry, and gradients against differences."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
import naive
from cvxnmf.display import certificate_text
from cvxnmf.nmf.encoding import encode
from cvxnmf.nmf.loss_names import LOSSES
from cvxnmf.nmf.losses import SquaredError
from cvxnmf.nmf.storage import storage_of

RNG = np.random.default_rng(0)
A = RNG.poisson(1.0, (12, 9)).astype(float)
U, V = 0.1 + RNG.random((12, 3)), 0.1 + RNG.random((9, 3))


#: Losses that are finite at zeros of the data.
OF_ZEROS = [name for name, loss in LOSSES.items() if not loss.needs_positive_data]


@pytest.mark.parametrize("name", LOSSES)
def test_values(name):
    data = A + 1.0 if LOSSES[name].needs_positive_data else A
    known = np.where(RNG.random(A.shape) < 0.2, np.nan, data)
    for form, full in ((data, data), (sp.csr_array(data), data), (known, known)):
        assert LOSSES[name].value(storage_of(form), U, V) == pytest.approx(naive.factor_loss(name, full, U @ V.T), rel=1e-12)


@pytest.mark.parametrize("name", OF_ZEROS)
def test_values_of_nearly_exact_sparse_data_do_not_cancel(name):
    X, Y = np.kron(np.eye(3), np.ones((4, 1))), np.kron(np.eye(3), np.ones((3, 1)))
    data, near = X @ Y.T, (X + 1e-9 * U, Y + 1e-9 * V)
    value = LOSSES[name].value(storage_of(sp.csr_array(data)), *near)
    assert value == pytest.approx(naive.factor_loss(name, data, near[0] @ near[1].T), rel=1e-6)


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


@pytest.mark.parametrize("function", ["classical_nmf", "factorize", "verify", "choose_rank", "consensus"])
def test_docstrings_name_every_loss(function):
    text = getattr(cvxnmf, function).__doc__
    assert [name for name in LOSSES if f'"{name}"' not in text] == []


def test_a_certificate_has_words_for_every_loss():
    assert set(certificate_text.LOSSES) == set(LOSSES)


def test_data_are_not_encoded_under_a_loss_that_nobody_knows_how_to_encode(monkeypatch):
    class Unencoded(SquaredError):
        name = kind = "unencoded"
        beta = np.nan

    monkeypatch.setitem(LOSSES, "unencoded", Unencoded())
    with pytest.raises(ValueError, match="not encoded under loss='unencoded'"):
        encode(A, V.T, "unencoded")
