"""Nonnegative factors by Gaussian bumps on a grid."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.spatial import cKDTree

from cvxnmf.cp.hadamard_exponential import CHUNK_ENTRIES, Features, HadamardExponential, map_halves, refuse_columns
from cvxnmf.cp.high_rank import data_centred_features
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.row_chunks import row_chunks

#: Up to this many entries several grids are tried for the one with the fewest columns.
FEW_ENTRIES = 100_000
#: Shares of the tolerance for the spacing of the grid and for the points left out; a sum above 1 is a guess to be measured.
SHARES = ((0.7, 0.3), (0.85, 0.15), (0.5, 0.5), (0.9, 0.6), (0.95, 0.95))
#: Midpoints of many pairs are told apart on a grid this many times finer.
FINER = 4
#: Above this rank no grid is good.
LARGEST_GRID_RANK = 6


def lattice_features(target: HadamardExponential, tol: float, max_columns: int) -> Features:
    """Gaussian bumps on a grid: Poisson summation bounds the relative error of every product.

    For spacing h the products are off by at most ``(1 + 2 sum_k exp(-pi^2 k^2 / 2h^2))^r - 1``; leaving a point t
    out costs ``(h sqrt(2/pi))^r exp(-2 d^2)``, d its distance from the nearest midpoint of two rows.
    """
    if target.rank == 0:
        return Features(*map_halves(lambda half: np.exp(half.v)[:, None], target))
    if target.rank > LARGEST_GRID_RANK:
        return data_centred_features(target, tol, max_columns)
    choices = product(SHARES, (0.0, 0.5)) if target.entries <= FEW_ENTRIES else [(SHARES[0], 0.0)]
    grids = [_grid(target, tol * a, tol * b, offset, max_columns) for (a, b), offset in choices]
    for h, centres in sorted(grids, key=lambda grid: len(grid[1])):
        features = target.gaussian_bumps(centres, (h * np.sqrt(2.0 / np.pi)) ** target.rank)
        if target.measure_errors(features).largest <= tol:
            return features
    return features


def _summation_error(h: float, rank: int) -> float:
    """Largest relative error of the lattice sum of Gaussian bumps with spacing h."""
    k = np.arange(1, 8)
    return float((1.0 + 2.0 * np.exp(-((np.pi * k / h) ** 2) / 2.0).sum()) ** rank - 1.0)


def _grid(
    target: HadamardExponential, spacing_error: float, dropping_error: float, offset: float, max_columns: int
) -> tuple[float, FloatArray]:
    """Spacing and points of the lattice whose errors stay below the two shares of the tolerance."""
    rank = target.rank
    h = float(brentq(lambda h: _summation_error(h, rank) - min(spacing_error, 1.0), 0.05, 5.0))
    from scipy.stats import chi2  # takes a quarter of a second to import

    reach = float(np.sqrt(chi2.isf(min(dropping_error, 0.5), rank) / 4.0)) / h
    midpoints, slack = _midpoints(target, h / FINER)
    cells = _distinct_rows(np.rint(midpoints / h - offset).astype(np.int64))
    centres = np.asarray((_dilate(cells, reach + slack / h, max_columns) + offset) * h, dtype=np.float64)
    distance = np.maximum(0.0, cKDTree(midpoints).query(centres)[0] - slack)
    cost = (h * np.sqrt(2.0 / np.pi)) ** rank * np.exp(-2.0 * distance**2)
    order = np.argsort(cost, kind="stable")
    dropped = int(np.searchsorted(np.cumsum(cost[order]), dropping_error))
    kept = np.sort(order[dropped:])
    if len(kept) > max_columns:
        refuse_columns(len(kept), max_columns)
    return h, centres[kept]


def _midpoints(target: HadamardExponential, rounding: float) -> tuple[FloatArray, float]:
    """Midpoints of all pairs of rows, for the lattice; many are rounded to a grid. Also the largest move by rounding."""
    W, Z = target.left.W, target.right.W
    if target.entries <= FEW_ENTRIES:
        i, j = _each_pair(target)
        return np.asarray(0.5 * (W[i] + Z[j])), 0.0
    found = np.zeros((0, target.rank), dtype=np.int64)
    for rows in row_chunks(len(W), len(Z) * target.rank, CHUNK_ENTRIES):
        partners = Z[rows.start :] if target.symmetric else Z
        sums = 0.5 / rounding * (W[rows, None, :] + partners[None, :, :])
        cells = np.rint(sums.reshape(-1, target.rank)).astype(np.int64)
        found = _distinct_rows(np.concatenate([found, _distinct_rows(cells)]))
    return np.asarray(found * rounding), 0.5 * rounding * float(np.sqrt(target.rank))


def _each_pair(target: HadamardExponential) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Left and right index of every pair of rows whose midpoint the lattice covers, mirrored ones once."""
    if target.symmetric:
        return np.triu_indices(len(target.left.v))
    i, j = np.indices(target.shape)
    return i.ravel(), j.ravel()


def _distinct_rows(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct cells of the lattice: marked in a table of the cells if that is small, else sorted."""
    low = cells.min(axis=0)
    spans = tuple(cells.max(axis=0) - low + 1)
    if np.prod(np.array(spans, dtype=np.float64)) > 16 * CHUNK_ENTRIES:
        return np.asarray(np.unique(cells, axis=0))
    marked = np.zeros(spans, dtype=bool)
    marked[tuple((cells - low).T)] = True
    return np.asarray(np.argwhere(marked) + low, dtype=np.int64)


def _dilate(cells: NDArray[np.int64], reach: float, max_columns: int) -> NDArray[np.int64]:
    """All lattice points within `reach` steps of a point in one of the cells."""
    rank = cells.shape[1]
    steps = np.arange(-int(np.ceil(reach + 0.5)), int(np.ceil(reach + 0.5)) + 1)
    around = np.stack(np.meshgrid(*[steps] * rank, indexing="ij"), axis=-1).reshape(-1, rank)
    around = around[np.sum(np.maximum(np.abs(around) - 0.5, 0.0) ** 2, axis=1) <= reach**2]
    points = cells
    for batch in np.array_split(around, max(1, len(around) * len(cells) // CHUNK_ENTRIES)):
        near = (cells[:, None, :] + batch[None, :, :]).reshape(-1, rank)
        points = _distinct_rows(np.concatenate([points, near]))
        if len(points) > 50 * max_columns:
            refuse_columns(len(points), max_columns)
    return points
