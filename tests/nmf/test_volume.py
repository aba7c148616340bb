"""Unmixing: minimum volume, shares that sum to one, rows that stick out."""

import os
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat

import cvxnmf
from cvxnmf.nmf.updates.volume import Volume, project_rows


def scene(noise=0.01, purity=0.85, seed=0):
    """Pixels of three materials, none of them pure, of different brightness."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, 0.7), 900)
    shares, spectra = shares[shares.max(axis=1) <= purity], rng.random((40, 3))
    spectra /= np.linalg.norm(spectra, axis=0)
    pixels = rng.uniform(0.5, 1.0, (len(shares), 1)) * shares @ spectra.T
    return np.maximum(pixels + noise * pixels.std() * rng.standard_normal(pixels.shape), 0.0), shares, spectra


def errors(result, shares, spectra, found=None):
    """Mean spectral angle in degrees and root mean squared error of the shares, for the best order of the components."""
    found = result.shares() if found is None else found
    cosines = (result.V / np.linalg.norm(result.V, axis=0)).T @ (spectra / np.linalg.norm(spectra, axis=0))
    best = max(permutations(range(3)), key=lambda order: sum(cosines[order[j], j] for j in range(3)))
    angles = [np.degrees(np.arccos(min(1.0, cosines[best[j], j]))) for j in range(3)]
    return np.mean(angles), np.sqrt(np.mean((found[:, best] - shares) ** 2))


def test_materials_that_are_nowhere_pure_are_found():
    pixels, shares, spectra = scene()
    angle, error = errors(cvxnmf.classical_nmf(pixels, 3, "min-volume"), shares, spectra)
    assert angle < 2.0
    assert error < 0.04


@pytest.mark.parametrize(("purity", "most"), [(1.0, 0.5), (0.8, 1.5)])
def test_smooth_spectra_of_equal_brightness(purity, most):
    """A scene that nothing was tuned on: bumps and absorption bands, shares that sum to one."""
    rng, bands = np.random.default_rng(13), np.arange(100)
    bump = lambda: rng.uniform(-0.25, 0.35) * np.exp(-0.5 * ((bands - rng.uniform(0, 100)) / rng.uniform(4, 20)) ** 2)  # noqa: E731
    spectra = np.array([np.maximum(rng.uniform(0.3, 0.6) + sum(bump() for _ in range(4)), 0.02) for _ in range(3)]).T
    shares = rng.dirichlet(np.ones(3), 2000)
    shares = shares[shares.max(axis=1) <= purity][:600]
    pixels = shares @ spectra.T
    pixels = np.maximum(pixels + 0.02 * pixels.std() * rng.standard_normal(pixels.shape), 0.0)
    result = cvxnmf.classical_nmf(pixels, 3, "min-volume", sum_to_one=True)
    angle, error = errors(result, shares, spectra, result.U)
    assert angle < most
    assert error < 0.03


def test_the_objective_never_rises_and_is_that_of_the_factors():
    pixels, _, _ = scene(noise=0.1)
    result = cvxnmf.classical_nmf(pixels, 3, "min-volume", volume=1.0, max_iter=60)
    values = [step.value for step in result.history]
    assert all(later <= earlier for earlier, later in zip(values, values[1:], strict=False))
    np.testing.assert_allclose(result.V.sum(axis=0), 1.0)
    assert result.value > np.sum((pixels - result.U @ result.V.T) ** 2)


@pytest.mark.parametrize("method", ["hals", "min-volume"])
def test_rows_sum_to_one_if_asked_for(method):
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.ones(3), 100)
    A = shares @ rng.random((3, 20))
    result = cvxnmf.classical_nmf(A, 3, method, init="spa", sum_to_one=True, max_iter=500, tol=1e-8)
    np.testing.assert_allclose(result.U.sum(axis=1), 1.0)
    np.testing.assert_array_equal(result.shares(), result.U)
    assert np.sum((A - result.U @ result.V.T) ** 2) < 1e-3 * np.sum(A**2)
    values = [step.value for step in result.history]
    assert all(later <= earlier for earlier, later in zip(values, values[1:], strict=False))


def test_successive_projection_finds_pure_rows():
    rng = np.random.default_rng(0)
    pure = rng.random((4, 12))
    A = np.vstack([rng.dirichlet(np.ones(4), 50) @ pure, pure])
    V = cvxnmf.classical_nmf(A, 4, init="spa", max_iter=1).V
    cosines = (V / np.linalg.norm(V, axis=0)).T @ (pure / np.linalg.norm(pure, axis=1, keepdims=True)).T
    np.testing.assert_allclose(cosines.max(axis=0), 1.0, atol=1e-6)


def test_the_penalty_is_above_zero_below_its_tangent_and_its_projection_is_the_nearest():
    rng = np.random.default_rng(0)
    volume, V, W = Volume(2.0, 0.3), rng.random((9, 3)), rng.random((9, 3))
    assert volume.value(V) > 0
    F = volume.tangent(V)
    assert volume.value(W) <= volume.value(V) + np.vdot(F, W.T @ W - V.T @ V) + 1e-12
    X = rng.standard_normal((20, 4))
    P, other = project_rows(X), rng.dirichlet(np.ones(4), 20)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert P.min() >= 0
    assert (np.einsum("ij,ij->i", X - P, other - P) <= 1e-12).all()


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({"method": "min-volume", "loss": "kl"}, "does not lower loss='kl'; use one of"),
        ({"sum_to_one": True, "loss": "kl"}, "sum_to_one is for"),
        ({"sum_to_one": 1}, "True or False"),
        ({"method": "min-volume", "volume": -1.0}, "volume must be"),
        ({"init": "spa", "symmetric": True}, "no symmetric form"),
    ],
)
def test_what_makes_no_sense_is_refused(terms, sentence):
    A = np.random.default_rng(0).random((6, 6))
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.classical_nmf(A + A.T, 2, **terms)


def test_samson_is_unmixed_by_one_call():
    file = Path(os.environ.get("CVXNMF_DATA", "no-folder"), "samson.mat")
    if not file.exists():
        pytest.skip("samson.mat is not in the folder CVXNMF_DATA")
    data = loadmat(file)
    shares = data["S_GT"].transpose(1, 0, 2).reshape(-1, 3)
    angle, error = errors(cvxnmf.classical_nmf(data["Y"].T, 3, "min-volume"), shares, data["GT"].T)
    assert angle < 5.0
    assert error < 0.06
