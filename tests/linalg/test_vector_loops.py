"""Loops over vectors give the same bits, whatever the processor's registers hold."""

import numpy as np
import pytest
from numba import njit

from cvxnmf.linalg import divergence_loops, vector_loops, vectors
from cvxnmf.linalg.lanes import LANES


@pytest.fixture(params=[True, False], ids=["wide", "narrow"])
def registers(request, monkeypatch):
    """Code for processors with registers of this kind; where there are none, the compiler takes several for one."""
    for module in (vectors, vector_loops):
        monkeypatch.setattr(module, "has_wide_registers", lambda context: request.param)


def summed_row(indices, data, X, vectors_of_a_row):
    """A sum over all entries, in their order, as a loop over so many vectors takes it, each product rounded with its sum."""
    add, columns, result = vector_loops.sum_of_rows(vectors_of_a_row), X.shape[1], np.zeros((1, X.shape[1]))
    loop = njit(lambda i, a, x, y: add(i, a, 0, len(i), x, y, 0, 0, columns - LANES))
    loop(indices, data, X, result)
    return result[0]


@pytest.mark.parametrize(("count", "columns"), [(1, 4), (2, 7), (3, 10), (3, 12), (4, 13), (4, 16), (5, 18), (6, 24)])
def test_sums_of_rows(registers, count, columns):
    rng = np.random.default_rng(columns)
    indices, data, X = (
        rng.integers(0, 30, 25),
        rng.integers(1, 99, 25).astype(float),
        rng.integers(0, 99, (30, columns)).astype(float),
    )
    np.testing.assert_array_equal(summed_row(indices, data, X, count), data @ X[indices])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("ahead", [0, 8])
def test_additions_to_rows(registers, count, ahead):
    rng = np.random.default_rng(count)
    add, width = vector_loops.addition_to_rows(count), LANES * (count + 1)
    indices, data, x = rng.integers(0, 30, 25), rng.integers(1, 99, 25).astype(float), rng.integers(1, 99, width).astype(float)
    result, expected = np.zeros((30, width)), np.zeros((30, width))
    njit(lambda i, a, own, y: add(i, a, 0, len(i), own, y, LANES, ahead))(indices, data, x, result)
    np.add.at(expected, indices, data[:, None] * np.where(np.arange(width) < LANES, 0.0, x))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("ahead", [0, 40])
def test_strips_of_products(registers, count, ahead):
    rng = np.random.default_rng(count)
    add, A = vector_loops.product_strip(count), rng.integers(0, 99, (27, 11)).astype(float)
    B, Y = (rng.integers(0, 99, (rows, LANES * count)).astype(float) for rows in (11, 27))
    result, transposed = np.ones((27, LANES * count)), np.ones((11, LANES * count))
    loop = njit(lambda a, across, along, rows, terms, b, c: add(a, 0, across, along, rows, terms, b, 0, c, 0, 0, ahead))
    loop(A.ravel(), 11, 1, 27, 11, B, result)
    loop(A.ravel(), 1, 11, 11, 27, Y, transposed)
    np.testing.assert_array_equal(result, 1.0 + A @ B)
    np.testing.assert_array_equal(transposed, 1.0 + A.T @ Y)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_coordinate_descent(registers, count):
    """Entries are multiples of 1/8, so that no rounding hides in what order sums are taken."""
    rng = np.random.default_rng(count)
    descend, k = vector_loops.coordinate_descent(count), count + 2
    Q, x, p = (
        rng.integers(0, 9, (k, k)).astype(float),
        rng.integers(0, 9, (k, 24)).astype(float),
        rng.integers(-99, 99, (k, 24)) / 8.0,
    )
    np.fill_diagonal(Q, 4.0)
    inverse, active, change = 1.0 / Q.diagonal(), (np.arange(24) % 5 > 0).astype(float), np.ones(24)
    expected = x.copy()
    for r in range(1, count + 1):
        expected[r] = np.maximum(0.0, expected[r] + active * (p[r] - Q[r] @ expected) / 4.0)
    changes = 1.0 + ((expected - x) ** 2).sum(axis=0)
    njit(lambda *arguments: descend(*arguments))(Q, inverse, 1, x, p, active, change)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(change, changes)


@pytest.mark.parametrize(("size", "columns"), [(8, 4), (16, 12), (40, 20)])
def test_gathered_columns(size, columns):
    rng = np.random.default_rng(size)
    places, X, u = rng.integers(0, 30, size), rng.integers(0, 99, (30, columns)).astype(float), np.arange(1.0, columns + 1.0)
    gather, H, w = divergence_loops.gathered_columns(), np.zeros(columns * size), np.zeros(size)
    njit(lambda p, x, weights, h, model: gather(p, len(p), x, weights, h, model))(places, X, u, H, w)
    np.testing.assert_array_equal(H.reshape(columns, size), X[places].T)
    np.testing.assert_array_equal(w, X[places] @ u)


@pytest.mark.parametrize(("kind", "size", "accuracy"), [(np.float64, 8, 1e-14), (np.float64, 40, 1e-14), (np.float32, 48, 1e-5)])
@pytest.mark.parametrize("r", [0, 2])
def test_sums_of_a_pair(kind, size, accuracy, r):
    rng = np.random.default_rng(size)
    H, a, w, moves = rng.random((4, size)), rng.random(size), 1.0 + rng.random(size), np.array([0.25, 0.5]) * (r > 0)
    take, (x, y, z) = divergence_loops.pair_sums(), (array.astype(kind) for array in (a, H.ravel(), w))
    found = njit(lambda a, H, w, moves: take(a, H, w, r, len(w), moves))(x, y, z, moves)
    model = w + moves @ H[:2]
    h, g = H[r] / model, H[r + 1] / model
    np.testing.assert_allclose(z, model, rtol=accuracy)
    np.testing.assert_allclose(found, [np.sum(a * part) for part in (h, g, h * h, h * g, g * g)], rtol=accuracy)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_sums_of_logarithms(kind):
    w = np.concatenate([np.geomspace(1e-30, 1e30, 100), 1.0 + np.linspace(-0.3, 0.4, 20)]).astype(kind)
    take = divergence_loops.weighted_logarithms()
    loop, lanes = njit(lambda a, w: take(a, w, len(w))), np.eye(len(w), dtype=kind)
    np.testing.assert_allclose([loop(lane, w) for lane in lanes], np.log(w.astype(float)), rtol=1e-15, atol=1e-15)
