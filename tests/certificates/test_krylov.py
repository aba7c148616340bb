"""Bounds that hold with a probability: what iterations find, and what they may have missed."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.special import betainc, betaincinv

import cvxnmf
from builders import prove
from cvxnmf.certificates import krylov, leading
from cvxnmf.cli.output import certificate_facts
from cvxnmf.nmf.bound_goal import Limits
from cvxnmf.nmf.bounds import rank_certificate
from tiers import slow_but


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


@pytest.mark.parametrize("copies", slow_but([3], [3, 40]))
def test_values_repeated_more_often_than_the_block_is_wide(copies):
    A = sp.csr_array(np.kron(np.eye(copies), np.ones((20, 20))))
    for k in (1, 2, 3, 10):
        for symmetric in (True, False):
            assert prove(A, "lanczos", terms(k, symmetric), {}).bound <= max(0.0, tail(A.toarray(), k, symmetric))


@pytest.mark.parametrize("seed", slow_but([0], range(4)))
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


@pytest.mark.slow
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
    found = krylov.deflate(lambda X: M @ X, Q, krylov.random_source(M), space, 1e-6)
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


# The allowances of iterations, term by term -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "width", "steps"), [(1, 1, 3), (2, 1, 3), (50, 4, 7)])
def test_the_share_that_may_be_missed(n, width, steps):
    share = betaincinv(width / 2, max(n - 1, 1) / 2, 1e-6)
    assert krylov.missed_share(n, width, steps, 1e-6) == pytest.approx(np.tanh(np.arccosh(share**-0.5) / steps) ** 2, rel=1e-9)


@pytest.mark.parametrize("semidefinite", [True, False])
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_what_a_space_leaves_open(depth, semidefinite):
    """``found + (found + least) e / (1 - e)``, half of the failure for either part, half the depth for the square."""
    n, width, failure = 60, 2, 1e-6
    M = np.diag(np.linspace(0.0 if semidefinite else -2.0, 1.0, n))
    source = np.random.RandomState(0)  # noqa: NPY002
    beside = krylov.deflate(lambda X: M @ X, np.zeros((n, 0)), source, krylov.Krylov(width, depth, semidefinite), failure)
    assert beside.basis.shape == (n, width * depth)
    share = krylov.missed_share(n, width, 2 * depth - 1, failure / 2)
    steps = {2: 1, 3: 3, 4: 3}[depth]
    norm = np.linalg.norm(M @ beside.basis, 2)
    least = 0.0 if semidefinite else norm / np.sqrt(1 - krylov.missed_share(n, width, steps, failure / 2))
    found = beside.values[-1]
    assert found == pytest.approx(np.linalg.eigvalsh(beside.basis.T @ M @ beside.basis)[-1])
    assert beside.top == pytest.approx(found + (found + least) * share / (1 - share), rel=1e-9)
    assert beside.top > 1.0


@pytest.mark.parametrize("n", [5, 6])
def test_a_space_of_all_vectors_leaves_nothing_open(n):
    M = np.diag(np.arange(float(n)))
    source = np.random.RandomState(0)  # noqa: NPY002
    whole = krylov.deflate(lambda X: M @ X, np.zeros((n, 0)), source, krylov.Krylov(2, 9, False), 1e-6)
    assert whole.top == pytest.approx(n - 1.0)
    assert whole.values == pytest.approx(np.arange(n), abs=1e-9)
    nothing = krylov.deflate(lambda X: M @ X, np.eye(n), source, krylov.Krylov(2, 9, False), 1e-6)
    assert (nothing.top, nothing.values.shape, nothing.basis.shape, nothing.turn.shape) == (0.0, (0,), (n, 0), (0, 0))


def test_spaces_of_moderate_size():
    spaces = krylov.spaces_in_turn(1 << 20, 4, (12, 24, 48), True)
    assert spaces == [krylov.Krylov(4, 12, True), krylov.Krylov(4, 24, True)]  # of 2^27 entries at most
    assert [space.depth for space in krylov.spaces_in_turn(1 << 30, 4, (12, 24, 48), False)] == [12]
    assert [space.depth for space in krylov.spaces_in_turn(10, 4, (12, 24, 48), False)] == [12, 24, 48]


def test_what_vectors_had_missed_joins_them():
    """The first space finds the largest of the values that Q misses, the second one bounds them closely."""
    n = 40
    M = np.diag(np.append(np.zeros(n - 3), [1.0, 2.0, 3.0]))
    for Q in (np.eye(n)[:, :1], np.eye(n)[:, n - 3 : n - 2]):
        spaces = [krylov.Krylov(2, 3, True)] * 2
        source = np.random.RandomState(0)  # noqa: NPY002
        first, second = krylov.leading_eigenvalues(lambda X: M @ X, Q, source, spaces, 2, np.sum, 1e-6)
        for found in (first, second):
            assert found.upper[0] >= found.upper[1]
            assert found.upper[0] >= 3.0 - 1e-12
            assert found.upper[1] >= 2.0 - 1e-12
        assert second.found == pytest.approx([3.0, 2.0], rel=1e-9)
        assert second.upper.sum() < first.upper.sum()


def test_the_best_of_proofs_in_turn():
    def proofs(*pairs):
        for bound, estimate in pairs:
            yield cvxnmf.certificates.Proof(bound, False, 1.0, estimate=estimate)

    assert leading.best_settled(proofs((1.0, 2.0), (3.0, 4.0), (2.0, 9.0))).bound == 3.0
    assert leading.best_settled(proofs((1.0, 1.0009), (3.0, 3.0))).bound == 1.0  # which leaves little open
    assert leading.best_settled(proofs((1.0, 1.0011), (3.0, 3.0))).bound == 3.0
    assert leading.best_settled(proofs((0.0, 0.0), (3.0, 3.0))).bound == 0.0


@pytest.mark.parametrize(("n", "k", "count"), [(1, 1, 1), (5, 2, 4), (20, 3, 11), (200, 3, 11), (210, 80, 88), (260, 3, 11)])
def test_leading_vectors(n, k, count):
    M = np.diag(np.arange(float(n)))
    Q = leading.leading_vectors(sp.csr_array(M), k, np.ones(n))
    assert Q.shape == (n, count)
    assert Q.T @ Q == pytest.approx(np.eye(count), abs=1e-12)
    assert np.linalg.eigvalsh(Q.T @ M @ Q)[::-1][:k] == pytest.approx(np.arange(n)[::-1][:k], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (60, 60)])
def test_the_smaller_side_is_worked_on(shape):
    A = sp.csr_array(np.random.default_rng(0).random(shape))
    square = leading._gram_operator(A)
    assert square.shape == (min(shape), min(shape))
    wanted = A.T @ A if shape[0] >= shape[1] else A @ A.T
    assert square @ np.eye(min(shape)) == pytest.approx(wanted.toarray(), rel=1e-12)


def test_iterations_refuse_what_they_are_not_for():
    A = sp.csr_array(np.eye(6) + 1.0)
    gap = A.copy()
    gap.data[3] = np.nan
    for data in (A.toarray(), gap):
        with pytest.raises(cvxnmf.CertificateError, match="sparse, fully observed data only"):
            prove(data, "lanczos", terms(2), {})
    Q = np.linalg.qr(np.random.default_rng(0).random((6, 3)))[0]
    assert prove(A, "lanczos", terms(2), {"vectors": Q}).bound >= 0
    for vectors in (Q[:, :1], Q[:5], Q[:, 0], 1.001 * Q, np.column_stack([Q[:, :2], Q[:, 0]])):
        with pytest.raises(cvxnmf.CertificateError, match="do not match|not orthonormal"):
            prove(A, "lanczos", terms(2), {"vectors": vectors})
    with pytest.raises(cvxnmf.CertificateError, match="do not match"):
        prove(A, "lanczos", terms(2) | {"symmetric": True}, {"vectors": Q})
    for witness in ({}, {"vectors": Q}):
        with pytest.raises(cvxnmf.CertificateError, match="kind 'lanczos' cannot be checked"):
            prove(A, "lanczos", terms(2) | {"loss": "kl"}, witness)


def test_iterations_may_vary_by_a_share_of_the_energy():
    A = sp.csr_array(np.diag([3.0, 2.0, 1.0]))
    for symmetric in (False, True):
        proof = prove(A, "lanczos", terms(1, symmetric), {})
        assert proof.bound == pytest.approx(5.0 - 2 * 14e-10, abs=1e-11)
        assert proof.spare == pytest.approx(14e-10, rel=1e-3, abs=0.0)
        assert proof.estimate == pytest.approx(5.0, abs=1e-12)
        assert proof.scale == 14.0


def test_spaces_share_the_probability_of_failing():
    n, space = 80, krylov.Krylov(2, 3, True)
    M, Q = np.diag(np.linspace(0.0, 1.0, n)), np.eye(n)[:, :1]
    bounds = list(krylov.leading_eigenvalues(lambda X: M @ X, Q, np.random.RandomState(0), [space] * 3, 1, np.sum))  # noqa: NPY002
    alone = krylov.deflate(lambda X: M @ X, Q, np.random.RandomState(0), space, 1e-12 / 3)  # noqa: NPY002
    assert len(bounds) == 3
    assert bounds[0].upper[0] == pytest.approx(alone.top, rel=1e-9)


@pytest.mark.parametrize("symmetric", [False, True])
def test_tails_are_those_of_their_spaces(symmetric):
    """The same bound from the parts, where values lie so close that what a space leaves open counts."""
    A = sp.random_array((260, 260), density=0.1, rng=np.random.default_rng(0)).tocsr()
    A = sp.csr_array((A + A.T) / 2) if symmetric else A
    A.sort_indices()
    M, k, energy = A if symmetric else sp.csr_array(A.T @ A), 20, float(A.data @ A.data)
    source = krylov.random_source(np.array(A.shape), A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data)
    Q = leading.leading_vectors(M, k, source.standard_normal(260))

    def taken(values):
        return float(np.sum(np.maximum(values, 0.0) ** (2 if symmetric else 1)))

    spaces = [krylov.Krylov(4, depth, not symmetric) for depth in (12, 24, 48)]
    bounds = krylov.leading_eigenvalues(lambda X: M @ X, Q, source, spaces, k, taken)
    first = next(bounds)
    proof = prove(A, "lanczos", terms(k, symmetric), {})
    open_now, wanted = taken(first.upper) - taken(first.found), energy - min(taken(each.upper) for each in (first, *bounds))
    assert open_now > 1e-3 * wanted
    assert proof.bound == pytest.approx(wanted, rel=1e-6)


def test_products_that_are_not_finite_are_refused():
    for bad in (np.nan, np.inf):
        with pytest.raises(cvxnmf.CertificateError, match="missing entries, or are too large"):
            krylov.finite(np.array([1.0, bad]))


def test_residuals_that_overflow_are_refused():
    image = np.full((4, 2), 1e160)
    with np.errstate(over="ignore"), pytest.raises(cvxnmf.CertificateError, match="too large"):
        krylov.eigenvalue_bounds(np.eye(4)[:, :2], image, 1.0, 1, np.sum)
