"""Codes of rows for fixed components under a beta divergence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.row_chunks import row_chunks
from cvxnmf.nmf.beta_divergence import BetaDivergence
from cvxnmf.nmf.beta_kernels import SMALLEST_MODEL, row_values
from cvxnmf.nmf.row_newton import solve_rows

#: Numbers that work on a chunk of rows may hold at once.
BUDGET = 1 << 21
#: Smallest eigenvalue, at unit diagonal, from which a Hessian counts as positive definite.
POSITIVE = 1e-3
#: Codes up to this size, which sum to about one, are at their bound if the slope keeps them there.
BOUND = 1e-3


def beta_codes(X: Any, H: FloatArray, beta: float, l1: float, l2: float, start: FloatArray | None) -> FloatArray:
    """Codes W >= 0 of a beta divergence that minimise ``d(X, WH) + l1 sum(W) + l2 ||W||²``, each row on its own.

    X has NaN for missing entries, which weigh 0, or is sparse.
    Components are scaled to the mean one and rows to the same by their weighted mean, by which codes sum to about one.
    """
    (m, n), k = X.shape, len(H)
    means = np.where(H.any(axis=1), H.mean(axis=1), 1.0)
    W = np.zeros((m, k))
    for rows in row_chunks(m, k * n, BUDGET):
        x = np.asarray(X[rows].toarray() if sp.issparse(X) else X[rows], dtype=np.float64)
        weights = np.where(np.isnan(x), 0.0, 1.0)
        x = np.where(weights > 0, x, 1.0)
        count = weights.sum(axis=1)
        alive = (weights * x).sum(axis=1) > 0
        if not alive.any():
            continue
        x, weights, count = x[alive], weights[alive], count[alive]
        height = ((weights * x).sum(axis=1) / count)[:, None]
        size = height**beta * count[:, None]
        problem = _ScaledRows(
            x / height,
            weights / count[:, None],
            (H / means[:, None]).T,
            l1 * height / (size * means),
            l2 * height**2 / (size * means**2),
            beta,
        )
        begin = None if start is None else start[rows][alive] * means / height
        W[np.arange(m)[rows][alive]] = solve_rows(problem, begin) * height / means
    return W


class _ScaledRows(NamedTuple):
    """Rows of ``min sum weights d(x, Gw) + sum(linear w) + sum(square w²)`` over ``w >= 0``; G of shape (entries, k)."""

    x: FloatArray
    weights: FloatArray
    G: FloatArray
    linear: FloatArray
    square: FloatArray
    beta: float

    @property
    def stationary(self) -> float:
        """To rounding where the curvature is the Hessian; else steps converge linearly, and the loss no longer sees the rest."""
        return 1e-11 if 1.0 <= self.beta <= 2.0 else 1e-7

    def of(self, rows: Any) -> _ScaledRows:
        """The scaled encoding problems of some of the rows under a beta divergence."""
        return _ScaledRows(self.x[rows], self.weights[rows], self.G, self.linear[rows], self.square[rows], self.beta)

    def even_codes(self) -> FloatArray:
        """Equal codes to start the encoding under a beta divergence."""
        return np.full((len(self.x), self.G.shape[1]), 1.0 / self.G.shape[1])

    def model(self, w: FloatArray) -> FloatArray:
        """The model ``Gw`` of codes under a beta divergence, kept off zero."""
        return np.maximum(w @ self.G.T, SMALLEST_MODEL)

    def value(self, w: FloatArray) -> FloatArray:
        """The beta divergence of the codes of each row with penalties, without what codes cannot change."""
        e = self.model(w)
        parts = row_values(self.x, self.weights, BetaDivergence("", self.beta).dear_powers(e), e, self.beta)
        return np.asarray(parts + ((self.linear + self.square * w) * w).sum(axis=1))

    def slope_and_curvature(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient of codes under a beta divergence, and the Hessian where it is positive definite, else its mean."""
        e = self.model(w)
        p = self.weights * e ** (self.beta - 2.0)
        slope = (p * (e - self.x)) @ self.G + self.linear + 2.0 * self.square * w
        exact = p * ((self.beta - 1.0) + (2.0 - self.beta) * self.x / e)
        curvature = (exact[:, None, :] * self.G.T) @ self.G
        if not 1.0 <= self.beta <= 2.0:
            diagonal = np.sqrt(np.maximum(np.einsum("rii->ri", curvature), 1e-300))
            free = ((w > BOUND) | (slope <= 0)) / diagonal  # the others are held at zero, or soon will be
            scaled = np.where(np.eye(w.shape[1], dtype=bool), 1.0, curvature * (free[:, :, None] * free[:, None, :]))
            unusable = (diagonal.min(axis=1) <= 1e-150) | ~np.isfinite(scaled).all(axis=(1, 2))
            indefinite = unusable | (np.linalg.eigvalsh(np.where(unusable[:, None, None], 0.0, scaled))[:, 0] < POSITIVE)
            curvature[indefinite] = (p[indefinite, None, :] * self.G.T) @ self.G
        return np.asarray(slope), curvature + (2.0 * self.square)[:, :, None] * np.eye(w.shape[1])

    def multiply(self, w: FloatArray) -> FloatArray:
        """The monotone multiplicative step of codes under a beta divergence."""
        e = self.model(w)
        p = self.weights * e ** (self.beta - 2.0)
        positive = (p * e) @ self.G + self.linear + 2.0 * self.square * w
        ratio = ((p * self.x) @ self.G) / np.where(positive > 0, positive, np.finfo(np.float64).tiny)
        return np.asarray(w * ratio ** BetaDivergence("", self.beta).exponent)
