"""The spectrum of noise: its edge, its dispersion, and the trace that admits directions."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq, minimize_scalar

from builders import planted_graph, random_symmetric
from cvxnmf.convex.noise import (
    admitting_trace,
    degree_metric,
    noise_level,
    rectangular_spectral_edge,
    residual_dispersion,
    spectral_edge,
)


def test_edge_of_even_noise_is_the_semicircle():
    assert spectral_edge(np.full(400, 400.0)) == pytest.approx(2 * np.sqrt(400))


def test_edge_is_the_minimum_of_its_definition():
    a = np.exp(np.random.default_rng(0).normal(0, 1, 60))

    def root(y):
        return brentq(lambda z: np.sum(a / (z - a * y)) - y, y * a.max() * (1 + 1e-12), 1e6)

    lowest = minimize_scalar(root, bounds=(1e-3, 10), method="bounded", options={"xatol": 1e-10}).fun
    assert spectral_edge(a * a.sum()) == pytest.approx(lowest, rel=1e-6)
    assert spectral_edge(np.zeros(5)) == 0.0


def test_edge_agrees_with_simulated_noise():
    rng = np.random.default_rng(1)
    a = np.exp(rng.normal(0, 0.5, 800))
    noise = random_symmetric(800, 2) / np.sqrt(2) * np.sqrt(np.outer(a, a))
    edge = spectral_edge(a * a.sum())
    assert np.linalg.eigvalsh(noise)[-1] == pytest.approx(edge, rel=0.05)


def test_dispersion_leaves_signal_out():
    n, phi = 400, 2.5
    noise = np.sqrt(phi / 2) * random_symmetric(n, 3)
    groups = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    A = sp.csr_array(noise + 0.5 * np.outer(groups, groups) + 20.0)
    edge = spectral_edge(np.full(n, float(n)))
    assert residual_dispersion(A, np.ones(n), np.full(n, float(n)), edge) == pytest.approx(phi, rel=0.03)


@pytest.mark.parametrize("weighted", [False, True])
def test_noise_of_sparse_data_is_that_of_the_definition(weighted):
    weights = (lambda rng, shape: rng.integers(1, 4, shape)) if weighted else None
    A = sp.csr_array(planted_graph(150, 3, 25, shuffled=False, weights=weights)[0])
    degrees, top = A.sum(axis=1), A.max()
    s = degree_metric(degrees)
    M, S = np.outer(degrees, degrees) / degrees.sum(), np.outer(s, s)
    level = noise_level(A, s)
    if weighted:
        values, vectors = np.linalg.eigh((A.toarray() - M) / S)
        a = degrees / s**2 / np.sqrt(degrees.sum())
        unit, signal, phi = spectral_edge((M / S**2).sum(axis=1)), -1, np.sum(values**2) / a.sum() ** 2
        while np.count_nonzero(values > unit * np.sqrt(phi)) > max(signal, 0):
            top = values > unit * np.sqrt(phi)
            signal = np.count_nonzero(top)
            phi = np.sum(values[~top] ** 2) / (a @ (1 - np.sum(vectors[:, top] ** 2, axis=1))) ** 2
        edge = unit * np.sqrt(phi)
    else:
        V = top * M * np.maximum(0.0, 1.0 - M / top)
        edge, phi = spectral_edge((V / S**2).sum(axis=1)), V.sum() / M.sum()
        edge *= np.sqrt(1 - max(0.0, phi - degrees.var() / degrees.mean()) / degrees.mean())
    assert level.edge == pytest.approx(edge * (1 + 150 ** (-2 / 3)), rel=1e-9)
    assert level.dispersion == pytest.approx(phi, rel=1e-9)


def test_the_rectangular_edge_is_where_noise_ends():
    rng = np.random.default_rng(0)
    a, b = rng.gamma(2, 1, 400), rng.gamma(1, 1, 150)
    V = np.outer(a, b)
    edge = rectangular_spectral_edge(V.sum(axis=1), V.sum(axis=0))
    tops = [np.linalg.norm(rng.standard_normal(V.shape) * np.sqrt(V), 2) for _ in range(5)]
    assert 0.95 * edge <= np.mean(tops) <= edge


def test_a_square_matrix_has_the_symmetric_edge():
    """Equal variances: the singular values of an n by n matrix end at 2 sqrt(n)."""
    assert rectangular_spectral_edge(np.full(50, 50.0), np.full(50, 50.0)) == pytest.approx(2 * np.sqrt(50), rel=1e-9)


def test_the_trace_admits_as_many_directions_as_are_wanted():
    spectrum = np.array([9.0, 5.0, 2.0, 1.0, -1.0])
    assert admitting_trace(4.0, spectrum, 3) == 4.0  # both stand out of the noise
    assert admitting_trace(4.0, spectrum, 4) == pytest.approx(0.9 * 2.0)
    assert admitting_trace(4.0, spectrum, 9) == pytest.approx(0.9 * 1.0)  # no more than are positive
    assert admitting_trace(4.0, spectrum, 2, most=1) == 5.0
