"""Loops over the edges of a large graph, compiled, in threads that take fixed shares of the rows: same input, same bits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from cvxnmf import spectra
from cvxnmf.results import FloatArray

#: Below this many edges a single thread is faster.
ONE_THREAD_BELOW = 50_000


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def _in_shares(A: Any, work: Callable[[int, int], Any]) -> list[Any]:
    """Call ``work(first row, last row)`` for shares of about as many edges, one per thread."""
    threads = spectra.thread_count() if A.nnz >= ONE_THREAD_BELOW else 1
    if threads == 1:
        return [work(0, A.shape[0])]
    cuts = np.searchsorted(A.indptr, np.linspace(0, A.nnz, threads + 1)[1:-1]).tolist()
    bounds = [0, *cuts, A.shape[0]]
    return list(_pool(threads).map(work, bounds[:-1], bounds[1:]))


@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _product(indptr: Any, indices: Any, data: Any, X: Any, result: Any, first: int, last: int) -> None:
    k = X.shape[1]
    for i in range(first, last):
        row = result[i]
        for r in range(k):
            row[r] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            a, x = data[p], X[indices[p]]
            for r in range(k):
                row[r] += a * x[r]


def product(A: Any, X: FloatArray) -> FloatArray:
    """``A X`` for A in compressed rows."""
    if A.nnz < ONE_THREAD_BELOW:
        return np.asarray(A @ X)
    X = np.ascontiguousarray(X)
    result = np.empty((A.shape[0], X.shape[1]))
    _in_shares(A, lambda first, last: _product(A.indptr, A.indices, A.data, X, result, first, last))
    return result


@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _combination(
    indptr: Any,
    indices: Any,
    data: Any,
    e: Any,
    t: Any,
    X: Any,
    shift: float,
    scale: float,
    Y: Any,
    R: Any,
    first: int,
    last: int,
) -> None:
    k = X.shape[1]
    for i in range(first, last):
        row, own, other, x = R[i], X[i], Y[i], e[i]
        for r in range(k):
            row[r] = -x * t[r] - shift * own[r]
        for p in range(indptr[i], indptr[i + 1]):
            a, near = data[p], X[indices[p]]
            for r in range(k):
                row[r] += a * near[r]
        for r in range(k):
            row[r] = scale * row[r] - other[r]


class Residual:
    """``B = A - ee'`` as an operator: ``scale (B X - shift X) - Y`` in one pass over the edges.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Symmetric.
    e : ndarray of shape (n,)
        What is subtracted.
    """

    def __init__(self, A: Any, e: FloatArray) -> None:
        self.A, self.e, self.nothing = A, e, np.zeros((1, 1))

    def __call__(self, X: FloatArray, shift: float = 0.0, scale: float = 1.0, Y: FloatArray | None = None) -> FloatArray:
        """The combination; Y = 0 when left out."""
        X, result = np.ascontiguousarray(X), np.empty(X.shape)
        Y = np.broadcast_to(self.nothing, X.shape) if Y is None else np.ascontiguousarray(Y)
        A, e, t = self.A, self.e, self.e @ X

        def work(first: int, last: int) -> None:
            _combination(A.indptr, A.indices, A.data, e, t, X, shift, scale, Y, result, first, last)

        _in_shares(A, work)
        return result


@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _ratio_product(indptr: Any, indices: Any, data: Any, X: Any, V: Any, result: Any, first: int, last: int) -> float:
    k, total = X.shape[1], 0.0
    for i in range(first, last):
        row, x = result[i], X[i]
        for r in range(k):
            row[r] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            a, v = data[e], V[indices[e]]
            w = 0.0
            for r in range(k):
                w += x[r] * v[r]
            if a > 0.0:
                total += a * np.log(w)
                ratio = a / w
                for r in range(k):
                    row[r] += ratio * v[r]
    return total


def ratio_product(A: Any, X: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
    """``(A / XV') V`` over the nonzero entries of A, and ``sum A log(XV')``."""
    X, V = np.ascontiguousarray(X), np.ascontiguousarray(V)
    result = np.empty(X.shape)
    parts = _in_shares(A, lambda first, last: _ratio_product(A.indptr, A.indices, A.data, X, V, result, first, last))
    return result, float(sum(parts))


def leading_directions(
    A: Any, s: FloatArray, edge: float, count: int, heard: Callable[[int], Any] | None = None
) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues of ``S^-1 (A - dd'/1'd) S^-1`` and their vectors, exact only above `edge`."""
    degrees = np.asarray(A.sum(axis=1)).ravel()
    expected = degrees / s / np.sqrt(degrees.sum())
    inverse = sp.diags_array(1.0 / s)
    residual = Residual(sp.csr_array(inverse @ A @ inverse), expected)
    return spectra.pairs_above(residual, A.shape[0], edge, count, heard)


