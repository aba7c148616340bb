"""Compiled products and logarithms against their formulas."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.linalg.arrays import aligned_empty, extremes
from cvxnmf.linalg.lanes import copy_transposed
from cvxnmf.linalg.logarithm import weighted_logarithms
from cvxnmf.linalg.products import dense_times, dense_transposed_times, product_entries, put_entries
from cvxnmf.linalg.sparse_products import csr_times, csr_transposed_times, row_shares, shares_for_sums, shares_of_rows


@pytest.mark.parametrize("k", [1, 4, 5, 8, 10, 13, 16, 17, 20, 28, 32, 33, 37, 49, 64, 65])
@pytest.mark.parametrize(("m", "n"), [(3, 30), (8, 1), (9, 70), (53, 130)])
def test_thin_products(m, n, k):
    rng = np.random.default_rng(k)
    A, X, Y = rng.random((m, n)), rng.random((n, k)), rng.random((m, k))
    np.testing.assert_allclose(dense_times(A, X), A @ X, rtol=1e-13)
    np.testing.assert_allclose(dense_transposed_times(A, Y), A.T @ Y, rtol=1e-13)
    np.testing.assert_allclose(dense_times(A.T, Y), A.T @ Y, rtol=1e-13)
    single = A.astype(np.float32)
    np.testing.assert_allclose(dense_times(single, X), A @ X, rtol=1e-5)
    np.testing.assert_allclose(dense_transposed_times(single, Y), A.T @ Y, rtol=1e-5)


@pytest.mark.parametrize(("m", "n"), [(3, 9), (4, 4), (5, 7), (32, 10), (10, 32)])
def test_transposed_copies_touch_nothing_else(m, n):
    X, Y = np.random.default_rng(0).random((m + 2, n + 1)), np.zeros((n + 3, m + 2))
    copy_transposed(X, 2, 1, m, n, Y, 3, 2)
    np.testing.assert_array_equal(Y[3:, 2:], X[2:, 1:].T)
    assert not Y[:3].any()
    assert not Y[:, :2].any()


def test_loops_over_vectors_refuse_what_is_not_contiguous():
    with pytest.raises(TypeError, match="contiguous"):
        copy_transposed(np.ones((5, 5), order="F"), 0, 0, 5, 5, np.ones((5, 5)), 0, 0)


@pytest.mark.parametrize("k", [1, 3, 4, 5, 8, 10, 13, 16, 17, 21, 32, 35])
def test_sparse_products(k):
    rng = np.random.default_rng(k)
    dense = rng.random((23, 30)) * (rng.random((23, 30)) < 0.2)
    X, Y = rng.random((30, k)), rng.random((23, k))
    plain, long, single = (sp.csr_array(dense) for _ in range(3))
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    single.data = single.data.astype(np.float32)
    for A, accuracy in ((plain, 1e-13), (long, 1e-13), (single, 1e-6)):
        np.testing.assert_allclose(csr_times(A, X), dense @ X, rtol=accuracy, atol=1e-15)
        np.testing.assert_allclose(csr_transposed_times(A, Y), dense.T @ Y, rtol=accuracy, atol=1e-15)


def test_sparse_products_of_large_data_are_cut_into_shares():
    rng = np.random.default_rng(5)
    A = sp.csr_array(sp.random(6000, 7000, 0.02, random_state=5))
    X, Y = rng.random((7000, 9)), rng.random((6000, 9))
    assert len(row_shares(A)) == 8
    np.testing.assert_allclose(csr_times(A, X), A @ X, rtol=1e-12)
    np.testing.assert_allclose(csr_transposed_times(A, Y), A.T @ Y, rtol=1e-12)


def test_shares_of_rows_are_a_power_of_two():
    indptr = np.arange(0, 800_001, 100)
    assert [len(shares_of_rows(indptr, most=most)) for most in (0, 1, 2, 3, 4, 7, 8, 100)] == [1, 1, 2, 2, 4, 4, 8, 8]
    assert [len(shares_of_rows(indptr[:rows])) for rows in (1900, 4000)] == [1, 2]


@pytest.mark.parametrize(("columns", "shares"), [(400, 8), (7000, 2), (20_000, 1)])
def test_shares_with_sums_of_their_own_have_many_entries_for_each(columns, shares):
    A = sp.csr_array(sp.random(4000, columns, 200 / columns, random_state=5))
    Y = np.random.default_rng(3).random((4000, 9))
    assert len(shares_for_sums(A)) == shares
    np.testing.assert_allclose(csr_transposed_times(A, Y), A.T @ Y, rtol=1e-12)


@pytest.mark.parametrize("shape", [(3, 5), (20_000, 5)])
def test_large_arrays_begin_with_a_cache_line(shape):
    X = aligned_empty(shape)
    assert X.shape == shape
    assert X.flags.c_contiguous
    assert X.size < 1000 or X.ctypes.data % 64 == 0


@pytest.mark.parametrize("shape", [(3, 5), (700_000,), (3000, 200)])
def test_extremes_are_those_of_what_is_known(shape):
    X = np.random.default_rng(0).normal(size=shape)
    assert extremes(X) == (X.min(), X.max(), False)
    X.flat[X.size // 2] = np.nan
    assert extremes(X) == (np.nanmin(X), np.nanmax(X), True)
    assert extremes(np.abs(X))[0] == 0.0
    assert extremes(np.empty(0)) == (0.0, 0.0, False)
    assert extremes(np.full(4, np.nan)) == (0.0, 0.0, True)


def test_single_entries_of_a_product():
    U, V = np.random.default_rng(0).random((9, 3)), np.random.default_rng(1).random((7, 3))
    rows, columns = np.array([0, 8, 8, 3]), np.array([6, 0, 6, 3])
    np.testing.assert_allclose(product_entries(rows, columns, U, V), (U @ V.T)[rows, columns], rtol=1e-13)
    for order in "CF":
        A = np.zeros((9, 7), order=order)
        put_entries(np.arange(1.0, 5.0), rows, columns, A)
        np.testing.assert_array_equal(A[rows, columns], [1.0, 2.0, 3.0, 4.0])
        assert np.count_nonzero(A) == 4


def test_sums_of_logarithms():
    W = np.exp(np.random.default_rng(0).normal(0, 40, (30, 11)))
    A = np.random.default_rng(1).random((30, 11))
    assert weighted_logarithms(A, W) == pytest.approx(np.sum(A * np.log(W)), rel=1e-13)
