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
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.convex.cones import ConditionallyPSD
from cvxnmf.cp.lattice import LARGEST_GRID_RANK, lattice_features
from cvxnmf.cp.pairs import Pairs, Rows, centred, measured_errors
from cvxnmf.cp.rank_two import factor_rank_two, rank_two_features, turned_into_orthant
from cvxnmf.cp.reduction import caratheodory_columns, weighted_columns
from cvxnmf.cp.series import series_features
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import CPFactor, MatrixPoint, PairedPoint, Solution

__all__ = ["exp_factor", "factor_rank_two", "turned_into_orthant"]


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
        pairs = centred(whole.restricted(rows, columns))
        by_entry = by_entry and (method != "lattice" or pairs.rank <= LARGEST_GRID_RANK)
        features = FEATURES[method](pairs, tol, max_columns)
        if reduce is not None:
            features = REDUCTIONS[reduce](pairs, features)
        errors.append(measured_errors(pairs, features))
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


FEATURES = {"lattice": lattice_features, "series": series_features, "rank-two": rank_two_features}
REDUCTIONS = {"weights": weighted_columns, "caratheodory": caratheodory_columns}
