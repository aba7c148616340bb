"""Compiled inner loops of the rank-k methods; one thread, same input same bits.

Every loop over a row of the data or a block of rows is written so that the innermost loop runs over contiguous memory. Error
model "numpy" lets divisions run in SIMD lanes; callers keep the divisors away from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

#: Rows of a factor that are swept together; four cache lines of doubles per component.
BLOCK = 32
#: A row has settled when a sweep changes it by less than this share of the first sweep's change.
SETTLED = 0.01

Loop = TypeVar("Loop", bound=Callable[..., Any])
#: Without the interpreter's lock, so that blocks of data can be worked on in threads.
_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}


def _compiled(function: Loop) -> Loop:
    """Compile when first called, and keep the result on disk."""
    return cast(Loop, njit(**_OPTIONS)(function))


def _inlined(function: Loop) -> Loop:
    """Compile as a part of the caller."""
    return cast(Loop, njit(**_OPTIONS, inline="always")(function))


# Squared error -------------------------------------------------------------------------------------------------------------


@_compiled
def hals_sweeps(X: Any, P: Any, Q: Any, sweeps: int, settled: float = SETTLED) -> Any:
    """Cyclic coordinate descent on ``<XQ, X>/2 - <P, X>`` over X >= 0, rows in blocks; a new array.

    Each sweep minimises over one column after the other, ``x_l <- (x_l + (p_l - X q_l) / Q_ll)_+``. A block of rows is swept
    until every row has settled, `sweeps` times at most; a row has when a sweep changes it by less than the share `settled` of
    the first, and then it stays, so that no row depends on its neighbours. Columns with ``Q_ll = 0`` stay.
    """
    m, k = X.shape
    result = np.empty_like(X)
    x, p = np.empty((k, BLOCK)), np.empty((k, BLOCK))
    slope, change, limit, active = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, m, BLOCK):
        size = min(BLOCK, m - first)
        x[:, size:] = 0.0
        p[:, size:] = 0.0
        for i in range(size):
            for r in range(k):
                x[r, i] = X[first + i, r]
                p[r, i] = P[first + i, r]
        active[:] = 1.0
        for sweep in range(sweeps):
            change[:] = 0.0
            for r in range(k):
                if Q[r, r] <= 0.0:
                    continue
                for i in range(BLOCK):
                    slope[i] = p[r, i]
                s = 0
                while s + 3 < k:
                    q0, q1, q2, q3 = Q[r, s], Q[r, s + 1], Q[r, s + 2], Q[r, s + 3]
                    for i in range(BLOCK):
                        slope[i] -= (q0 * x[s, i] + q1 * x[s + 1, i]) + (q2 * x[s + 2, i] + q3 * x[s + 3, i])
                    s += 4
                while s < k:
                    q0 = Q[r, s]
                    for i in range(BLOCK):
                        slope[i] -= q0 * x[s, i]
                    s += 1
                inverse = 1.0 / Q[r, r]
                for i in range(BLOCK):
                    new = max(0.0, x[r, i] + active[i] * (slope[i] * inverse))
                    moved = new - x[r, i]
                    change[i] += moved * moved
                    x[r, i] = new
            if sweep == 0:
                for i in range(BLOCK):
                    limit[i] = settled * settled * change[i]
            moving = 0.0
            for i in range(BLOCK):
                active[i] = 1.0 if change[i] > limit[i] else 0.0
                moving += active[i]
            if moving == 0.0:
                break
        for i in range(size):
            for r in range(k):
                result[first + i, r] = x[r, i]
    return result


@_compiled
def thin_product(A: Any, H: Any) -> Any:
    """``A H'`` for H with at most four rows, in one pass over A; library products are slow at such shapes."""
    m, n = A.shape
    k = H.shape[0]
    result = np.empty((m, k))
    h0, h1, h2, h3 = H[0], H[min(1, k - 1)], H[min(2, k - 1)], H[min(3, k - 1)]
    for i in range(m):
        a = A[i]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        if k == 4:
            for j in range(n):
                s0 += a[j] * h0[j]
                s1 += a[j] * h1[j]
                s2 += a[j] * h2[j]
                s3 += a[j] * h3[j]
        elif k == 3:
            for j in range(n):
                s0 += a[j] * h0[j]
                s1 += a[j] * h1[j]
                s2 += a[j] * h2[j]
        else:
            for j in range(n):
                s0 += a[j] * h0[j]
                s1 += a[j] * h1[j]
        result[i, 0] = s0
        if k > 1:
            result[i, 1] = s1
        if k > 2:
            result[i, 2] = s2
        if k > 3:
            result[i, 3] = s3
    return result


