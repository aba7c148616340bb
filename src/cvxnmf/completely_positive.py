"""From X to nonnegative factors: ``exp(X) = UV'`` entrywise, ``U, V >= 0`` (docs/mathematics.md).

With ``X = a1' + 1b' + W_1 W_2'`` row i of U is ``e^{a_i}`` times features of the position ``w_i`` and row j of V is ``e^{b_j}``
times the same features of the position ``z_j``; their products give ``exp(w_i . z_j)``:

    lattice    phi_t(w) = (h sqrt(2/pi))^(r/2) exp(|w|^2/2 - |w - t|^2), t on a grid of spacing h
    series     the paper's: each column of W shifted to be nonnegative, Taylor's series, products of all the pieces
    rank-two   the paper's: each piece by its best approximation of rank two, rows turned into the orthant

Above rank 6 no grid is good: bumps around the data are the start of a descent over U and V. A symmetric X has both halves in
common: one object stands left and right, and V is U.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import reduce as fold
from itertools import product
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray
from scipy.optimize import Bounds, brentq, minimize, nnls
from scipy.spatial import cKDTree
from scipy.special import gammaln
from scipy.stats import chi2, poisson

from cvxnmf import validation
from cvxnmf.cones import ConditionallyPSD
from cvxnmf.results import CPFactor, FloatArray, MatrixPoint, PairedPoint, Solution

#: Numbers worked on at a time.
BLOCK_ENTRIES = 1 << 21
#: Matrices of up to this many entries are kept while they are needed again and again.
HELD_ENTRIES = 1 << 24
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
#: Above it, bumps are tried around this many points, and this many steps improve the ones chosen.
CENTRES = 2000
POLISHING_STEPS = 300
#: They end early when this many steps lower the squared error by less than a few percent.
STALLED_STEPS = 100
#: Steps that make all rows and columns equally large.
EVENING_STEPS = 8
#: Added to the unit diagonal of a least squares problem, times its largest row sum: above the rounding of a Cholesky step.
RIDGE = 1e-15
#: Exchanges of a least squares problem before a slower method that cannot cycle takes over.
MAX_EXCHANGES = 300

Side = TypeVar("Side")
Made = TypeVar("Made")


class Rows(NamedTuple):
    """One half of what is factored: effects and positions."""

    v: FloatArray
    W: FloatArray

    def restricted(self, nodes: NDArray[np.intp]) -> Rows:
        """Return some of the rows."""
        return Rows(self.v[nodes], self.W[nodes])


class Pairs(NamedTuple):
    """Pairs of rows to be factored, ``exp(a_i + b_j + w_i . z_j)``; if symmetric, one half stands left and right."""

    left: Rows
    right: Rows

    @property
    def symmetric(self) -> bool:
        """Whether V is to be U."""
        return self.left is self.right

    @property
    def rank(self) -> int:
        """Number of columns of the positions."""
        return int(self.left.W.shape[1])

    @property
    def entries(self) -> int:
        """Number of entries."""
        return len(self.left.v) * len(self.right.v)

    def restricted(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Pairs:
        """Return the entries of some rows and columns, the same ones if symmetric."""
        left = self.left.restricted(rows)
        return Pairs(left, left if self.symmetric else self.right.restricted(columns))

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Blocks of rows and of the matrix itself, never all of it at once."""
        (a, W), (b, Z) = self
        height = max(1, BLOCK_ENTRIES // max(len(b), 1))
        for first in range(0, len(a), height):
            rows = slice(first, min(len(a), first + height))
            yield rows, np.exp(a[rows, None] + b[None, :] + W[rows] @ Z.T)


class Features(NamedTuple):
    """Nonnegative columns for both halves, ``exp(X) = left right'``; one array twice if symmetric."""

    left: FloatArray
    right: FloatArray

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self.left.shape[1])

    def chosen(self, kept: NDArray[np.intp]) -> Features:
        """Return some of the columns."""
        return Features(*_both(lambda half: half[:, kept], self))

    def weighted(self, weights: FloatArray) -> Features:
        """Return the columns of positive weight, the weight shared by the two halves."""
        kept = weights > 0
        return Features(*_both(lambda half: np.asarray(half[:, kept] * np.sqrt(weights[kept])), self))


