"""The paper's nonnegative factors: every direction shifted to be nonnegative, Taylor's series, all products of their terms."""

from __future__ import annotations

from functools import reduce as fold

import numpy as np
from scipy.special import gammaln

from cvxnmf.cp.hadamard_exponential import Features, HadamardExponential, map_halves, refuse_columns
from cvxnmf.linalg.arrays import FloatArray


def series_features(target: HadamardExponential, tol: float, max_columns: int) -> Features:
    """The paper's chain: ``exp(x_i y_j) = sum_p x_i^p y_j^p / p!`` for each shifted column, all products of the terms.

    Columns w and z are shifted to ``x = w + s >= 0`` and ``y = z + t >= 0``: ``w z = x y - t x - s y + s t``, whose last
    terms are log-scalings. Cut after P terms, the relative error is the probability that a Poisson variable of mean
    ``x_i y_j`` reaches P.
    """
    columns = zip(*map_halves(lambda half: list(half.W.T), target), strict=True)
    return multiply_features(target, [_taylor(w, z, tol / target.rank) for w, z in columns], max_columns)


def _taylor(w: FloatArray, z: FloatArray, tol: float) -> Features:
    """Nonnegative Taylor features of ``exp(w_i z_j)``, w and z both negated if that takes fewer terms."""
    both = min(((w, z), map_halves(np.negative, (w, z))), key=_largest_product)
    s, t = map_halves(_shift, both)
    from scipy.stats import poisson  # takes a quarter of a second to import

    terms = int(poisson.isf(tol, _largest_product(both))) + 1
    left = _powers(both[0], s, t, terms)
    return Features(left, left if z is w else _powers(both[1], t, s, terms))


def _shift(column: FloatArray) -> float:
    """The shift that makes a column of the series nonnegative."""
    return max(0.0, -float(column.min()))


def _largest_product(columns: tuple[FloatArray, FloatArray]) -> float:
    """Largest product of two entries, one of either column, once both are shifted for the series."""
    x, y = map_halves(lambda column: float(column.max()) + _shift(column), columns)
    return x * y


def _powers(column: FloatArray, own: float, across: float, terms: int) -> FloatArray:
    """Terms ``x^p / sqrt(p!)`` of the series for ``x = column + own``, times the scalings that both shifts cost."""
    x, powers = column + own, np.arange(terms)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(powers[None, :] == 0, 0.0, powers[None, :] * np.log(x)[:, None])
    scalings = 0.5 * own * across - across * x
    return np.asarray(np.exp(logs - 0.5 * gammaln(powers + 1.0)[None, :] + scalings[:, None]))


def multiply_features(target: HadamardExponential, pieces: list[Features], max_columns: int) -> Features:
    """All products of one column from every piece of the series, times the scalings ``exp(v)``."""
    columns = int(np.prod([float(piece.columns) for piece in pieces]))
    if columns > max_columns:
        refuse_columns(columns, max_columns)

    def chain(v: FloatArray, halves: list[FloatArray]) -> FloatArray:
        start = np.exp(v)[:, None]
        return fold(lambda done, piece: (done[:, :, None] * piece[:, None, :]).reshape(len(v), -1), halves, start)

    left = chain(target.left.v, [piece.left for piece in pieces])
    return Features(left, left if target.symmetric else chain(target.right.v, [piece.right for piece in pieces]))
