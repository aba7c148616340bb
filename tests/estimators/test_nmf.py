"""NMF: scikit-learn's objective and conventions, and codes that are solved to the end."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn import decomposition
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import cvxnmf
from builders import low_rank
from cvxnmf.estimators import NMF, encode
from cvxnmf.estimators.plan import make_plan
from cvxnmf.nmf.descent import classical_nmf
from cvxnmf.nmf.factorize import factorize
from cvxnmf.nmf.progress import Progress
from cvxnmf.results import Iterate

LOSSES = {"frobenius": "mse", "kullback-leibler": "kl"}


def slopes(X, H, W, loss, l1=0.0, l2=0.0):
    """Gradient in W over the observed entries that H covers."""
    seen, E = ~np.isnan(X) & (H.sum(axis=0) > 0), W @ H
    values = np.where(seen, X, 0.0)
    residual = 2.0 * (E - values) if loss == "mse" else 1.0 - values / np.where(E > 0, E, 1.0)
    return np.where(seen, residual, 0.0) @ H.T + l1 + 2.0 * l2 * W


def sklearn_objective(X, W, H, loss, alpha_W, alpha_H, l1_ratio):
    """The formula in scikit-learn's documentation, with its divergences: half the squared error, or Kullback-Leibler."""
    fit = 0.5 * np.sum((X - W @ H) ** 2) if loss == "mse" else np.sum(X * np.log(X / (W @ H)) - X + W @ H)
    m, n = X.shape
    absolute = alpha_W * l1_ratio * n * W.sum() + alpha_H * l1_ratio * m * H.sum()
    squares = alpha_W * (1 - l1_ratio) * n * np.sum(W**2) + alpha_H * (1 - l1_ratio) * m * np.sum(H**2)
    return fit + absolute + 0.5 * squares


@pytest.mark.parametrize("beta_loss", LOSSES)
def test_the_estimator_is_the_function(beta_loss):
    X = low_rank(20, 9, 3)
    model = NMF(3, beta_loss=beta_loss, tol=1e-6, max_iter=500)
    W = model.fit_transform(X)
    result = factorize(X, 3, LOSSES[beta_loss], symmetric=False, tol=1e-6, max_iter=500)
    np.testing.assert_allclose(model.components_, result.V.T, rtol=1e-10)
    np.testing.assert_allclose(W, result.U, atol=1e-2 * result.U.max())
    assert model.certificate_.value <= result.value * (1 + 1e-9)
    assert model.certificate_.bound == pytest.approx(min(result.certificate.bound, model.certificate_.value))


@pytest.mark.parametrize(("solver", "method"), [("cd", "hals"), ("mu", "multiplicative")])
@pytest.mark.parametrize("beta_loss", LOSSES)
def test_solvers_are_the_classical_methods(solver, method, beta_loss):
    X = low_rank(15, 8, 2)
    model = NMF(2, solver=solver, beta_loss=beta_loss, tol=1e-5, max_iter=1000).fit(X)
    result = classical_nmf(X, 2, method, LOSSES[beta_loss], tol=1e-5, max_iter=1000)
    np.testing.assert_allclose(model.components_, result.V.T, rtol=1e-10)


def test_the_certificate_is_about_the_fitted_factors():
    X = low_rank(18, 10, 4)
    model = NMF(3, tol=1e-6, max_iter=500)
    W = model.fit_transform(X)
    certificate = model.certificate_
    assert certificate.scope == "rank-k"
    assert certificate.value == pytest.approx(cvxnmf.verify(X, W, model.components_.T, effort=0).value, rel=1e-12)
    assert 0 < certificate.bound <= certificate.value
    assert certificate.check(X) >= certificate.bound * (1 - 1e-12)
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(X - W @ model.components_), rel=1e-10)


@pytest.mark.parametrize("solver", ["auto", "cd"])
def test_with_penalties_the_certificate_is_about_the_plain_loss(solver):
    X = low_rank(18, 10, 4)
    model = NMF(3, solver=solver, alpha_W=0.05, l1_ratio=0.5, max_iter=1000)
    W = model.fit_transform(X)
    assert model.certificate_.value == pytest.approx(np.sum((X - W @ model.components_) ** 2), rel=1e-10)
    assert model.certificate_.check(X) <= model.certificate_.value


