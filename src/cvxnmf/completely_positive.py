"""From X to nonnegative factors: ``exp(X) = UU'`` entrywise, ``U >= 0`` (docs/mathematics.md).

With ``X = v1' + 1v' + WW'`` row i of U is ``e^{v_i}`` times features of the position ``w_i``, whose products give
``exp(w_i . w_j)``:

    lattice    phi_t(w) = (h sqrt(2/pi))^(r/2) exp(|w|^2/2 - |w - t|^2), t on a grid of spacing h
    series     the paper's: each column of W shifted to be nonnegative, Taylor's series, products of all the pieces
    rank-two   the paper's: each piece by its best approximation of rank two, rows turned into the orthant
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import reduce as fold
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.spatial import cKDTree
from scipy.special import gammaln
from scipy.stats import chi2, poisson

from cvxnmf import validation
from cvxnmf.cones import ConditionallyPSD
from cvxnmf.results import CPFactor, FloatArray, Solution

#: Numbers worked on at a time.
BLOCK_ENTRIES = 1 << 21
#: Up to this many pairs of rows several grids are tried for the one with the fewest columns.
FEW_PAIRS = 100_000
#: Shares of the tolerance for the spacing of the grid and for the points left out; a sum above 1 is a guess to be measured.
SHARES = ((0.7, 0.3), (0.85, 0.15), (0.5, 0.5), (0.9, 0.6), (0.95, 0.95))
#: Midpoints of many pairs are told apart on a grid this many times finer.
FINER = 4
#: The pieces of the rank-two method are approximated from features of this accuracy.
RANK_TWO_PRECISION = 1e-10
#: Above this rank no grid is good.
LARGEST_GRID_RANK = 6


class Rows(NamedTuple):
    """Rows to be factored: ``exp(v_i + v_j + w_i . w_j)``."""

    v: FloatArray
    W: FloatArray

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Blocks of rows and of the matrix itself, never all of it at once."""
        n = len(self.v)
        height = max(1, BLOCK_ENTRIES // max(n, 1))
        for first in range(0, n, height):
            rows = slice(first, min(n, first + height))
            yield rows, np.exp(self.v[rows, None] + self.v[None, :] + self.W[rows] @ self.W.T)


def exp_factor(
    X: Any, method: str = "lattice", tol: float = 1e-2, reduce: str | None = None, max_columns: int = 20_000
) -> CPFactor:
    """Write ``exp(X)``, taken entrywise, as ``UU'`` with explicit ``U >= 0``.

    Parameters
    ----------
    X : Solution or array-like of shape (n, n)
        A solution of :func:`solve`, or any conditionally positive semidefinite matrix: also the log of a kernel, such
        as minus the squared distances.
    method : {"lattice", "series", "rank-two"}
        Gaussian bumps on a grid, the fewest columns (above rank 6: around the data); the paper's Taylor series; the
        paper's 2^r columns, whose error cannot be chosen.
    tol : float
        Largest relative error of any entry of ``UU'``. With ``reduce="weights"`` or above rank 6, of the whole in the
        Frobenius norm. A warning tells when a method cannot reach it.
    reduce : {None, "weights", "caratheodory"}
        Fewer columns: by nonnegative weights fitted to ``exp(X)``, or, without changing ``UU'``, down to the
        n(n+1)/2 columns that always suffice.
    max_columns : int
        Refuse to build more columns than that.

    Returns
    -------
    CPFactor
        U of shape (n, columns) and its measured errors.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> points = np.linspace(-1, 1, 30)[:, None]
    >>> factor = cvxnmf.exp_factor(-((points - points.T) ** 2), tol=1e-3)
    >>> bool(factor.U.min() >= 0), bool(factor.max_relative_error <= 1e-3)
    (True, True)
    """
    validation.choice("method", method, FEATURES)
    if reduce is not None:
        validation.choice("reduce", reduce, REDUCTIONS)
    tol = validation.number("tol", tol, minimum=0.0, strict=True)
    max_columns = validation.integer("max_columns", max_columns, minimum=1)
    v, W, groups = _positions(X)
    U, errors, by_entry = np.zeros((len(v), 0)), [], reduce != "weights"
    for group in np.unique(groups[groups >= 0]):
        nodes = np.flatnonzero(groups == group)
        rows = _centred(Rows(v[nodes], W[nodes]))
        by_entry = by_entry and (method != "lattice" or rows.W.shape[1] <= LARGEST_GRID_RANK)
        features = FEATURES[method](rows, tol, max_columns)
        if reduce is not None:
            features = REDUCTIONS[reduce](rows, features)
        errors.append(_errors(rows, features))
        part = np.zeros((len(v), features.shape[1]))
        part[nodes] = features
        U = np.hstack([U, part])
    largest = max(error[0] for error in errors)
    frobenius = float(np.sqrt(sum(error[1] for error in errors) / sum(error[2] for error in errors)))
    promised = largest if by_entry else frobenius
    if promised > tol:
        warnings.warn(f"method={method!r} reaches a relative error of {promised:.1e}, above tol={tol:g}.", stacklevel=2)
    return CPFactor(U, largest, frobenius)


def _positions(X: Any) -> tuple[FloatArray, FloatArray, Any]:
    """Effects, positions and groups (-1: a row of zeros) of a solution or of a matrix in the conditional cone."""
    if isinstance(X, Solution):
        groups = np.zeros(len(X.v), dtype=np.intp) if X.groups is None else X.groups.copy()
        groups[np.isneginf(X.v)] = -1
        return np.where(groups < 0, 0.0, X.v), X.W, groups
    matrix = validation.log_matrix(X, len(X) if hasattr(X, "__len__") else 0)
    if not np.isfinite(matrix).all():
        validation.refuse("X has -inf entries; factor a Solution, or each finite block of X on its own.")
    cone = ConditionallyPSD(np.ones(len(matrix)))
    tolerance = 1e-10 * len(matrix) * max(1.0, float(np.abs(matrix).max()))
    if not cone.contains(matrix, tolerance):
        validation.refuse(
            "X is not conditionally positive semidefinite, so exp(X) need not have nonnegative factors; solve for X first."
        )
    point = cone.project(matrix)
    weights = np.sum(point.W**2, axis=0)
    kept = weights > tolerance
    return point.v, point.W[:, kept], np.zeros(len(matrix), dtype=np.intp)


def _centred(rows: Rows) -> Rows:
    """Move the middle of the range of the positions into the effects and leave out columns without extent."""
    middle = 0.5 * (rows.W.max(axis=0, initial=-np.inf) + rows.W.min(axis=0, initial=np.inf)) if len(rows.W) else 0.0
    W = rows.W - middle
    v = rows.v + W @ middle + 0.5 * float(np.sum(np.square(middle)))
    extent = np.abs(W).max(axis=0, initial=0.0)
    return Rows(v, W[:, extent > 1e-12 * max(1.0, float(extent.max(initial=0.0)))])


def _errors(rows: Rows, features: FloatArray) -> tuple[float, float, float]:
    """Largest relative error of an entry, squared Frobenius error and squared Frobenius norm."""
    largest = error = norm = 0.0
    for block, E in rows.blocks():
        difference = features[block] @ features.T - E
        error += float(np.vdot(difference, difference))
        norm += float(np.vdot(E, E))
        largest = max(largest, float(np.max(np.abs(difference) / E)))
    return largest, error, norm


# ---------------------------------------------------------------------------------------------- lattice


def lattice_features(rows: Rows, tol: float, max_columns: int) -> FloatArray:
    """Gaussian bumps on a grid: Poisson summation bounds the relative error of every product.

    For spacing h the products are off by at most ``(1 + 2 sum_k exp(-pi^2 k^2 / 2h^2))^r - 1``; leaving a point t
    out costs ``(h sqrt(2/pi))^r exp(-2 d^2)``, d its distance from the nearest midpoint of two rows.
    """
    rank = rows.W.shape[1]
    if rank == 0:
        return np.exp(rows.v)[:, None]
    if rank > LARGEST_GRID_RANK:
        return _data_centred_features(rows, max_columns)
    few = len(rows.v) ** 2 <= FEW_PAIRS
    grids = [_grid(rows.W, tol * a, tol * b, offset, max_columns) for (a, b), offset in _choices(few)]
    for h, centres in sorted(grids, key=lambda grid: len(grid[1])):
        features = _bumps(rows, centres, (h * np.sqrt(2.0 / np.pi)) ** rank)
        if _errors(rows, features)[0] <= tol:
            return features
    return features


def _choices(few: bool) -> list[tuple[tuple[float, float], float]]:
    """Shares of the tolerance and offsets of the grid to try."""
    return list(product(SHARES, (0.0, 0.5))) if few else [(SHARES[0], 0.0)]


def _bumps(rows: Rows, centres: FloatArray, weight: float) -> FloatArray:
    """``sqrt(weight) exp(v + |w|^2/2 - |w - t|^2)`` for every row and centre, in blocks of columns."""
    squares = np.sum(rows.W**2, axis=1)
    U = rows.W @ (2.0 * centres.T)
    U -= np.sum(centres**2, axis=1)[None, :]
    U += (rows.v - 0.5 * squares)[:, None]
    np.exp(U, out=U)
    U *= np.sqrt(weight)
    return U


def _summation_error(h: float, rank: int) -> float:
    """Largest relative error of the lattice sum."""
    k = np.arange(1, 8)
    return float((1.0 + 2.0 * np.exp(-((np.pi * k / h) ** 2) / 2.0).sum()) ** rank - 1.0)


def _grid(
    W: FloatArray, spacing_error: float, dropping_error: float, offset: float, max_columns: int
) -> tuple[float, FloatArray]:
    """Spacing and points of a grid whose errors stay below the two shares of the tolerance."""
    rank = W.shape[1]
    h = float(brentq(lambda h: _summation_error(h, rank) - min(spacing_error, 1.0), 0.05, 5.0))
    reach = float(np.sqrt(chi2.isf(min(dropping_error, 0.5), rank) / 4.0)) / h
    midpoints, slack = _midpoints(W, h / FINER)
    cells = _distinct(np.rint(midpoints / h - offset).astype(np.int64))
    centres = np.asarray((_dilated(cells, reach + slack / h, max_columns) + offset) * h, dtype=np.float64)
    distance = np.maximum(0.0, cKDTree(midpoints).query(centres)[0] - slack)
    cost = (h * np.sqrt(2.0 / np.pi)) ** rank * np.exp(-2.0 * distance**2)
    order = np.argsort(cost, kind="stable")
    dropped = int(np.searchsorted(np.cumsum(cost[order]), dropping_error))
    kept = np.sort(order[dropped:])
    if len(kept) > max_columns:
        _refuse_columns(len(kept), max_columns)
    return h, centres[kept]


def _midpoints(W: FloatArray, rounding: float) -> tuple[FloatArray, float]:
    """Midpoints of all pairs of rows; many pairs are rounded to a grid. Also how far rounding moved them at most."""
    n, rank = W.shape
    if n * n <= FEW_PAIRS:
        i, j = np.triu_indices(n)
        return np.asarray(0.5 * (W[i] + W[j])), 0.0
    found = np.zeros((0, rank), dtype=np.int64)
    height = max(1, BLOCK_ENTRIES // (n * rank))
    for first in range(0, n, height):
        pairs = 0.5 / rounding * (W[first : first + height, None, :] + W[None, first:, :])
        cells = np.rint(pairs.reshape(-1, rank)).astype(np.int64)
        found = _distinct(np.concatenate([found, _distinct(cells)]))
    return np.asarray(found * rounding), 0.5 * rounding * float(np.sqrt(rank))


def _distinct(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct rows: marked in a table of the cells if that is small, else sorted."""
    low = cells.min(axis=0)
    spans = tuple(cells.max(axis=0) - low + 1)
    if np.prod(np.array(spans, dtype=np.float64)) > 16 * BLOCK_ENTRIES:
        return np.asarray(np.unique(cells, axis=0))
    marked = np.zeros(spans, dtype=bool)
    marked[tuple((cells - low).T)] = True
    return np.asarray(np.argwhere(marked) + low, dtype=np.int64)


def _dilated(cells: NDArray[np.int64], reach: float, max_columns: int) -> NDArray[np.int64]:
    """All grid points within `reach` steps of a point in one of the cells."""
    rank = cells.shape[1]
    steps = np.arange(-int(np.ceil(reach + 0.5)), int(np.ceil(reach + 0.5)) + 1)
    around = np.stack(np.meshgrid(*[steps] * rank, indexing="ij"), axis=-1).reshape(-1, rank)
    around = around[np.sum(np.maximum(np.abs(around) - 0.5, 0.0) ** 2, axis=1) <= reach**2]
    points = cells
    for batch in np.array_split(around, max(1, len(around) * len(cells) // BLOCK_ENTRIES)):
        near = (cells[:, None, :] + batch[None, :, :]).reshape(-1, rank)
        points = _distinct(np.concatenate([points, near]))
        if len(points) > 50 * max_columns:
            _refuse_columns(len(points), max_columns)
    return points


def _refuse_columns(needed: int, max_columns: int) -> None:
    validation.refuse(
        f"This accuracy needs about {needed:,} columns, more than max_columns={max_columns:,}; raise tol or max_columns, or "
        "penalise X more (a larger trace) for a lower rank."
    )


def _data_centred_features(rows: Rows, max_columns: int) -> FloatArray:
    """Bumps on the rows, on their reflections and twice as far out, weighted to fit: where a grid would be too large."""
    W = rows.W
    centres = np.vstack([W, -W, 2.0 * W, -2.0 * W, np.zeros((1, W.shape[1]))])
    if len(centres) > max_columns:
        _refuse_columns(len(centres), max_columns)
    return weighted_columns(rows, _bumps(rows, centres, 1.0))


# ----------------------------------------------------------------------------------------------- series


def series_features(rows: Rows, tol: float, max_columns: int) -> FloatArray:
    """The paper's chain: ``exp(x_i x_j) = sum_p x_i^p x_j^p / p!`` for each shifted column, all products of the terms.

    A column v is shifted to ``x = v + a >= 0``: ``exp(v_i v_j) = e^{-a v_i - a^2/2} exp(x_i x_j) e^{-a v_j - a^2/2}``;
    cut after P terms the relative error is the chance that a Poisson variable of mean ``x_i x_j`` reaches P.
    """
    rank = rows.W.shape[1]
    pieces = [_taylor(column, tol / max(1, rank)) for column in rows.W.T]
    return _chained(rows, pieces, max_columns)


def _taylor(column: FloatArray, tol: float) -> FloatArray:
    """Nonnegative features of ``exp(v_i v_j)`` for one column, the sign chosen for the fewest terms."""
    column = column if -column.min() <= column.max() else -column
    shift = max(0.0, -float(column.min()))
    x = column + shift
    terms = int(poisson.isf(tol, float(x.max()) ** 2)) + 1
    powers = np.arange(terms)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(powers[None, :] == 0, 0.0, powers[None, :] * np.log(x)[:, None])
    half_log_factorial = 0.5 * gammaln(powers + 1.0)
    return np.asarray(np.exp(logs - half_log_factorial[None, :] - (shift * column + 0.5 * shift**2)[:, None]))


def _chained(rows: Rows, pieces: list[FloatArray], max_columns: int) -> FloatArray:
    """Multiply features row by row: the Hadamard product of the pieces' Gram matrices."""
    columns = int(np.prod([piece.shape[1] for piece in pieces], dtype=np.float64)) if pieces else 1
    if columns > max_columns:
        _refuse_columns(columns, max_columns)
    start = np.exp(rows.v)[:, None]
    return fold(lambda left, right: (left[:, :, None] * right[:, None, :]).reshape(len(left), -1), pieces, start)


# --------------------------------------------------------------------------------------------- rank two


def rank_two_features(rows: Rows, tol: float, max_columns: int) -> FloatArray:
    """The paper's 2^r columns; a piece whose best approximation of rank two has a negative entry gets a grid instead."""
    pieces, refused = [], 0
    for column in rows.W.T:
        single = Rows(np.zeros(len(column)), column[:, None])
        features = lattice_features(single, RANK_TWO_PRECISION, max_columns)
        left, values, _ = np.linalg.svd(features, full_matrices=False)
        half = _turned_into_orthant(left[:, :2] * values[:2])
        if half is None:
            refused += 1
            half = lattice_features(single, tol / max(1, rows.W.shape[1]), max_columns)
        pieces.append(half)
    if refused:
        warnings.warn(
            f"{refused} of {len(pieces)} rank-two pieces have negative entries; a grid takes their place.", stacklevel=3
        )
    return _chained(rows, pieces, max_columns)


def _turned_into_orthant(half: FloatArray) -> FloatArray | None:
    """Rotate rows of the plane into the nonnegative quadrant; None if they span more than a right angle."""
    if half.shape[1] < 2:
        half = np.column_stack([half, np.zeros((len(half), 2 - half.shape[1]))])
    mean = half.sum(axis=0)
    angles = np.arctan2(half[:, 1], half[:, 0]) - np.arctan2(mean[1], mean[0])
    angles = (angles + np.pi) % (2.0 * np.pi) - np.pi
    length = np.linalg.norm(half, axis=1)
    angles[length <= 1e-14 * length.max(initial=0.0)] = 0.0
    if angles.max() - angles.min() > 0.5 * np.pi + 1e-9:
        return None
    turned = angles - angles.min() + max(0.0, 0.25 * np.pi - 0.5 * (angles.max() - angles.min()))
    return np.asarray(np.maximum(0.0, np.column_stack([length * np.cos(turned), length * np.sin(turned)])))


def factor_rank_two(A: Any) -> CPFactor:
    """Factor a doubly nonnegative matrix of rank at most two exactly: rows are turned into the quadrant.

    Parameters
    ----------
    A : array-like of shape (n, n)
        Nonnegative, positive semidefinite, of rank one or two up to rounding.

    Returns
    -------
    CPFactor

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> C = np.array([[1.0, 0.0], [2.0, 1.0], [1.0, 3.0]])
    >>> factor = cvxnmf.factor_rank_two(C @ C.T)
    >>> bool(factor.U.min() >= 0), bool(factor.frobenius_error < 1e-12)
    (True, True)
    """
    matrix = validation.symmetric_matrix(A)
    values, vectors = np.linalg.eigh(matrix)
    rounding = 1e-10 * len(matrix) * float(np.abs(values).max())
    if values[0] < -rounding:
        validation.refuse(f"A is not positive semidefinite: its smallest eigenvalue is {values[0]:g}.")
    if len(values) > 2 and values[-3] > rounding:
        validation.refuse(f"A has rank above two: its third eigenvalue is {values[-3]:g}; use a factorisation of higher rank.")
    U = _turned_into_orthant(vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0)))
    if U is None:
        validation.refuse("The rows of A span more than a right angle, which a nonnegative matrix of rank two does not do.")
    difference = np.abs(U @ U.T - matrix)
    relative = float(np.max(difference[matrix > 0] / matrix[matrix > 0], initial=0.0))
    return CPFactor(U, relative, float(np.linalg.norm(difference) / np.linalg.norm(matrix)))


# -------------------------------------------------------------------------------------------- reduction


def weighted_columns(rows: Rows, features: FloatArray) -> FloatArray:
    """Nonnegative weights of the columns that fit ``exp(X)`` best: ``min c'Hc - 2b'c``, ``H = (U'U)^2`` entrywise."""
    size = np.sqrt(np.sum(features**2, axis=0))
    unit = features[:, size > 0] / size[size > 0]
    b, scale = np.zeros(unit.shape[1]), 0.0
    for block, E in rows.blocks():
        b += np.sum(unit[block] * (E @ unit), axis=0)
        scale += float(np.vdot(E, E))
    H = (unit.T @ unit) ** 2
    start = b / H.sum(axis=1)  # H and b are nonnegative: this scales the columns to the right size
    found = minimize(
        lambda c: (float(c @ (H @ c) - 2.0 * b @ c) / scale, 2.0 * (H @ c - b) / scale),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(b),
        options={"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-12},
    )
    weights = np.where(found.x > 1e-10 * found.x.max(), found.x, 0.0)
    return np.asarray(unit[:, weights > 0] * np.sqrt(weights[weights > 0]))


def caratheodory_columns(rows: Rows, features: FloatArray) -> FloatArray:
    """The same ``UU'`` with at most n(n+1)/2 columns: weights move along dependencies until they vanish."""
    n = len(features)
    upper = np.triu_indices(n)
    while features.shape[1] > len(upper[0]):
        products = features[upper[0]] * features[upper[1]]
        size = np.linalg.norm(products, axis=0)
        dependency = np.linalg.svd(products[:, : len(upper[0]) + 1] / size[: len(upper[0]) + 1])[2][-1]
        direction = dependency / size[: len(upper[0]) + 1]
        direction = direction if direction.max() > 0 else -direction
        ratios = np.where(direction > 0, direction, 0.0)
        step = 1.0 / ratios.max()
        weights = np.ones(features.shape[1])
        weights[: len(direction)] -= step * direction
        weights[int(np.argmax(ratios))] = 0.0
        features = features[:, weights > 0] * np.sqrt(weights[weights > 0])
    return features


FEATURES = {"lattice": lattice_features, "series": series_features, "rank-two": rank_two_features}
REDUCTIONS = {"weights": weighted_columns, "caratheodory": caratheodory_columns}
