"""Asymmetry of dense and sparse matrices, and how much of it is rounding."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.linalg.arrays import shared_csr
from cvxnmf.linalg.symmetry import _mirrored_difference, asymmetry, most_asymmetric, rounding_asymmetry


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


def test_mirrored_entries_of_sparse_matrices_are_met_without_a_transposed_copy():
    rng = np.random.default_rng(0)
    for density in (0.0, 0.1, 0.6):
        A = np.triu(rng.random((30, 30)) * (rng.random((30, 30)) < density))
        A = A + np.triu(A, 1).T
        mirrored = sp.csr_array(A)
        assert _mirrored_difference(mirrored.indptr, mirrored.indices, mirrored.data) == 0.0
        other = sp.csr_array(np.where(A > 0, A + 0.1 * rng.random(A.shape), 0.0))
        assert _mirrored_difference(other.indptr, other.indices, other.data) == pytest.approx(abs(other - other.T).max())
    for i, j in ((3, 9), (9, 3), (0, 29), (29, 28)):
        B = A.copy()
        B[i, j] = 0.0 if A[i, j] else 1.0
        lonely = sp.csr_array(B)
        assert _mirrored_difference(lonely.indptr, lonely.indices, lonely.data) == -1.0


def test_large_matrices_in_order_are_not_copied():
    n, offsets = 110_000, [*range(-5, 0), *range(1, 6)]
    A = sp.csr_array(sp.diags_array([np.ones(n - abs(k)) for k in offsets], offsets=offsets))
    assert asymmetry(A) == 0.0
    assert np.shares_memory(shared_csr(A).indices, A.indices)
    assert np.shares_memory(shared_csr(A).data, A.data)
    whole = sp.csr_array(A, dtype=np.int8)
    assert np.shares_memory(shared_csr(whole).indices, whole.indices)
    assert shared_csr(whole).dtype == np.float64
    A.data[7] = 0.0
    assert shared_csr(A).nnz == A.nnz - 1
    assert asymmetry(A) == 1.0
    assert not np.shares_memory(shared_csr(A[:100, :100]).indices, A.indices)
