"""Codes of data for fixed components: ``X ≈ WH``, W >= 0, a convex problem per row, solved to rounding.

Squared error by block principal pivoting on the normal equations, Kullback-Leibler and other beta divergences by multiplicative
steps and then Newton's method.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.chunked import ChunkedMatrix
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.nnls import nnls_rows
from cvxnmf.linalg.row_chunks import row_chunks
from cvxnmf.nmf.beta_encoding import beta_codes
from cvxnmf.nmf.loss_names import find_loss
from cvxnmf.nmf.row_newton import WELL_POSED, solve_rows
from cvxnmf.nmf.updates.hals import hals_sweeps

#: Numbers that work on a chunk of rows may hold at once, and beside a row chunk of large data.
BUDGET, SMALL_BUDGET = 1 << 21, 1 << 19
#: Sweeps of coordinate descent that guess which entries are positive.
SWEEPS = 12
#: Rounds of the proximal point method where they are not.
ROUNDS = 8


@functools.singledispatch
def encode(X: Any, H: Any, loss: str, l1: float = 0.0, l2: float = 0.0, start: FloatArray | None = None) -> Any:
    """Return the codes W >= 0, m by k, that minimise ``loss(X, WH) + l1 sum(W) + l2 ||W||²``, for each row on its own.

    X is m by n, with NaN for missing entries or sparse, and W of its dtype. Under Kullback-Leibler entries of X that no component
    covers do not count. Iterations go on from `start`, codes that are nearly the best, if there are any. The problem is convex
    but for betas outside of 1 to 2, where a local minimum is returned.
    """
    H, known = np.asarray(H, dtype=np.float64), find_loss(loss)
    with np.errstate(all="ignore"):  # values are tested for being finite
        if known.kind in ENCODERS:
            return ENCODERS[known.kind](X, H, l1, l2, start).astype(X.dtype)
        if math.isnan(known.beta):
            validation.refuse(f"Data are not encoded under loss={known.name!r}; use a beta divergence, such as 'mse' or 'kl'.")
        return beta_codes(X, H, known.beta, l1 / known.unit, l2 / known.unit, start).astype(X.dtype)


@encode.register
def _(X: ChunkedMatrix, H: Any, loss: str, l1: float = 0.0, l2: float = 0.0, start: FloatArray | None = None) -> Any:
    """Encode data in row chunks, chunk by chunk, each from the beginning."""
    state, _ = X.chunks.map_reduce(encode_chunk, None, np.asarray(H, dtype=np.float64), loss, l1, l2)
    return X.chunks.gather(state).astype(np.float32 if X.single else np.float64, copy=False)


def encode_chunk(chunk: Any, state: Any, H: FloatArray, loss: str, l1: float, l2: float) -> tuple[FloatArray, tuple[Any, ...]]:
    """Codes of a row chunk as its state, computed a few rows at a time: encoding a row needs nk numbers at most."""
    slices = row_chunks(chunk.shape[0], H.size, SMALL_BUDGET)
    return np.concatenate([encode(chunk[rows], H, loss, l1, l2) for rows in slices]), ()


def _missing(X: Any) -> Any:
    """Where entries of the rows to be encoded are missing."""
    return np.zeros((X.shape[0], 1), dtype=bool) if sp.issparse(X) else np.isnan(X)


def _least_squares(X: Any, H: FloatArray, l1: float, l2: float, start: FloatArray | None = None) -> FloatArray:
    """Codes for the squared error, solved directly; rows with all entries share one matrix ``Q = HH' + l2 I``."""
    k, missing = len(H), _missing(X)
    complete = ~missing.any(axis=1)
    W, Q = np.zeros((X.shape[0], k)), H @ H.T + l2 * np.eye(k)
    everything = complete.all()
    for some in row_chunks(X.shape[0], k, SMALL_BUDGET // 4):  # few rows at a time are as fast, and take little memory
        found: Any = some if everything else some.start + np.flatnonzero(complete[some])
        W[found] = _quadratic(Q[None], _products(X[found], H) - 0.5 * l1)
    partial = np.flatnonzero(~complete)
    for chunk in row_chunks(len(partial), k * (k + X.shape[1]), BUDGET):
        rows = partial[chunk]
        seen = ~missing[rows]
        P = np.where(seen, X[rows], 0.0) @ H.T - 0.5 * l1
        W[rows] = _quadratic((seen[:, None, :] * H) @ H.T + l2 * np.eye(k), P)
    return W


def _products(X: Any, H: FloatArray) -> FloatArray:
    """The products ``XH'`` of rows to be encoded, in double precision: dense rows of another type are turned part by part."""
    if sp.issparse(X) or X.dtype == np.float64:
        return np.asarray(X @ H.T, dtype=np.float64)
    return np.concatenate([X[rows].astype(np.float64) @ H.T for rows in row_chunks(*X.shape)])


def _quadratic(Q: FloatArray, P: FloatArray) -> FloatArray:
    """Codes ``w >= 0`` that minimise ``w'Qw - 2 p'w``, one per row of P; Q of shape (1 or rows, k, k).

    Where Q is singular up to rounding, proximal steps from zero lead to a minimiser, nearly the shortest.
    """
    k = P.shape[1]
    diagonal = np.einsum("rii->ri", Q)
    alive = diagonal > 0
    scale = np.where(alive, np.sqrt(np.where(alive, diagonal, 1.0)), 1.0)
    Q, P = Q / (scale[:, :, None] * scale[:, None, :]), np.where(alive, P, 0.0) / scale
    Q = np.where(np.eye(k, dtype=bool), 1.0, Q)
    height = P.max(axis=1, keepdims=True)
    height = np.where(height > 0, height, 1.0)
    P = P / height
    shift = np.where(np.linalg.eigvalsh(Q)[:, :1] < WELL_POSED, WELL_POSED, 0.0)
    Q = Q + shift[:, :, None] * np.eye(k)
    W = nnls_rows(Q, P, _coordinate_descent(Q, P) > 0)
    for _ in range(ROUNDS if shift.any() else 0):
        W = nnls_rows(Q, P + shift * W, W > 0)
    return np.asarray(W * height / scale)


def _coordinate_descent(Q: FloatArray, P: FloatArray) -> FloatArray:
    """A few sweeps of coordinate descent on least-squares codes, all rows at once, for Q of unit diagonal."""
    W = np.zeros_like(P)
    if len(Q) == 1:
        return hals_sweeps(W, P, Q[0], SWEEPS, 0.0)
    for _ in range(SWEEPS):
        for i in range(P.shape[1]):
            W[:, i] = np.maximum(0.0, W[:, i] + P[:, i] - np.einsum("rl,rl->r", W, np.broadcast_to(Q[:, i], W.shape)))
    return W


def _divergence(X: Any, H: FloatArray, l1: float, l2: float, start: FloatArray | None = None) -> FloatArray:
    """Codes for Kullback-Leibler: zeros of X enter through sums alone, so rows are worked on by their positive entries.

    Codes are scaled by ``sum(H) + l1`` and by the row's sum, by which those of a row sum to one without a quadratic penalty.
    """
    if not sp.issparse(X) and len(X) > max(1, BUDGET // X.shape[1]):  # entries of dense rows take five times their memory
        chunks = row_chunks(len(X), X.shape[1], BUDGET)
        return np.concatenate([_divergence(X[rows], H, l1, l2, None if start is None else start[rows]) for rows in chunks])
    k, covered = len(H), H.sum(axis=0) > 0
    missing = _missing(X)
    S = np.broadcast_to(H.sum(axis=1), (X.shape[0], k)) if not missing.any() else ~missing @ H.T
    scale = np.where(H.any(axis=1), H.sum(axis=1) + l1, 1.0)
    S = np.where(S > 0, S + l1, scale) / scale
    entries = sp.csr_array(X if sp.issparse(X) else np.where(missing, 0.0, X), dtype=np.float64, copy=True)
    entries.data[~covered[entries.indices]] = 0.0
    entries.eliminate_zeros()
    totals, W, lengths = np.asarray(entries.sum(axis=1)), np.zeros((X.shape[0], k)), np.diff(entries.indptr)
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    G = np.ascontiguousarray((H / scale[:, None]).T)
    for rows in _rows_of_like_length(order, lengths, k):
        x, columns = _pad_rows(entries, rows, lengths)
        total = totals[rows, None]
        square = l2 * total / (scale * scale)
        mixture = _Mixture(x / total, G[columns], S[rows], square)
        W[rows] = solve_rows(mixture, None if start is None else start[rows] * scale / total) * total / scale
    return W


def _rows_of_like_length(order: Any, lengths: Any, k: int) -> Iterator[Any]:
    """Chunks of rows to be encoded, in the order of their numbers of entries, so that padding costs little."""
    first = 0
    while first < len(order):
        height = max(1, BUDGET // (k * int(lengths[order[first]])))
        longest = int(lengths[order[min(first + height, len(order)) - 1]])
        height = max(1, min(height, BUDGET // (k * longest)))
        yield order[first : first + height]
        first += height


def _pad_rows(entries: Any, rows: Any, lengths: Any) -> tuple[FloatArray, Any]:
    """Entries of some rows to be encoded and their columns, padded with zeros to equal length."""
    places = np.arange(int(lengths[rows].max()))
    inside = places < lengths[rows, None]
    where = np.where(inside, entries.indptr[rows, None] + places, entries.indptr[rows, None])
    return np.where(inside, entries.data[where], 0.0), entries.indices[where]


class _Mixture(NamedTuple):
    """Rows of ``min sum(S w) + sum(square w²) - sum(x log(G w))`` over ``w >= 0``; G of shape (rows, entries, k)."""

    x: FloatArray
    G: FloatArray
    S: FloatArray
    square: FloatArray

    @property
    def stationary(self) -> float:
        """Stationarity at which Kullback-Leibler codes are solved: Newton's steps go to rounding."""
        return 1e-11

    def of(self, rows: Any) -> _Mixture:
        """The Kullback-Leibler encoding problems of some of the rows."""
        return _Mixture(*(part[rows] for part in self))

    def even_codes(self) -> FloatArray:
        """Equal codes to start the encoding under Kullback-Leibler."""
        return np.full(self.S.shape, 1.0 / self.S.shape[1])

    def model(self, w: FloatArray) -> FloatArray:
        """The model ``G w`` of Kullback-Leibler codes at the positive entries."""
        return np.asarray((self.G @ w[:, :, None])[:, :, 0])

    def value(self, w: FloatArray) -> FloatArray:
        """The Kullback-Leibler objective of the codes of each row; infinite or NaN where a positive entry has no model."""
        logs = np.log(np.where(self.x > 0, self.model(w), 1.0))
        return np.asarray(((self.S + self.square * w) * w).sum(axis=1) - (self.x * logs).sum(axis=1))

    def pull(self, ratio: FloatArray) -> FloatArray:
        """The pull ``G' ratio`` of the data on Kullback-Leibler codes."""
        return np.asarray((ratio[:, None, :] @ self.G)[:, 0])

    def ratio(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The ratio ``x / Gw`` of data and model of codes, and ``Gw``, one where x is zero."""
        e = np.where(self.x > 0, self.model(w), 1.0)
        return self.x / e, e

    def slope_and_curvature(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and Hessian of the Kullback-Leibler objective in the codes of each row."""
        ratio, e = self.ratio(w)
        curvature = self.G.transpose(0, 2, 1) @ (self.G * (ratio / e)[:, :, None])
        curvature += (2.0 * self.square)[:, :, None] * np.eye(w.shape[1])
        return self.S + 2.0 * self.square * w - self.pull(ratio), curvature

    def multiply(self, w: FloatArray) -> FloatArray:
        """A step of expectation maximisation on Kullback-Leibler codes."""
        a = w * self.pull(self.ratio(w)[0])
        return np.asarray(2.0 * a / (self.S + np.sqrt(self.S**2 + 8.0 * self.square * a)))


#: Encoders by kind of loss; other beta divergences are encoded by their number.
ENCODERS: dict[str, Callable[..., FloatArray]] = {"mse": _least_squares, "kl": _divergence}
