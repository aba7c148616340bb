"""Compiled loops of the beta divergences: powers of the model, parts of the gradient, and values, entry by entry.

All that a beta divergence asks for follows from ``p = e^(beta - 2)``: the parts ``a p`` and ``p e`` of its slope, and for beta
other than 0 and 1 the value ``p e (e / beta - a / (beta - 1))`` up to a constant. The usual powers (`CHEAP`) take roots and
products; all others are computed before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.compiled import compiled, inlined
from cvxnmf.linalg.logarithm import logarithms

#: Powers that need no logarithm, so that they can be taken anew for every coordinate.
CHEAP = frozenset({0.0, 0.5, 1.0, 1.5, 2.0, 3.0})
#: The model is kept above this, where its powers are finite.
SMALLEST_MODEL = 1e-60


@inlined
def model_powers(e: Any, inverse: Any, p: Any, beta: float, size: int) -> None:
    """Overwrite `inverse` with ``1 / e`` and p with ``e^(beta - 2)``, for one of the cheap powers."""
    for j in range(size):
        inverse[j] = 1.0 / e[j]
    if beta == 0.0:
        for j in range(size):
            p[j] = inverse[j] * inverse[j]
    elif beta == 1.0:
        for j in range(size):
            p[j] = inverse[j]
    elif beta == 2.0:
        for j in range(size):
            p[j] = 1.0
    elif beta == 0.5:
        for j in range(size):
            p[j] = inverse[j] * np.sqrt(inverse[j])
    elif beta == 1.5:
        for j in range(size):
            p[j] = np.sqrt(inverse[j])
    elif beta == 3.0:
        for j in range(size):
            p[j] = e[j]


@inlined
def row_value(a: Any, e: Any, p: Any, weights: Any, weighted: bool, beta: float, logs: Any, size: int) -> float:
    """The beta divergence of a row without what the model cannot change; p are the powers, times the weights if any."""
    total = 0.0
    if beta == 0.0 or beta == 1.0:
        logarithms(e, e.view(np.int64), logs, size)
        for j in range(size):
            part = a[j] / e[j] + logs[j] if beta == 0.0 else e[j] - a[j] * logs[j]
            total += weights[j] * part if weighted else part
    else:
        first, second = 1.0 / beta, 1.0 / (beta - 1.0)
        for j in range(size):
            total += p[j] * e[j] * (first * e[j] - second * a[j])
    return total


@inlined
def weighted_powers(e: Any, powers: Any, i: int, w: Any, weighted: bool, inverse: Any, p: Any, beta: float, size: int) -> None:
    """Overwrite p with ``w e^(beta - 2)`` of row i, from `powers` of the model where these are not cheap."""
    if len(powers) > 0:
        for j in range(size):
            p[j] = powers[i, j]
    else:
        model_powers(e, inverse, p, beta, size)
    if weighted:
        for j in range(size):
            p[j] *= w[j]


@compiled
def slope_parts(A: Any, weights: Any, powers: Any, E: Any, N: Any, beta: float) -> float:
    """Overwrite N with ``w a e^(beta - 2)`` and the model E with ``w e^(beta - 1)``; return the beta divergence of the rows.

    `powers` are ``e^(beta - 2)`` where they are not cheap, and empty otherwise.
    """
    m, n = A.shape
    weighted = len(weights) > 0
    p, inverse, logs, total = np.empty(n), np.empty(n), np.empty(n), 0.0
    for i in range(m):
        e, a, w = E[i], A[i], weights[i] if weighted else p
        weighted_powers(e, powers, i, w, weighted, inverse, p, beta, n)
        total += row_value(a, e, p, w, weighted, beta, logs, n)
        for j in range(n):
            N[i, j] = a[j] * p[j]
            e[j] *= p[j]
    return total


@compiled
def row_values(A: Any, weights: Any, powers: Any, E: Any, beta: float) -> Any:
    """The weighted beta divergence of each row from the powers of its model, in a compiled loop."""
    m, n = A.shape
    p, inverse, logs, values = np.empty(n), np.empty(n), np.empty(n), np.empty(m)
    for i in range(m):
        weighted_powers(E[i], powers, i, weights[i], True, inverse, p, beta, n)
        values[i] = row_value(A[i], E[i], p, weights[i], True, beta, logs, n)
    return values


@inlined
def coordinate_point(x: float, N: float, P: float, q: float, s: float, beta: float, floor: float) -> float:
    """Newton's step of a coordinate on ``P(x) / N(x) = 1``, P and N the parts of the slope, ``N' = -q`` and ``P' = s``.

    The quotient is linear in x where one component is all there is. The step goes at least as far as the monotone
    multiplicative one, and changes an entry tenfold at most.
    """
    if not (P > 0.0 and N > 0.0):
        return max(0.1 * x, floor)
    quotient = P / N
    exponent = 1.0 / (2.0 - beta) if beta < 1.0 else (1.0 / (beta - 1.0) if beta > 2.0 else 1.0)
    new = x / quotient if exponent == 1.0 else x * quotient ** (-exponent)
    slope = s / N + quotient * q / N
    if slope > 0.0:
        further = x + (1.0 - quotient) / slope
        new = max(new, further) if quotient < 1.0 else min(new, further)
    return max(min(new, 10.0 * x), 0.1 * x, floor)


@compiled
def coordinate_sweep(
    A: Any, weights: Any, result: Any, H: Any, beta: float, l1: float, l2: float, floor: float, count: bool
) -> float:
    """Compiled pass over the coordinates of every row of the result, ``A ≈ X H``, in a beta divergence; if `count`, its value."""
    m, n = A.shape
    k, weighted = result.shape[1], len(weights) > 0
    e, p, inverse, logs, total = np.empty(n), np.empty(n), np.empty(n), np.empty(n), 0.0
    for i in range(m):
        a, u, w = A[i], result[i], weights[i] if weighted else p
        e[:] = SMALLEST_MODEL
        for r in range(k):
            x = u[r]
            for j in range(n):
                e[j] += x * H[r, j]
        for r in range(k):
            h = H[r]
            model_powers(e, inverse, p, beta, n)
            if weighted:
                for j in range(n):
                    p[j] *= w[j]
            N, P, q, s = 0.0, 0.0, 0.0, 0.0
            for j in range(n):
                share = h[j] * p[j]
                part = a[j] * share
                N += part
                P += share * e[j]
                q += part * (h[j] * inverse[j])
                s += share * h[j]
            x = u[r]
            new = coordinate_point(x, N, P + l1 + 2.0 * l2 * x, (2.0 - beta) * q, (beta - 1.0) * s + 2.0 * l2, beta, floor)
            u[r], move = new, new - x
            for j in range(n):
                e[j] += move * h[j]
        if count:
            model_powers(e, inverse, p, beta, n)
            if weighted:
                for j in range(n):
                    p[j] *= w[j]
            total += row_value(a, e, p, w, weighted, beta, logs, n)
    return total
