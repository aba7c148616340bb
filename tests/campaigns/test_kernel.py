"""The trusted kernel against exact arithmetic: the battery that its mutants are judged by, and its criteria near their edge."""

import numpy as np
import pytest

mp = pytest.importorskip("mpmath")

import cvxnmf  # noqa: E402
from campaigns import exact  # noqa: E402
from campaigns.battery import make_cases, verdicts  # noqa: E402
from campaigns.cases import random_certificate  # noqa: E402
from cvxnmf import certificates  # noqa: E402
from cvxnmf.certificates import rounding  # noqa: E402


def test_the_kernel_is_right_about_the_battery():
    assert list(verdicts(make_cases(last_seed=60))) == []


def test_certificates_of_every_kind_of_bound_are_tried():
    known, made = set(), set()
    for seed in range(250):
        found = random_certificate(np.random.default_rng(seed))
        if found is not None:
            statement = found[1].statement
            known |= {(statement.form, statement.get("loss"), kind) for kind in statement.kinds}
            made.add((statement.form, statement.get("loss"), found[1].kind))
    assert {name for name in known - made if name[-1] != "zero"} == set()


def nearly_singular(rng, n):
    """A symmetric matrix whose least eigenvalue is within rounding of 0, on one side or the other."""
    B = rng.standard_normal((n, max(1, n - 1))) * 10.0 ** rng.uniform(-2, 2, (n, 1))
    M = B @ B.T
    M = (M + M.T) / 2
    M[np.diag_indices(n)] += float(np.trace(M)) * 10.0 ** rng.uniform(-17, -12) * rng.choice([-1.0, 1.0])
    return M


@pytest.mark.parametrize("seed", range(40))
def test_what_is_called_positive_semidefinite_is(seed):
    rng = np.random.default_rng(seed)
    M = nearly_singular(rng, int(rng.integers(2, 9)))
    if rounding.is_psd(M.copy(), np.abs(M).sum(axis=1)):
        assert exact.eigenvalues(exact.matrix(M))[-1] >= 0


def test_what_rounding_acted_on_counts():
    """With sums of absolute values s a matrix of two rows is off by 8 s units from forming it, and by 36 s from summing."""
    for share, verdict in ((40, False), (50, True)):
        size = np.array([1.0, 1.0 / (share * rounding.UNIT)])
        assert rounding.is_psd(np.eye(2), size) is verdict
        assert rounding.is_psd(np.eye(2), size[::-1]) is verdict
    assert rounding.is_psd(np.eye(2), np.ones(2), slack=0.4)
    assert not rounding.is_psd(np.eye(2), np.ones(2), slack=0.6)
    assert not rounding.is_psd(np.full((2, 2), np.nan), np.ones(2))
    assert not rounding.is_psd(np.array([[1.0, np.inf], [np.inf, 1.0]]), np.ones(2))


def test_positive_definite_matrices_are_called_so():
    for n in (1, 3, 30):
        B = np.random.default_rng(n).standard_normal((n, n))
        M = B @ B.T + 1e-9 * n * np.eye(n) * np.linalg.norm(B) ** 2
        assert rounding.is_psd(M.copy(), np.abs(M).sum(axis=1))
        assert not rounding.is_psd(-M, np.abs(M).sum(axis=1))


@pytest.mark.parametrize("seed", range(40))
def test_what_is_called_a_contraction_is(seed):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((int(rng.integers(2, 7)), int(rng.integers(2, 7))))
    norm = mp.sqrt(exact.squared_singular_values(exact.matrix(Y))[0])
    limit = float(norm) * (1 + 10.0 ** rng.uniform(-16, -12) * rng.choice([-1.0, 1.0]))
    if rounding.is_contraction(Y.copy(), limit, 0.0):
        assert norm <= limit
    assert rounding.is_contraction(Y.copy(), float(norm) * (1 + 1e-11), 0.0)
    assert not rounding.is_contraction(Y.copy(), float(norm) * (1 + 1e-11), 1e-8 * float(norm))
    assert not rounding.is_contraction(Y.copy(), 1.0, 2.0)


@pytest.mark.parametrize("seed", range(30))
def test_eigenvalues_are_never_above_their_bounds(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    M = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-3, 3)
    M = (M + M.T) / 2
    upper = rounding.largest_eigenvalues(M, n)
    true = exact.eigenvalues(exact.matrix(M))
    assert all(mp.mpf(float(bound)) >= value for bound, value in zip(upper, true, strict=True))
    assert upper[0] <= max(float(true[0]), 0.0) + 1e-11 * np.abs(M).sum()


