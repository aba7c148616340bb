"""Bounds for the KL divergence of every rank: never above any factorisation, whatever the dual point, and forgeries."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import prove
from cvxnmf.certificates import krylov, leading, sparse_divergence
from cvxnmf.nmf.bound_goal import Limits
from cvxnmf.nmf.bounds import rank_certificate
from cvxnmf.nmf.divergence_bounds import ky_fan_point, subspace_point
from cvxnmf.nmf.sparse_divergence_bounds import sparse_ky_fan_point
from tiers import slow_but

TRANSPOSED = {"transposed": np.ones(1)}


def divergence(A, X):
    return float(np.sum(np.where(A > 0, A * np.log(np.where(A > 0, A, 1.0) / np.where(A > 0, X, 1.0)), 0.0) - A + X))


def statement(k, symmetric=False):
    return {"form": "rank", "loss": "kl", "n_components": k, "symmetric": symmetric}


def witnesses(A, k, symmetric=False):
    """Dual points that are sought for the data, of every kind."""
    yield "ky-fan", {"y": ky_fan_point(A, k, symmetric, 30)}
    yield "subspace", {"Y": subspace_point(A, k, 10)}
    yield "subspace", {"Y": subspace_point(A.T, k, 10)} | TRANSPOSED
    yield "pinsker", {}
    yield "pinsker", TRANSPOSED


def random_model(rng, m, n, k):
    return rng.gamma(0.5, size=(m, k)) + 1e-3, rng.gamma(0.5, size=(n, k)) + 1e-3


@pytest.mark.parametrize("seed", range(30))
def test_no_model_is_below_a_bound(seed):
    """Data near a model of the rank, whose divergence is small: any dual point that proved more would be wrong."""
    rng = np.random.default_rng(seed)
    m, n, k = rng.integers(3, 9), rng.integers(3, 9), int(rng.integers(2, 4))
    U, V = random_model(rng, m, n, k)
    X = U @ V.T
    noise = [0.0, 0.01, 0.3, 1.0][seed % 4]
    A = X * rng.gamma(1 / max(noise, 1e-9), noise, X.shape) if noise else X
    best = min(divergence(A, X), cvxnmf.classical_nmf(A, k, loss="kl", max_iter=300).value)
    for kind, witness in witnesses(A, k):
        assert 0 <= prove(A, kind, statement(k), witness).bound <= best + 1e-12 * A.sum()
    for _ in range(5):  # and points that nobody sought
        y = np.exp(rng.normal(scale=rng.choice([0.1, 1.0]), size=A.shape)) * np.maximum(A / A.mean(), 1e-3)
        assert prove(A, "ky-fan", statement(k), {"y": y}).bound <= best + 1e-12 * A.sum()


@pytest.mark.parametrize("seed", range(10))
def test_no_symmetric_model_is_below_a_bound(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, 10)), int(rng.integers(2, 4))
    U, _ = random_model(rng, n, n, k)
    A = U @ U.T * (1 + 0.2 * seed * np.add.outer(np.arange(n), np.arange(n)) % 1.7)
    A = (A + A.T) / 2
    best = min(divergence(A, U @ U.T), cvxnmf.factorize(A, k, loss="kl", symmetric=True).value)
    for kind, witness in witnesses(A, k, symmetric=True):
        assert prove(A, kind, statement(k, True), witness).bound <= best + 1e-12 * A.sum()


def planted_graph(n, groups, inside, outside):
    rng = np.random.default_rng(0)
    label = np.arange(n) % groups
    upper = np.triu(rng.random((n, n)) < np.where(label[:, None] == label, inside, outside), 1)
    return (upper + upper.T).astype(float)


def test_what_is_proved_of_a_planted_graph():
    A = planted_graph(120, 3, 0.5, 0.05)
    shares = {}
    for symmetric in (False, True):
        found = cvxnmf.factorize(A, 3, loss="kl", symmetric=symmetric, certificate="now")
        certificate = found.certificate
        assert certificate.kind == "ky-fan"
        assert certificate.rigorous
        assert certificate.check(A) == certificate.bound
        shares[symmetric] = certificate.bound / certificate.value
    assert shares[False] > 0.85
    assert shares[True] > shares[False]  # eigenvalues in place of singular values


def test_what_is_proved_of_digits():
    A = np.asarray(pytest.importorskip("sklearn.datasets").load_digits().data, dtype=float)[:300]
    found = {k: cvxnmf.classical_nmf(A, k, loss="kl", max_iter=50) for k in (2, 10)}
    by_rank = {k: cvxnmf.verify(A, each, loss="kl") for k, each in found.items()}
    assert by_rank[2].kind == "ky-fan"
    assert by_rank[2].bound > 0.5 * by_rank[2].value
    assert by_rank[10].kind == "subspace"
    assert by_rank[10].bound > 0.05 * by_rank[10].value
    assert all(certificate.check(A) == certificate.bound for certificate in by_rank.values())


def test_empty_rows_and_columns_order_and_scale_change_nothing():
    rng = np.random.default_rng(1)
    A = rng.poisson(1.5, (14, 9)).astype(float)
    wide = np.zeros((17, 12))
    wide[np.ix_(np.arange(2, 16), np.arange(1, 10))] = A
    rows, columns = rng.permutation(17), rng.permutation(12)
    U, V = random_model(rng, 17, 12, 2)
    plain = cvxnmf.verify(wide, U, V, loss="kl")
    turned = cvxnmf.verify(wide[rows][:, columns], U[rows], V[columns], loss="kl")
    scaled = cvxnmf.verify(8 * wide, 8 * U, V, loss="kl")
    small = cvxnmf.verify(A, U[2:16], V[1:10], loss="kl")
    assert plain.bound > 0
    assert turned.bound == pytest.approx(plain.bound, rel=1e-9)
    assert scaled.bound == pytest.approx(8 * plain.bound, rel=1e-9)
    assert small.bound == pytest.approx(plain.bound, rel=1e-9)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("k", slow_but([2], [1, 2, 5]))
def test_sparse_points_prove_what_dense_ones_do(k, symmetric):
    A = planted_graph(250, 4, 0.12, 0.02)
    data = sp.csr_array(A if symmetric else A[:, :180])
    dense = data.toarray()
    y = sparse_ky_fan_point(data, k, 40)
    filled = np.zeros_like(dense)
    filled[dense > 0] = y
    by_iterations = prove(data, "ky-fan", statement(k, symmetric), {"y": y})
    by_decomposition = prove(dense, "ky-fan", statement(k, symmetric), {"y": filled})
    assert by_iterations.probable
    assert not by_iterations.rigorous
    assert by_decomposition.rigorous
    assert by_iterations.bound <= by_decomposition.bound * (1 + 1e-9)
    assert by_iterations.bound == pytest.approx(by_decomposition.bound, rel=5e-3)
    sought = prove(dense, "ky-fan", statement(k, symmetric), {"y": ky_fan_point(np.maximum(dense, 0), k, symmetric, 40)})
    assert by_decomposition.bound > 0.85 * sought.bound  # zeros off the entries cost little


def test_sparse_data_are_not_filled():
    rng = np.random.default_rng(0)
    A = sp.csr_array(sp.block_diag([rng.poisson(0.3, (90, 60)) for _ in range(3)]).astype(float))
    factors = cvxnmf.classical_nmf(A, 3, loss="kl", max_iter=60)
    certificate = rank_certificate(A, 3, factors.value, "kl", limits=Limits(unasked_size=100))
    assert certificate.kind == "ky-fan"
    assert certificate.witness["y"].ndim == 1
    assert certificate.trust == "probable"
    assert certificate.bound > 0.5 * certificate.value
    assert certificate.check(A) == certificate.bound == certificate.check(A.toarray())


class TestForgeries:
    """Witnesses made to deceive the check."""

    A = np.random.default_rng(0).poisson(2.0, (7, 6)).astype(float)

    def refused(self, kind, witness, sentence, **terms):
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            prove(self.A, kind, statement(2) | terms, witness)

    def test_ky_fan(self):
        y = ky_fan_point(self.A, 2, False, 10)
        self.refused("ky-fan", {"y": -y}, "not be negative")
        self.refused("ky-fan", {"y": np.where(self.A == self.A.max(), 0.0, y)}, "positive where the data are")
        self.refused("ky-fan", {"y": y.T}, "does not match")
        self.refused("ky-fan", {"y": np.where(self.A == self.A.max(), np.nan, y)}, "not finite")
        self.refused("ky-fan", {"y": y * 1e200}, "too large|finite")
        self.refused("ky-fan", {}, "lacks its witness")
        self.refused("ky-fan", {"y": y}, "cannot be checked", loss="mse")

    def test_sparse_ky_fan(self):
        A = sp.csr_array(self.A)
        A.eliminate_zeros()
        y = sparse_ky_fan_point(A, 2, 10)
        self.refused("ky-fan", {"y": -y}, "must be positive")
        self.refused("ky-fan", {"y": y[:-1]}, "match the entries")
        self.refused("ky-fan", {"y": np.where(y == y.max(), np.inf, y)}, "not finite")
        self.refused("ky-fan", {"y": y}, "cannot be checked", loss="mse")

    def test_subspace(self):
        Y = subspace_point(self.A, 2, 10)
        self.refused("subspace", {"Y": 1.001 * Y}, "longer than 1")
        self.refused("subspace", {"Y": Y[:, :5]}, "does not match")
        self.refused("subspace", {"Y": Y} | TRANSPOSED, "does not match")
        assert prove(self.A, "subspace", statement(2), {"Y": -Y}).bound == 0
        self.refused("subspace", {"Y": Y}, "cannot be checked", loss="mse")

    def test_pinsker(self):
        self.refused("pinsker", {"N": -np.ones((7, 6))}, "negative")
        self.refused("pinsker", {"N": np.ones((6, 7))}, "does not match")

    def test_scaled_points_prove_their_own_bound_at_most(self):
        """Points along a line: the bound is concave, and none exceeds the least divergence."""
        best = cvxnmf.factorize(self.A, 2, loss="kl").value
        y = ky_fan_point(self.A, 2, False, 30)
        for power in np.linspace(0.0, 3.0, 13):
            assert prove(self.A, "ky-fan", statement(2), {"y": y**power}).bound <= best


# Sparse points, term by term --------------------------------------------------------------------------------------------------

THREE = np.kron(np.eye(3), np.ones((2, 2)))


@pytest.mark.parametrize(("k", "left"), [(1, np.log(1.5) + 0.5), (2, np.log(1.5))])
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_constant_point_of_three_blocks(k, left, symmetric):
    """With y = 3/2 on three blocks G is half of uv' and of two vectors beside it."""
    data = sp.csr_array(THREE)
    proof = prove(data, "ky-fan", statement(k, symmetric), {"y": np.full(12, 1.5)})
    slack = 1e-10 * 12 * (np.log(1.5) + 1.5)
    assert proof.estimate == pytest.approx(12 * left, abs=1e-12)
    assert 12 * left - proof.bound == pytest.approx(2 * slack, rel=1e-3, abs=0.0)
    assert proof.spare == pytest.approx(slack, rel=1e-3, abs=0.0)
    assert (proof.rigorous, proof.probable, proof.scale) == (False, True, 12.0)


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_every_entry_of_a_sparse_point_is_positive(bad):
    y = np.full(12, 1.5)
    y[7] = bad
    with pytest.raises(cvxnmf.CertificateError, match="must be positive"):
        prove(sp.csr_array(THREE), "ky-fan", statement(2), {"y": y})
    gap = sp.csr_array(THREE)
    gap.data[3] = np.nan
    with pytest.raises(cvxnmf.CertificateError, match="fully observed"):
        prove(gap, "ky-fan", statement(2), {"y": np.full(12, 1.5)})


