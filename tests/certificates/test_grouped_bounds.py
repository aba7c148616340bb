"""Bounds of graphs whose nodes share positions in groups."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import prove
from cvxnmf.certificates import GroupedStatement
from cvxnmf.certificates.grouped import sum_over_groups
from cvxnmf.certificates.rounding import UNITS_PER_TERM
from cvxnmf.convex.coarsening import coarsen
from cvxnmf.convex.noise import degree_metric

TERMS = {"loss": "kl", "cone": "conditional", "diagonal": "fit", "trace": 1.0, "metric": "degree"}


def grouped(factor=1.0, trace=1.0):
    """A graph of seven nodes in three groups, and its certificate."""
    rng = np.random.default_rng(3)
    A = np.triu(rng.integers(0, 4, (7, 7)) + 1.0, 1) * factor
    A = A + A.T
    groups = np.array([0, 0, 1, 1, 2, 2, 2])
    return A, coarsen(sp.csr_array(A), degree_metric(A.sum(axis=1)), groups).solve(trace, tol=1e-8).certificate


@pytest.mark.parametrize(("factor", "rigorous"), [(1.0, True), (0.5, False), (2.0**40, True), (2.0**50, False)])
def test_sums_of_whole_numbers_are_exact_and_others_are_not_called_so(factor, rigorous):
    A, certificate = grouped(factor)
    assert certificate.rigorous is rigorous
    assert certificate.check(A) == certificate.bound


@pytest.mark.parametrize("change", [{"loss": "mse"}, {"cone": "psd"}, {"diagonal": "ignore"}, {"metric": "uniform"}])
def test_groups_are_known_for_one_problem_only(change):
    GroupedStatement(**TERMS, groups=3)
    with pytest.raises(cvxnmf.CertificateError, match="Groups of nodes are known"):
        GroupedStatement(**TERMS | change, groups=3)


@pytest.mark.parametrize("groups", [0, -1, True, 2.0])
def test_groups_are_counted(groups):
    with pytest.raises(cvxnmf.CertificateError, match="not understood"):
        GroupedStatement(**TERMS, groups=groups)


def test_groups_and_metrics_that_are_not_those_of_the_data_are_refused():
    A, certificate = grouped()
    honest, statement = dict(certificate.witness), certificate.statement
    bound = prove(A, "dual", statement, honest).bound
    assert prove(A, "dual", statement, honest | {"metric": honest["metric"] * (1 + 1e-13)}).bound == bound  # recomputed
    for change, sentence in (
        ({"groups": honest["groups"][:-1]}, "groups"),
        ({"groups": honest["groups"] + 1}, "groups"),
        ({"groups": np.where(honest["groups"] == 2, 1, honest["groups"])}, "groups"),
        ({"groups": honest["groups"] * 0.5}, "groups"),
        ({"metric": honest["metric"] * (1 + 1e-11)}, "metric"),
        ({"metric": honest["metric"][:-1]}, "metric"),
    ):
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            prove(A, "dual", statement, honest | change)


def test_what_a_bound_rests_on_says_how_many_groups():
    assert "3 groups" in grouped()[1].explanation


def test_rounded_sums_of_many_nodes_are_allowed_for():
    rng = np.random.default_rng(0)
    A = np.triu(rng.gamma(2.0, size=(120, 120)), 1)
    A = A + A.T
    coarse = coarsen(sp.csr_array(A), degree_metric(A.sum(axis=1)), rng.permutation(np.arange(120) % 6))
    certificate = coarse.solve(2.0, tol=1e-3).certificate
    proof = certificate.statement.prove(A, certificate.kind, certificate.witness)
    assert proof.spare > 0
    assert not proof.rigorous


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_every_logarithm_and_every_rounded_sum_of_the_problem_of_sums_is_allowed_for(factor):
    A, certificate = grouped(factor)
    groups = certificate.witness["groups"].astype(int)
    member = np.eye(3)[groups]
    sums, degrees = member.T @ A @ member, A.sum(axis=1)
    sizes = [(A, 1.0), (sums, 1.0), (degrees, 2.0), (member.T @ degrees, 2.0)]
    terms = sum(weight * np.sum(np.abs(x * np.log(np.where(x > 0, x, 1.0))) + x) for x, weight in sizes)
    units = UNITS_PER_TERM + (0 if factor == 1.0 else len(degrees))
    found = sum_over_groups(sp.csr_array(A), 3, certificate.witness)
    assert found.rounding == pytest.approx(units * 2.0**-52 * terms, rel=1e-9, abs=0.0)
    assert found.exact is (factor == 1.0)


def test_one_tiny_entry_beside_others_is_not_too_small():
    A, certificate = grouped()
    A[0, 0] = 1e-300
    assert prove(A, "dual", certificate.statement, certificate.witness).bound <= certificate.bound