@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _shares(joined: Any, degrees: Any, logs: Any, costs: Any, prior: Any, before: Any, q: Any, first: int, last: int) -> float:
    k = len(logs)
    change = 0.0
    for i in range(first, last):
        top = -np.inf
        row, x, d = q[i], joined[i], degrees[i]
        for r in range(k):
            row[r] = x[r] * logs[r] - d * costs[r] + prior[r]
            top = max(top, row[r])
        total = 0.0
        for r in range(k):
            row[r] = np.exp(row[r] - top)
            total += row[r]
        total = 1.0 / total
        for r in range(k):
            row[r] *= total
            change += abs(row[r] - before[i, r])
    return change


def shares(
    A: Any, joined: FloatArray, degrees: FloatArray, logs: FloatArray, costs: FloatArray, prior: FloatArray, before: FloatArray
) -> tuple[FloatArray, float]:
    """Shares in proportion to ``exp(joined_ir logs_r - degrees_i costs_r + prior_r)``, and how much they differ from before."""
    q = np.empty_like(before)
    parts = _in_shares(A, lambda first, last: _shares(joined, degrees, logs, costs, prior, before, q, first, last))
    return q, float(sum(parts))


@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def greedy_moves(indptr: Any, indices: Any, data: Any, degrees: Any, labels: Any, logs: Any, excess: Any) -> int:
    """Give each node in turn the label of the highest ``sum_r logs_r edges_r - excess_r degrees_r^2``; how many moved.

    Edges and degrees are those inside clusters, in ordered pairs; no cluster is emptied. Labels are overwritten.
    """
    n, k = len(degrees), len(logs)
    joined, volume, sizes = np.zeros(k), np.zeros(k), np.zeros(k, np.int64)
    for i in range(n):
        volume[labels[i]] += degrees[i]
        sizes[labels[i]] += 1
    moved = 0
    for i in range(n):
        a = labels[i]
        if sizes[a] == 1 or degrees[i] == 0.0:
            continue
        joined[:] = 0.0
        loop, x = 0.0, degrees[i]
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] == i:
                loop += data[p]
            else:
                joined[labels[indices[p]]] += data[p]
        lost = logs[a] * (2.0 * joined[a] + loop) - excess[a] * x * (2.0 * volume[a] - x)
        gain, target = 1e-9 * (abs(lost) + 1e-300), a
        for b in range(k):
            if b != a:
                change = logs[b] * (2.0 * joined[b] + loop) - excess[b] * x * (2.0 * volume[b] + x) - lost
                if change > gain:
                    gain, target = change, b
        if target != a:
            labels[i] = target
            volume[a] -= x
            volume[target] += x
            sizes[a] -= 1
            sizes[target] += 1
            moved += 1
    return moved


def moves(A: Any, degrees: FloatArray, labels: NDArray[np.intp], logs: FloatArray, excess: FloatArray) -> int:
    """One pass of :func:`greedy_moves`; labels are overwritten."""
    return int(greedy_moves(A.indptr, A.indices, A.data, degrees, labels, logs, excess))
