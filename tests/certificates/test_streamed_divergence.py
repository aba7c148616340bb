"""The KL bound of data in row chunks: never above, as in memory, and rules made to deceive the check."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import prove
from campaigns import exact
from cvxnmf.certificates import RankStatement
from cvxnmf.certificates.divergence import singular_bound
from cvxnmf.certificates.streamed_divergence import Rule


def counts(m, n, k, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(3.0 * rng.gamma(0.5, size=(m, k)) @ rng.gamma(0.5, size=(k, n)) + 0.2).astype(float)


def terms(k):
    return {"form": "rank", "loss": "kl", "n_components": k, "symmetric": False}


def rule_of(A, centre, directions):
    """The y of the rule on the rows and columns that carry data."""
    kept = np.ix_(A.any(axis=1), A.any(axis=0))
    part = A[kept]
    v = np.sqrt(part.sum(axis=0) / part.sum())
    y = np.zeros_like(A)
    y[kept] = Rule(v, centre[kept[1][0]], directions[kept[1][0]]).point(part, part.sum(axis=1))
    return y


@pytest.mark.parametrize("k", [1, 2, 3])
def test_files_are_bounded_nearly_as_data_in_memory(tmp_path, k):
    A = counts(600, 20, 3)
    A[5], A[:, 7] = 0.0, 0.0
    np.save(tmp_path / "a.npy", A)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    factors = cvxnmf.classical_nmf(A, k, loss="kl", max_iter=100)
    certificate = cvxnmf.verify(mapped, factors.U, factors.V, "kl", memory_limit="1GB")
    whole = cvxnmf.verify(A, factors.U, factors.V, "kl")
    assert certificate.kind == "ky-fan"
    assert certificate.rigorous
    assert 0.6 * whole.bound < certificate.bound <= certificate.value
    assert k > 1 or certificate.bound == pytest.approx(certificate.value, rel=1e-4)
    for data in (mapped, A, sp.csr_array(A)):
        assert certificate.check(data) == pytest.approx(certificate.bound, rel=1e-9)
    order = np.random.default_rng(1).permutation(600)
    assert certificate.check(A[order]) == pytest.approx(certificate.bound, rel=1e-9)  # y belongs to the row


@pytest.mark.parametrize("seed", range(12))
def test_what_is_proved_is_proved_in_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((7, 4)) < 0.3, 0.0, rng.gamma(1.0, size=(7, 4))) * 10.0 ** rng.integers(-3, 4)
    centre, directions = rng.random(4), rng.standard_normal((4, 2)) * 10.0 ** rng.integers(-2, 2)
    k = int(rng.integers(1, 4))
    proof = prove(A, "ky-fan", terms(k), {"centre": centre, "directions": directions})
    y = rule_of(A, centre, directions)
    dense = singular_bound(A, y, k)
    assert proof.bound == pytest.approx(max(0.0, dense.total), rel=1e-6, abs=1e-9 * A.sum())
    assert proof.bound + proof.spare <= max(0, exact.exact_bound(A, RankStatement("kl", k, False), "ky-fan", {"y": y}))


def test_absurd_rules_prove_little_and_broken_ones_nothing():
    A = counts(40, 6, 2)
    best = cvxnmf.factorize(A, 2, "kl", symmetric=False).value
    rng = np.random.default_rng(0)
    for scale in (1e-150, 1e-8, 1.0, 1e4, 1e150):
        try:
            proof = prove(
                A, "ky-fan", terms(2), {"centre": scale * rng.standard_normal(6), "directions": scale * np.eye(6)[:, :3]}
            )
        except cvxnmf.CertificateError:
            continue
        assert proof.bound <= best
    good = {"centre": np.ones(6), "directions": np.ones((6, 2))}
    for wrong, sentence in (
        ({"centre": np.ones(5)}, "does not match"),
        ({"directions": np.ones((5, 2))}, "does not match"),
        ({"directions": np.ones(6)}, "does not match"),
        ({"directions": np.ones((6, 0))}, "does not match"),
        ({"centre": np.full(6, np.nan)}, "not finite"),
    ):
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            prove(A, "ky-fan", terms(2), good | wrong)
    gap = A.copy()
    gap[0, 0] = np.nan
    with pytest.raises(cvxnmf.CertificateError, match="missing entries"):
        prove(gap, "ky-fan", terms(2), good)
    for other in ({"loss": "mse"}, {"symmetric": True}):
        with pytest.raises(cvxnmf.CertificateError, match="factors U and V only"):
            prove(A[:6], "ky-fan", terms(2) | other, good)


def test_every_entry_of_the_rule_counts():
    A = counts(300, 8, 2)
    factors = cvxnmf.classical_nmf(A, 2, loss="kl", max_iter=50)
    certificate = cvxnmf.verify(A, factors.U, factors.V, "kl", memory_limit="1GB")
    assert certificate.bound > 0
    for name, array in certificate.witness.items():
        for place in np.ndindex(array.shape):
            forged = array.copy()
            forged[place] += 0.5
            witness = dict(certificate.witness) | {name: forged}
            proof = prove(A, "ky-fan", terms(2), witness)
            assert proof.bound <= certificate.value
            changed = cvxnmf.Certificate(**certificate.facts() | {"statement": certificate.statement}, witness=witness)
            if abs(proof.bound - certificate.bound) > 1e-9 * certificate.scale:
                with pytest.raises(cvxnmf.CertificateError, match="not the stated"):
                    changed.check(A)