@pytest.mark.parametrize("seed", range(20))
def test_row_sums_are_within_their_errors(seed):
    M = 10.0 ** np.random.default_rng(seed).uniform(-8, 8, (3, 500))
    sums, errors = rounding.row_sums(M)
    for row, total, error in zip(M, sums, errors, strict=True):
        assert abs(mp.fsum(map(mp.mpf, row.tolist())) - mp.mpf(float(total))) <= error / 2
        assert error <= 1e-13 * total


def test_a_kernel_of_ones_is_lifted_and_nothing_else():
    graph = np.random.default_rng(0).random((6, 6))
    graph = graph + graph.T
    laplacian = np.diag(graph.sum(axis=1)) - graph
    size = np.abs(laplacian).sum(axis=1)
    assert rounding.is_psd(laplacian.copy(), size, kernel_of_ones=True)
    assert not rounding.is_psd(laplacian.copy(), size)
    below = laplacian - 1e-6 * (np.eye(6) - np.ones((6, 6)) / 6) * np.trace(laplacian)
    second = np.linalg.eigvalsh(laplacian)[1]
    lowered = laplacian - (second + 1e-6) * (np.eye(6) - np.ones((6, 6)) / 6)
    assert rounding.is_psd(below, size, kernel_of_ones=True)
    assert not rounding.is_psd(lowered, size, kernel_of_ones=True)
    assert not rounding.is_psd(laplacian.copy(), size, slack=1.0, kernel_of_ones=True)
    assert rounding.is_psd(np.zeros((1, 1)), np.zeros(1), kernel_of_ones=True)
    assert not rounding.is_psd(np.zeros((2, 2)), np.zeros(2))


def test_bounds_that_are_not_numbers_are_no_proofs():
    for total in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="not a finite number"):
            rounding.safe_proof(total, 1.0, 1.0)
    proof = rounding.safe_proof(5.0, 1.0, 3.0, shifted=0.5, spare=0.25)
    assert (proof.bound, proof.spare, proof.scale) == (3.5, 0.75, 3.0)
    assert rounding.safe_proof(-5.0, 1.0, 3.0) == (0.0, True, 3.0, 0.0, None, False, -np.inf)
    assert rounding.safe_proof(0.9, 1.0, 3.0).spare == pytest.approx(0.4)


@pytest.mark.parametrize("loss", ["kl", "mse"])
@pytest.mark.parametrize("seed", range(12))
def test_margins_that_are_put_right_are_paid_for(loss, seed):
    """Margins off by hundreds of units, far more than the rounding of sums, are put right at the expense of the bound."""
    rng = np.random.default_rng(seed)
    A = rng.random((4, 3)) * 10.0 ** rng.integers(-3, 4)
    certificate = cvxnmf.solve(cvxnmf.nonsymmetric(A, loss=loss, trace=float(A.mean())), max_iter=60).certificate
    if certificate.kind != "dual":
        pytest.skip("nothing is proved")
    signs = rng.choice([-1.0, 1.0], (4, 1))
    Z = certificate.witness["Z"] * (1.0 + rng.choice([50, 200, 400]) * rounding.UNIT * signs)
    statement = certificate.statement
    try:
        proof = statement.prove(A, "dual", {"Z": Z})
    except ValueError:  # larger than the penalty allows
        Z = 0.999 * Z + 0.001 * _edge(A, loss)
        proof = statement.prove(A, "dual", {"Z": Z})
    true = exact.exact_bound(A, statement, "dual", {"Z": Z})
    assert mp.mpf(proof.bound) + mp.mpf(proof.spare) <= max(mp.mpf(0), true)


def _edge(A, loss):
    return A if loss == "kl" else 0.5 * A * A


# Mutants that the battery let live ------------------------------------------------------------------------------------------


def refused(A, statement, kind, witness):
    with pytest.raises(cvxnmf.CertificateError):
        statement.prove(A, kind, witness)


def test_a_single_entry_of_the_wrong_sign_is_refused():
    A = np.random.default_rng(0).random((4, 4))
    A = A + A.T
    N = np.zeros((4, 4))
    N[1, 2] = N[2, 1] = -1e-12
    refused(A, certificates.DoublyNonnegativeStatement(0.0, 0.0), "dual", {"S": np.zeros((4, 4)), "N": N})
    refused(A, certificates.RankStatement("mse", 2, True), "dual", {"N": N})
    refused(A, certificates.RankStatement("mse", 2, False), "dual", {"N": N})