def _both(function: Callable[[Side], Made], halves: tuple[Side, Side]) -> tuple[Made, Made]:
    """Apply a function to both halves, only once if they are one."""
    left = function(halves[0])
    return left, left if halves[1] is halves[0] else function(halves[1])


def exp_factor(
    X: Any, method: str = "lattice", tol: float = 1e-2, reduce: str | None = None, max_columns: int = 20_000
) -> CPFactor:
    """Write ``exp(X)``, taken entrywise, as ``UV'`` with explicit ``U, V >= 0``; V is U if X is symmetric.

    Parameters
    ----------
    X : Solution or array-like of shape (n, n)
        A solution of :func:`solve`, symmetric or rectangular, or any conditionally positive semidefinite matrix: also the
        log of a kernel, such as minus the squared distances.
    method : {"lattice", "series", "rank-two"}
        Gaussian bumps on a grid, the fewest columns (above rank 6: around the data, then improved by descent); the
        paper's Taylor series; the paper's 2^r columns, whose error cannot be chosen, for a symmetric X.
    tol : float
        Largest relative error of any entry of ``UV'``. With ``reduce="weights"`` or above rank 6, of the whole in the
        Frobenius norm. A warning tells when a method cannot reach it.
    reduce : {None, "weights", "caratheodory"}
        Fewer columns: by nonnegative weights fitted to ``exp(X)``, or, without changing ``UV'``, down to the number that
        always suffices: n(n+1)/2 for a symmetric X, min(m, n) for a rectangular one.
    max_columns : int
        Refuse to build more columns than that.

    Returns
    -------
    CPFactor
        U of shape (m, columns), V of shape (n, columns) and their measured errors.

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
    whole, *groups = _positions(X)
    parts, errors, by_entry = [], [], reduce != "weights"
    for rows, columns in _components(*groups):
        pairs = _centred(whole.restricted(rows, columns))
        by_entry = by_entry and (method != "lattice" or pairs.rank <= LARGEST_GRID_RANK)
        features = FEATURES[method](pairs, tol, max_columns)
        if reduce is not None:
            features = REDUCTIONS[reduce](pairs, features)
        errors.append(_errors(pairs, features))
        parts.append((rows, columns, features))
    U = _stacked(len(whole.left.v), [(rows, features.left) for rows, _, features in parts])
    V = U if whole.symmetric else _stacked(len(whole.right.v), [(columns, features.right) for _, columns, features in parts])
    largest = max((error[0] for error in errors), default=0.0)
    norm = sum(error[2] for error in errors)
    frobenius = float(np.sqrt(sum(error[1] for error in errors) / norm)) if norm > 0 else 0.0
    promised = largest if by_entry else frobenius
    if promised > tol:
        warnings.warn(f"method={method!r} reaches a relative error of {promised:.1e}, above tol={tol:g}.", stacklevel=2)
    return CPFactor(U, largest, frobenius, V)


def _positions(X: Any) -> tuple[Pairs, NDArray[np.intp], NDArray[np.intp]]:
    """Both halves of a solution or of a matrix in the conditional cone, and their groups (-1: nothing but zeros)."""
    if isinstance(X, Solution):
        return _solved_positions(X)
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
    half = Rows(point.v, point.W[:, np.sum(point.W**2, axis=0) > tolerance])
    groups = np.zeros(len(matrix), dtype=np.intp)
    return Pairs(half, half), groups, groups


def _solved_positions(solution: Solution) -> tuple[Pairs, NDArray[np.intp], NDArray[np.intp]]:
    """Both halves of a solution and their groups."""
    point = solution.point
    if isinstance(point, MatrixPoint):
        validation.refuse(
            "The X of a sparse problem is no logarithm but the fitted matrix itself; use cvxnmf.factor_rank_two for its rank "
            "two, or factor the logarithm of X."
        )
    groups = np.zeros(len(point.v), dtype=np.intp) if solution.groups is None else solution.groups.copy()
    groups[np.isneginf(point.v)] = -1
    whole = Rows(np.where(groups < 0, 0.0, point.v), point.W)
    if not isinstance(point, PairedPoint):
        return Pairs(whole, whole), groups, groups
    rows, columns = np.split(np.arange(len(point.v)), [point.n_rows])
    return Pairs(whole.restricted(rows), whole.restricted(columns)), groups[rows], groups[columns]


def _components(
    row_groups: NDArray[np.intp], column_groups: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows and columns of every group that has both."""
    for group in np.intersect1d(row_groups, column_groups):
        if group >= 0:
            yield np.flatnonzero(row_groups == group), np.flatnonzero(column_groups == group)