@pytest.mark.parametrize("beta_loss", LOSSES)
def test_reconstruction_error_means_what_it_means_there(beta_loss):
    X = low_rank(15, 8, 3)
    theirs = decomposition.NMF(3, solver="mu", beta_loss=beta_loss, max_iter=2000)
    W = theirs.fit_transform(X)
    value = cvxnmf.verify(X, W, theirs.components_.T, loss=LOSSES[beta_loss], effort=0).value
    factor = 1.0 if beta_loss == "frobenius" else 2.0
    assert np.sqrt(factor * value) == pytest.approx(theirs.reconstruction_err_, rel=1e-8)
    ours = NMF(3, beta_loss=beta_loss, tol=1e-7, max_iter=2000).fit(X)
    assert ours.reconstruction_err_ == pytest.approx(np.sqrt(factor * ours.certificate_.value), rel=1e-12)
    assert ours.reconstruction_err_ <= theirs.reconstruction_err_ * 1.01


PENALTIES = [(0.02, "same", 0.3), (0.01, 0.03, 1.0), (0.01, 0.02, 0.0)]


@pytest.mark.parametrize("beta_loss", LOSSES)
@pytest.mark.parametrize(("alpha_W", "alpha_H", "l1_ratio"), PENALTIES)
def test_penalties_are_those_of_scikit_learn(beta_loss, alpha_W, alpha_H, l1_ratio):
    rng, X, loss = np.random.default_rng(1), low_rank(12, 7, 2), LOSSES[beta_loss]
    model = NMF(2, beta_loss=beta_loss, alpha_W=alpha_W, alpha_H=alpha_H, l1_ratio=l1_ratio)
    plan = make_plan(model, X.shape, None, None, in_memory=True)
    W, H = rng.random((12, 2)), rng.random((2, 7))
    value = cvxnmf.verify(X, W, H.T, loss=loss, effort=0).value
    value += plan.l1[0] * W.sum() + plan.l1[1] * H.sum() + plan.l2[0] * np.sum(W**2) + plan.l2[1] * np.sum(H**2)
    expected = sklearn_objective(X, W, H, loss, alpha_W, alpha_W if alpha_H == "same" else alpha_H, l1_ratio)
    assert value == pytest.approx(expected * (2.0 if loss == "mse" else 1.0), rel=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("beta_loss", LOSSES)
@pytest.mark.parametrize(("alpha_W", "alpha_H", "l1_ratio"), PENALTIES)
def test_scikit_learn_cannot_be_left_uphill(beta_loss, alpha_W, alpha_H, l1_ratio):
    X, loss = low_rank(12, 7, 2), LOSSES[beta_loss]
    parameters = {"beta_loss": beta_loss, "alpha_W": alpha_W, "alpha_H": alpha_H, "l1_ratio": l1_ratio, "max_iter": 2000}
    weights = alpha_W, alpha_W if alpha_H == "same" else alpha_H, l1_ratio
    theirs = decomposition.NMF(2, solver="mu", tol=1e-9, **parameters)
    W = theirs.fit_transform(X)
    ours = NMF(2, solver="cd", init="custom", tol=1e-9, **parameters)
    codes = ours.fit_transform(X, W=W, H=theirs.components_)
    reached = sklearn_objective(X, codes, ours.components_, loss, *weights)
    assert reached <= sklearn_objective(X, W, theirs.components_, loss, *weights) * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_codes_are_those_of_scikit_learn():
    X = low_rank(25, 8, 3)
    theirs = decomposition.NMF(3, alpha_W=0.01, l1_ratio=0.4, tol=1e-12, max_iter=5000).fit(X)
    ours = NMF(3, solver="cd", alpha_W=0.01, l1_ratio=0.4).fit(X)
    ours.components_ = theirs.components_
    W = theirs.transform(X)
    np.testing.assert_allclose(ours.transform(X), W, atol=1e-6)
    np.testing.assert_allclose(ours.inverse_transform(W), theirs.inverse_transform(W), rtol=1e-12)


def drop_in(NMF):
    """What a user's script does, whichever NMF it imports."""
    X = low_rank(30, 12, 3, noise=0.01)
    model = NMF(n_components=3, init="nndsvda", solver="cd", beta_loss="frobenius", tol=1e-5, max_iter=1000, random_state=0,
                alpha_W=0.0, alpha_H="same", l1_ratio=0.0, verbose=0, shuffle=False)  # fmt: skip
    W = model.fit_transform(X)
    new = model.transform(X[:5])
    assert W.shape == (30, 3)
    assert new.shape == (5, 3)
    assert (W >= 0).all()
    assert model.components_.shape == (3, 12)
    assert model.n_components_ == 3
    assert model.n_features_in_ == 12
    assert model.n_iter_ >= 1
    names = model.get_feature_names_out()
    return model.get_params(), list(names), model.reconstruction_err_, model.inverse_transform(W)


def test_a_script_for_scikit_learn_runs_unchanged():
    parameters, names, error, model = drop_in(decomposition.NMF)
    ours = drop_in(NMF)
    assert ours[0] == parameters | {"memory_limit": None, "certificate": "later"}
    assert ours[1] == names == ["nmf0", "nmf1", "nmf2"]
    assert ours[2] <= error * 1.05
    np.testing.assert_allclose(ours[3], model, atol=0.1)


def test_parameters_and_defaults_are_those_of_scikit_learn():
    own = {"solver": "auto", "memory_limit": None, "certificate": "later"}
    assert NMF().get_params() == decomposition.NMF().get_params() | own


COMPONENTS = {
    "generic": lambda rng: rng.random((5, 20)),
    "with zeros": lambda rng: rng.random((5, 20)) * (rng.random((5, 20)) < 0.4),
    "a dead one": lambda rng: np.vstack([np.zeros(20), rng.random((3, 20))]),
    "twins": lambda rng: np.repeat(rng.random((3, 20)), 2, axis=0),
    "dependent": lambda rng: rng.random((6, 2)) @ rng.random((2, 20)),
    "more than features": lambda rng: rng.random((25, 20)),
    "nearly parallel": lambda rng: 1.0 + 1e-3 * rng.random((4, 20)),
}


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize("kind", COMPONENTS)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.3, 0.0), (0.1, 0.2)])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_codes_are_optimal(loss, kind, l1, l2, missing):
    rng = np.random.default_rng(3)
    H = COMPONENTS[kind](rng)
    X = rng.random((60, 20)) * (rng.random((60, 20)) < 0.7)
    X[0] = 0.0
    X[rng.random(X.shape) < missing] = np.nan
    X[1] = np.nan if missing else 1.0
    W = encode(X, H, loss, l1, l2)
    assert (W >= 0).all()
    assert not W[0].any()
    slope = slopes(X, H, W, loss, l1, l2)
    np.testing.assert_allclose(np.minimum(W, slope), 0.0, atol=1e-8)
    np.testing.assert_allclose(encode(X[10:13], H, loss, l1, l2), W[10:13], atol=1e-7)
    if not missing:
        for storage in (sp.csr_array, sp.csc_matrix):
            np.testing.assert_allclose(encode(storage(X), H, loss, l1, l2), W, atol=1e-7)


