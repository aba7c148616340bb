"""From X to nonnegative factors: ``exp(X) = UV'`` entrywise, ``U, V >= 0`` (docs/mathematics.md).

With ``X = a1' + 1b' + W_1 W_2'`` row i of U is ``e^{a_i}`` times features of the embedded point ``w_i`` and row j of V is
``e^{b_j}`` times the same features of ``z_j``; their products give ``exp(w_i . z_j)``:

    lattice    phi_t(w) = (h sqrt(2/pi))^(r/2) exp(|w|^2/2 - |w - t|^2), t on a grid of spacing h
    series     the paper's: each column of W shifted to be nonnegative, Taylor's series, products of all the pieces
    rank-two   the paper's: each piece by its best approximation of rank two, rows rotated into the orthant

Above rank 6 grids are too large: bumps around the data are the start of a descent over U and V. For a symmetric X, V is U.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxnmf import validation
from cvxnmf.convex.cones import ConditionallyPSD
from cvxnmf.cp.hadamard_exponential import Errors, Features, HadamardExponential
from cvxnmf.cp.high_rank import data_centred_features
from cvxnmf.cp.lattice import LARGEST_GRID_RANK, lattice_features
from cvxnmf.cp.rank_two import rank_two_features
from cvxnmf.cp.reduction import reduce_exactly, refit_weights
from cvxnmf.cp.series import series_features
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import CPFactor, MatrixPoint, Point, Solution

Groups = NDArray[np.intp]

#: Exponentials of larger numbers, and their products, overflow.
LARGEST_LOG = 300.0
#: Above this rank a few rows are factored without a grid.
LARGEST_SMALL_GRID_RANK = 4
#: Features of a matrix, and ways to fewer of them, by name.
FEATURES = {"lattice": lattice_features, "series": series_features, "rank-two": rank_two_features}
REDUCTIONS = {"weights": refit_weights, "caratheodory": reduce_exactly}


def exp_factor(
    X: ArrayLike | Solution, method: str = "lattice", tol: float = 1e-2, reduce: str | None = None, max_columns: int = 20_000
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
    factor, promised = _factor_components(*_target_and_groups(X), _Method(method, tol, reduce, max_columns))
    if promised > tol:
        warnings.warn(f"method={method!r} reaches a relative error of {promised:.1e}, above tol={tol:g}.", stacklevel=2)
    return factor


def factor_point(point: Point, tol: float, max_columns: int = 20_000) -> FloatArray:
    """Return ``U >= 0`` with ``UU'`` about ``exp(X)`` for a symmetric X; without a warning if the error exceeds `tol`.

    Grids of a rank above 4 have thousands of points; bumps around the data then need fewer columns than X has rows.
    """
    target = HadamardExponential(*point.halves()).centre()
    features = lattice_features if target.rank <= LARGEST_SMALL_GRID_RANK else data_centred_features
    return features(target, tol, max_columns).left


class _Method(NamedTuple):
    """How exp_factor makes nonnegative features: by which method, to which tolerance, and how columns are reduced."""

    name: str
    tol: float
    reduce: str | None
    max_columns: int

    def features(self, target: HadamardExponential) -> Features:
        """Return the nonnegative features of one component of ``exp(X)``."""
        features = FEATURES[self.name](target, self.tol, self.max_columns)
        return features if self.reduce is None else REDUCTIONS[self.reduce](target, features)

    def limits_entries(self, target: HadamardExponential) -> bool:
        """Whether the tolerance of exp_factor holds for every entry, not only in the Frobenius norm."""
        return self.reduce != "weights" and (self.name != "lattice" or target.rank <= LARGEST_GRID_RANK)


def _factor_components(
    whole: HadamardExponential, row_groups: Groups, column_groups: Groups, method: _Method
) -> tuple[CPFactor, float]:
    """Factor every component of ``exp(X)`` on its own; also the error that the tolerance limits, by entry or in norm."""
    parts, errors, by_entry = [], [], True
    for rows, columns in _components(row_groups, column_groups):
        target = whole.restrict(rows, columns).centre()
        by_entry = by_entry and method.limits_entries(target)
        features = method.features(target)
        errors.append(target.measure_errors(features))
        parts.append((rows, columns, features))
    m, n = whole.shape
    U = _block_columns(m, [(rows, features.left) for rows, _, features in parts])
    V = U if whole.symmetric else _block_columns(n, [(columns, features.right) for _, columns, features in parts])
    error = Errors.combine(errors)
    return CPFactor(U, error.largest, error.frobenius, V), error.largest if by_entry else error.frobenius


def _target_and_groups(X: Any) -> tuple[HadamardExponential, Groups, Groups]:
    """The ``exp(X)`` that is to be factored, and the components of its rows and columns (-1: nothing but zeros)."""
    if isinstance(X, Solution):
        return _solution_and_groups(X)
    if not (isinstance(X, np.ndarray) and X.ndim == 2) and not (isinstance(X, list | tuple) and X) and not hasattr(X, "to_numpy"):
        validation.refuse("X must be a Solution, or a real symmetric matrix as an array or a nested list.")
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    matrix = validation.log_matrix(X, rows)
    if not matrix.size:
        validation.refuse("X is empty; give a matrix with at least one row.")
    if not np.isfinite(matrix).all():
        validation.refuse("X has -inf entries; factor a Solution, or each finite block of X on its own.")
    if float(matrix.max()) > LARGEST_LOG:
        validation.refuse(f"The largest entry of X is {matrix.max():g}, whose exponential overflows; subtract a constant from X.")
    cone = ConditionallyPSD(np.ones(len(matrix)))
    tolerance = 1e-10 * len(matrix) * max(1.0, float(np.abs(matrix).max()))
    if not cone.contains(matrix, tolerance):
        validation.refuse(
            "X is not conditionally positive semidefinite, so exp(X) need not have nonnegative factors; solve for X first."
        )
    point = cone.project(matrix)
    half = Point(point.v, point.W[:, np.sum(point.W**2, axis=0) > tolerance])
    groups = np.zeros(len(matrix), dtype=np.intp)
    return HadamardExponential(half, half), groups, groups


def _solution_and_groups(solution: Solution) -> tuple[HadamardExponential, Groups, Groups]:
    """The ``exp(X)`` of a solution that is to be factored, and the component of each of its rows and columns."""
    point = solution.point
    if isinstance(point, MatrixPoint):
        validation.refuse(
            "The X of a sparse problem is no logarithm but the fitted matrix itself; use cvxnmf.factor_rank_two for its rank "
            "two, or factor the logarithm of X."
        )
    groups = np.zeros(len(point.v), dtype=np.intp) if solution.groups is None else solution.groups.copy()
    groups[np.isneginf(point.v)] = -1
    target = HadamardExponential(*point._replace(v=np.where(groups < 0, 0.0, point.v)).halves())
    if target.symmetric:
        return target, groups, groups
    m, _ = target.shape
    return target, groups[:m], groups[m:]


def _components(row_groups: Groups, column_groups: Groups) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows and columns of every component of ``exp(X)`` that has both."""
    for group in np.intersect1d(row_groups, column_groups):
        if group >= 0:
            yield np.flatnonzero(row_groups == group), np.flatnonzero(column_groups == group)


def _block_columns(n: int, parts: list[tuple[NDArray[np.intp], FloatArray]]) -> FloatArray:
    """The nonnegative features of all components side by side, with zeros outside the rows of each."""
    if len(parts) == 1 and len(parts[0][0]) == n:
        return parts[0][1]
    stacked, first = np.zeros((n, sum(features.shape[1] for _, features in parts))), 0
    for nodes, features in parts:
        stacked[nodes, first : first + features.shape[1]] = features
        first += features.shape[1]
    return stacked