def _stacked(n: int, parts: list[tuple[NDArray[np.intp], FloatArray]]) -> FloatArray:
    """Side by side the features of all groups, with zeros elsewhere."""
    if len(parts) == 1 and len(parts[0][0]) == n:
        return parts[0][1]
    stacked, first = np.zeros((n, sum(features.shape[1] for _, features in parts))), 0
    for nodes, features in parts:
        stacked[nodes, first : first + features.shape[1]] = features
        first += features.shape[1]
    return stacked


def _centred(pairs: Pairs) -> Pairs:
    """Centre the range of each half, give both the same ranges and leave out columns without extent.

    ``w.z = (w - s).(z - t) + w.t + s.z - s.t``: the last terms are effects. A column stretched by alpha in one half and by
    1/alpha in the other gives the same products; equal ranges make the range of the midpoints smallest.
    """
    s, t = _both(lambda half: 0.5 * (half.W.max(axis=0) + half.W.min(axis=0)), pairs)
    own, other = _both(lambda half: np.ptp(half.W, axis=0), pairs)
    size = np.sqrt(own * other)
    kept = size > 1e-12 * max(1.0, float(size.max(initial=0.0)))
    stretch = np.sqrt(other[kept] / own[kept])

    def moved(half: Rows, middle: FloatArray, across: FloatArray, stretch: FloatArray) -> Rows:
        effects = half.v + half.W @ across - 0.5 * float(middle @ across)
        return Rows(effects, (half.W - middle)[:, kept] * stretch)

    left = moved(pairs.left, s, t, stretch)
    if pairs.symmetric:
        return Pairs(left, left)
    right = moved(pairs.right, t, s, 1.0 / stretch)
    surplus = 0.5 * (left.v.max() - right.v.max())
    return Pairs(left._replace(v=left.v - surplus), right._replace(v=right.v + surplus))


def _errors(pairs: Pairs, features: Features) -> tuple[float, float, float]:
    """Largest relative error of an entry, squared Frobenius error and squared Frobenius norm."""
    largest = error = norm = 0.0
    for block, E in pairs.blocks():
        difference = features.left[block] @ features.right.T - E
        error += float(np.vdot(difference, difference))
        norm += float(np.vdot(E, E))
        np.divide(np.abs(difference, out=difference), E, out=difference, where=E > 0)
        largest = max(largest, float(difference.max()))
    return largest, error, norm


# ---------------------------------------------------------------------------------------------- lattice


