"""One protocol of data: the same answers dense, sparse and in row chunks."""

from contextlib import ExitStack

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import random_factors
from cvxnmf.nmf.chunked_data import ChunkedData
from cvxnmf.nmf.data_matrix import NO_PENALTY, Penalty
from cvxnmf.nmf.extrapolation import Extrapolation
from cvxnmf.nmf.loss_names import LOSSES
from cvxnmf.nmf.open import data_in_memory
from cvxnmf.nmf.prepare import checked_matrix
from cvxnmf.nmf.updates.hals import HALS
from cvxnmf.nmf.updates.least_squares import LeastSquares, QuasiNewton
from cvxnmf.nmf.updates.multiplicative import Multiplicative
from row_chunk_builders import dask_chunks, in_chunks, sparse_counts

A = sparse_counts(90).toarray()
U, V = random_factors(A.shape, 3)
KINDS = ["dense", "sparse", "rows", "sparse rows", "dask"]
PENALTY = Penalty((0.1, 0.2), (0.3, 0.4))


@pytest.fixture
def data(request):
    """The same data in one of its forms."""
    with ExitStack() as stack:
        kind, loss = request.param
        if kind in ("dense", "sparse"):
            yield data_in_memory(A if kind == "dense" else sp.csr_array(A), LOSSES[loss], keep_given=False)[1]
        else:
            form = {"rows": A, "sparse rows": sp.csr_array(A), "dask": dask_chunks(A)}[kind]
            yield ChunkedData(stack.enter_context(in_chunks(form)))


def forms(*losses):
    """All forms for each loss."""
    cases = [(kind, loss) for kind in KINDS for loss in losses]
    return pytest.mark.parametrize("data", cases, indirect=True, ids=[" ".join(case) for case in cases])


def naive(loss, U, V):
    E = U @ V.T
    return np.sum((A - E) ** 2 if loss == "mse" else np.where(A > 0, A * np.log(np.where(A > 0, A, 1) / E), 0) - A + E)


@forms("mse", "kl")
def test_totals(data):
    positive = A[A > 0]
    assert data.shape == A.shape
    assert not data.single
    assert data.energy == pytest.approx(np.sum(A**2), rel=1e-13)
    assert data.total == pytest.approx(np.sum(A), rel=1e-13)
    assert data.entropy == pytest.approx(np.sum(positive * np.log(positive) - positive), rel=1e-12)


@forms("mse", "kl")
def test_a_factor_is_held_and_collected(data):
    held = data.hold(U, PENALTY)
    np.testing.assert_array_equal(data.collect(held), U)
    assert held.penalty == pytest.approx(0.1 * U.sum() + 0.3 * np.sum(U**2))


@forms("mse")
@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_the_loss_is_that_of_the_formula(data, loss):
    assert data.loss_value(LOSSES[loss], data.hold(U, NO_PENALTY), V) == pytest.approx(naive(loss, U, V), rel=1e-12)
    assert data.filled_loss(LOSSES[loss], data.hold(U, NO_PENALTY), V) == 0.0


