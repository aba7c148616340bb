"""Weights of samples, all-zero data, metadata routing and callbacks of NMF and MiniBatchNMF."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from cvxnmf import NMF, MiniBatchNMF

RNG = np.random.default_rng(0)
X = RNG.gamma(1.0, 1.0, (40, 3)) @ RNG.gamma(0.5, 1.0, (3, 12)) * RNG.gamma(8.0, 1 / 8, (40, 12)) + 1e-3
WEIGHTS = RNG.integers(0, 3, 40)
OPTIONS = {"tol": 1e-9, "max_iter": 3000}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize(("beta_loss", "solver"), [(2, "auto"), (2, "cd"), (1, "mu"), (0, "auto"), (0.5, "cd"), (1.5, "cd")])
def test_a_weight_of_two_is_a_sample_given_twice(beta_loss, solver):
    weighted = NMF(3, solver=solver, beta_loss=beta_loss, **OPTIONS).fit(X, sample_weight=WEIGHTS)
    repeated = NMF(3, solver=solver, beta_loss=beta_loss, **OPTIONS).fit(np.repeat(X, WEIGHTS, axis=0))
    assert weighted.reconstruction_err_ == pytest.approx(repeated.reconstruction_err_, rel=1e-5)
    assert weighted.certificate_.bound == pytest.approx(repeated.certificate_.bound, rel=1e-8)
    W = NMF(3, solver=solver, beta_loss=beta_loss, **OPTIONS).fit_transform(X, sample_weight=WEIGHTS)
    np.testing.assert_allclose(weighted.transform(X), W, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("beta_loss", "l1_ratio"), [(2, 0.0), (1, 1.0)])
def test_penalties_count_as_often_as_the_sample(beta_loss, l1_ratio):
    options = {"solver": "cd", "beta_loss": beta_loss, "alpha_W": 0.01, "alpha_H": 0.02, "l1_ratio": l1_ratio, **OPTIONS}
    weighted, repeated = NMF(3, **options).fit(X, sample_weight=WEIGHTS), NMF(3, **options).fit(np.repeat(X, WEIGHTS, axis=0))
    assert weighted.reconstruction_err_ == pytest.approx(repeated.reconstruction_err_, rel=1e-4)
    assert weighted.components_.sum() == pytest.approx(repeated.components_.sum(), rel=1e-4)
    with pytest.raises(ValueError, match="sample_weight with a penalty on W is known for squares"):
        NMF(3, solver="cd", alpha_W=0.01, l1_ratio=0.5).fit(X, sample_weight=WEIGHTS)


@pytest.mark.parametrize("beta_loss", [2, 1, 0, 0.5])
def test_batches_with_weights(beta_loss):
    options = {"beta_loss": beta_loss, "max_iter": 200, "max_no_improvement": None, "tol": 0}
    weighted = MiniBatchNMF(3, **options).fit(X, sample_weight=WEIGHTS)
    repeated = MiniBatchNMF(3, **options).fit(np.repeat(X, WEIGHTS, axis=0))
    close = 0.12 if beta_loss == 0.5 else 1e-2  # batches in another order, which at 1/2 end in another minimum
    assert weighted.reconstruction_err_ == pytest.approx(repeated.reconstruction_err_, rel=close)
    first, second = MiniBatchNMF(3, beta_loss=beta_loss), MiniBatchNMF(3, beta_loss=beta_loss)
    for model, batch, weights in ((first, X[:9], np.full(9, 3.0)), (second, sp.csr_array(X[:9]), None)):
        model.partial_fit(X).partial_fit(batch, sample_weight=weights)
    assert not np.allclose(first.components_, second.components_)


def test_wrong_weights_are_refused_in_a_sentence():
    for given, sentence in (
        (WEIGHTS[:3], r"sample_weight.shape == \(3,\), expected \(40,\)"),
        (-np.ones(40), "Negative values in data passed to sample_weight"),
        (np.zeros(40), "All of sample_weight are zero"),
        (["a"] * 40, "sample_weight must be numbers"),
        (np.ones((40, 1)), "1D array or scalar"),
    ):
        for model in (NMF(3), MiniBatchNMF(3)):
            with pytest.raises(ValueError, match=sentence):
                model.fit(X, sample_weight=given)
    with pytest.raises(ValueError, match="goes with each of its batches"):
        MiniBatchNMF(3).fit(iter([X]), sample_weight=WEIGHTS)


def test_all_zero_data_have_zero_factors():
    for model in (NMF(2), NMF(2, solver="mu"), NMF(), NMF("convex"), MiniBatchNMF(2)):
        for zeros in (np.zeros((6, 4), dtype=np.float32), sp.csr_array((6, 4))):
            W = model.fit_transform(zeros)
            assert not W.any()
            assert not model.components_.any()
            assert W.shape[1] == model.components_.shape[0] == model.n_components_
            assert model.reconstruction_err_ == model.certificate_.value == model.certificate_.bound == 0.0
            assert not model.transform(np.ones((2, 4))).any()
    with pytest.raises(ValueError, match="first batch of a stream is all zeros"):
        MiniBatchNMF(2).partial_fit(np.zeros((6, 4)))
    later = MiniBatchNMF(2).partial_fit(X).partial_fit(np.zeros_like(X))
    assert np.isfinite(later.components_).all()


def test_weights_are_routed_through_a_pipeline():
    with sklearn.config_context(enable_metadata_routing=True):
        model = NMF(3, **OPTIONS).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(MaxAbsScaler(), model).fit(X, sample_weight=WEIGHTS)
    alone = NMF(3, **OPTIONS).fit(MaxAbsScaler().fit_transform(X), sample_weight=WEIGHTS)
    np.testing.assert_array_equal(pipeline[-1].components_, alone.components_)


class Listener:
    """Counts tasks, keeps the last fitted estimator, and asks to stop after so many."""

    def __init__(self, most):
        self.most, self.begun, self.ended, self.fitted = most, 0, 0, None

    def setup(self, estimator, context):
        self.order = ["setup"]

    def teardown(self, estimator, context):
        self.order.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.begun += 1

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.ended += 1
        self.fitted = fitted_estimator or self.fitted
        return self.ended >= self.most


@pytest.mark.parametrize("model", [NMF(3, solver="cd", tol=0), NMF(3, tol=0), MiniBatchNMF(3, batch_size=10, tol=0)])
def test_callbacks_of_scikit_learn_are_told_and_may_stop(model):
    pytest.importorskip("sklearn.callback")
    listener = Listener(most=5)
    model.set_callbacks(listener).fit(X)
    assert listener.order == ["setup", "teardown"]
    assert listener.begun == listener.ended == 6  # five iterations and the fit itself
    assert listener.fitted.transform(X).shape == (40, 3)


def test_a_copy_does_not_prove():
    model = NMF(3).fit(X)
    assert callable(copy.copy(model)._proof)
    assert copy.copy(model).certificate_.bound == model.certificate_.bound