def lattice_features(pairs: Pairs, tol: float, max_columns: int) -> Features:
    """Gaussian bumps on a grid: Poisson summation bounds the relative error of every product.

    For spacing h the products are off by at most ``(1 + 2 sum_k exp(-pi^2 k^2 / 2h^2))^r - 1``; leaving a point t
    out costs ``(h sqrt(2/pi))^r exp(-2 d^2)``, d its distance from the nearest midpoint of two rows.
    """
    if pairs.rank == 0:
        return Features(*_both(lambda half: np.exp(half.v)[:, None], pairs))
    if pairs.rank > LARGEST_GRID_RANK:
        return _data_centred_features(pairs, tol, max_columns)
    few = pairs.entries <= FEW_PAIRS
    grids = [_grid(pairs, tol * a, tol * b, offset, max_columns) for (a, b), offset in _choices(few)]
    for h, centres in sorted(grids, key=lambda grid: len(grid[1])):
        features = _bumps(pairs, centres, (h * np.sqrt(2.0 / np.pi)) ** pairs.rank)
        if _errors(pairs, features)[0] <= tol:
            return features
    return features


def _choices(few: bool) -> list[tuple[tuple[float, float], float]]:
    """Shares of the tolerance and offsets of the grid to try."""
    return list(product(SHARES, (0.0, 0.5))) if few else [(SHARES[0], 0.0)]


def _bumps(pairs: Pairs, centres: FloatArray, weight: float) -> Features:
    """``sqrt(weight) exp(v + |w|^2/2 - |w - t|^2)`` for every row and centre."""
    squares = np.sum(centres**2, axis=1)

    def bumps(half: Rows) -> FloatArray:
        U = half.W @ (2.0 * centres.T)
        U -= squares[None, :]
        U += (half.v - 0.5 * np.sum(half.W**2, axis=1) + 0.5 * np.log(weight))[:, None]
        return np.asarray(np.exp(U, out=U))

    return Features(*_both(bumps, pairs))


def _summation_error(h: float, rank: int) -> float:
    """Largest relative error of the lattice sum."""
    k = np.arange(1, 8)
    return float((1.0 + 2.0 * np.exp(-((np.pi * k / h) ** 2) / 2.0).sum()) ** rank - 1.0)


def _grid(pairs: Pairs, spacing_error: float, dropping_error: float, offset: float, max_columns: int) -> tuple[float, FloatArray]:
    """Spacing and points of a grid whose errors stay below the two shares of the tolerance."""
    rank = pairs.rank
    h = float(brentq(lambda h: _summation_error(h, rank) - min(spacing_error, 1.0), 0.05, 5.0))
    reach = float(np.sqrt(chi2.isf(min(dropping_error, 0.5), rank) / 4.0)) / h
    midpoints, slack = _midpoints(pairs, h / FINER)
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


