"""Update rules: a half and a factor to a better factor; one small class per method."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf import kernels
from cvxnmf.nmf.objectives import TINY, Entropy, Half, Quadratic


class Rule(Protocol):
    """One update of one factor."""

    def update(self, half: Any, X: FloatArray) -> FloatArray:
        """A new factor at which the half is not larger."""


class Multiplicative:
    """Lee & Seung: ``X * negative / positive`` part of the gradient; entries near zero that want to leave are lifted."""

    def update(self, half: Half, X: FloatArray) -> FloatArray:
        """One multiplication."""
        negative, positive = half.ratio(X)
        lift = _lift(half, X)
        new = X * (negative / np.where(positive > 0, positive, np.finfo(np.float64).tiny))
        new[~np.isfinite(new)] = 0.0
        return np.where((new < lift) & (negative > positive), lift, new)


class Gradient:
    """Projected gradient; the step is the last one doubled, then halved until the half has fallen enough."""

    def __init__(self, steps: int = 4, enough: float = 0.01) -> None:
        self.steps, self.enough, self.length = steps, enough, 0.0

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """On the nonnegative factors; near zero counts as zero."""
        return np.maximum(new, 0.0)

    def update(self, half: Half, X: FloatArray) -> FloatArray:
        """A few steps."""
        value = half.value(X)
        for _ in range(self.steps):
            G = half.gradient(X)
            size = float(np.linalg.norm(G))
            if not size > 0:
                break
            length = 2.0 * self.length or float(np.linalg.norm(X)) / size
            for _ in range(60):
                new = self.project(X - length * G, X)
                new_value = half.value(new)
                if new_value < value and new_value <= value + self.enough * float(np.vdot(G, new - X)):
                    X, value, self.length = new, new_value, length
                    break
                length /= 2.0
            else:
                break
        return X


class PositiveGradient(Gradient):
    """The same for Kullback-Leibler, which must not reach zero: an entry falls to a tenth at most."""

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """Off zero."""
        return np.asarray(np.maximum(np.maximum(new, X / 10.0), TINY * X.max()))


class Sparseness(Gradient):
    """Hoyer: a gradient step, then every column on the set of its sparseness, its norm kept if `keep`."""

    def __init__(self, sparseness: float, keep: bool) -> None:
        super().__init__(steps=1, enough=0.0)
        self.sparseness, self.keep = sparseness, keep

    def project(self, new: FloatArray, X: FloatArray) -> FloatArray:
        """Column by column."""
        norms = np.linalg.norm(X if self.keep else new, axis=0)
        return np.stack([_with_sparseness(x, self.sparseness, float(norm)) for x, norm in zip(new.T, norms, strict=True)], axis=1)

    def update(self, half: Half, X: FloatArray) -> FloatArray:
        """One step that lowers the half; the set is not convex, so any decrease is taken."""
        value, G = half.value(X), half.gradient(X)
        length = 2.0 * self.length or float(np.linalg.norm(X)) / max(float(np.linalg.norm(G)), np.finfo(np.float64).tiny)
        for _ in range(60):
            new = self.project(X - length * G, X)
            if half.value(new) < value:
                self.length = length
                return new
            length /= 2.0
        return X


def _with_sparseness(x: FloatArray, sparseness: float, norm: float) -> FloatArray:
    """The nearest nonnegative vector of this norm and sparseness (Hoyer 2004).

    Project on the plane of the sum, move along it to the sphere, drop what is negative, again.
    """
    n = len(x)
    if not norm > 0 or n == 1:
        return np.maximum(x, 0.0)
    total = norm * (np.sqrt(n) - sparseness * (np.sqrt(n) - 1.0))
    free = np.ones(n, dtype=bool)
    y = x + (total - x.sum()) / n
    while True:
        count = int(free.sum())
        middle = np.where(free, total / count, 0.0)
        away = np.where(free, y - middle, 0.0)
        room = max(0.0, norm**2 - total**2 / count)
        size = float(away @ away)
        if size <= 1e-30 * norm**2 and room > 0:  # all equal: any direction in the plane is as near
            away = np.where(free, -1.0 / count, 0.0)
            away[int(np.argmax(np.where(free, x, -np.inf)))] += 1.0
            size = float(away @ away)
        y = middle + np.sqrt(room / size) * away if size > 0 else middle
        negative = y < 0
        if not negative.any():
            return y
        free &= ~negative
        y = np.where(free, y, 0.0)
        y = np.where(free, y + (total - y.sum()) / int(free.sum()), 0.0)


class Hals:
    """Coordinate descent: columns one after the other, in up to `sweeps` sweeps per row."""

    def __init__(self, sweeps: int = 1) -> None:
        self.sweeps = sweeps

    def update(self, half: Quadratic, X: FloatArray) -> FloatArray:
        """Sweep."""
        return np.asarray(kernels.hals_sweeps(X, half.P, half.Q, self.sweeps))


class Newton:
    """Kullback-Leibler coordinate by coordinate, a scalar Newton step each; `count`: with the value.

    A step may pass the minimum on its way down, so that the caller has to look at the value.
    """

    def __init__(self, count: bool) -> None:
        self.count = count

    def update(self, half: Entropy, X: FloatArray) -> FloatArray:
        """One pass over the coordinates."""
        S, extra, lift = half.sums + half.l1, 2.0 * half.l2, _lift(half, X)
        if sp.issparse(half.A):
            new, total = kernels.kl_newton_csr(half.A.indptr, half.A.indices, half.A.data, X, half.V, S, extra, lift, self.count)
        else:
            new, total = kernels.kl_newton_dense(half.A, X, np.ascontiguousarray(half.V.T), S, extra, lift, self.count)
        if self.count:
            half.logarithms = new, total
        return np.asarray(new)


class LeastSquares:
    """The half's exact minimiser, by block principal pivoting (Kim & Park); rows with one passive set share a factorisation."""

    def update(self, half: Quadratic, X: FloatArray) -> FloatArray:
        """Exchange all infeasible variables of a row at once, or only the last one when that does not help."""
        P, Q = half.P, half.Q
        m, k = P.shape
        ridge = max(1e-14 * float(np.trace(Q)) / k, np.finfo(np.float64).tiny)
        passive = X > 0
        new, dual = self._solve(P, Q, passive, ridge)
        best, patience = np.full(m, k + 1), np.full(m, 3)
        size = np.abs(P).max(axis=1, keepdims=True) * 1e-12
        for _ in range(5 * k + 20):
            wrong = (passive & (new < 0)) | (~passive & (dual < -size))
            count = wrong.sum(axis=1)
            rows = np.flatnonzero(count)
            if not len(rows):
                break
            better = count[rows] < best[rows]
            best[rows] = np.minimum(best[rows], count[rows])
            patience[rows] = np.where(better, 3, patience[rows] - 1)
            flip = wrong[rows]
            single = patience[rows] < 0
            last = k - 1 - np.argmax(flip[:, ::-1], axis=1)
            flip[single] = np.arange(k) == last[single, None]
            passive[rows] ^= flip
            new[rows], dual[rows] = self._solve(P[rows], Q, passive[rows], ridge)
        new = np.maximum(new, 0.0)
        worse = ~(_row_values(half, new) <= _row_values(half, X))
        new[worse] = X[worse]
        return new

    @staticmethod
    def _solve(P: FloatArray, Q: FloatArray, passive: NDArray[np.bool_], ridge: float) -> tuple[FloatArray, FloatArray]:
        """Primal and dual variables of all rows, rows grouped by their passive sets."""
        _, group = np.unique(np.packbits(passive, axis=1), axis=0, return_inverse=True)
        group = group.ravel()
        order = np.argsort(group, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(group))])
        X = kernels.solve_groups(Q, P, passive, order, bounds, ridge)
        return X, np.where(passive, 0.0, X @ Q - P)


