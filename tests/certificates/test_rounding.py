"""The criteria and allowances of `rounding` to the unit: on matrices so small that what must come out can be written down."""

import numpy as np
import pytest

import cvxnmf
from cvxnmf.certificates import rounding
from cvxnmf.certificates.rounding import UNIT


def units(excess):
    """An excess over 1 in units."""
    return excess / UNIT


def test_rows_are_cut_into_slices():
    assert list(rounding.row_slices(5, 3, 6)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(rounding.row_slices(3, 0, 5)) == [slice(0, 3)]
    assert list(rounding.row_slices(2, 9, 5)) == [slice(0, 1), slice(1, 2)]
    assert list(rounding.row_slices(0, 3)) == []


@pytest.mark.parametrize("place", [(0, 1), (255, 256), (3, 299), (299, 3), (280, 299), (256, 255)])
def test_one_entry_makes_a_matrix_unsymmetric(place):
    M = np.add.outer(np.arange(300.0), np.arange(300.0))
    assert rounding.is_mirrored(M)
    M[place] += 1e-9
    assert not rounding.is_mirrored(M)


def test_one_entry_is_not_finite():
    for bad in (np.nan, np.inf, -np.inf):
        assert not rounding.is_finite(np.array([1.0, bad, -1.0]))
    assert rounding.is_finite(np.array([1.0, -1.0]))
    assert rounding.is_finite(np.zeros(0))


def test_sums_of_rows_have_errors_of_32_units():
    sums, errors = rounding.row_sums(np.arange(12.0).reshape(3, 4))
    assert sums.tolist() == [6.0, 22.0, 38.0]
    assert errors == pytest.approx(32 * UNIT * sums, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(
    ("n", "size", "wanted"),
    [
        (1, 0.0, 4 * 17),
        (1, 10.0, 4 * 17 + 10 * (8 + 2 * 17)),
        (2, 0.0, 2 * 4 * 18),
        (2, 100.0, 2 * 4 * 18 + 100 * (8 + 2 * 18)),
        (5, 3.0, 5 * 4 * 21 + 3 * (8 + 2 * 21)),
    ],
)
def test_a_positive_definite_matrix_may_be_off_by_its_allowance(n, size, wanted):
    """The identity passes as long as slack and allowances stay below 1; `size` of any one row counts."""
    for row in range(n):
        sizes = np.zeros(n)
        sizes[row] = size
        for spared, verdict in ((wanted - 2 * n, False), (wanted + 2 * n, True)):
            assert rounding.is_psd(np.eye(n), sizes, slack=(1.0 - spared * UNIT) / n) is verdict


@pytest.mark.parametrize("diagonal", [(4.0, 1.0), (1.0, 0.25), (2.0**-100, 2.0**100)])
def test_positive_definite_matrices_are_scaled(diagonal):
    """What rounding acted on counts in proportion to the diagonal."""
    for row in range(2):
        for share, verdict in ((1.01, False), (0.99, True)):
            size = np.zeros(2)
            size[row] = share * diagonal[row] / (44 * UNIT)
            assert rounding.is_psd(np.diag(diagonal), size) is verdict
    for share, verdict in ((0.51, False), (0.49, True)):
        assert rounding.is_psd(np.diag(diagonal), np.zeros(2), slack=share * min(diagonal)) is verdict


def test_the_direction_of_ones_is_lifted_by_the_mean_of_the_diagonal():
    edge = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for slack, verdict in ((0.4999, True), (0.5001, False)):  # lifted, its eigenvalues are 1 and 2
        assert rounding.is_psd(edge.copy(), np.zeros(2), slack, kernel_of_ones=True) is verdict
    assert rounding.is_psd(1e-9 * edge, np.zeros(2), 4e-10, kernel_of_ones=True)
    path = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    assert rounding.is_psd(path, np.abs(path).sum(axis=1), kernel_of_ones=True)
    uneven = np.diag([1.0, 65.0, 64.0]) - np.array([[0.0, 1, 0], [1, 0, 64], [0, 64, 0]])
    assert rounding.is_psd(uneven, np.abs(uneven).sum(axis=1), kernel_of_ones=True)
    for spared, verdict in ((345, True), (320, False)):  # 4 * 18 of the trace, 3, and the lift, 1; and 44 of the size
        assert rounding.is_psd(edge.copy(), np.full(2, 1.0), (1.0 - spared * UNIT) / 2, kernel_of_ones=True) is verdict


@pytest.mark.parametrize("length", [1, 100])
def test_contractions_are_off_by_their_allowance(length):
    """A column of norm y passes if ``1 - y²`` is above ``4 (length + 16)`` units and a little."""
    wanted = 2 * (length + 16)
    for spared, verdict in ((wanted - 8, False), (wanted + 8, True)):
        Y = np.full((length, 1), (1.0 - spared * UNIT) / np.sqrt(length))
        assert rounding.is_contraction(Y.copy(), 1.0, 0.0) is verdict
        assert rounding.is_contraction(Y.T.copy(), 1.0, 0.0) is verdict
        assert rounding.is_contraction(8 * Y, 8.0, 0.0) is verdict
        assert rounding.is_contraction(8 * Y, 9.0, 1.0) is verdict
    assert not rounding.is_contraction(np.zeros((1, 1)), 1.0, 1.0)
    assert not rounding.is_contraction(np.full((1, 1), np.nan), 1.0, 0.0)
    assert not rounding.is_contraction(np.full((1, 1), 1e200), 1.0, 0.0)


def test_contractions_of_many_columns():
    """``1 - Y'Y`` of the zero matrix is the identity, which errs by the trace."""
    assert rounding.is_contraction(np.zeros((3, 2)), 1e-300, 0.0)
    Y = np.array([[0.6, 0.0], [0.0, 1.0 - 60 * UNIT]])  # 2 * 18 units of 1.36 + 1, and 4 * 18 of .64
    assert not rounding.is_contraction(Y.copy(), 1.0, 0.0)
    assert rounding.is_contraction(Y - np.diag([0.0, 10 * UNIT]), 1.0, 0.0)


@pytest.mark.parametrize(("n", "m"), [(1, 1.0), (1, 7.0), (2, 1.0), (3, 2.0)])
def test_eigenvalues_err_by_their_size_and_the_skew_of_the_vectors(n, m):
    """Of m I the vectors are exact: ``4 (n + 16)`` units, times n, of the values in E and of 1 in the vectors."""
    upper = rounding.largest_eigenvalues(m * np.eye(n), n)
    assert upper.shape == (n,)
    assert units(upper / m - 1.0) == pytest.approx(np.full(n, 2 * 4 * (n + 16) * n), abs=2)


def test_eigenvalues_are_positive_parts_in_decreasing_order():
    upper = rounding.largest_eigenvalues(np.diag([-3.0, 5.0, 1.0]), 2)
    assert upper == pytest.approx([5.0, 1.0], rel=1e-12, abs=0.0)
    upper = rounding.largest_eigenvalues(np.diag([-3.0, 5.0, 1.0]), 3)
    assert units(upper[2]) == pytest.approx(4 * 19 * 9, abs=2)  # of the negative one the error alone, which its size is part of
    for bad in (np.nan, np.inf):
        with pytest.raises(cvxnmf.CertificateError, match="too large"):
            rounding.largest_eigenvalues(np.array([[1.0, bad], [bad, 1.0]]), 1)


def test_decompositions_that_overflow_prove_nothing():
    M = np.random.default_rng(0).random((6, 6))
    with pytest.raises(cvxnmf.CertificateError, match="could not be computed"), np.errstate(all="ignore"):
        rounding.largest_eigenvalues(1e300 * (M + M.T), 2)


@pytest.mark.parametrize(("terms", "norm"), [(4, 1e6), (100, 1e5), (1, 1.0)])
def test_singular_values_err_by_what_was_summed(terms, norm):
    upper = rounding.singular_value_bounds(np.ones((1, 1)), 1, terms, norm)
    wanted = np.sqrt(1.0 + 136 * UNIT + 2 * (terms + 16) * UNIT * norm**2) + 2 * UNIT * norm
    assert upper == pytest.approx([wanted], rel=4 * UNIT, abs=0.0)


def test_bounds_and_what_they_can_spare():
    proof = rounding.safe_proof(5.0, 1.0, 3.0, shifted=0.5, spare=0.25, rigorous=False)
    assert proof == (3.5, False, 3.0, 0.75, None, False, -np.inf)
    assert rounding.safe_proof(1.0, 2.0, 3.0, spare=0.5) == (0.0, True, 3.0, 0.5, None, False, -np.inf)
    assert rounding.Bound(5.0, 1.0).proof(2.0) == (4.0, True, 2.0, 0.5, None, False, -np.inf)
    assert rounding.Bound(5.0, 1.0, 2.0).proof(2.0).spare == 2.5