def _midpoints(pairs: Pairs, rounding: float) -> tuple[FloatArray, float]:
    """Midpoints of all pairs; many pairs are rounded to a grid. Also how far rounding moved them at most."""
    W, Z = pairs.left.W, pairs.right.W
    if pairs.entries <= FEW_PAIRS:
        i, j = _each_pair(pairs)
        return np.asarray(0.5 * (W[i] + Z[j])), 0.0
    found = np.zeros((0, pairs.rank), dtype=np.int64)
    height = max(1, BLOCK_ENTRIES // (len(Z) * pairs.rank))
    for first in range(0, len(W), height):
        partners = Z[first:] if pairs.symmetric else Z
        sums = 0.5 / rounding * (W[first : first + height, None, :] + partners[None, :, :])
        cells = np.rint(sums.reshape(-1, pairs.rank)).astype(np.int64)
        found = _distinct(np.concatenate([found, _distinct(cells)]))
    return np.asarray(found * rounding), 0.5 * rounding * float(np.sqrt(pairs.rank))


def _each_pair(pairs: Pairs) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Left and right index of every pair, mirrored ones once."""
    m, n = len(pairs.left.v), len(pairs.right.v)
    if pairs.symmetric:
        return np.triu_indices(n)
    i, j = np.indices((m, n))
    return i.ravel(), j.ravel()


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


def _refuse_columns(needed: int, max_columns: int) -> NoReturn:
    validation.refuse(
        f"This accuracy needs about {needed:,} columns, more than max_columns={max_columns:,}; raise tol or max_columns, or "
        "penalise X more (a larger trace) for a lower rank."
    )


# ------------------------------------------------------------------------------------------- high ranks


def _data_centred_features(pairs: Pairs, tol: float, max_columns: int) -> Features:
    """Bumps around the data, the heaviest improved freely: where a grid would be too large.

    More of them are taken until the whole is within the tolerance, or as long as that helps. Errors are weighed with all rows
    and columns made equally large, lest large effects drown the rest. A rectangular matrix whose smaller side is reached is
    its own factor, next to the identity.
    """
    even = _evened(pairs)
    bumps = weighted_columns(even, _bumps(even, _centres_around_data(pairs), 1.0))
    features = weighted_columns(even, _heaviest(bumps, _likely_columns(even, tol)))
    target, last = tol, np.inf
    while features.columns <= max_columns:
        if not pairs.symmetric and features.columns >= min(len(pairs.left.v), len(pairs.right.v)):
            return _own_factor(pairs)
        features = _polished(even, features, target)
        uneven = _with_effects_of(pairs, even, features)
        error, plain_error = _norm_error(even, features), _norm_error(pairs, uneven)
        if max(error, plain_error) <= tol or error > max(target, 0.9 * last):
            return uneven
        target, last = min(target, 0.9 * tol * error / plain_error), error
        features = _side_by_side(features, _most_missed(even, features, bumps, 1 + features.columns // 4))
    return _refuse_columns(features.columns, max_columns)


def _evened(pairs: Pairs) -> Pairs:
    """The same positions with effects for which all rows and all columns have about the same norm."""
    W, Z = pairs.left.W, pairs.right.W
    a, b = np.zeros(len(W)), np.zeros(len(Z))
    for _ in range(EVENING_STEPS):
        row_squares, column_squares = np.empty(len(a)), np.zeros(len(b))
        for block, E in Pairs(Rows(a, W), Rows(b, Z)).blocks():
            np.square(E, out=E)
            row_squares[block] = E.sum(axis=1)
            column_squares += E.sum(axis=0)
        a, b = a - 0.25 * np.log(row_squares), b - 0.25 * np.log(column_squares)
    left = Rows(a, W)
    return Pairs(left, left if pairs.symmetric else Rows(b, Z))


def _with_effects_of(pairs: Pairs, others: Pairs, features: Features) -> Features:
    """Features of pairs that differ only in their effects."""
    left = features.left * np.exp(pairs.left.v - others.left.v)[:, None]
    return Features(left, left if pairs.symmetric else features.right * np.exp(pairs.right.v - others.right.v)[:, None])


def _norm_error(pairs: Pairs, features: Features) -> float:
    """Relative error in the Frobenius norm."""
    _, error, norm = _errors(pairs, features)
    return float(np.sqrt(error / norm))


def _most_missed(pairs: Pairs, features: Features, bumps: Features, count: int) -> Features:
    """The bumps along which adding weight lowers the error fastest, with weights small enough to lower it."""
    unit = _unit_columns(bumps)
    gain = np.zeros(unit.columns)
    for block, E in pairs.blocks():
        gain += np.sum(unit.left[block] * ((E - features.left[block] @ features.right.T) @ unit.right), axis=0)
    most = np.argsort(-gain, kind="stable")[:count]
    weights = np.zeros(unit.columns)
    weights[most] = np.maximum(gain[most], 0.0) / count
    return unit.weighted(weights)


def _side_by_side(one: Features, other: Features) -> Features:
    """The columns of both."""
    left = np.hstack([one.left, other.left])
    return Features(left, left if one.right is one.left else np.hstack([one.right, other.right]))


def _centres_around_data(pairs: Pairs) -> FloatArray:
    """The origin, rows, their reflections, and both twice as far out."""
    W = np.vstack([_some(half, CENTRES // 4).W for half in ((pairs.left,) if pairs.symmetric else pairs)])
    return np.vstack([W, -W, 2.0 * W, -2.0 * W, np.zeros((1, pairs.rank))])


def _some(half: Rows, count: int) -> Rows:
    """At most `count` rows, evenly spread."""
    n = len(half.v)
    return half if n <= count else half.restricted(np.linspace(0, n - 1, count).astype(np.intp))


def _likely_columns(pairs: Pairs, tol: float) -> int:
    """Columns that no factor of this accuracy can do without, judged by the singular values of a part."""
    part = Pairs(*_both(lambda half: _some(half, CENTRES // 4), pairs))
    squares = sl.svdvals(np.vstack([E for _, E in part.blocks()])) ** 2
    return max(1, int(np.count_nonzero(np.cumsum(squares[::-1]) > tol**2 * squares.sum())))


def _heaviest(features: Features, columns: int) -> Features:
    """The columns with the largest products."""
    left, right = _both(lambda half: np.linalg.norm(half, axis=0), features)
    return features.chosen(np.argsort(-left * right, kind="stable")[:columns])


def _own_factor(pairs: Pairs) -> Features:
    """``exp(X)`` next to the identity on its smaller side."""
    E = np.vstack([E for _, E in pairs.blocks()])
    return Features(E, np.eye(E.shape[1])) if E.shape[1] <= E.shape[0] else Features(np.eye(E.shape[0]), E.T.copy())


def _polished(pairs: Pairs, features: Features, tol: float) -> Features:
    """Descend on ``||UV' - exp(X)||^2`` over U, V >= 0 until the tolerance is met or progress ends."""
    unit = 0.25 * np.log(_errors(pairs, features)[2])
    scaled = Pairs(*_both(lambda half: half._replace(v=half.v - unit), pairs))  # of norm 1, as the stopping rules assume
    held = list(scaled.blocks()) if scaled.entries <= HELD_ENTRIES else None

    def halves(x: FloatArray) -> Features:
        left, right = x[: features.left.size], x[features.left.size :]
        U = left.reshape(features.left.shape)
        return Features(U, U if pairs.symmetric else right.reshape(features.right.shape))

    def stop(intermediate_result: Any) -> None:
        values.append(float(intermediate_result.fun))
        if values[-1] <= (0.99 * tol) ** 2 or values[-1] > 0.97 * values[-STALLED_STEPS]:
            raise StopIteration

    values = [np.inf] * STALLED_STEPS
    start = np.exp(-unit) * np.concatenate([half.ravel() for half in (features[:1] if pairs.symmetric else features)])
    found = minimize(
        lambda x: _distance_and_slope(held or scaled.blocks(), halves(x)),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(0.0, np.inf),
        callback=stop,
        options={"maxiter": POLISHING_STEPS, "maxfun": 2 * POLISHING_STEPS, "ftol": 1e-15, "gtol": 1e-12},
    )
    return Features(*_both(lambda half: np.exp(unit) * half, halves(found.x)))


def _distance_and_slope(blocks: Iterable[tuple[slice, FloatArray]], features: Features) -> tuple[float, FloatArray]:
    """``||UV' - exp(X)||^2`` and its gradient, over U alone if symmetric."""
    U, V = features
    value, left, right = 0.0, np.empty_like(U), np.zeros_like(V)
    for rows, E in blocks:
        residual = U[rows] @ V.T
        residual -= E
        value += float(np.vdot(residual, residual))
        left[rows] = 2.0 * residual @ V
        if V is not U:
            right += 2.0 * residual.T @ U[rows]
    return value, 2.0 * left.ravel() if V is U else np.concatenate([left.ravel(), right.ravel()])


# ----------------------------------------------------------------------------------------------- series


def series_features(pairs: Pairs, tol: float, max_columns: int) -> Features:
    """The paper's chain: ``exp(x_i y_j) = sum_p x_i^p y_j^p / p!`` for each shifted column, all products of the terms.

    Columns w and z are shifted to ``x = w + s >= 0`` and ``y = z + t >= 0``: ``w z = x y - t x - s y + s t``, whose last
    terms are effects; cut after P terms the relative error is the chance that a Poisson variable of mean ``x_i y_j`` reaches P.
    """
    columns = zip(*_both(lambda half: list(half.W.T), pairs), strict=True)
    return _chained(pairs, [_taylor(w, z, tol / pairs.rank) for w, z in columns], max_columns)


def _taylor(w: FloatArray, z: FloatArray, tol: float) -> Features:
    """Nonnegative features of ``exp(w_i z_j)``, w and z turned round if that takes fewer terms."""
    both = min(((w, z), _both(np.negative, (w, z))), key=_largest_product)
    s, t = _both(_shift, both)
    terms = int(poisson.isf(tol, _largest_product(both))) + 1
    left = _powers(both[0], s, t, terms)
    return Features(left, left if z is w else _powers(both[1], t, s, terms))


def _shift(column: FloatArray) -> float:
    """What makes a column nonnegative."""
    return max(0.0, -float(column.min()))


def _largest_product(columns: tuple[FloatArray, FloatArray]) -> float:
    """Largest product of two entries, one of either column, once both are shifted."""
    x, y = _both(lambda column: float(column.max()) + _shift(column), columns)
    return x * y


def _powers(column: FloatArray, own: float, across: float, terms: int) -> FloatArray:
    """``x^p / sqrt(p!)`` for ``x = column + own``, times the effects of both shifts."""
    x, powers = column + own, np.arange(terms)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(powers[None, :] == 0, 0.0, powers[None, :] * np.log(x)[:, None])
    effects = 0.5 * own * across - across * x
    return np.asarray(np.exp(logs - 0.5 * gammaln(powers + 1.0)[None, :] + effects[:, None]))


def _chained(pairs: Pairs, pieces: list[Features], max_columns: int) -> Features:
    """All products of one column from every piece, times the effects."""
    columns = int(np.prod([float(piece.columns) for piece in pieces]))
    if columns > max_columns:
        _refuse_columns(columns, max_columns)

    def chain(v: FloatArray, halves: list[FloatArray]) -> FloatArray:
        start = np.exp(v)[:, None]
        return fold(lambda done, piece: (done[:, :, None] * piece[:, None, :]).reshape(len(v), -1), halves, start)

    left = chain(pairs.left.v, [piece.left for piece in pieces])
    return Features(left, left if pairs.symmetric else chain(pairs.right.v, [piece.right for piece in pieces]))


# --------------------------------------------------------------------------------------------- rank two


def rank_two_features(pairs: Pairs, tol: float, max_columns: int) -> Features:
    """The paper's 2^r columns; a piece whose best approximation of rank two has a negative entry gets a grid instead."""
    if not pairs.symmetric:
        validation.refuse("method='rank-two' is for symmetric solutions; use method='lattice' for a rectangular one.")
    pieces, refused = [], 0
    for column in pairs.left.W.T:
        half = Rows(np.zeros(len(column)), column[:, None])
        single = Pairs(half, half)
        left, values, _ = np.linalg.svd(lattice_features(single, RANK_TWO_PRECISION, max_columns).left, full_matrices=False)
        turned = _turned_into_orthant(left[:, :2] * values[:2])
        if turned is None:
            refused += 1
            pieces.append(lattice_features(single, tol / pairs.rank, max_columns))
        else:
            pieces.append(Features(turned, turned))
    if refused:
        warnings.warn(
            f"{refused} of {len(pieces)} rank-two pieces have negative entries; a grid takes their place.", stacklevel=3
        )
    return _chained(pairs, pieces, max_columns)


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


def weighted_columns(pairs: Pairs, features: Features) -> Features:
    """Nonnegative weights of the columns that fit ``exp(X)`` best.

    ``min c'Hc - 2b'c`` with ``H = (U'U) o (V'V)`` entrywise and ``b_k = u_k' exp(X) v_k``.
    """
    unit = _unit_columns(features)
    b = np.zeros(unit.columns)
    for block, E in pairs.blocks():
        b += np.sum(unit.left[block] * (E @ unit.right), axis=0)
    H = _gram(unit)
    H[np.diag_indices(len(H))] += RIDGE * H.sum(axis=1).max()
    return unit.weighted(nonnegative_least_squares(H, b))


def _unit_columns(features: Features) -> Features:
    """The columns that are not zero, at unit length."""
    sizes = _both(lambda half: np.linalg.norm(half, axis=0), features)
    kept = (sizes[0] > 0) & (sizes[1] > 0)
    left = features.left[:, kept] / sizes[0][kept]
    return Features(left, left if features.right is features.left else features.right[:, kept] / sizes[1][kept])


def _gram(features: Features) -> FloatArray:
    """``(U'U) o (V'V)``, the second factor in blocks of rows."""
    H = np.asarray(features.left.T @ features.left)
    if features.right is features.left:
        return np.multiply(H, H, out=H)
    height = max(1, BLOCK_ENTRIES // max(1, len(H)))
    for first in range(0, len(H), height):
        block = slice(first, first + height)
        H[block] *= features.right[:, block].T @ features.right
    return H


def nonnegative_least_squares(H: FloatArray, b: FloatArray) -> FloatArray:
    """Minimise ``c'Hc - 2b'c`` over ``c >= 0``; H, positive definite, and b have positive entries.

    All weights of the wrong sign leave the support and all columns with a descent direction enter it (block principal
    pivoting), one at a time once that stops making progress.
    """
    support, allowance = _likely_support(H, b), 1e-10 * b.max()
    fewest, patience = len(b) + 1, 3
    for _ in range(MAX_EXCHANGES):
        c = _solved_on(H, b, support)
        wrong = np.where(support, c < 0, b - H @ c > allowance)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return c
        patience = 3 if count < fewest else patience - 1
        fewest = min(fewest, count)
        if patience < 0:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        support ^= wrong
    return _slow_least_squares(H, b)


def _likely_support(H: FloatArray, b: FloatArray) -> NDArray[np.bool_]:
    """Columns that keep some weight under a few multiplicative updates, which keep weights positive and descend."""
    c = b / H.sum(axis=1)
    for _ in range(30):
        c *= b / (H @ c)
    return np.asarray(c > 1e-2 * c.max())


def _solved_on(H: FloatArray, b: FloatArray, support: NDArray[np.bool_]) -> FloatArray:
    """The stationary point with zeros outside the support."""
    nodes = np.flatnonzero(support)
    c = np.zeros(len(b))
    block = H[np.ix_(nodes, nodes)].T  # the same matrix, in the order that can be overwritten
    c[nodes] = sl.cho_solve(sl.cho_factor(block, overwrite_a=True), b[nodes])
    return c


def _slow_least_squares(H: FloatArray, b: FloatArray) -> FloatArray:
    """The same minimum by Lawson and Hanson's method, one column at a time."""
    root = sl.cholesky(H)
    return np.asarray(nnls(root, sl.solve_triangular(root, b, trans="T"), maxiter=30 * len(b))[0])


def caratheodory_columns(pairs: Pairs, features: Features) -> Features:
    """The same ``UV'`` with at most n(n+1)/2 columns, or min(m, n) if it is rectangular."""
    if pairs.symmetric:
        half = _independent_columns(features.left)
        return Features(half, half)
    U, V = features
    if features.columns <= min(len(U), len(V)):
        return features
    return Features(U @ V.T, np.eye(len(V))) if len(V) <= len(U) else Features(np.eye(len(U)), V @ U.T)


def _independent_columns(features: FloatArray) -> FloatArray:
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