@_compiled
def entries(rows: Any, columns: Any, U: Any, V: Any) -> Any:
    """``(UV')_ij`` at the listed places."""
    result = np.empty(len(rows))
    for e in range(len(rows)):
        u, v = U[rows[e]], V[columns[e]]
        total = 0.0
        for r in range(U.shape[1]):
            total += u[r] * v[r]
        result[e] = total
    return result


@_compiled
def solve_groups(Q: Any, P: Any, passive: Any, order: Any, bounds: Any, ridge: float) -> Any:
    """Rows x of X with ``x_F = Q_FF^-1 p_F``, zero elsewhere, F the row's passive set.

    Rows ``order[bounds[g]:bounds[g + 1]]`` share one passive set, whose Cholesky factor is computed once.
    """
    m, k = P.shape
    X = np.zeros((m, k))
    L, free, y = np.empty((k, k)), np.empty(k, np.int64), np.empty(k)
    for g in range(len(bounds) - 1):
        leader, f = order[bounds[g]], 0
        for r in range(k):
            if passive[leader, r]:
                free[f] = r
                f += 1
        for a in range(f):
            for b in range(a + 1):
                total = Q[free[a], free[b]]
                for c in range(b):
                    total -= L[a, c] * L[b, c]
                if a == b:
                    L[a, a] = np.sqrt(max(total, 0.0) + ridge)
                else:
                    L[a, b] = total / L[b, b]
        for e in range(bounds[g], bounds[g + 1]):
            i = order[e]
            for a in range(f):
                total = P[i, free[a]]
                for c in range(a):
                    total -= L[a, c] * y[c]
                y[a] = total / L[a, a]
            for a in range(f - 1, -1, -1):
                total = y[a]
                for c in range(a + 1, f):
                    total -= L[c, a] * y[c]
                y[a] = total / L[a, a]
                X[i, free[a]] = y[a]
    return X


# Kullback-Leibler ----------------------------------------------------------------------------------------------------------