def test_either_part_that_is_not_symmetric_is_refused():
    A, skew = np.ones((3, 3)), np.triu(np.ones((3, 3)))
    statement = certificates.DoublyNonnegativeStatement(0.0, 0.0)
    refused(A, statement, "dual", {"S": np.eye(3), "N": skew})
    refused(A, statement, "dual", {"S": skew, "N": np.eye(3)})
    plain = certificates.SymmetricStatement("kl", "psd", "fit", 0.1, "uniform")
    refused(A, plain, "dual", {"Z": A + np.triu(A, 1), "metric": np.ones(3)})
    refused(A, plain, "dual", {"Z": np.full((3, 3), np.inf), "metric": np.ones(3)})


@pytest.mark.parametrize(("loss", "limit"), [("kl", 1e100), ("mse", 1e50)])
def test_data_up_to_the_edges_of_the_safe_range(loss, limit):
    statement = certificates.SymmetricStatement(loss, "psd", "fit", 0.0, "uniform")
    for largest, safe in ((limit, True), (1 / limit, True), (limit * 1.01, False), (0.99 / limit, False)):
        A = np.full((2, 2), largest)
        Z = A if loss == "kl" else 0.5 * A * A
        Z = Z + np.diag(Z.sum(axis=1))
        if safe:
            assert statement.prove(A, "dual", {"Z": Z, "metric": np.ones(2)}).bound >= 0.0
        else:
            refused(A, statement, "dual", {"Z": Z, "metric": np.ones(2)})


def test_values_that_are_not_finite():
    assert certificates.relative_gap(np.inf, 0.0, 1.0) == np.inf
    assert certificates.relative_gap(2.0, 1.0, 1.0) == 0.5
    assert certificates.relative_gap(0.0, 0.0, 1.0) == 0.0
    for bad in (np.nan, np.inf):
        with pytest.raises(cvxnmf.CertificateError, match="too large"):
            rounding.largest_eigenvalues(np.full((2, 2), bad), 1)


def test_wide_and_tall_contractions_are_the_same():
    Y = np.zeros((5, 2))
    Y[:, 0] = 1.0
    for part in (Y, Y.T):
        assert rounding.is_contraction(part.copy(), 2.2361, 0.0)
        assert not rounding.is_contraction(part.copy(), 2.2360, 0.0)


def test_a_block_matrix_that_is_not_positive_semidefinite_is_refused():
    A = np.random.default_rng(0).random((4, 3)) + 0.1
    problem = cvxnmf.nonsymmetric(A, penalty="paper", effects=False, trace=0.3)
    certificate = cvxnmf.solve(problem, max_iter=60).certificate
    witness = dict(certificate.witness)
    assert certificate.statement.prove(A, "dual", witness).bound == certificate.bound
    for name in ("p", "q"):
        refused(A, certificate.statement, "dual", witness | {name: 0.9 * witness[name]})
        refused(A, certificate.statement, "dual", witness | {name: 0.0 * witness[name]})


def test_a_dual_point_must_vanish_on_a_diagonal_that_is_ignored():
    A = np.random.default_rng(0).random((5, 5))
    A = A + A.T
    for cone in ("psd", "conditional"):
        problem = cvxnmf.symmetric(A, cone=cone, metric="uniform", diagonal="ignore", trace=1.0)
        certificate = cvxnmf.solve(problem, max_iter=60).certificate
        witness = dict(certificate.witness)
        raised = witness["Z"] + np.diag([1e-3, 0.0, 0.0, 0.0, 0.0])
        refused(A, certificate.statement, "dual", witness | {"Z": raised})


def test_entries_as_small_as_rounding_are_not_called_rigorous_where_the_diagonal_is_ignored():
    n = 6
    A = np.ones((n, n)) - np.eye(n)
    statement = certificates.SymmetricStatement("kl", "conditional", "ignore", 5.0, "uniform")
    Z = A.copy()
    metric = np.ones(n)
    assert statement.prove(A, "dual", {"Z": Z, "metric": metric}).rigorous
    Z[0, 1] = Z[1, 0] = Z[2, 3] = Z[3, 2] = 0.0  # a rectangle 0-1-2-3 keeps the row sums
    Z[1, 2] = Z[2, 1] = Z[0, 3] = Z[3, 0] = 2.0
    assert not statement.prove(A, "dual", {"Z": Z, "metric": metric}).rigorous


