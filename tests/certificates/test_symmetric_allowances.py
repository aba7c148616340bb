"""Proofs of symmetric problems at their limits: what row sums, domains and cones allow for, to the unit."""

import numpy as np
import pytest

import cvxnmf
from cvxnmf.certificates import SymmetricStatement, losses, symmetric
from cvxnmf.certificates.rounding import UNIT
from cvxnmf.certificates.statement import LARGEST

STAR = np.array([[0.0, 1, 2, 3], [1, 0, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0]])
EDGE = np.array([[1.0, -1.0], [-1.0, 1.0]])


def statement(loss="kl", cone="conditional", diagonal="fit", trace=1.0, metric="uniform"):
    return SymmetricStatement(loss, cone, diagonal, trace, metric)


def dual(A, Z=None, **terms):
    Z = np.array(A if Z is None else Z, dtype=float)
    return symmetric._DualPoint(np.array(A, dtype=float), statement(**terms), Z, np.ones(len(Z)))


def refused(sentence, A, Z, metric=None, **terms):
    with pytest.raises(cvxnmf.CertificateError, match=sentence):
        statement(**terms).prove(np.array(A), "dual", {"Z": np.array(Z), "metric": np.ones(len(Z)) if metric is None else metric})


def accepted(A, Z, metric=None, **terms):
    return statement(**terms).prove(
        np.array(A), "dual", {"Z": np.array(Z), "metric": np.ones(len(Z)) if metric is None else metric}
    )


def test_what_rounding_acted_on_in_every_row():
    Z = STAR + 0.5 * np.diag([0.0, 1, 1, 1])
    found = dual(STAR, Z, cone="psd", trace=3.0)
    W = Z - STAR
    assert found.rows == pytest.approx(np.abs(W).sum(axis=1) + 2 * STAR.sum(axis=1), rel=1e-14)
    assert found._dual_matrix()[1] == pytest.approx(found.rows + 2 * 3.0, rel=1e-14)
    assert found._dual_matrix()[0] == pytest.approx(W + 3.0 * np.eye(4), rel=1e-14)
    own = symmetric._DualPoint(STAR, SymmetricStatement("kl", "psd", "fit", 3.0, "own"), Z, np.full(4, 2.0))
    assert own._dual_matrix()[1] == pytest.approx(found.rows + 2 * 3.0 * 4.0, rel=1e-14)


def test_row_sums_are_put_right_on_the_diagonal():
    Z = STAR + np.eye(4)
    off = np.array([2.0, -3.0, 5.0, -7.0]) * 8 * UNIT
    Z[np.diag_indices(4)] = off
    found = dual(STAR, Z)
    assert found.slack == pytest.approx((4 + 16) * UNIT * (np.abs(off) + 2 * STAR.sum(axis=1)), rel=1e-9, abs=0.0)
    assert found.diagonal.tolist() == [0.0] * 4
    W = 0.25 * (np.diag([3.0, 1, 1, 1]) - (STAR > 0))
    moved = STAR + W
    moved[0, 0] += 64 * UNIT
    assert dual(STAR, moved).diagonal == pytest.approx(np.diag(W), abs=2 * UNIT)


@pytest.mark.parametrize("row", range(4))
def test_row_sums_may_be_off_by_sixteen_times_their_rounding(row):
    rounding = (4 + 16) * UNIT * 2 * STAR.sum(axis=1)[row]
    for share, verdict in ((15.0, True), (-15.0, True), (17.0, False), (-17.0, False)):
        Z = STAR.copy()
        Z[row, row] = share * rounding
        if verdict:
            dual(STAR, Z)
        else:
            with pytest.raises(cvxnmf.CertificateError, match=rf"\(row {row}\)"):
                dual(STAR, Z)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_slack_where_the_diagonal_is_ignored(n):
    A = np.ones((n, n)) - np.eye(n)
    A[0] *= 2.0
    A[:, 0] *= 2.0
    found = dual(A, diagonal="ignore")
    rounding = (n + 16) * UNIT * 2 * A.sum(axis=1).max()
    assert found.slack == pytest.approx(np.full(n, 2.0 * rounding / max(n - 2, 1)), rel=1e-9, abs=0.0)
    for share, rigorous in ((3.0, False), (5.0, True)):
        found.Z = np.where(np.eye(n) > 0, 0.0, share * found.slack[0])
        found.require_domain()
        assert found.rigorous is rigorous


