"""The KL bound of data in row chunks: never above, as in memory, and rules made to deceive the check."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import prove
from campaigns import exact
from cvxnmf.certificates import RankStatement, rounding, streamed_divergence
from cvxnmf.certificates.divergence import PROJECTION_UNITS, singular_bound
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
    certificate = cvxnmf.verify(mapped, factors.U, factors.V, "kl", memory_limit="32 GB")
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
    for other, sentence in (({"loss": "mse"}, "cannot be checked"), ({"symmetric": True}, "factors U and V only")):
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            prove(A[:6], "ky-fan", terms(2) | other, good)


def test_every_entry_of_the_rule_counts():
    A = counts(300, 8, 2)
    factors = cvxnmf.classical_nmf(A, 2, loss="kl", max_iter=50)
    certificate = cvxnmf.verify(A, factors.U, factors.V, "kl", memory_limit="32 GB")
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


# Twins of its formulas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.0, 0.1, 3.0])
def test_the_rule_takes_forty_proximal_steps(size):
    """From the mean of the row's and the column's shares; each step solves ``L q - p / q = L z - v`` for q > 0."""
    rng = np.random.default_rng(0)
    A = rng.poisson(2.0, (7, 5)) + 0.0
    v, centre, D = np.sqrt(A.sum(axis=0) / A.sum()), rng.random(5), size * rng.standard_normal((5, 2))
    rows = A.sum(axis=1)
    found = Rule(v, centre, D).point(A, rows)
    p, stiffness = A / rows[:, None], np.linalg.norm(D, 2) ** 2
    q = (p / v + v) / 2 if size else p / v
    for _ in range(40 if size else 0):
        b = q - (v + (q - centre) @ D @ D.T) / stiffness
        q = (b + np.sqrt(b * b + 4 * p / stiffness)) / 2
    assert found == pytest.approx(q / v, rel=1e-9, abs=1e-12)


def test_entries_that_vanish_beside_others_have_some_y():
    A = np.array([[1e-300, 1e100], [1.0, 1.0]])
    found = Rule(np.sqrt([0.5, 0.5]), np.zeros(2), np.zeros((2, 1))).point(A, A.sum(axis=1))
    assert found[0, 0] == 1.0
    assert found[1] == pytest.approx([1.0, 1.0])


def test_data_too_small_or_too_far_apart_are_refused():
    good = {"centre": np.zeros(2), "directions": np.zeros((2, 1))}
    assert prove(np.array([[1.0, 2.0], [2.0, 1.0]]), "ky-fan", terms(1), good).bound >= 0
    with pytest.raises(cvxnmf.CertificateError, match="no bound is safe"):
        prove(np.full((2, 2), 1e-200), "ky-fan", terms(1), good)
    with pytest.raises(cvxnmf.CertificateError, match="must not be negative"):
        prove(np.array([[1e10, 0.0], [0.0, 1e-300]]), "ky-fan", terms(1), good)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.03, 5.0])
def test_the_bound_is_its_formula_with_all_allowances(k, scale):
    rng = np.random.default_rng(k)
    u, v = (part / np.linalg.norm(part) for part in (rng.random(9), rng.random(4)))
    G = scale * rng.random((9, 4))
    sums = streamed_divergence.Sums(50.0, 70.0, G.T @ G, G.T @ u)
    found = streamed_divergence._bound(sums, v, 11.0, (9, 4), k)
    M = (G - np.outer(u, u @ G)) @ (np.eye(4) - np.outer(v, v))
    eps, units, norm = np.finfo(float).eps, 13 + PROJECTION_UNITS, np.linalg.norm(G)
    values = rounding.singular_value_bounds(M.T @ M, k - 1, 2 * units, norm) if k > 1 else np.zeros(0)
    leading, mass = np.sum(values + 2 * units * eps * norm), u @ G @ v
    assert found.total == pytest.approx(50.0 + 11.0 * (1 - mass - leading), rel=1e-13)
    size = 70.0 + 11.0 * (2 + leading)
    assert found.rounding == pytest.approx(64 * eps * size + units * eps * 11.0 * mass, rel=1e-9, abs=0.0)


def test_what_is_taken_off_is_no_less_than_the_allowances():
    """Of equal rows nothing is left beside u and v, so that the leading values are the allowances themselves."""
    v = np.full(4, 0.5)
    u, G = np.full(9, 1 / 3), np.full((9, 4), 0.1)
    sums = streamed_divergence.Sums(0.0, 0.0, G.T @ G, G.T @ u)
    found = streamed_divergence._bound(sums, v, 1.0, (9, 4), 3)
    eps, units, norm = np.finfo(float).eps, 13 + PROJECTION_UNITS, np.linalg.norm(G)
    least = 2 * (np.sqrt(2 * (2 * units + 16) * eps) * norm + 2 * eps * norm + 2 * units * eps * norm)
    assert least * (1 - 1e-9) <= 1 - u @ G @ v - found.total <= 1.01 * least