@pytest.mark.parametrize(("shape", "symmetric"), [((300, 260), False), ((260, 300), False), ((300, 300), True)])
def test_sums_of_leading_values_are_those_of_their_spaces(shape, symmetric):
    """The same bounds from a dense operator: of the smaller side, indefinite if symmetric, a third of the failure each."""
    rng = np.random.default_rng(0)
    G = rng.random(shape)
    G = G + G.T if symmetric else G
    u, v = (np.full(side, side**-0.5) for side in shape)
    Y = G - np.outer(u, u @ G)
    Y = Y - np.outer(Y @ v, v)
    M = Y if symmetric else Y.T @ Y if shape[0] >= shape[1] else Y @ Y.T
    n, count = len(M), 3

    def summed(values):
        return float(np.sum(np.maximum(values, 0.0) if symmetric else np.sqrt(np.maximum(values, 0.0))))

    source = krylov.random_source(G)
    Q = leading.leading_vectors(M, count, source.standard_normal(n))
    spaces = [krylov.Krylov(4, depth, not symmetric) for depth in (12, 24, 48)]
    wanted = krylov.leading_eigenvalues(lambda X: M @ X, Q, source, spaces, count, summed)
    found = list(sparse_divergence._leading_sums(sp.csr_array(G), u, v, count, symmetric, krylov.random_source(G)))
    for (upper, estimate), each in zip(found, wanted, strict=True):
        assert upper - estimate == pytest.approx(summed(each.upper) - summed(each.found), rel=1e-3)
        assert estimate == pytest.approx(summed(each.found), rel=1e-9)
