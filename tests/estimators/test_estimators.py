"""All estimators: scikit-learn's own checks, pipelines, pickles."""

import pickle

import numpy as np
import pytest
from estimator_checks import sample_weight_exceptions
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from builders import low_rank, three_clusters
from cvxnmf.estimators import NMF, GraphPartitioner, SymmetricNMF


def exceptions(estimator):
    """Checks that cannot hold, each with its reason."""
    if isinstance(estimator, SymmetricNMF | GraphPartitioner) and estimator.affinity == "precomputed":
        return {"check_clustering": "it passes features, also to estimators that take precomputed similarities"}
    if isinstance(estimator, NMF):
        return sample_weight_exceptions(estimator)
    return {}


#: Settings that take other ways through an estimator; the rest are more of the same.
SETTINGS = [
    NMF(),
    NMF(2, beta_loss="kullback-leibler", max_iter=10),
    NMF(2, solver="cd", alpha_W=0.01, l1_ratio=0.5),
    SymmetricNMF(2, tol=1e-3, max_iter=100),
    GraphPartitioner(3, affinity="nearest_neighbors"),
    GraphPartitioner(),
]
MORE_SETTINGS = [
    NMF(None, solver="mu", max_iter=30),
    NMF(3, init="random", random_state=0),
    SymmetricNMF(3, affinity="rbf", tol=1e-3, max_iter=100),
    GraphPartitioner(3, affinity="rbf"),
    GraphPartitioner(2),
]
QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::sklearn.exceptions.SkipTestWarning")


@QUIET
@parametrize_with_checks(SETTINGS, expected_failed_checks=exceptions)
def test_scikit_learn_accepts(estimator, check):
    check(estimator)


@QUIET
@pytest.mark.slow
@parametrize_with_checks(MORE_SETTINGS, expected_failed_checks=exceptions)
def test_scikit_learn_accepts_more_settings(estimator, check):
    check(estimator)


def test_in_a_pipeline_and_a_grid_search():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 20)
    X = low_rank(40, 8, 2, noise=0.01) + 2.0 * labels[:, None] * (np.arange(8) < 4) + 0.01 * rng.random((40, 8))
    pipeline = make_pipeline(MinMaxScaler(clip=True), NMF(2, max_iter=1000), LogisticRegression())
    search = GridSearchCV(pipeline, {"nmf__n_components": [1, 3], "nmf__alpha_W": [0.0, 1e-3]}, cv=2).fit(X, labels)
    assert search.best_score_ > 0.9
    assert search.best_estimator_[:-1].transform(X).shape == (40, search.best_params_["nmf__n_components"])


@pytest.mark.parametrize("model", [NMF(2, max_iter=2000), SymmetricNMF(3)])
def test_pickled_and_cloned(model):
    A = three_clusters()
    model = clone(model).fit(A)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.components_, model.components_)
    assert again.certificate_.check(A) == model.certificate_.check(A)
    np.testing.assert_array_equal(clone(model).fit(A).components_, model.components_)
    assert not hasattr(clone(model), "components_")
