"""Bounds that hold with a probability: what iterations find, and what they may have missed."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.special import betainc

import cvxnmf
from builders import prove
from cvxnmf.certificates import krylov
from cvxnmf.cli.output import certificate_facts
from cvxnmf.nmf.bound_goal import Limits
from cvxnmf.nmf.bounds import rank_certificate


def terms(k, symmetric=False, scaling=None):
    return {"form": "rank", "loss": "mse", "n_components": k, "symmetric": symmetric} | ({"scaling": scaling} if scaling else {})


def tail(A, k, symmetric=False):
    values = np.linalg.eigvalsh(A) if symmetric else np.linalg.svd(A, compute_uv=False)
    return float(np.sum(A * A) - np.sum(np.sort(np.maximum(values, 0.0))[::-1][:k] ** 2))


BLOCKS = sp.csr_array(sl.block_diag(*[np.ones((size, size)) for size in [80, 80, *range(2, 78), *[3] * 100]]))


@pytest.mark.parametrize("symmetric", [True, False])
def test_repeated_singular_values_are_not_missed(symmetric):
    exact = float(BLOCKS.sum()) - 2 * 80.0**2
    proof = prove(BLOCKS, "lanczos", terms(2, symmetric), {})
    assert exact * (1 - 1e-6) <= proof.bound <= exact
    assert (proof.rigorous, proof.probable) == (False, True)


def test_factors_of_data_with_repeated_singular_values_are_certified():
    U = np.zeros((BLOCKS.shape[0], 2))
    U[:80, 0] = U[80:160, 1] = 1.0
    for V in (None, U):
        certificate = cvxnmf.verify(BLOCKS, U, V)
        assert certificate.relative_gap < 1e-8
        assert certificate.check(BLOCKS) <= certificate.value


@pytest.mark.parametrize("copies", [3, 40])
def test_values_repeated_more_often_than_the_block_is_wide(copies):
    A = sp.csr_array(np.kron(np.eye(copies), np.ones((20, 20))))
    for k in (1, 2, 3, 10):
        for symmetric in (True, False):
            assert prove(A, "lanczos", terms(k, symmetric), {}).bound <= max(0.0, tail(A.toarray(), k, symmetric))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("shape", "density"), [((230, 310), 0.1), ((400, 250), 0.02), ((900, 600), 0.01)])
def test_no_bound_is_above_the_tail_and_little_is_lost(shape, density, seed):
    A = sp.random_array(shape, density=density, rng=np.random.default_rng(seed)).tocsr()
    for k in (1, 4, 12):
        proof = prove(A, "lanczos", terms(k), {})
        exact = tail(A.toarray(), k)
        assert proof.bound <= exact * (1 + 1e-12)
        assert proof.bound >= 0.99 * exact
        assert proof.estimate >= exact * (1 - 1e-9)


@pytest.mark.parametrize("scaling", [None, "degree"])
def test_symmetric_data_with_large_negative_eigenvalues(scaling):
    side = sp.random_array((150, 150), density=0.1, rng=np.random.default_rng(0))
    A = sp.csr_array(sp.block_array([[None, side], [side.T, None]]))  # bipartite: every eigenvalue has its mirror image
    scaled = cvxnmf.certificates.RankStatement("mse", 4, True, scaling).data(A).toarray()
    exact, proof = tail(scaled, 4, True), prove(A, "lanczos", terms(4, True, scaling), {})
    assert 0.95 * exact <= proof.bound <= exact


def test_the_same_data_give_the_same_bits():
    A = sp.random_array((500, 300), density=0.05, rng=np.random.default_rng(1))
    bounds = {prove(data, "lanczos", terms(5), {}).bound for data in (A.tocsr(), A.tocsc(), A.tocoo())}
    assert len(bounds) == 1


@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("products", [5, 20, 80])
def test_the_share_is_no_larger_than_that_of_kuczynski_and_wozniakowski(n, products):
    share = krylov.missed_share(n, 1, 2 * products - 1, 1e-6)
    assert 1.648 * math.sqrt(n) * math.exp(-math.sqrt(share) * (2 * products - 1)) >= 1e-6
    assert krylov.missed_share(n, 4, 2 * products - 1, 1e-6) < share


def test_random_starts_miss_no_more_than_the_theorem_says():
    n, width, depth, failure = 60, 2, 4, 0.05
    values = np.append(np.linspace(0.0, 0.9, n - 1), 1.0)
    space, missed = krylov.Krylov(width, depth, True), 0
    source = np.random.RandomState(0)  # noqa: NPY002
    for _ in range(2000):
        top = krylov.deflate(lambda X: values[:, None] * X, np.zeros((n, 0)), source, space, 2 * failure).top
        missed += top < 1.0
    assert missed <= 2000 * failure + 4 * math.sqrt(2000 * failure)
    share = krylov.missed_share(n, width, 2 * depth - 1, failure)
    part = 1.0 / math.cosh((2 * depth - 1) * math.atanh(math.sqrt(share))) ** 2
    assert betainc(width / 2, (n - 1) / 2, part) == pytest.approx(failure, rel=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_eigenvalues_never_exceed_their_bounds_whatever_the_vectors(seed):
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((30, 30))
    M = M + M.T
    Q = np.linalg.qr(rng.standard_normal((30, rng.integers(1, 12))))[0]
    P = np.eye(30) - Q @ Q.T
    top = float(np.linalg.eigvalsh(P @ M @ P)[-1])
    for count in (1, 5, 20):
        upper = krylov.eigenvalue_bounds(Q, M @ Q, top, count, lambda values: float(np.sum(values)))
        assert np.all(upper >= np.linalg.eigvalsh(M)[::-1][:count] - 1e-12)


@pytest.mark.parametrize("semidefinite", [True, False])
def test_a_space_that_fills_all_is_exact(semidefinite):
    rng = np.random.default_rng(0)
    M = rng.standard_normal((25, 25))
    M = M @ M.T if semidefinite else M + M.T
    Q = np.linalg.qr(rng.standard_normal((25, 4)))[0]
    P = np.eye(25) - Q @ Q.T
    space = krylov.Krylov(4, 30, semidefinite)
    found = krylov.deflate(lambda X: M @ X, Q, krylov.random_source(M), space)
    assert found.top == pytest.approx(float(np.linalg.eigvalsh(P @ M @ P)[-1]), rel=1e-12)


class TestLevels:
    """What a certificate claims, and what its check grants."""

    A = sp.random_array((320, 260), density=0.1, rng=np.random.default_rng(0)).tocsr()

    def certificate(self, value=1e6):
        return rank_certificate(self.A, 3, value, "mse", limits=Limits(dense_side=20, unasked_size=0))

    def test_probable_bounds_say_so_everywhere(self, tmp_path):
        certificate = self.certificate()
        assert (certificate.trust, certificate.rigorous, certificate.probable) == ("probable", False, True)
        assert "probable" in str(certificate)
        assert json.loads(json.dumps(certificate_facts(certificate)))["trust"] == "probable"
        certificate.save(tmp_path / "certificate.npz")
        again = cvxnmf.Certificate.load(tmp_path / "certificate.npz")
        assert again.trust == "probable"
        assert again.check(self.A) == certificate.bound

    @pytest.mark.parametrize("claim", [{"rigorous": True}, {"rigorous": True, "probable": False}])
    def test_no_more_is_granted_than_was_shown(self, claim):
        with pytest.raises(cvxnmf.CertificateError, match="not rigorous"):
            replace(self.certificate(), **claim, digest="").check(self.A)

    def test_a_dual_point_gives_no_probability(self):
        honest = cvxnmf.verify(self.A, np.ones((320, 2)), np.ones((260, 2)), effort=0)
        assert honest.trust == "proved"
        assert replace(honest, rigorous=False, probable=True, digest="").check(self.A) <= honest.bound

    def test_bounds_that_claim_nothing_are_held_to_what_was_found(self):
        exact = tail(self.A.toarray(), 3)
        earlier = replace(self.certificate(), probable=False, bound=exact, digest="")
        assert earlier.trust == "unproved"
        assert earlier.check(self.A) <= exact
        with pytest.raises(cvxnmf.CertificateError, match="not the stated"):
            replace(earlier, bound=exact * 1.001, digest="").check(self.A)
        with pytest.raises(cvxnmf.CertificateError, match="not the stated"):
            replace(self.certificate(), bound=exact, digest="").check(self.A)

    def test_a_bound_that_contradicts_the_value_is_dropped(self):
        with pytest.warns(RuntimeWarning, match=r"The bound \S+ \(lanczos\) exceeds the value 1 and is dropped"):
            dropped = self.certificate(value=1.0)
        assert (dropped.kind, dropped.bound, dropped.trust) == ("zero", 0.0, "proved")


def test_vectors_prove_the_same_for_data_in_any_form():
    A = np.random.default_rng(0).random((9, 6))
    Q = np.linalg.svd(A)[2].T[:, :4]
    bounds = {prove(data, "lanczos", terms(2), {"vectors": Q}).bound for data in (A, A.tolist(), np.asfortranarray(A))}
    assert max(bounds) == pytest.approx(min(bounds), rel=1e-12)
    assert max(bounds) <= tail(A, 2)
    for wrong in ([1.0, 2.0], [[1.0], [2.0, 3.0]], None, "A", A.T.tolist(), A[:, :5]):
        with pytest.raises(cvxnmf.CertificateError):
            prove(wrong, "lanczos", terms(2), {"vectors": Q})
    for vectors in (Q[:, :1], Q[:, 0], Q[:-1], 1.1 * Q, np.ones((6, 4))):
        with pytest.raises(cvxnmf.CertificateError):
            prove(A, "lanczos", terms(2), {"vectors": vectors})
