"""The best models below the data, against Clarabel and a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

import naive
import oracles
from builders import positive_symmetric
from cvxnmf.convex.cones import PSD, ConditionallyPSD
from cvxnmf.convex.losses import LOSSES
from cvxnmf.convex.under_approximation import best_point_below, best_scalings_below


@pytest.mark.parametrize(("name", "cone"), [("psd", PSD), ("conditional", ConditionallyPSD)])
@pytest.mark.parametrize("trace", [0.0, 1.0, 20.0])
def test_the_model_below_is_clarabels(name, cone, trace):
    A = positive_symmetric(9, 0)
    loss = LOSSES["kl"](A)
    point, settled = best_point_below(loss, cone(np.ones(9)), trace, tol=1e-9, max_iter=50_000)
    value = loss.value(point.dense()) + trace * cone(np.ones(9)).penalty(point)
    assert settled
    assert value == pytest.approx(oracles.clarabel_below(A, name, trace), rel=1e-6)
    assert np.all(np.exp(point.dense()) <= A * (1 + 1e-6))


@pytest.mark.parametrize("ignore_diagonal", [True, False])
def test_effects_below_are_clarabels(ignore_diagonal):
    A = positive_symmetric(10, 1)
    loss = LOSSES["kl"](A, ignore_diagonal)
    point, settled = best_scalings_below(loss, ConditionallyPSD(np.ones(10)))
    assert settled
    assert loss.value(point.dense()) == pytest.approx(oracles.clarabel_effects_below(A, ignore_diagonal), rel=1e-6)


def test_effects_below_in_squared_error_beat_a_general_optimiser():
    A = positive_symmetric(6, 2)
    loss = LOSSES["mse"](A)
    point, _ = best_scalings_below(loss, ConditionallyPSD(np.ones(6)))
    i, j = np.triu_indices(6)
    limits = {"type": "ineq", "fun": lambda v: np.log(A[i, j]) - v[i] - v[j]}
    start = np.log(A).min() / 2 * np.ones(6) - 0.1
    found = minimize(
        lambda v: loss.value(np.add.outer(v, v)), start, constraints=[limits], method="SLSQP", options={"maxiter": 500}
    )
    assert np.all(np.exp(point.dense()) <= A)
    assert loss.value(point.dense()) == pytest.approx(found.fun, rel=1e-5)


@pytest.mark.parametrize("name", ["kl", "mse"])
@pytest.mark.parametrize("weight", [0.01, 1.0, 50.0])
def test_the_proximal_point_is_the_least(name, weight):
    rng = np.random.default_rng(0)
    A, B = rng.gamma(1.0, 2.0, (5, 5)), rng.normal(0, 3, (5, 5))
    x = LOSSES[name](A).proximal(B, weight)
    for a, b, there in zip(A.ravel(), B.ravel(), x.ravel(), strict=True):
        best = naive.LOSS[name](a, there) + weight / 2 * (there - b) ** 2
        for h in (-1e-4, 1e-4):
            assert naive.LOSS[name](a, there + h) + weight / 2 * (there + h - b) ** 2 >= best - 1e-12 * abs(best)


def test_an_embedding_that_does_not_pay_its_penalty_is_left_out_at_once():
    A, cone = positive_symmetric(30, 3), ConditionallyPSD(np.ones(30))
    loss = LOSSES["mse"](A)
    point, settled = best_point_below(loss, cone, 1e4, max_iter=1)  # alternating directions would not get far
    assert settled
    assert point.W.shape[1] == 0
    assert loss.value(point.dense()) == pytest.approx(loss.value(best_scalings_below(loss, cone).point.dense()), rel=1e-12)
    assert best_point_below(loss, cone, 1e-3).point.W.shape[1] > 0
