"""What a certificate states is not more than what its check proves, and is about one problem only."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import forged, low_rank, planted_graph, random_counts
from cvxnmf.certificates import grouped, metric_digest
from cvxnmf.convex.noise import degree_metric


def certificates(karate):
    """One certificate of every rigorous kind, with its data."""
    A = low_rank(14, 9, 3, noise=0.5)
    counts = np.random.default_rng(0).poisson(2.0, (12, 9)) + 1.0
    yield karate, cvxnmf.solve(cvxnmf.symmetric(karate, trace="auto")).certificate
    yield karate, cvxnmf.solve(cvxnmf.symmetric(karate, loss="mse", trace=1.0, diagonal="ignore")).certificate
    yield counts, cvxnmf.solve(cvxnmf.nonsymmetric(counts, trace=1.0)).certificate
    yield counts, cvxnmf.solve(cvxnmf.nonsymmetric(counts, trace=1.0, effects=False, penalty="paper")).certificate
    yield karate, cvxnmf.solve(cvxnmf.sparse(karate, l1=0.1)).certificate
    yield A, cvxnmf.factorize(A, 2).certificate
    yield karate, cvxnmf.factorize(karate, 2, symmetric=True).certificate
    yield A, cvxnmf.factorize(A, 1, loss="kl").certificate


def test_a_bound_stated_above_the_proved_one_is_refused(karate):
    kinds = set()
    for A, certificate in certificates(karate):
        proof = certificate.statement.prove(A, certificate.kind, certificate.witness)
        proved = proof.bound + proof.spare
        assert certificate.check(A) == certificate.bound <= proof.bound
        assert 0 < proof.spare <= 1e-12 * max(proof.scale, proof.bound)
        kinds.add((certificate.statement.form, certificate.kind))
        for bound in (np.nextafter(proved, np.inf), proved * (1 + 1e-12), proved + 1e-12 * proof.scale):
            with pytest.raises(cvxnmf.CertificateError, match="not the stated"):
                forged(certificate, bound=float(bound), value=2 * certificate.value).check(A)
    assert {form for form, _ in kinds} == {"symmetric", "nonsymmetric", "doubly-nonnegative", "rank"}


def test_a_sum_in_another_order_still_confirms_the_bound():
    """The same data as another machine might sum them: nodes in another order."""
    A = random_counts(60, 0)
    certificate = cvxnmf.solve(cvxnmf.symmetric(A, trace=2.0)).certificate
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(60)
        square = np.ix_(order, order)
        witness = {"Z": certificate.witness["Z"][square], "metric": certificate.witness["metric"][order]}
        turned = forged(certificate, witness=witness)
        assert turned.check(A[square]) == pytest.approx(certificate.bound, rel=1e-13)


def test_groups_are_proved_in_the_metric_of_the_data():
    """A stated metric that differs by rounding is accepted, but the recomputed one is what the proof uses."""
    A, _ = planted_graph(80, 3, 10, connected=True)
    degrees, groups = A.sum(axis=1), np.arange(80) % 12
    metric = np.sqrt(np.bincount(groups, degree_metric(degrees) ** 2))
    for factor in (1.0, 1 + 5e-13, 1 - 5e-13):
        used = grouped.sum_over_groups(A, 12, {"groups": groups.astype(float), "metric": factor * metric}).witness["metric"]
        np.testing.assert_allclose(used, metric, rtol=1e-15)
    with pytest.raises(cvxnmf.CertificateError, match="not that of the groups"):
        grouped.sum_over_groups(A, 12, {"groups": groups.astype(float), "metric": (1 + 1e-11) * metric})


def test_a_metric_of_ones_own_is_identified():
    A = random_counts(10, 3)
    first, second = (
        cvxnmf.solve(cvxnmf.symmetric(A, metric=metric, trace=2.0)).certificate for metric in (np.ones(10), np.arange(1.0, 11.0))
    )
    assert first.statement["metric_digest"] == metric_digest(np.ones(10))
    assert first.statement != second.statement
    assert first.check(A) == first.bound
    for one, other in ((first, second), (second, first)):
        with pytest.raises(cvxnmf.CertificateError, match="not the one that the statement is about"):
            forged(one, witness=other.witness, bound=other.bound, value=other.value).check(A)


def test_a_metric_of_ones_own_in_a_file_of_an_earlier_version(tmp_path):
    A = random_counts(10, 3)
    certificate = cvxnmf.solve(cvxnmf.symmetric(A, metric=np.arange(1.0, 11.0), trace=2.0)).certificate
    old = forged(certificate, statement=dataclasses.replace(certificate.statement, metric_digest=None))
    assert "metric_digest" not in old.statement
    old.save(tmp_path / "old.npz")
    assert cvxnmf.Certificate.load(tmp_path / "old.npz").check(A) == certificate.bound


def test_components_with_a_metric_of_ones_own():
    A = np.kron(np.eye(2), random_counts(6, 0))
    certificate = cvxnmf.solve(cvxnmf.symmetric(A, metric=np.arange(1.0, 13.0))).certificate
    assert certificate.check(A) == certificate.bound


def test_data_with_duplicate_entries_are_summed():
    A = random_counts(8, 1)
    certificate = cvxnmf.verify(A, np.ones((8, 2)), np.ones((8, 2)))
    rows, columns = np.nonzero(A)
    halves = np.tile(A[rows, columns] / 2, 2)
    twice = sp.coo_array((halves, (np.tile(rows, 2), np.tile(columns, 2))), shape=A.shape)
    assert certificate.check(twice) == pytest.approx(certificate.bound, rel=1e-12)
    parts = [sp.csr_array(A / 2), sp.csr_array(A / 2)]
    data = np.concatenate([np.concatenate([p.data[p.indptr[i] : p.indptr[i + 1]] for p in parts]) for i in range(8)])
    indices = np.concatenate([np.concatenate([p.indices[p.indptr[i] : p.indptr[i + 1]] for p in parts]) for i in range(8)])
    indptr = 2 * parts[0].indptr
    assert certificate.check(sp.csr_array((data, indices, indptr), shape=A.shape)) == pytest.approx(certificate.bound, rel=1e-12)
