"""Rules for ``A ≈ UU'``: multiplicative, exact coordinate descent, least squares in row chunks, expectation maximisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compiled, inlined
from cvxnmf.nmf.losses import NEGLIGIBLE_ENTRY, DivergenceObjective, QuadraticObjective
from cvxnmf.nmf.storage import ChunkedProducts, Products, Storage
from cvxnmf.nmf.updates.hals import HALS

#: Sweeps over the rows for the direction of least squares.
DIRECTION_SWEEPS = 4
#: Imaginary parts of roots up to this size are rounding.
REAL = 1e-9


class SymmetricTerms(NamedTuple):
    """The data of a symmetric update rule and the weights of both penalties, which fall on one factor."""

    A: Products
    l1: float
    l2: float


#: ``rule(terms, U, share) -> U``; a rule may be asked for a smaller share of its step.
SymmetricRule = Callable[[SymmetricTerms, FloatArray, float], FloatArray]


def symmetric_multiplicative(terms: SymmetricTerms, U: FloatArray, share: float) -> FloatArray:
    """Ding, He & Simon: ``U * (1/2 + 1/2 (AU) / (UU'U))``, the share 1/2 made smaller where that should not descend."""
    A, l1, l2 = terms
    negative = A.times(U)
    positive = U @ (U.T @ U) + l1 / 4 + l2 / 2 * U
    new = U * (1.0 - share + share * negative / np.where(positive > 0, positive, np.finfo(np.float64).tiny))
    new[~np.isfinite(new)] = 0.0
    lift = NEGLIGIBLE_ENTRY * float(U.max())
    return np.where((new < lift) & (negative > positive), lift, new)


def symmetric_coordinates(terms: SymmetricTerms, U: FloatArray, share: float) -> FloatArray:
    """Exact minimisation of the squared error of UU' over one entry of U after the other."""
    A, l1, l2 = cast(tuple[Storage, float, float], terms)
    sweep: Any = symmetric_sweep_csr if A.sparse else symmetric_sweep_dense
    return np.asarray(sweep(*A.arrays, U, l1, l2))


def symmetric_least_squares(terms: SymmetricTerms, U: FloatArray, share: float) -> FloatArray:
    """The best point between U and nearly the minimiser X of ``||A - XU'||²`` over X >= 0, by one pass over row chunks.

    In X = U the gradient of that is half the one of ``||A - UU'||²``, so that ``D = X - U`` descends; along it the objective is a
    polynomial of degree 4 in the step, which ``AU``, ``AD`` and Gram matrices give. A pass is for ``AD``; ``A (U + tD)`` follows.
    """
    A, l1, l2 = cast(tuple[ChunkedProducts, float, float], terms)
    product = A.times(U)
    X = HALS(DIRECTION_SWEEPS).update(QuadraticObjective(product.copy(), U.T @ U, l1 / 2, l2 / 2, 0.0), U)
    D = X - U
    image = A.matrix @ D
    step = _best_step(np.append(_quartic(U, D, product, image) + _penalties(U, D, l1, l2), 0.0))
    new = np.maximum(U + step * D, 0.0)
    A.remember(new, product + step * image)
    return new


def _quartic(U: FloatArray, D: FloatArray, AU: FloatArray, AD: FloatArray) -> FloatArray:
    """The quartic ``||A - (U + tD)(U + tD)'||²`` of a symmetric step less its value at t = 0: coefficients of t⁴ to t."""
    G, cross, H = U.T @ U, U.T @ D, D.T @ D
    L = cross + cross.T
    terms = np.vdot(H, H), 2 * np.vdot(L, H), np.vdot(L, L) + 2 * np.vdot(G, H) - 2 * np.vdot(AD, D)
    return np.array([*terms, 2 * np.vdot(G, L) - 4 * np.vdot(AU, D)])


def _penalties(U: FloatArray, D: FloatArray, l1: float, l2: float) -> FloatArray:
    """The coefficients of t⁴ to t of the penalties on the symmetric factor U + tD."""
    return np.array([0.0, 0.0, l2 * np.vdot(D, D), l1 * D.sum() + 2 * l2 * np.vdot(U, D)])


def _best_step(polynomial: FloatArray) -> float:
    """The best symmetric step: the minimiser of a polynomial from 0 to 1."""
    roots = np.roots(np.polyder(polynomial))
    inside = [float(root.real) for root in roots if abs(root.imag) <= REAL and 0.0 < root.real < 1.0]
    return min([0.0, 1.0, *inside], key=lambda t: float(np.polyval(polynomial, t)))


def symmetric_expectation(terms: SymmetricTerms, U: FloatArray, share: float) -> FloatArray:
    """Expectation maximisation: ``n_il = U_il ((A / UU') U)_il``, ``U_il = n_il / sqrt(sum_i n_il)``.

    With penalties ``(sum_i u_il)²`` is bounded by ``S sum_i u_il² / U_il``, S the sum so far, and the minimiser is a root of a
    quadratic.
    """
    A, l1, l2 = terms
    negative, positive = DivergenceObjective(cast(Storage, A), U, 0.0, 0.0, 0.0).gradient_parts(U)
    counts = U * negative
    if l1 or l2:
        square = positive / U + l2
        new = (np.sqrt(l1 * l1 + 16.0 * square * counts) - l1) / (4.0 * square)
    else:
        new = counts / np.sqrt(np.maximum(counts.sum(axis=0), np.finfo(np.float64).tiny))
    return np.asarray(np.maximum(new, NEGLIGIBLE_ENTRY * new.max()))


@inlined
def _largest_root(s: float, b: float) -> float:
    """Exact symmetric coordinate: the x >= 0 of least ``x^4/4 + s x^2/2 - b x``, largest root of ``x^3 + s x - b``, or 0."""
    third, half = s / 3.0, b / 2.0
    discriminant = half * half + third * third * third
    if discriminant >= 0.0:
        root = np.sqrt(discriminant)
        big = np.cbrt(half + root if half >= 0.0 else half - root)
        x = big - third / big if big != 0.0 else 0.0
    else:
        radius = np.sqrt(-third)
        x = 2.0 * radius * np.cos(np.arccos(max(-1.0, min(1.0, half / (radius * radius * radius)))) / 3.0)
    if x <= 0.0:
        return 0.0
    for _ in range(2):
        slope = 3.0 * x * x + s
        if slope > 0.0:
            x -= ((x * x + s) * x - b) / slope
    if x <= 0.0 or ((0.25 * x * x + 0.5 * s) * x - b) * x >= 0.0:
        return 0.0
    return x


@inlined
def _symmetric_row(u: Any, G: Any, p: Any, diagonal: float, l1: float, l2: float) -> None:
    """Exact minimisation over one coordinate of a row u after the other; ``G = U'U`` follows, ``p = (AU)_i - A_ii u``."""
    k = len(u)
    norm = 0.0
    for r in range(k):
        norm += u[r] * u[r]
    for r in range(k):
        old = u[r]
        others = norm - old * old
        cross = 0.0
        for c in range(k):
            cross += u[c] * G[c, r]
        cross -= old * G[r, r] + old * others
        new = _largest_root(G[r, r] - old * old + others - diagonal + l2 / 2.0, p[r] - cross - l1 / 4.0)
        delta = new - old
        if delta != 0.0:
            for c in range(k):
                if c != r:
                    G[c, r] += delta * u[c]
                    G[r, c] = G[c, r]
            G[r, r] += new * new - old * old
            norm += new * new - old * old
            u[r] = new


@compiled
def symmetric_sweep_dense(A: Any, U: Any, l1: float, l2: float) -> Any:
    """One sweep of exact coordinate descent on ``||A - UU'||^2 + l1 sum U + l2 ||U||^2``; a new array."""
    n, k = U.shape
    X = U.copy()
    G, p = X.T @ X, np.empty(k)
    for i in range(n):
        p[:] = 0.0
        for j in range(n):
            a = A[i, j]
            if j != i and a != 0.0:
                for r in range(k):
                    p[r] += a * X[j, r]
        _symmetric_row(X[i], G, p, A[i, i], l1, l2)
    return X


@compiled
def symmetric_sweep_csr(indptr: Any, indices: Any, data: Any, U: Any, l1: float, l2: float) -> Any:
    """One sweep of exact coordinate descent on ``||A - UU'||²`` for a sparse symmetric A in compressed rows."""
    n, k = U.shape
    X = U.copy()
    G, p = X.T @ X, np.empty(k)
    for i in range(n):
        p[:] = 0.0
        diagonal = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j, a = indices[e], data[e]
            if j == i:
                diagonal = a
            else:
                for r in range(k):
                    p[r] += a * X[j, r]
        _symmetric_row(X[i], G, p, diagonal, l1, l2)
    return X