def test_codes_are_those_of_an_independent_solver():
    rng = np.random.default_rng(4)
    H, X = rng.random((6, 15)), rng.random((40, 15))
    np.testing.assert_allclose(encode(X, H, "mse"), [nnls(H.T, row)[0] for row in X], atol=1e-10)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_codes_scale_with_the_data(loss, scale):
    rng = np.random.default_rng(5)
    H, X = rng.random((4, 15)), rng.random((10, 15))
    W = encode(X, H, loss)
    np.testing.assert_allclose(encode(scale * X, H, loss) / scale, W, atol=1e-9)
    np.testing.assert_allclose(encode(X, scale * H, loss) * scale, W, atol=1e-9)


@pytest.mark.parametrize("beta_loss", LOSSES)
@pytest.mark.parametrize("parameters", [{}, {"alpha_W": 0.02, "l1_ratio": 0.5}, {"solver": "mu"}])
def test_fit_transform_is_fit_and_transform(beta_loss, parameters):
    X = low_rank(20, 9, 3)
    X[3, 4] = 0.0
    model = NMF(3, beta_loss=beta_loss, max_iter=2000, **parameters)
    W = model.fit_transform(X)
    np.testing.assert_allclose(model.transform(X), W, atol=1e-9)
    np.testing.assert_allclose(clone(model).fit(X).transform(X), W, atol=1e-9)
    np.testing.assert_allclose(np.vstack([model.transform(X[i : i + 1]) for i in range(20)]), W, atol=1e-7)


