"""The trusted kernel against exact arithmetic: the battery that its mutants are judged by, and its criteria near their edge."""

import numpy as np
import pytest

mp = pytest.importorskip("mpmath")

from campaigns import exact  # noqa: E402
from campaigns.battery import make_cases, verdicts  # noqa: E402
from cvxnmf.certificates import rounding  # noqa: E402


def test_the_kernel_is_right_about_the_battery():
    assert list(verdicts(make_cases(last_seed=60))) == []


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
    if rounding.is_contraction(Y, limit, 0.0):
        assert norm <= limit
    assert rounding.is_contraction(Y, float(norm) * (1 + 1e-11), 0.0)
    assert not rounding.is_contraction(Y, float(norm) * (1 + 1e-11), 1e-8 * float(norm))
    assert not rounding.is_contraction(Y, 1.0, 2.0)


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
