import numpy as np

from cvxnmf.linalg.lbfgs import Curvature


def quadratic(n, seed):
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(n, n))
    return Q @ Q.T + np.eye(n), rng


def test_enough_steps_on_a_quadratic_show_its_inverse():
    H, rng = quadratic(6, 0)
    curvature = Curvature(6)
    conjugate = []
    for _ in range(6):  # conjugate steps make the recursion exact
        step = rng.normal(size=6)
        for other in conjugate:
            step -= other * (other @ H @ step) / (other @ H @ other)
        conjugate.append(step)
        curvature.learn(step, H @ step)
    g = rng.normal(size=6)
    np.testing.assert_allclose(curvature.times(g, lambda q: 3.0 * q), np.linalg.solve(H, g), rtol=1e-8)


def test_the_metric_is_scaled_to_the_last_step():
    curvature = Curvature(1)
    curvature.learn(np.array([1.0, 0.0, 0.0]), np.array([4.0, 0.0, 0.0]))  # four times as steep as the metric says
    g = np.array([0.0, 8.0, 0.0])
    for correction, expected in ((1.0, 2.0), (0.5, 4.0), (0.0, 8.0)):
        np.testing.assert_allclose(curvature.times(g, lambda q: q.copy(), correction), [0.0, expected, 0.0], rtol=1e-12)


def test_what_teaches_nothing_is_not_kept():
    curvature = Curvature(3)
    curvature.learn(np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    curvature.learn(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert len(curvature) == 0
    g = np.array([2.0, -3.0])
    np.testing.assert_array_equal(curvature.times(g, lambda q: 0.5 * q), 0.5 * g)


def test_the_oldest_steps_are_forgotten_and_coordinates_can_change():
    H, rng = quadratic(4, 1)
    curvature = Curvature(2)
    for _ in range(5):
        step = rng.normal(size=4)
        curvature.learn(step, H @ step)
    assert len(curvature) == 2
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    g = rng.normal(size=4)
    expected = turn @ curvature.times(g, lambda q: q.copy())
    curvature.map(lambda x: turn @ x, g.shape)
    np.testing.assert_allclose(curvature.times(turn @ g, lambda q: q.copy()), expected, rtol=1e-10)
    curvature.forget()
    assert len(curvature) == 0


def test_a_metric_that_rounding_made_indefinite_is_not_scaled():
    known = Curvature(3)
    known.learn(np.array([[1.0, 0.0]]), np.array([[2.0, 1.0]]))
    direction = known.times(np.array([[1.0, 1.0]]), lambda q: -q, correction=0.5)
    assert np.isrealobj(direction)
    assert np.isfinite(direction).all()