@forms("mse")
@pytest.mark.parametrize("rule", [HALS(2), Multiplicative(), LeastSquares(), QuasiNewton()], ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("extrapolation", [None, Extrapolation(wait=0, weight=0.5)], ids=["plain", "extrapolated"])
def test_rows_are_updated_and_the_objective_in_V_follows(data, rule, extrapolation):
    loss, reference = LOSSES["mse"], checked_matrix(A, False, LOSSES["mse"])
    held, in_V = data.update_rows(rule, loss, PENALTY, data.hold(U, PENALTY), V, extrapolation)
    expected, expected_in_V = reference.update_rows(rule, loss, PENALTY, reference.hold(U, PENALTY), V, extrapolation)
    new = data.collect(held)
    np.testing.assert_allclose(new, reference.collect(expected), rtol=1e-9, atol=1e-12)
    assert held.penalty == pytest.approx(0.1 * new.sum() + 0.3 * np.sum(new**2), rel=1e-12)
    assert in_V.value(V) == pytest.approx(naive("mse", new, V) + 0.2 * V.sum() + 0.4 * np.sum(V**2), rel=1e-10)
    np.testing.assert_allclose(in_V.gradient(V), expected_in_V.gradient(V), rtol=1e-8, atol=1e-9)


@forms("kl")
def test_the_divergence_in_V(data):
    loss = LOSSES["kl"]
    held, in_V = data.update_rows(Multiplicative(), loss, PENALTY, data.hold(U, PENALTY), V, None)
    new = data.collect(held)
    E = U @ V.T
    np.testing.assert_allclose(new, U * ((A / E) @ V) / (V.sum(axis=0) + 0.1 + 0.6 * U), rtol=1e-10)
    assert in_V.value(V) == pytest.approx(naive("kl", new, V) + 0.2 * V.sum() + 0.4 * np.sum(V**2), rel=1e-10)
    negative, positive = in_V.gradient_parts(V)
    np.testing.assert_allclose(negative, (A / (new @ V.T)).T @ new, rtol=1e-10)
    np.testing.assert_allclose(positive, np.broadcast_to(new.sum(axis=0) + 0.2 + 0.8 * V, V.shape), rtol=1e-10)


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_missing_entries_hold_the_model(kind, loss):
    hidden = np.random.default_rng(0).random(A.shape) < 0.2
    known = np.where(hidden, np.nan, A)
    data = data_in_memory(known if kind == "dense" else sp.csr_array(known), LOSSES[loss], keep_given=False)[1]
    held = data.hold(U, NO_PENALTY)
    value = data.loss_value(LOSSES[loss], held, V)
    E = U @ V.T
    parts = (A - E) ** 2 if loss == "mse" else np.where(A > 0, A * np.log(np.where(A > 0, A, 1) / E), 0) - A + E
    assert value == pytest.approx(parts[~hidden].sum(), rel=1e-12)
    np.testing.assert_allclose(data.filled_values, E[data.missing.rows, data.missing.columns], rtol=1e-12)
    at_V = data.transposed.A if kind == "dense" and not data.storage.sparse else data.transposed.A.toarray()
    np.testing.assert_allclose(at_V.T[hidden], E[hidden], rtol=1e-12)
    assert data.energy == pytest.approx(np.sum(A[~hidden] ** 2), rel=1e-13)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rounding_of_single_precision_is_said_once_everywhere(form):
    A = np.random.default_rng(0).random((12, 12))
    A = A + A.T
    A[0, 1] *= 1 + 1e-7
    for call in (cvxnmf.classical_nmf, cvxnmf.factorize):
        with pytest.warns(UserWarning, match="single precision; their mean is taken") as said:
            call(form(A), 2, symmetric=True)
        assert len(said) == 1
    A[0, 1] *= 1.1
    with pytest.raises(ValueError, match="use symmetric=False, or pass"):
        cvxnmf.classical_nmf(form(A), 2, symmetric=True)


def test_sums_over_the_entries_are_taken_once():
    calls, data = [], data_in_memory(A, LOSSES["mse"], keep_given=False)[1]

    def halves(entries):
        calls.append(len(entries))
        return 0.5 * entries

    assert data.observed_sum(halves) == data.observed_sum(halves) == pytest.approx(0.5 * A.sum())
    assert calls == [A.size]


@pytest.mark.parametrize("sparse", [False, True])
def test_filled_values_are_those_of_the_storage_and_of_the_flipped_data(sparse):
    A = np.random.default_rng(0).random((9, 7)) + 0.1
    A[[0, 4, 8], [6, 1, 2]] = np.nan
    data = data_in_memory(sp.csr_array(A) if sparse else A, LOSSES["mse"], keep_given=False)[1]
    other = data.transpose()
    for one, values in ((data, [1.0, 2.0, 3.0]), (other, [4.0, 5.0, 6.0])):
        one.fill(np.array(values))
        for held in (data, other):
            np.testing.assert_array_equal(held.filled_values, values)
            np.testing.assert_array_equal(held.storage.entries[held.missing.places], values)
            np.testing.assert_array_equal(held.transposed.entries[held._transposed_places], values)
