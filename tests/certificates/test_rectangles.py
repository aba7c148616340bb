"""Bounds for data with missing entries: never above any factorisation, and rectangles made to deceive the check."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import prove
from cvxnmf.nmf.bound_goal import DEFAULT_LIMITS, Goal
from cvxnmf.nmf.rectangle_bounds import rectangle_bounds


def found(A, k, loss="mse", symmetric=False):
    statement = cvxnmf.certificates.RankStatement(loss, k, symmetric)
    with np.errstate(all="ignore"):
        return list(rectangle_bounds(Goal(A, statement, np.inf, None, DEFAULT_LIMITS)))


def with_gaps(A, share, seed=0):
    return np.where(np.random.default_rng(seed).random(A.shape) < share, np.nan, A)


def loss_of(A, X, loss):
    seen = ~np.isnan(A)
    a, x = A[seen], X[seen]
    if loss == "mse":
        return float(np.sum((a - x) ** 2))
    return float(np.sum(np.where(a > 0, a * np.log(np.where(a > 0, a, 1.0) / x), 0.0) - a + x))


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize("seed", range(8))
def test_no_model_is_below_the_bound(loss, seed):
    rng = np.random.default_rng(seed)
    shape, k = [(30, 8), (9, 40), (25, 12), (16, 16)][seed % 4], 1 + seed % 3
    U, V = rng.gamma(0.7, size=(shape[0], k)) + 0.01, rng.gamma(0.7, size=(shape[1], k)) + 0.01
    A = with_gaps(U @ V.T * rng.gamma(1 / (0.1 + seed), 0.1 + seed, shape), 0.1, seed)
    best = min(loss_of(A, U @ V.T, loss), cvxnmf.factorize(A, k, loss=loss, symmetric=False, max_iter=100).value)
    for each in found(A, k, loss):
        assert each.proof.rigorous
        assert 0 <= each.proof.bound <= best


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_rectangles_prove_more_than_one_observed_part(loss):
    rng = np.random.default_rng(0)
    A = with_gaps(rng.poisson(3.0 * rng.gamma(0.5, size=(150, 3)) @ rng.gamma(0.5, size=(3, 20)) + 0.3).astype(float), 0.05)
    factors = cvxnmf.classical_nmf(A, 2, loss=loss, max_iter=100)
    certificate = cvxnmf.verify(A, factors, loss=loss)
    assert certificate.kind == "rectangles"
    assert certificate.bound > 0.3 * certificate.value
    assert certificate.check(A) == certificate.bound
    again = cvxnmf.verify(A, factors, loss=loss)
    assert again.bound == certificate.bound  # the random sets are seeded by what is missing
    turned = cvxnmf.verify(A.T, factors.V, factors.U, loss=loss)
    assert turned.bound == pytest.approx(certificate.bound, rel=1e-9)


def test_sparse_data_without_gaps_are_not_filled():
    A = sp.random_array((200_000, 100_000), density=1e-6, rng=np.random.default_rng(0), format="csr")  # 160 GB if filled
    assert found(A, 2) == []


def test_rectangles_of_symmetric_data():
    rng = np.random.default_rng(3)
    U = rng.gamma(0.5, size=(30, 2))
    A = U @ U.T * rng.gamma(5.0, 0.2, (30, 30))
    A = (A + A.T) / 2
    gaps = np.triu(rng.random((30, 30)) < 0.03)
    A[gaps | gaps.T] = np.nan
    (each,) = found(A, 2, symmetric=True)
    assert 0 < each.proof.bound <= loss_of(A, U @ U.T, "mse")


class TestForgeries:
    """Rectangles made to deceive the check."""

    A = with_gaps(np.random.default_rng(0).random((12, 6)), 0.1, seed=2)
    sets = np.eye(6)[:2] + np.eye(6)[2:4]
    rows = np.array([~np.isnan(A[:, [0, 2]]).any(axis=1), ~np.isnan(A[:, [1, 3]]).any(axis=1)]).T
    weights = rows * (1 - 1e-10)

    def prove(self, loss="mse", **witness):
        terms = {"form": "rank", "loss": loss, "n_components": 1, "symmetric": False}
        return prove(self.A, "rectangles", terms, {"sets": self.sets, "weights": self.weights} | witness)

    def refused(self, sentence, **witness):
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            self.prove(**witness)

    def test_as_it_is(self):
        parts = [self.A[np.ix_(rows, columns > 0)] for rows, columns in zip(self.rows.T, self.sets, strict=True)]
        tails = sum(np.linalg.svd(part, compute_uv=False)[1] ** 2 for part in parts)
        assert self.prove().bound == pytest.approx(tails, rel=1e-8)

    def test_forged_rectangles(self):
        self.refused("more than once", weights=self.rows * 1.0)
        self.refused("more than once", sets=np.ones((2, 6)) * (np.arange(6) < 4), weights=self.weights)
        self.refused("negative", weights=-self.weights)
        self.refused("do not match", sets=2 * self.sets)
        self.refused("do not match", sets=self.sets[:, :5])
        self.refused("do not match", weights=self.weights[:-1])
        self.refused("missing entries", weights=np.full((12, 2), 0.9))
        self.refused("lacks its witness", loss="kl")
        self.refused("does not match", loss="kl", y=np.ones((12, 3)))
        self.refused("not finite", weights=np.where(self.rows, np.nan, 0.0))

    def test_not_for_scaled_data(self):
        A = np.ones((3, 3))
        terms = {"form": "rank", "loss": "mse", "n_components": 1, "symmetric": True, "scaling": "degree"}
        with pytest.raises(cvxnmf.CertificateError, match="not scaled"):
            prove(A, "rectangles", terms, {"sets": np.ones((1, 3)), "weights": np.full((3, 1), 0.5)})