@pytest.mark.parametrize("beta_loss", LOSSES)
def test_missing_entries_are_filled_from_the_others(beta_loss):
    truth = low_rank(30, 12, 2, noise=0.0)
    X = truth.copy()
    hidden = np.random.default_rng(0).random(X.shape) < 0.15
    X[hidden] = np.nan
    model = NMF(2, beta_loss=beta_loss, tol=1e-8, max_iter=5000)
    W = model.fit_transform(X)
    np.testing.assert_allclose(model.inverse_transform(W)[hidden], truth[hidden], rtol=0.02)
    np.testing.assert_allclose(model.transform(X), W, atol=1e-9)
    assert model.certificate_.value == pytest.approx(cvxnmf.verify(X, W, model.components_.T, LOSSES[beta_loss], 0).value)


def test_sparse_data_with_missing_entries():
    X = low_rank(20, 9, 2) * (np.random.default_rng(0).random((20, 9)) < 0.6)
    X[2, 3] = np.nan
    dense, sparse = (NMF(2, max_iter=1000).fit(data) for data in (X, sp.csr_array(X)))
    np.testing.assert_allclose(sparse.components_, dense.components_)


@pytest.mark.parametrize("beta_loss", LOSSES)
@pytest.mark.parametrize("storage", [sp.csr_matrix, sp.csc_array])
def test_sparse_is_dense(beta_loss, storage):
    X = low_rank(25, 10, 3) * (np.random.default_rng(0).random((25, 10)) < 0.4)
    dense, sparse = (NMF(2, beta_loss=beta_loss, tol=1e-9, max_iter=3000) for _ in range(2))
    W = dense.fit_transform(X)
    np.testing.assert_allclose(sparse.fit_transform(storage(X)), W, atol=1e-4)
    np.testing.assert_allclose(dense.transform(storage(X)), W, atol=1e-9)
    assert sparse.reconstruction_err_ == pytest.approx(dense.reconstruction_err_, rel=1e-7)


@pytest.mark.parametrize("beta_loss", LOSSES)
def test_single_precision_stays_single(beta_loss):
    X = low_rank(20, 9, 3).astype(np.float32)
    model = NMF(3, beta_loss=beta_loss, tol=1e-7, max_iter=3000)
    W = model.fit_transform(X)
    assert W.dtype == model.components_.dtype == model.transform(X).dtype == np.float32
    assert model.transform(X.astype(float)).dtype == np.float64
    np.testing.assert_array_equal(model.transform(X), W)
    double = clone(model).fit(X.astype(float))
    assert model.reconstruction_err_ == pytest.approx(double.reconstruction_err_, rel=1e-5)
    assert model.certificate_.value == pytest.approx(
        cvxnmf.verify(X, W, model.components_.T, LOSSES[beta_loss], 0).value, rel=1e-9
    )


def test_frames_in_and_out():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(low_rank(12, 4, 2), columns=list("abcd"), index=range(100, 112))
    model = NMF(2, max_iter=2000).set_output(transform="pandas")
    W = model.fit_transform(X)
    assert list(model.feature_names_in_) == list("abcd")
    assert list(W.columns) == ["nmf0", "nmf1"]
    assert list(W.index) == list(X.index)
    pandas.testing.assert_frame_equal(model.transform(X), W)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X.rename(columns={"a": "z"}))


