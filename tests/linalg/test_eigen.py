"""Full decompositions beside numpy's."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import random_symmetric
from cvxnmf.linalg import eigen, leading
from cvxnmf.linalg.eigen import eigenpairs_above, smallest_eigenvalue


@pytest.mark.parametrize("expected", [None, 3, 1])
def test_few_pairs_equal_the_full_decomposition(expected):
    B = random_symmetric(250, 0)
    values, vectors = np.linalg.eigh(B)
    above = values > 42.0
    found, basis = eigenpairs_above(B.copy(), 42.0, expected)
    assert 1 < above.sum() < 12
    np.testing.assert_allclose(found, values[above][::-1], rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(basis * vectors[:, above][:, ::-1], axis=0)), 1.0, atol=1e-9)


def test_no_pair_above_a_high_threshold():
    values, vectors = eigenpairs_above(random_symmetric(20, 0), 1e9)
    assert values.shape == (0,)
    assert vectors.shape == (20, 0)


def test_smallest_eigenvalue_of_a_pencil():
    B, M = random_symmetric(12, 0), np.diag(np.arange(1.0, 13.0))
    expected = np.linalg.eigvalsh(np.diag(np.diag(M) ** -0.5) @ B @ np.diag(np.diag(M) ** -0.5))[0]
    assert smallest_eigenvalue(B.copy(), M.copy()) == pytest.approx(expected)
    assert smallest_eigenvalue(B.copy()) == pytest.approx(np.linalg.eigvalsh(B)[0])


BLOCKS = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])


@pytest.mark.parametrize("n", [0, 60])
def test_matrices_that_fall_apart_have_all_their_eigenvalues(n):
    """LAPACK's driver for a range finds none of the largest eigenvalue of this one."""
    M = np.zeros((n + 3, n + 3))
    M[:3, :3] = BLOCKS.T @ BLOCKS
    values = np.linalg.eigvalsh(M)
    for first in range(len(M)):
        for last in {first, len(M) - 1}:
            found, vectors = eigen.eigenpairs_between(M.copy(), first, last)
            assert found == pytest.approx(values[first : last + 1], abs=1e-12)
            assert M @ vectors == pytest.approx(vectors * found, abs=1e-12)
    assert eigen.spectral_norm(BLOCKS) == pytest.approx(2.0)
    assert eigen.smallest_eigenvalue(-M) == pytest.approx(-4.0)
    assert eigen.smallest_eigenvalue(-M, 2.0 * np.eye(len(M))) == pytest.approx(-2.0)
    assert leading.leading_eigenpairs(M, 1)[0] == pytest.approx([4.0])


def test_factors_of_data_that_fall_apart():
    for data in (BLOCKS, sp.csr_array(BLOCKS)):
        assert cvxnmf.factorize(data, 1, loss="kl").value > 0


@pytest.mark.parametrize("order", ["C", "F"])
def test_outer_products_are_added_in_place_however_a_matrix_lies(order):
    M, x, y = np.array(random_symmetric(5, 1), order=order), np.arange(5.0), np.ones(5)
    expected = M + np.outer(x, y)
    eigen.add_outer(M, x, y)
    np.testing.assert_allclose(M, expected)
