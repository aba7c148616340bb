"""Asymmetry of dense and sparse matrices, and how much of it is rounding."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.linalg.symmetry import asymmetry, most_asymmetric, rounding_asymmetry


def test_asymmetry_is_the_largest_difference_of_mirrored_entries():
    A = np.array([[1.0, 2.0], [2.5, 3.0]])
    assert asymmetry(A) == asymmetry(sp.csr_array(A)) == 0.5


def test_missing_and_infinite_mirrored_entries_do_not_differ():
    assert asymmetry(np.array([[1.0, np.nan], [np.nan, 2.0]])) == 0.0
    assert asymmetry(np.array([[1.0, -np.inf], [-np.inf, 2.0]])) == 0.0
    assert asymmetry(np.array([[1.0, -np.inf], [0.0, 2.0]])) == np.inf


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_the_rounding_of_single_precision_is_no_asymmetry(convert):
    A = convert(np.array([[4.0, 1.0], [1.0, 2.0]]))
    assert rounding_asymmetry(A) == pytest.approx(4e-6)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_the_entry_that_differs_most_is_named(convert):
    A = convert(np.array([[4.0, 1.0, 0.0], [1.5, 2.0, 7.0], [0.0, 3.0, 0.0]]))
    assert sorted(most_asymmetric(A)) == [1, 2]
