"""The paper's series: shift, Taylor, products of all the pieces."""

from __future__ import annotations

from functools import reduce as fold

import numpy as np
from scipy.special import gammaln

from cvxnmf.cp.pairs import Features, Pairs, on_both, refuse_columns
from cvxnmf.linalg.arrays import FloatArray


def series_features(pairs: Pairs, tol: float, max_columns: int) -> Features:
    """The paper's chain: ``exp(x_i y_j) = sum_p x_i^p y_j^p / p!`` for each shifted column, all products of the terms.

    Columns w and z are shifted to ``x = w + s >= 0`` and ``y = z + t >= 0``: ``w z = x y - t x - s y + s t``, whose last
    terms are effects; cut after P terms the relative error is the chance that a Poisson variable of mean ``x_i y_j`` reaches P.
    """
    columns = zip(*on_both(lambda half: list(half.W.T), pairs), strict=True)
    return chained(pairs, [_taylor(w, z, tol / pairs.rank) for w, z in columns], max_columns)


def _taylor(w: FloatArray, z: FloatArray, tol: float) -> Features:
    """Nonnegative features of ``exp(w_i z_j)``, w and z turned round if that takes fewer terms."""
    both = min(((w, z), on_both(np.negative, (w, z))), key=_largest_product)
    s, t = on_both(_shift, both)
    from scipy.stats import poisson  # takes a quarter of a second to import

    terms = int(poisson.isf(tol, _largest_product(both))) + 1
    left = _powers(both[0], s, t, terms)
    return Features(left, left if z is w else _powers(both[1], t, s, terms))


def _shift(column: FloatArray) -> float:
    """What makes a column nonnegative."""
    return max(0.0, -float(column.min()))


def _largest_product(columns: tuple[FloatArray, FloatArray]) -> float:
    """Largest product of two entries, one of either column, once both are shifted."""
    x, y = on_both(lambda column: float(column.max()) + _shift(column), columns)
    return x * y


def _powers(column: FloatArray, own: float, across: float, terms: int) -> FloatArray:
    """``x^p / sqrt(p!)`` for ``x = column + own``, times the effects of both shifts."""
    x, powers = column + own, np.arange(terms)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(powers[None, :] == 0, 0.0, powers[None, :] * np.log(x)[:, None])
    effects = 0.5 * own * across - across * x
    return np.asarray(np.exp(logs - 0.5 * gammaln(powers + 1.0)[None, :] + effects[:, None]))


def chained(pairs: Pairs, pieces: list[Features], max_columns: int) -> Features:
    """All products of one column from every piece, times the effects."""
    columns = int(np.prod([float(piece.columns) for piece in pieces]))
    if columns > max_columns:
        refuse_columns(columns, max_columns)

    def chain(v: FloatArray, halves: list[FloatArray]) -> FloatArray:
        start = np.exp(v)[:, None]
        return fold(lambda done, piece: (done[:, :, None] * piece[:, None, :]).reshape(len(v), -1), halves, start)

    left = chain(pairs.left.v, [piece.left for piece in pieces])
    return Features(left, left if pairs.symmetric else chain(pairs.right.v, [piece.right for piece in pieces]))
