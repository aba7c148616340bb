"""Products with the model beside those of the matrix."""

import numpy as np
import pytest

from cvxnmf.convex.model_operator import Model


@pytest.mark.parametrize("n", [1, 7, 128, 129, 700])
@pytest.mark.parametrize("rank", [0, 1, 5])
def test_products_equal_those_of_the_matrix(n, rank):
    rng = np.random.default_rng(n)
    v, W = rng.normal(-2.0, 1.0, n), rng.normal(0.0, 0.7, (n, rank))
    E, R = np.exp(np.add.outer(v, v) + W @ W.T), rng.normal(0.0, 1.0, (n, 3))
    model = Model(v, W)
    np.testing.assert_allclose(model @ R, E @ R, rtol=1e-12, atol=1e-12 * np.abs(E).sum())
    np.testing.assert_allclose(model @ R[:, 0], E @ R[:, 0], rtol=1e-12, atol=1e-12 * np.abs(E).sum())
    np.testing.assert_allclose(
        model.times_in_single_precision(R[:, 0]), E @ R[:, 0], atol=1e-5 * np.abs(E @ np.abs(R[:, 0])).max()
    )
    np.testing.assert_array_equal(model @ R, Model(v, W) @ R)
