"""Alternating directions and momentum on problems whose answer is known."""

import numpy as np
import pytest

from cvxnmf.linalg.anderson import Anderson
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


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 3.0, 40)])
def test_acceleration_finds_a_fixed_point_in_few_steps(weights):
    rng = np.random.default_rng(1)
    M = rng.normal(size=(40, 40))
    M = 0.99 * (M @ M.T) / np.linalg.norm(M @ M.T, 2)
    b = rng.normal(size=40)
    fixed = np.linalg.solve(np.eye(40) - M, b)

    def distance(memory, plain_steps):
        t, mixing = np.zeros(40), Anderson(memory, weights, plain_steps)
        for _ in range(60):
            step = M @ t + b - t
            mixing.improve(step)
            t += step
        return np.linalg.norm(t - fixed)

    assert distance(8, 2) < 1e-3 * distance(8, 1000)


def test_an_acceleration_that_misleads_is_left_off():
    """On a rotation that shrinks hardly at all, and turns the other way every few steps, the past tells nothing."""
    mixing, t, lengths = Anderson(3), np.array([1.0, 0.0]), []
    for k in range(200):
        angle = 0.5 if (k // 3) % 2 else -2.0
        turned = 0.98 * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ t
        step = turned - t
        mixing.improve(step)
        t = t + step
        lengths.append(np.linalg.norm(t))
    assert mixing.penance > 4
    assert lengths[-1] < 0.5


def test_an_acceleration_survives_a_point_that_no_longer_moves():
    mixing = Anderson(3)
    for _ in range(6):
        step = np.zeros(4)
        mixing.improve(step)
        assert not step.any()
