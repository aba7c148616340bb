"""MiniBatchNMF: batches, streams, bad streams; the function form of NMF."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from estimator_checks import sample_weight_exceptions
from sklearn.decomposition import MiniBatchNMF as Theirs
from sklearn.utils.estimator_checks import parametrize_with_checks

from cvxnmf import NMF, MiniBatchNMF, non_negative_factorization
from cvxnmf.linalg.threads import single_thread

RNG = np.random.default_rng(2)
X = RNG.gamma(1.0, 1.0, (300, 4)) @ RNG.gamma(0.3, 1.0, (4, 20)) * RNG.gamma(8.0, 1 / 8, (300, 20)) + 1e-3


@parametrize_with_checks([MiniBatchNMF(2, max_iter=5)], expected_failed_checks=sample_weight_exceptions)
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("beta_loss", [2, 1, 0, 0.5, 1.2])
def test_as_good_as_scikit_learn(beta_loss):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (kind(4, batch_size=50, beta_loss=beta_loss, max_iter=60).fit(X) for kind in (MiniBatchNMF, Theirs))
    assert ours.reconstruction_err_ <= 1.02 * theirs.reconstruction_err_


@pytest.mark.parametrize("beta_loss", [2, 1, 0.5])
def test_sparse_is_as_dense_and_fit_transform_is_transform(beta_loss):
    dense = MiniBatchNMF(3, batch_size=64, beta_loss=beta_loss, max_iter=3, tol=0)
    W = dense.fit_transform(X)
    sparse = MiniBatchNMF(3, batch_size=64, beta_loss=beta_loss, max_iter=3, tol=0).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.components_, dense.components_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(dense.transform(X), W, rtol=1e-4, atol=1e-6)
    assert dense.certificate_.value == pytest.approx(dense.reconstruction_err_**2 / (1 if beta_loss == 2 else 2))


@pytest.mark.parametrize("beta_loss", [2, 1, 0.5])
def test_a_stream_is_partial_fit_for_each_batch(beta_loss):
    batches = [X[first : first + 60] for first in range(0, 300, 60)]
    stream = MiniBatchNMF(4, beta_loss=beta_loss).fit(iter(batches))
    parts = MiniBatchNMF(4, beta_loss=beta_loss)
    for batch in batches:
        parts.partial_fit(batch)
    assert stream.n_steps_ == parts.n_steps_ == 5
    assert np.array_equal(stream.components_, parts.components_)
    W = non_negative_factorization(X, H=parts.components_, update_H=False, beta_loss=beta_loss)[0]
    np.testing.assert_allclose(parts.transform(X), W)


def test_bad_streams_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="X has 19 features, but MiniBatchNMF is expecting 20"):
        MiniBatchNMF(3).fit(iter([X[:50], X[50:100], X[100:150, :19]]))
    with pytest.raises(ValueError, match="Negative values in data passed to MiniBatchNMF"):
        MiniBatchNMF(3).fit(iter([X[:50], X[50:100], -X[100:150]]))
    with pytest.raises(ValueError, match="X contains zeros, .* needs positive data"):
        MiniBatchNMF(3, beta_loss="itakura-saito").fit(iter([X[:50], np.where(X[:50] < 0.1, 0.0, X[:50])]))
    with pytest.raises(ValueError, match="The stream has no batches"):
        MiniBatchNMF(3).fit(iter([]))
    with pytest.raises(ValueError, match="forget_factor must be from 0 to 1"):
        MiniBatchNMF(3, forget_factor=2.0).fit(X)


def test_same_bits_for_any_number_of_threads():
    many = MiniBatchNMF(3, batch_size=100, beta_loss=0.5, max_iter=2, tol=0).fit(X)
    with single_thread():
        one = MiniBatchNMF(3, batch_size=100, beta_loss=0.5, max_iter=2, tol=0).fit(X)
    assert np.array_equal(many.components_, one.components_)


def test_function_form():
    W, H, n_iter = non_negative_factorization(X, n_components=3, beta_loss=1.5)
    model = NMF(3, solver="cd", beta_loss=1.5)
    assert np.array_equal(model.fit_transform(X), W)
    assert n_iter == model.n_iter_
    np.testing.assert_allclose(non_negative_factorization(X, H=H, update_H=False, beta_loss=1.5)[0], W, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="needs H"):
        non_negative_factorization(X, update_H=False)
    with pytest.raises(ValueError, match="H has 19 columns, but X has 20 features"):
        non_negative_factorization(X, H=H[:, :19], update_H=False)


def test_progress_is_a_few_lines(capsys):
    MiniBatchNMF(2, batch_size=50, max_iter=3, tol=0, verbose=1).fit(X)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "MiniBatchNMF [" in printed.err
    assert printed.err.count("\n") < 5


def test_components_that_a_penalty_takes_to_zero_are_no_error():
    X = np.abs(np.random.RandomState(42).randn(6, 5))  # noqa: NPY002  # scikit-learn's own example
    assert not MiniBatchNMF(3, alpha_W=0.5, l1_ratio=1.0).fit(X).components_.any()