def test_data_are_not_changed():
    X = low_rank(12, 6, 2)
    X[0, 0] = np.nan
    before = X.copy()
    model = NMF(2, max_iter=2000)
    parameters = model.get_params()
    model.fit(X).transform(X)
    np.testing.assert_array_equal(X, before)
    assert model.get_params() == parameters


def test_one_row_one_column_and_more_components_than_either():
    for X in (np.arange(1.0, 6.0)[None], np.arange(1.0, 6.0)[:, None]):
        model = NMF("convex", max_iter=1000).fit(X)
        assert model.n_components_ == 1
        assert model.reconstruction_err_ < 1e-6
    X = low_rank(4, 3, 2)
    model = NMF(6, tol=1e-8, max_iter=5000)
    W = model.fit_transform(X)
    assert W.shape == (4, 6)
    assert model.components_.shape == (6, 3)
    assert model.certificate_.statement["n_components"] == 6
    assert model.reconstruction_err_ < 1e-2


def test_numbers_of_components():
    X = low_rank(12, 5, 2)
    found = factorize(X, None, symmetric=False, tol=1e-4, max_iter=2000).n_components
    assert NMF("convex", max_iter=2000).fit(X).n_components_ == found < 5
    assert NMF("auto", max_iter=2000).fit(X).n_components_ == 5
    with pytest.raises(ValueError, match="n_components='convex' is for solver='auto'"):
        NMF("convex", solver="cd").fit(X)
    assert NMF(None, max_iter=2000).fit(X).n_components_ == 5
    assert NMF(solver="cd", max_iter=2000).fit(X).n_components_ == 5
    assert NMF(init="custom", max_iter=2000).fit(X, W=np.ones((12, 3)), H=np.ones((3, 5))).n_components_ == 3
    assert NMF(alpha_W=0.01, max_iter=2000).fit(X).n_components_ >= 1


