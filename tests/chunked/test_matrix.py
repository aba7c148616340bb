"""A matrix in row chunks multiplies like a matrix."""

import numpy as np
import pytest

from builders import random_factors
from row_chunk_builders import in_chunks, planted_rows


@pytest.mark.parametrize("where", ["memory", "cluster"])
def test_a_chunked_matrix_multiplies_like_a_matrix(where, client):
    A = planted_rows()
    V, U = random_factors(A.shape[::-1], 3)
    with in_chunks(A, client if where == "cluster" else None) as matrix:
        np.testing.assert_allclose(matrix @ V, A @ V)
        np.testing.assert_allclose(matrix.T @ U, A.T @ U)
        np.testing.assert_array_equal(matrix[np.array([5, 100])], A[[5, 100]])
        np.testing.assert_array_equal(matrix.T[np.array([2, 3])], A.T[[2, 3]])
        np.testing.assert_allclose(matrix.gram(), A.T @ A)
        np.testing.assert_allclose(matrix.gram_product(V), A.T @ (A @ V))
        assert matrix.energy == pytest.approx(np.sum(A**2), rel=1e-14)
        assert (matrix.mean(), matrix.max()) == pytest.approx((A.mean(), A.max()))
        assert matrix.entropy == pytest.approx(np.sum(A * np.log(A) - A))
