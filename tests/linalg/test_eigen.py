import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq, minimize_scalar

from builders import random_symmetric
from cvxnmf.convex.noise import residual_dispersion, spectral_edge
from cvxnmf.linalg.eigen import eigenpairs_above, smallest_eigenvalue
from cvxnmf.linalg.leading import krylov_pairs


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


def test_leading_pairs_by_few_products():
    A = np.random.default_rng(0).random((300, 80)) * np.linspace(1, 0.1, 80) ** 4
    gram = A.T @ A
    values, vectors = krylov_pairs(lambda X: gram @ X, 80, 3)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(gram)[::-1][:3], rtol=1e-9)
    np.testing.assert_allclose(gram @ vectors, vectors * values, atol=1e-4 * values[0])