class QuasiNewton:
    """Zdunek & Cichocki: ``X - t G (Q + lambda I)^-1`` projected, zeros that stay left out, t by row; or a gradient step."""

    def __init__(self, steps: int = 2, regularisation: float = 1e-3) -> None:
        self.steps, self.regularisation = steps, regularisation

    def update(self, half: Quadratic, X: FloatArray) -> FloatArray:
        """A few steps."""
        Q, k = half.Q, len(half.Q)
        curvature = float(np.trace(Q))
        if not curvature > 0:
            return X
        factor = sl.cho_factor(Q + self.regularisation * curvature / k * np.eye(k), check_finite=False)
        for _ in range(self.steps):
            G = X @ Q - half.P
            G[(X <= 0) & (G > 0)] = 0.0
            step = sl.cho_solve(factor, G.T, check_finite=False).T
            best = np.maximum(X - G / curvature, 0.0)  # the trace bounds the largest eigenvalue: always a descent
            values = _row_values(half, best)
            for t in (1.0, 0.5, 0.25, 0.1):
                new = np.maximum(X - t * step, 0.0)
                new_values = _row_values(half, new)
                better = new_values < values
                best[better], values[better] = new[better], new_values[better]
            X = best
        return X


def _lift(half: Half, X: FloatArray) -> float:
    """What entries near zero are lifted to, in units of the whole factor."""
    return TINY * (float(X.max()) if half.top is None else half.top)


def _row_values(half: Quadratic, X: FloatArray) -> FloatArray:
    """The half row by row, without its constant."""
    return np.asarray(np.einsum("ij,ij->i", X, X @ half.Q - 2.0 * half.P))
