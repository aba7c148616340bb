"""SymmetricNMF: factors and clusters of similarities."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

import cvxnmf
from builders import three_clusters
from cvxnmf.estimators import NMF, SymmetricNMF
from cvxnmf.nmf.factorize import factorize


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_symmetric_factors_and_clusters(loss, storage):
    A = three_clusters()
    model = SymmetricNMF(3, loss=loss)
    U = model.fit_transform(storage(A))
    np.testing.assert_array_equal(U, model.embedding_)
    np.testing.assert_array_equal(U.T, model.components_)
    np.testing.assert_array_equal(model.labels_, np.argmax(U, axis=1))
    np.testing.assert_array_equal(model.fit_predict(storage(A)), model.labels_)
    assert [len(set(model.labels_[i : i + 4])) for i in (0, 4, 8)] == [1, 1, 1]
    assert len(set(model.labels_)) == model.n_components_ == 3
    certificate = cvxnmf.verify(A, U, loss=loss, effort=0)
    assert model.certificate_.value == pytest.approx(certificate.value, rel=1e-9)
    assert model.certificate_.statement["symmetric"]
    assert model.reconstruction_err_ == pytest.approx(np.sqrt((1.0 if loss == "mse" else 2.0) * certificate.value))


def test_symmetric_is_the_function():
    A = three_clusters()
    model, result = SymmetricNMF(3).fit(A), factorize(A, 3, symmetric=True)
    np.testing.assert_array_equal(model.embedding_, result.U)
    assert model.certificate_.bound == min(result.certificate.bound, model.certificate_.value)
    assert SymmetricNMF().fit(A).n_components_ == factorize(A, symmetric=True).n_components


def test_similarities_of_features():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [4.0, 4.0]], 10, axis=0) + 0.3 * rng.standard_normal((20, 2))
    of_features = SymmetricNMF(2, affinity="rbf", gamma=0.5).fit(X)
    precomputed = SymmetricNMF(2).fit(rbf_kernel(X, gamma=0.5))
    np.testing.assert_allclose(of_features.embedding_, precomputed.embedding_, atol=1e-9)
    assert len(set(of_features.labels_[:10])) == len(set(of_features.labels_[10:])) == 1
    assert of_features.labels_[0] != of_features.labels_[-1]
    assert of_features.fit_transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("data", "parameters", "sentence"),
    [
        (np.ones((3, 4)), {}, "must be a square matrix, not 3 by 4"),
        (np.array([[1.0, 2.0], [3.0, 1.0]]), {}, "not symmetric"),
        (np.array([[1.0, -2.0], [-2.0, 1.0]]), {}, "Negative values in data"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), {}, "NaN"),
        (np.eye(3), {"affinity": "cosine"}, "affinity='cosine' is not known"),
        (np.eye(3), {"loss": "l1"}, "loss='l1' is not known"),
        (np.eye(3), {"n_components": 0}, "n_components must be an integer"),
        (np.eye(3), {"affinity": "rbf", "gamma": -1.0}, "gamma must be a finite number"),
        (1e300 * np.eye(3), {"affinity": "rbf"}, r"features as large as 1e\+300 overflow"),
    ],
)
def test_symmetric_refusals(data, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        SymmetricNMF(**parameters).fit(data)


def test_only_precomputed_similarities_are_pairwise():
    assert SymmetricNMF().__sklearn_tags__().input_tags.pairwise
    assert not SymmetricNMF(affinity="rbf").__sklearn_tags__().input_tags.pairwise
    tags = NMF().__sklearn_tags__()
    assert tags.input_tags.positive_only
    assert tags.input_tags.sparse
    assert tags.input_tags.allow_nan
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]