def test_only_random_starts_are_random():
    X = low_rank(15, 8, 4, noise=0.5)
    first, same, other = (NMF(3, init="random", random_state=seed, max_iter=5).set_params(tol=0).fit(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.components_, same.components_)
    assert not np.allclose(first.components_, other.components_)
    for init in (None, "nndsvd", "nndsvda", "nndsvdar", "convex"):
        one, two = (NMF(3, init=init, solver="cd", random_state=seed, max_iter=1000).fit(X) for seed in (0, 1))
        np.testing.assert_array_equal(one.components_, two.components_)


def test_a_custom_start_is_where_it_begins():
    X = low_rank(15, 8, 2, noise=0.0)
    rng = np.random.default_rng(0)
    W, H = rng.random((15, 2)), rng.random((2, 8))
    model = NMF(2, init="custom", tol=1e-7, max_iter=2000).fit(X, W=W, H=H)
    result = classical_nmf(X, 2, init=(W, H.T), tol=1e-7, max_iter=2000)
    np.testing.assert_allclose(model.components_, result.V.T, rtol=1e-10)
    with pytest.raises(ValueError, match="needs both W and H"):
        NMF(2, init="custom").fit(X, W=W)
    with pytest.warns(RuntimeWarning, match="init='custom'"):
        NMF(2, max_iter=2000).fit(X, W=W, H=H)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"beta_loss": "euclid"}, "beta_loss='euclid' is not known"),
        ({"beta_loss": [2]}, "is not known"),
        ({"solver": "lbfgs"}, "solver='lbfgs' is not known"),
        ({"init": "zeros"}, "init='zeros' is not known"),
        ({"n_components": "mle"}, "n_components must be an integer of at least 1, 'auto', 'convex' or None"),
        ({"n_components": 0}, "n_components must be an integer of at least 1"),
        ({"tol": -1.0}, "tol must be a finite number"),
        ({"max_iter": 0}, "max_iter must be an integer"),
        ({"alpha_W": -1.0}, "alpha_W must be a finite number"),
        ({"alpha_H": "other"}, "alpha_H must be a finite number"),
        ({"l1_ratio": 1.5}, "l1_ratio must be from 0 to 1"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        NMF(**parameters).fit(low_rank(6, 4, 2))


def test_refused_data():
    model = NMF(2, max_iter=2000).fit(low_rank(6, 4, 2))
    for X in (-np.ones((3, 4)), sp.csr_array(-np.eye(4)), np.array([[np.nan, -1.0, 1.0, 1.0]])):
        for method in (model.transform, clone(model).fit):
            with pytest.raises(ValueError, match="Negative values in data"):
                method(X)
    with pytest.raises(ValueError, match="infinity"):
        NMF(2).fit(np.full((4, 3), np.inf))
    with pytest.raises(ValueError, match="one per component"):
        model.inverse_transform(np.ones((2, 3)))
    with pytest.raises(NotFittedError):
        NMF().transform(np.ones((2, 2)))
    np.testing.assert_array_equal(model.transform(np.zeros((2, 4))), np.zeros((2, 2)))


def test_too_few_iterations_warn_and_zero_tolerance_does_not():
    X = low_rank(20, 10, 4, noise=0.5)
    with pytest.warns(ConvergenceWarning, match="Maximum number of iterations 2 reached"):
        NMF(3, solver="mu", max_iter=2).fit(X)
    assert NMF(3, solver="mu", max_iter=2, tol=0).fit(X).n_iter_ == 2


def test_progress_goes_to_standard_error(capsys):
    NMF(2, solver="cd", verbose=1, max_iter=1000).fit(low_rank(8, 5, 2))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "NMF [" in printed.err
    assert "start 1 of 1, step 1, loss" in printed.err
    assert printed.err.count("\n") < 5
    NMF(3, verbose=1).fit(low_rank(200, 20, 5, noise=0.5))
    assert 0 < capsys.readouterr().err.count("\n") < 5


def test_the_line_says_the_start_the_loss_the_bound_and_the_time_left(capsys):
    seen = []
    X = low_rank(30, 20, 5, noise=0.5)
    cvxnmf.factorize(X, 3, certificate="now", callback=seen.append, verbose=1)
    assert all(iterate.stage.startswith("start ") and "at most" in iterate.stage for iterate in seen[:-1])
    shares = [iterate.share for iterate in seen]
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] == 1.0
    assert seen[-1].bound > 0
    assert ", bound " in capsys.readouterr().err
    line = Progress("task", 100, None).line(Iterate(10, 9.0, 5.0, 0.0, 3, "start 2 of 4", 0.25), 9.0)
    assert line == "task [#####               ] start 2 of 4, step 10, loss 5, 9 s, at most about 27 s left"


def test_a_line_that_changes_is_full_and_stays_at_the_end(capsys):
    progress = Progress("task", 100, None)
    progress.changing = True
    progress.end()
    assert capsys.readouterr().err == ""
    progress(Iterate(10, 9.0, 5.0, 0.0, 3, "start 2 of 4", 0.25))
    progress.end()
    changing, last = capsys.readouterr().err.split("\r")
    assert changing.startswith("task [#####     ")
    assert last.startswith("task [####################] start 2 of 4, step 10, loss 5, ")
    assert last.endswith("\n")


def test_the_certificate_is_proved_when_somebody_looks_or_pickles():
    X = np.random.default_rng(0).random((30, 12))
    model = NMF(3).fit(X)
    assert callable(model._proof)
    kept = pickle.loads(pickle.dumps(NMF(3).fit(X)))
    assert not callable(kept._proof)
    now = NMF(3, certificate="now").fit(X)
    assert not callable(now._proof)
    assert model.certificate_.bound == kept.certificate_.bound == now.certificate_.bound > 0
    assert model.certificate_ is model.certificate_
    assert model.certificate_.value == pytest.approx(model.reconstruction_err_**2)
    assert not hasattr(NMF(3), "certificate_")
    with pytest.raises(ValueError, match="certificate='soon' is not known"):
        NMF(3, certificate="soon").fit(X)