@_inlined
def _logarithms(w: Any, bits: Any, mantissa: Any, size: int) -> None:
    """Overwrite `mantissa` with ``log(w)``; `bits` is w seen as integers, `mantissa` is scratch of the same length.

    ``w = 2^e m`` with m in [0.7, 1.4], and ``log m = 2 artanh((m-1)/(m+1))`` by its series: 1e-15 relative to max(1, |log|).
    """
    scratch = mantissa.view(np.int64)
    for j in range(size):
        scratch[j] = ((bits[j] - 0x3FE6A09E667F3BCD) & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD
    for j in range(size):
        exponent = (bits[j] - 0x3FE6A09E667F3BCD) >> 52
        m = mantissa[j]
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        series = 1.0 / 17.0 + z / 19.0
        series = 1.0 / 13.0 + z * (1.0 / 15.0 + z * series)
        series = 1.0 / 9.0 + z * (1.0 / 11.0 + z * series)
        series = 1.0 / 5.0 + z * (1.0 / 7.0 + z * series)
        series = 1.0 + z * (1.0 / 3.0 + z * series)
        mantissa[j] = exponent * 0.6931471805599453 + 2.0 * s * series


@_inlined
def _newton_row(a: Any, H: Any, w: Any, u: Any, S: Any, extra: float, size: int, floor: float) -> None:
    """One pass over the coordinates of a row u: ``w = u H`` follows, `S` holds ``sum_j H_lj + l1``, `extra` is 2 l2.

    Newton's step on ``1/N(x) = 1/S`` with ``N = sum a h / w``: 1/N is concave, so the step never passes the minimum upwards.
    """
    k = len(u)
    for j in range(size):
        w[j] = 0.0
    for r in range(k):
        x = u[r]
        for j in range(size):
            w[j] += x * H[r, j]
    previous, delta = 0, 0.0
    for r in range(k):
        N, q = 0.0, 0.0
        for j in range(size):  # the last coordinate's move and this one's sums in one pass
            moved = w[j] + delta * H[previous, j]
            w[j] = moved
            share = H[r, j] / moved
            part = a[j] * share
            N += part
            q += part * share
        x, slope = u[r], S[r] + extra * u[r]
        if q > 0.0 and slope > 0.0:
            if extra > 0.0:
                new = x + (N - slope) / (q + extra) * (N / slope if N > slope else 1.0)
            else:
                new = x + (N / slope) * (N - slope) / q
        else:
            new = 0.1 * x if slope > 0.0 else x
        new = max(new, 0.1 * x, floor)
        delta, previous = new - x, r
        u[r] = new
    for j in range(size):
        w[j] += delta * H[previous, j]


@_compiled
def kl_newton_dense(A: Any, X: Any, H: Any, S: Any, extra: float, floor: float, count: bool) -> Any:
    """One pass of :func:`_newton_row` over all rows; the new X and, if `count`, ``sum A log(X H)`` there."""
    m, n = A.shape
    result = X.copy()
    w, logs = np.empty(n), np.empty(n)
    bits = w.view(np.int64)
    total = 0.0
    for i in range(m):
        a = A[i]
        _newton_row(a, H, w, result[i], S, extra, n, floor)
        if count:
            _logarithms(w, bits, logs, n)
            part = 0.0
            for j in range(n):
                part += a[j] * logs[j]
            total += part
    return result, total


@_compiled
def kl_newton_csr(indptr: Any, indices: Any, data: Any, X: Any, V: Any, S: Any, extra: float, floor: float, count: bool) -> Any:
    """The same over compressed rows: only nonzero entries have a say beside the sums S."""
    m, k = X.shape
    widest = 1
    for i in range(m):
        widest = max(widest, indptr[i + 1] - indptr[i])
    result = X.copy()
    w, logs, H = np.ones(widest), np.empty(widest), np.empty((k, widest))
    bits = w.view(np.int64)
    total = 0.0
    for i in range(m):
        first = indptr[i]
        size = indptr[i + 1] - first
        a = data[first : first + size]
        for j in range(size):
            v = V[indices[first + j]]
            for r in range(k):
                H[r, j] = v[r]
        _newton_row(a, H, w, result[i], S, extra, size, floor)
        if count:
            _logarithms(w, bits, logs, size)
            part = 0.0
            for j in range(size):
                part += a[j] * logs[j]
            total += part
    return result, total


@_compiled
def weighted_logarithms(A: Any, W: Any) -> float:
    """``sum A log W`` for two arrays of one shape."""
    m, n = A.shape
    w, logs = np.empty(n), np.empty(n)
    bits = w.view(np.int64)
    total = 0.0
    for i in range(m):
        for j in range(n):
            w[j] = W[i, j]
        _logarithms(w, bits, logs, n)
        part = 0.0
        for j in range(n):
            part += A[i, j] * logs[j]
        total += part
    return total


# Symmetric squared error -----------------------------------------------------------------------------------------------------


@_inlined
def _largest_root(s: float, b: float) -> float:
    """Minimiser over x >= 0 of ``x^4/4 + s x^2/2 - b x``: the largest root of ``x^3 + s x - b`` if it pays, else 0."""
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


@_inlined
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


@_compiled
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


@_compiled
def symmetric_sweep_csr(indptr: Any, indices: Any, data: Any, U: Any, l1: float, l2: float) -> Any:
    """The same for A in compressed rows."""
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
