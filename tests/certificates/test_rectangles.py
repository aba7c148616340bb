"""Bounds for data with missing entries: never above any factorisation, and rectangles made to deceive the check."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import prove
from cvxnmf.nmf.bound_goal import DEFAULT_LIMITS, Goal
from cvxnmf.nmf.rectangle_bounds import rectangle_bounds
from tiers import slow_but


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
@pytest.mark.parametrize("seed", slow_but(range(4), range(8)))
def test_no_model_is_below_the_bound(loss, seed):
    rng = np.random.default_rng(seed)
    shape, k = [(30, 8), (9, 40), (25, 12), (16, 16)][seed % 4], 1 + seed % 3
    U, V = rng.gamma(0.7, size=(shape[0], k)) + 0.01, rng.gamma(0.7, size=(shape[1], k)) + 0.01
    A = with_gaps(U @ V.T * rng.gamma(1 / (0.1 + seed), 0.1 + seed, shape), 0.1, seed)
    best = min(loss_of(A, U @ V.T, loss), cvxnmf.factorize(A, k, loss=loss, symmetric=False, max_iter=100).value)
    for each in found(A, k, loss):
        assert each.proof.rigorous
        assert 0 <= each.proof.bound <= best


@pytest.mark.parametrize(("loss", "height"), [("mse", 60), ("kl", 150)])
def test_rectangles_prove_more_than_one_observed_part(loss, height):
    rng = np.random.default_rng(0)
    A = with_gaps(rng.poisson(3.0 * rng.gamma(0.5, size=(height, 3)) @ rng.gamma(0.5, size=(3, 20)) + 0.3).astype(float), 0.05)
    factors = cvxnmf.classical_nmf(A, 2, loss=loss, max_iter=100)
    certificate = cvxnmf.verify(A, factors, loss=loss)
    assert certificate.kind == "rectangles"
    assert certificate.bound > 0.25 * certificate.value
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


def weighted_loss(A, X, W, loss):
    entries = W if loss == "mse" else np.where(np.isnan(A), 0.0, W)
    a = np.nan_to_num(A)
    if loss == "mse":
        return float(np.nansum(entries * (A - X) ** 2))
    return float(np.sum(entries * (np.where(a > 0, a * np.log(np.where(a > 0, a, 1.0) / X), 0.0) - a + X)))


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize("seed", slow_but([3, 4, 5], range(6)))  # weights of each kind
def test_no_model_is_below_the_bound_with_weights(loss, seed):
    rng = np.random.default_rng(seed)
    shape, k = [(30, 8), (9, 40), (25, 12), (16, 16)][seed % 4], 1 + seed % 3
    U, V = rng.gamma(0.7, size=(shape[0], k)) + 0.01, rng.gamma(0.7, size=(shape[1], k)) + 0.01
    A = with_gaps(U @ V.T * rng.gamma(1 / (0.1 + seed), 0.1 + seed, shape), 0.03 * (seed % 3), seed)
    W = [rng.gamma(1.0, size=shape[0]), rng.random(shape) + 0.2, np.where(rng.random(shape) < 0.1, 0.1, 1.0) * 1e-9][seed % 3]
    every = np.broadcast_to(W[:, None] if W.ndim == 1 else W, shape)
    result = cvxnmf.factorize(A, k, loss=loss, symmetric=False, weights=W, max_iter=100)
    certificate = cvxnmf.verify(A, result, loss=loss, weights=W)
    assert certificate.value == pytest.approx(weighted_loss(A, result.U @ result.V.T, every, loss), rel=1e-9)
    assert certificate.bound == result.certificate.bound > 0
    assert certificate.rigorous
    assert certificate.bound <= weighted_loss(A, U @ V.T, every, loss)
    assert certificate.check(A) == certificate.bound
    assert certificate.statement["weights"] == cvxnmf.certificates.weights_digest(W)


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_weights_of_rows_and_columns_are_scales_of_the_data(loss):
    rng = np.random.default_rng(5)
    A = rng.poisson(4.0 * rng.gamma(0.5, size=(60, 2)) @ rng.gamma(0.5, size=(2, 30)) + 0.2).astype(float)
    rows, columns = rng.gamma(2.0, size=60), rng.gamma(2.0, size=30)
    scaled = np.sqrt(np.outer(rows, columns)) * A if loss == "mse" else np.outer(rows, columns) * A
    U, V = cvxnmf.factorize(scaled, 2, loss).U, cvxnmf.factorize(scaled, 2, loss).V
    plain = cvxnmf.verify(scaled, U, V, loss)
    root = np.sqrt if loss == "mse" else np.asarray
    given = cvxnmf.verify(A, U / root(rows)[:, None], V / root(columns)[:, None], loss, weights=np.outer(rows, columns))
    assert given.value == pytest.approx(plain.value, rel=1e-9)
    assert given.bound == pytest.approx(plain.bound, rel=1e-4)
    of_rows = [cvxnmf.verify(A, U, V, loss, weights=W).bound for W in (rows, np.outer(rows, np.ones(30)))]
    assert of_rows[0] == pytest.approx(of_rows[1], rel=1e-9)


@pytest.mark.parametrize("loss", slow_but(["mse"], ["mse", "kl"]))
def test_weights_zero_and_one_are_missing_entries(loss):
    rng = np.random.default_rng(0)
    A = rng.poisson(3.0 * rng.gamma(0.5, size=(70, 3)) @ rng.gamma(0.5, size=(3, 20)) + 0.3).astype(float)
    gaps = with_gaps(A, 0.05)
    factors = cvxnmf.classical_nmf(gaps, 2, loss=loss, max_iter=100)
    missing = cvxnmf.verify(gaps, factors, loss=loss)
    weighted = cvxnmf.verify(A, factors, loss=loss, weights=~np.isnan(gaps))
    assert weighted.bound == pytest.approx(missing.bound, rel=0.02)
    sparse = cvxnmf.verify(sp.csr_array(A), factors, loss=loss, weights=~np.isnan(gaps))
    assert sparse.bound == pytest.approx(weighted.bound, rel=1e-12)


def test_weights_that_are_not_those_stated_are_refused(tmp_path):
    rng = np.random.default_rng(1)
    A, W = rng.random((12, 7)), rng.random((12, 7)) + 0.1
    certificate = cvxnmf.factorize(A, 2, weights=W).certificate
    certificate.save(tmp_path / "c.npz")
    loaded = cvxnmf.Certificate.load(tmp_path / "c.npz")
    assert loaded.check(A) == certificate.bound > 0
    terms = dict(certificate.statement)
    for forged, sentence in (
        ({"W": 2 * W}, "not those that the certificate states"),
        ({"W": W[:, :1]}, "not those that the certificate states"),
        ({"W": W[:6]}, "do not match"),
        ({"W": -W}, "negative"),
        ({"weights": 1.1 * certificate.witness["weights"]}, "more than its weight"),
    ):
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            prove(A, "rectangles", terms, dict(certificate.witness) | forged)
    without = {name: array for name, array in certificate.witness.items() if name != "W"}
    with pytest.raises(cvxnmf.CertificateError, match="lacks its witness"):
        prove(A, "rectangles", terms, without)
    for wrong in ({"loss": "weighted beta=0.5"}, {"symmetric": True}, {"weights": 3}, {"weights": "own"}, {"n_components": 0}):
        with pytest.raises(cvxnmf.CertificateError, match="not understood"):
            cvxnmf.certificates.parse_statement(terms | wrong)
    assert prove(A, "zero", terms, certificate.witness).scale == pytest.approx(np.sum(W * A**2))


def weighted_counts(seed):
    """Counts, their weights, and a planted model of rank two."""
    rng = np.random.default_rng(seed)
    U, V = rng.gamma(0.7, size=(24, 2)) + 0.05, rng.gamma(0.7, size=(13, 2)) + 0.05
    return rng.poisson(3.0 * U @ V.T).astype(float), rng.random((24, 13)) + 0.3, 3.0 * U, V


@pytest.mark.parametrize("loss", slow_but(["mse"], ["mse", "kl"]))
def test_weighted_bounds_hold_with_empty_rows_and_in_any_order(loss):
    A, W, U, V = weighted_counts(0)
    bound = cvxnmf.verify(A, U, V, loss, weights=W).bound
    rows, columns = np.random.default_rng(1).permutation(24), np.random.default_rng(2).permutation(13)
    turned = cvxnmf.verify(A[rows][:, columns], U[rows], V[columns], loss, weights=W[rows][:, columns])
    assert turned.bound == pytest.approx(bound, rel=0.15)  # which rectangles are tried depends on the order
    assert turned.bound <= turned.value == pytest.approx(weighted_loss(A, U @ V.T, W, loss))
    wider, weights = np.zeros((26, 14)), np.ones((26, 14))
    wider[:24, :13], weights[:24, :13] = A, W
    empty = cvxnmf.verify(wider, np.vstack([U, 0 * U[:2]]), np.vstack([V, 0 * V[:1]]), loss, weights=weights)
    assert empty.value == pytest.approx(weighted_loss(A, U @ V.T, W, loss))
    assert 0.9 * bound <= empty.bound <= empty.value
    assert empty.check(wider) == empty.bound


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_a_weighted_witness_changed_anywhere_proves_nothing_false(loss):
    A, W, U, V = weighted_counts(3)
    certificate = cvxnmf.verify(A, U, V, loss, weights=W)
    best = min(cvxnmf.factorize(A, 2, loss, weights=W).value, certificate.value)
    rng, refused = np.random.default_rng(4), 0
    for name, array in certificate.witness.items():
        for _ in range(25):
            changed = np.array(array, copy=True)
            place = tuple(rng.integers(size) for size in changed.shape)
            changed[place] = (
                rng.choice([0, 1, 2, -1]) if changed.dtype.kind in "ib" else rng.choice([0.0, -1.0, 3.0, np.nan, np.inf, 1e9])
            )
            try:
                assert (
                    prove(A, "rectangles", dict(certificate.statement), dict(certificate.witness) | {name: changed}).bound <= best
                )
            except cvxnmf.CertificateError:
                refused += 1
    assert refused > 10


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
        self.refused("more than its weight", sets=2 * self.sets)
        self.refused("extreme weights", sets=np.where(self.sets > 0, 1.0, 1e-101))
        self.refused("extreme weights", weights=self.weights * 1e101)
        self.refused("do not match", sets=self.sets[:, :5])
        self.refused("do not match", weights=self.weights[:-1])
        self.refused("missing entries", weights=np.full((12, 2), 0.9))
        self.refused("does not match", loss="kl", Y=np.ones((12, 3)))
        self.refused("longer than 1", loss="kl", Y=np.ones((12, 4)))
        self.refused("is negative", N=-np.ones((12, 4)))
        self.refused("does not match", loss="kl", y=np.ones((12, 3)))
        self.refused("not finite", weights=np.where(self.rows, np.nan, 0.0))

    def test_not_for_scaled_data(self):
        A = np.ones((3, 3))
        terms = {"form": "rank", "loss": "mse", "n_components": 1, "symmetric": True, "scaling": "degree"}
        with pytest.raises(cvxnmf.CertificateError, match="not scaled"):
            prove(A, "rectangles", terms, {"sets": np.ones((1, 3)), "weights": np.full((3, 1), 0.5)})


def test_weights_are_finite_numbers_of_at_least_zero():
    A = np.array([[1e100, 1.0], [1.0, 2.0]])
    for W, words in ((np.array([[1.0, 2.0], [-1.0, 1.0]]), "or are negative"), (np.full((2, 2), 1e299), "not a finite number")):
        statement = cvxnmf.certificates.WeightedRankStatement("weighted mse", 1, False, cvxnmf.certificates.weights_digest(W))
        with pytest.raises(cvxnmf.CertificateError, match=words):
            statement.prove(A, "zero", {"W": W})
    W = np.array([[1.0, 2.0], [0.0, 1.0]])
    statement = cvxnmf.certificates.WeightedRankStatement("weighted mse", 1, False, cvxnmf.certificates.weights_digest(W))
    proof = statement.prove(np.ones((2, 2)), "zero", {"W": W})
    assert (proof.bound, proof.rigorous, proof.scale) == (0.0, True, 4.0)


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_the_orders_of_rows_and_columns_do_not_matter(loss, shape):
    rng = np.random.default_rng(0)
    A = with_gaps(rng.gamma(1.0, size=shape) @ np.diag(rng.random(shape[1])) + 0.1, 0.1)
    rows, columns = rng.permutation(shape[0]), rng.permutation(shape[1])
    (first,), (other,) = found(A, 2, loss), found(A[np.ix_(rows, columns)], 2, loss)
    assert first.proof.bound > 0
    assert other.proof.bound == pytest.approx(first.proof.bound, rel=1e-6)
