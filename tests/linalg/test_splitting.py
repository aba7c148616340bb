"""Alternating directions and momentum on problems whose answer is known."""

import numpy as np
import pytest

from cvxnmf.linalg.momentum import Momentum
from cvxnmf.linalg.splitting import AlternatingDirections


@pytest.mark.parametrize("relaxation", [1.0, 1.6])
def test_alternating_directions_find_the_nearest_point_of_two_sets(relaxation):
    rng = np.random.default_rng(0)
    B, ones = rng.normal(size=6), np.ones(6) / np.sqrt(6)
    state, rho = AlternatingDirections(np.zeros(6), relaxation), 1.0
    for iteration in range(400):
        X = (B + rho * state.target) / (1.0 + rho)
        X = X - ones * (ones @ X) + ones / np.sqrt(6)  # sums to one
        state.update(X, lambda Y: np.maximum(Y, 0.0))
        if iteration == 20:
            rho *= 3.0
            state.rescale(3.0)
    order = np.sort(B)[::-1]  # the projection on the simplex, by its threshold
    thresholds = (np.cumsum(order) - 1.0) / np.arange(1, 7)
    threshold = thresholds[np.flatnonzero(order > thresholds)[-1]]
    np.testing.assert_allclose(state.Y, np.maximum(B - threshold, 0.0), atol=1e-9)
    assert np.all(state.U <= 0.0)


def test_momentum_starts_at_rest_grows_and_restarts():
    momentum = Momentum()
    shares = [momentum.extrapolation() for _ in range(50)]
    assert shares[0] == 0.0
    assert np.all(np.diff(shares) > 0)
    assert shares[-1] < 1.0
    momentum.restart()
    assert momentum.extrapolation() < shares[-1]
    momentum.restart(0.0)
    assert momentum.extrapolation() == 0.0