def test_the_diagonal_stays_inside_its_domain_by_twice_the_slack():
    found = dual(STAR)
    for share, verdict in ((2.1, True), (1.9, False), (0.0, False)):
        found.diagonal = share * found.slack
        if verdict:
            found.require_domain()
        else:
            with pytest.raises(cvxnmf.CertificateError, match="domain at row 0, column 0"):
                found.require_domain()


def test_what_a_bound_gives_away_with_a_diagonal_that_is_ignored():
    n = 6
    A = np.ones((n, n)) - np.eye(n)
    A[0, 1] = A[1, 0] = A[2, 3] = A[3, 2] = 3.0
    Z = A.copy()
    Z[0, 1] = Z[1, 0] = Z[2, 3] = Z[3, 2] = 2.75  # a rectangle 0-1-2-3 keeps the row sums
    Z[1, 2] = Z[2, 1] = Z[0, 3] = Z[3, 0] = 1.25
    proof = accepted(A, Z, diagonal="ignore", trace=5.0)
    terms, weight, slope = losses.KL.conjugate(A, Z)
    slack = dual(A, Z, diagonal="ignore").slack[0]
    off = ~np.eye(n, dtype=bool)
    given = 64 * UNIT * weight[off].sum()
    shifted = 2 * slack * (np.abs(slope) + 1.0).sum()
    assert proof.bound > 0.1
    assert (terms[off].sum() - proof.bound) / (given + shifted) == pytest.approx(1.0, abs=0.02)
    assert proof.spare == pytest.approx(given / 2, rel=0.02, abs=0.0)
    assert proof.scale == 38.0


@pytest.mark.parametrize("loss", ["kl", "mse"])
def test_what_a_bound_gives_away_with_free_effects(loss):
    A = np.array([[3.0, 1.0], [1.0, 3.0]])
    f = A if loss == "kl" else 0.5 * A * A
    Z = f - 0.25 * EDGE
    proof = accepted(A, Z, loss=loss, trace=5.0)
    terms, weight, slope = losses.LOSSES[loss].conjugate(A, Z)
    given, slack = 64 * UNIT * weight.sum(), dual(A, Z, loss=loss).slack
    shifted = np.sum(slack * (np.abs(np.diag(slope)) + 1.0))
    assert (terms.sum() - proof.bound) / (given + shifted) == pytest.approx(1.0, abs=0.02)
    assert proof.spare == pytest.approx(given / 2, rel=0.02, abs=0.0)


def test_where_the_slack_is_far_larger_than_an_entry_its_slope_counts():
    """A diagonal of 1 in rows of 1e12, for the paper's constraint; the other two nodes make the bound large."""
    block = np.array([[1.0, 1e12], [1e12, 1.0]])
    A, W = np.kron(np.eye(2), block), np.kron(np.diag([0.0, 1e20]), EDGE)
    Z = 0.5 * A * A + W
    proof = accepted(A, Z, loss="mse-paper", trace=1e13)
    loss = losses.LOSSES["mse-paper"]
    found = dual(A, Z, loss="mse-paper")
    Z[np.diag_indices(4)] = found.diagonal
    terms, weight, slope = loss.conjugate(A, Z)
    raised = loss.conjugate(np.diag(A), found.diagonal + found.slack).slope
    steepest = np.maximum(np.abs(np.diag(slope)), np.abs(raised)) + 1.0
    assert raised[0] > np.diag(slope)[0] + 5.0
    lost = terms.sum() - proof.bound
    assert lost == pytest.approx(64 * UNIT * weight.sum() + np.sum(found.slack * steepest), rel=0.01)