def test_penalties_are_weights():
    for trace, understood in ((0.0, True), (1e120, True), (1.1e120, False), (-1e-300, False)):
        if understood:
            certificates.SymmetricStatement("kl", "psd", "fit", trace, "uniform")
        else:
            with pytest.raises(cvxnmf.CertificateError, match="not understood"):
                certificates.SymmetricStatement("kl", "psd", "fit", trace, "uniform")
    with pytest.raises(cvxnmf.CertificateError, match="not understood"):
        certificates.NonsymmetricStatement("kl", "nuclear", True, 0.0)


@pytest.mark.parametrize("loss", ["kl", "mse", "mse-paper"])
def test_a_dual_point_outside_its_domain_is_refused(loss):
    A = np.array([[1.0, 0.0], [0.0, 1.0]])
    statement = certificates.SymmetricStatement(loss, "psd", "fit", 1.0, "uniform")
    Z = np.diag([3.0, 3.0])
    assert statement.prove(A, "dual", {"Z": Z, "metric": np.ones(2)}).rigorous
    Z[0, 1] = Z[1, 0] = -1e-9
    refused(A, statement, "dual", {"Z": Z, "metric": np.ones(2)})


def test_rows_and_columns_of_a_symmetric_part_agree():
    witness = {"rows": np.array([1.0, 1.0, 1.0, 0.0]), "columns": np.array([1.0, 1.0, 0.0, 1.0])}
    with pytest.raises(cvxnmf.CertificateError, match="must agree"):
        certificates.RankStatement("mse", 1, True).prove(np.ones((4, 4)), "tail", witness)
    assert certificates.RankStatement("mse", 1, False).prove(np.ones((4, 4)), "tail", witness).bound == 0.0


def test_a_single_row_that_does_not_sum_to_zero_is_refused():
    A = np.ones((4, 4))
    statement = certificates.SymmetricStatement("kl", "conditional", "fit", 1.0, "uniform")
    witness = {"Z": A.copy(), "metric": np.ones(4)}
    assert statement.prove(A, "dual", witness).rigorous
    witness["Z"][0, 0] += 1e-9
    with pytest.raises(cvxnmf.CertificateError, match="sum to zero"):
        statement.prove(A, "dual", witness)


def test_doubly_nonnegative_witnesses_at_their_limits():
    A, S, N = np.full((3, 3), 2.0), np.diag([1.0, 2.0, 3.0]), np.ones((3, 3))
    statement = certificates.DoublyNonnegativeStatement(8.0, 2.0)
    proof = statement.prove(A, "dual", {"S": S, "N": N})
    assert statement.prove(A, "dual", {"S": 0 * S, "N": N}).bound >= 0
    # ||A||^2 - ||A - 4 - I + S + N||^2 and what rounding acted on, entry by entry: |S| + N + A + l1/2 (+ trace/2)
    Z, size = A - 4.0 - np.eye(3) + S + N, S + N + A + 4.0 + np.eye(3)
    rounding_allowed = 64 * rounding.UNIT * (36.0 + (Z**2).sum() + (abs(Z) * size).sum())
    assert proof.bound == pytest.approx(36.0 - (Z**2).sum() - rounding_allowed, rel=1e-15, abs=1e-14)
    assert proof.spare == pytest.approx(rounding_allowed / 2, rel=0.05)
    skew = S.copy()
    skew[0, 1] = 1e-9
    for witness, sentence in (
        ({"S": S - 1.1 * np.diag([1.0, 0.0, 0.0]), "N": N}, "not positive semidefinite"),
        ({"S": np.diag([1.0, 2.0, -1e-9]), "N": N}, "not positive semidefinite"),
        ({"S": -np.diag([0.0, 0.0, 1e-9]), "N": N}, "not positive semidefinite"),
        ({"S": skew, "N": N}, "not symmetric"),
        ({"S": S, "N": N + np.triu(N, 1)}, "not symmetric"),
        ({"S": S, "N": N - 1.5 * np.diag([1.0, 0.0, 0.0])}, "negative"),
        ({"S": S[:2, :2], "N": N}, "does not match"),
        ({"S": S, "N": N[:2, :2]}, "does not match"),
    ):
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            statement.prove(A, "dual", witness)