def test_components_are_proved_one_by_one_without_a_penalty():
    A, W = np.ones((2, 2)), 0.5 * EDGE
    assert accepted(A, A + W, trace=0.0).rigorous
    refused("not positive semidefinite", A, A - W, trace=0.0)
    two, dual_point = np.kron(np.eye(2), A), np.kron(np.eye(2), A + W)
    assert accepted(two, dual_point, trace=0.0).rigorous
    for sign in ((1.0, -1.0), (-1.0, 1.0)):
        refused("not positive semidefinite", two, two + np.kron(np.diag(sign), W), trace=0.0)
    three = np.array([[2.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    assert accepted(np.full((3, 3), 3.0), 3.0 + three, trace=0.0).rigorous
    refused("not positive semidefinite", np.full((3, 3), 3.0), 3.0 - three, trace=0.0)
    refused("not positive semidefinite", two, two - np.kron(np.eye(2), W), cone="psd", trace=0.0)


def test_one_node_proves_nothing_and_is_no_error():
    assert accepted([[2.0]], [[2.0]]).bound == 0.0
    refused("does not match", np.zeros((2, 2)) + [[0.0, 0.0], [0.0, 1.0]], np.ones((2, 2)))


@pytest.mark.parametrize(
    ("metric", "verdict"),
    [
        ([1.0, LARGEST], True),
        ([1 / LARGEST, 1.0], True),
        ([1.0, 1.01 * LARGEST], False),
        ([0.99 / LARGEST, 1.0], False),
        ([0.0, 1.0], False),
        ([1.0, -1.0], False),
    ],
)
def test_metrics_of_moderate_size(metric, verdict):
    own = statement(metric="own")
    if verdict:
        assert own.true_metric(np.ones(2), np.array(metric)).tolist() == metric
    else:
        with pytest.raises(cvxnmf.CertificateError, match="moderate size"):
            own.true_metric(np.ones(2), np.array(metric))


def test_named_metrics_are_recomputed():
    near = statement(metric="degree").true_metric(
        np.array([3.0, 1.0]), np.array([np.sqrt(5), np.sqrt(3)]) / 8**0.25 * (1 + 1e-14)
    )
    assert near.tolist() == [np.sqrt(5 / np.sqrt(8)), np.sqrt(3 / np.sqrt(8))]
    for terms in ({"metric": "degree"}, {"metric": "uniform"}):
        with pytest.raises(cvxnmf.CertificateError, match="is not the"):
            statement(**terms).true_metric(np.array([3.0, 1.0]), np.array([1.0, 1.0 + 1e-11]))
    for digest in ("a", 1.0):
        with pytest.raises(cvxnmf.CertificateError, match="not understood"):
            SymmetricStatement("kl", "psd", "fit", 0.0, "uniform" if digest == "a" else "own", digest)


def test_dual_points_given_by_factors():
    """Of moderate size they are formed: on the nodes that carry data, symmetric to the last bit."""
    rng = np.random.default_rng(0)
    A = np.zeros((5, 5))
    part = rng.random((4, 4))
    kept = np.ix_([0, 1, 3, 4], [0, 1, 3, 4])
    A[kept] = part + part.T
    A[1, 3] = A[3, 1] = 0.0
    v, W, share = np.log(A.sum(axis=1)[[0, 1, 3, 4]] / 4), 0.3 * rng.standard_normal((4, 2)), 0.3
    Z = share * np.exp(np.add.outer(v, v) + W @ W.T) + (1 - share) * A[kept]
    diagonal = (A[kept] - Z).sum(axis=1)
    witness = {"metric": np.ones(4), "v": v, "W": W, "share": np.array([share]), "diagonal": diagonal}
    formed = (Z + Z.T) / 2 + np.diag(diagonal)
    by_factors = statement(trace=4.0).prove(A, "dual", witness)
    by_matrix = accepted(A, formed, metric=np.ones(4), trace=4.0)
    assert by_factors.bound == pytest.approx(by_matrix.bound, rel=1e-12)
    assert by_factors.spare == pytest.approx(by_matrix.spare, rel=1e-6, abs=0.0)
    assert by_factors.bound > 0
    for name, array in (
        *((name, witness[name][:-1]) for name in ("metric", "v", "W", "diagonal", "share")),
        ("W", W[:, 0]),
        ("share", np.array([1.01])),
        ("share", np.array([-0.01])),
    ):
        with pytest.raises(cvxnmf.CertificateError, match="do not match the data|between 0 and 1"):
            statement(trace=4.0).prove(A, "dual", witness | {name: array})
    for share in (0.0, 1.0):
        symmetric.factor_arrays(witness | {"share": np.array([share])}, 4)


def test_rows_of_several_chunks():
    """More nodes than a chunk has rows: sums are those of the rows, whatever the chunk."""
    n = 150
    A = 1.0 + np.add.outer(np.arange(n) % 3, np.arange(n) % 3)
    assert dual(A).rows == pytest.approx(2 * A.sum(axis=1), rel=1e-14)
    assert accepted(A, A).rigorous
    S = np.eye(n) + 0.5 * np.eye(n, k=1) + 0.5 * np.eye(n, k=-1) + np.diag(np.arange(n) * 0.1)
    plain = cvxnmf.certificates.DoublyNonnegativeStatement(0.0, 0.0)
    assert plain.prove(A, "dual", {"S": S, "N": np.zeros((n, n))}).rigorous
