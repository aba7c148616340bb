"""Rectangular matrices with a nuclear norm."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from cvxnmf.convex.cones import RELATIVE_ZERO, SCALING_ROUNDS
from cvxnmf.linalg.arrays import FloatArray, log_row_sums
from cvxnmf.linalg.eigen import add_outer, singular_triples_above
from cvxnmf.results import FactorPoint, PairedPoint


class NuclearNorm:
    """Rectangular matrices ``X = a1' + 1b' + W_1 W_2'`` with penalty ``2 ||J X J||_*``; J centres where effects are free.

    Else J is the identity. The margins of the data A scale the variables of a descent over factors; steps over X are in the plain
    metric.
    """

    def __init__(self, A: FloatArray, free_effects: bool) -> None:
        self.shape, self.free_effects = (len(A), A.shape[1]), free_effects
        self.s = np.concatenate([_raised_margins(A.sum(axis=1)), _raised_margins(A.sum(axis=0))])

    def point(self, v: FloatArray, W: FloatArray) -> PairedPoint:
        """The point ``X = a1' + 1b' + W_1 W_2'`` under the nuclear norm, rows first in v and W."""
        return PairedPoint(v, W, self.shape[0])

    def scale(self, B: FloatArray) -> FloatArray:
        """The matrix itself: the nuclear norm has no metric, all weights are 1."""
        return B

    unscale = scale

    @property
    def total_weight(self) -> float:
        """Number of entries of a rectangular X, whose weights are 1."""
        return float(self.shape[0] * self.shape[1])

    def entries(self, X: FloatArray) -> FloatArray:
        """All entries of a rectangular X, by rows."""
        return X.reshape(-1)

    def matrix(self, entries: FloatArray) -> FloatArray:
        """The rectangular matrix of given entries."""
        return entries.reshape(self.shape)

    def entry_scales(self) -> None:
        """None: the nuclear norm has no metric."""
        return

    def typical_multiplier(self, trace: float) -> float:
        """The size of a dual matrix of the nuclear norm over that of X: singular values of twice the trace."""
        return 2.0 * trace / float(np.sqrt(max(self.shape)))

    def penalised_part(self, X: FloatArray) -> FloatArray:
        """The part ``J X J`` of X under the nuclear norm, in place: row and column means are taken off where effects are free."""
        if self.free_effects:
            X -= X.mean(axis=1)[:, None]
            X -= X.mean(axis=0)[None, :]
        return X

    def project(self, X: FloatArray, threshold: float = 0.0) -> PairedPoint:
        """The proximal point of the nuclear norm at X, which stays as it is."""
        return self.project_scaled(X.copy(), threshold)

    def project_scaled(self, B: FloatArray, threshold: float = 0.0, expected: int | None = None) -> PairedPoint:
        """The proximal point of the nuclear norm: singular values of the centred part lowered by twice the threshold."""
        m = self.shape[0]
        v = np.zeros(sum(self.shape))
        if self.free_effects:
            mean = float(B.mean())
            v[:m], v[m:] = B.mean(axis=1) - 0.5 * mean, B.mean(axis=0) - 0.5 * mean
        left, values, right = singular_triples_above(self.penalised_part(B), 2.0 * threshold)
        root = np.sqrt(values - 2.0 * threshold)
        left *= root
        W = np.empty((sum(self.shape), len(values)))
        W[:m] = left
        del left
        np.multiply(right, root, out=W[m:])
        return PairedPoint(v, W, m)

    def inner(self, X: FloatArray) -> float:
        """The penalty at a dense X, twice the nuclear norm of the centred X."""
        return 2.0 * float(np.linalg.svd(self.penalised_part(X.copy()), compute_uv=False).sum())

    def _halves(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Positions of rows and columns under the nuclear norm, centred where effects are free."""
        halves = W[: self.shape[0]], W[self.shape[0] :]
        if not self.free_effects:
            return halves
        return halves[0] - halves[0].mean(axis=0), halves[1] - halves[1].mean(axis=0)

    def penalty(self, point: FactorPoint) -> float:
        """The penalty at a point, twice the nuclear norm of ``J W_1 W_2' J``, from its factors."""
        first, second = (np.asarray(np.linalg.qr(half, mode="r")) for half in self._halves(point.W))
        return 2.0 * float(np.linalg.svd(first @ second.T, compute_uv=False).sum())

    def factor_penalty(self, point: FactorPoint) -> float:
        """The sum ``||J W_1||^2 + ||J W_2||^2``, never below twice the nuclear norm of the product."""
        first, second = self._halves(point.W)
        return float(np.vdot(first, first) + np.vdot(second, second))

    def penalty_gradient(self, W: FloatArray) -> FloatArray:
        """Half the gradient of the nuclear norm's factor penalty: the centred positions."""
        return np.concatenate(self._halves(W))

    def factor_gradients(self, G: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half of ``(G 1, G' 1)`` and of ``(G W_2, G' W_1)``, gradients over the factors of a rectangular X."""
        m = self.shape[0]
        effects = np.concatenate([G.sum(axis=1), G.sum(axis=0)])
        return 0.5 * effects, 0.5 * np.concatenate([G @ W[m:], G.T @ W[:m]])

    def with_effects(self, X: FloatArray, v: FloatArray) -> FloatArray:
        """The rectangular ``X + a1' + 1b'`` with effects of rows and columns."""
        Y: FloatArray = np.add.outer(v[: self.shape[0]], v[self.shape[0] :])
        Y += X
        return Y

    def margins(self, G: FloatArray) -> FloatArray:
        """Row sums, then column sums of a rectangular G."""
        return np.concatenate([G.sum(axis=1), G.sum(axis=0)])

    def log_margins(self, X: FloatArray) -> FloatArray:
        """Logarithms of the row sums, then of the column sums, of ``exp(X)`` for a rectangular X."""
        return np.concatenate([log_row_sums(X), log_row_sums(X.T)])

    def scale_to_margins(self, Z: FloatArray, margins: FloatArray) -> None:
        """Scale a rectangular Z to its margins, rows and columns in turns."""
        rows, columns = margins[: self.shape[0]], margins[self.shape[0] :]
        across = np.ones(len(columns))
        for _ in range(SCALING_ROUNDS):
            down = rows / (Z @ across)
            across = columns / (down @ Z)
        Z *= down[:, None]
        Z *= across

    def spectral_lack(self, g: FloatArray, trace: float) -> tuple[float, FloatArray | None]:
        """The feasible multiple of g under the nuclear norm, and what clips singular values above twice the trace."""
        limit = 2.0 * trace
        left, values, right = singular_triples_above(g, limit)
        if not len(values):
            return 1.0, None
        left *= limit - values
        return float(limit / values.max()), left @ right.T

    def effects_step(self, H: FloatArray, residual: FloatArray) -> FloatArray:
        """Effects of a rectangular X: ``[[Diag(H1), H], [H', Diag(H'1)]] step = -residual`` by the smaller Schur complement.

        Raising all rows and lowering all columns by the same changes nothing: that direction is lifted.
        """
        m = self.shape[0]
        transposed = self.shape[0] < self.shape[1]
        if transposed:
            H, residual = H.T, np.concatenate([residual[m:], residual[:m]])
        long = len(H)
        heavy, light = H.sum(axis=1), H.sum(axis=0)
        schur = H.T @ (H / -heavy[:, None])
        schur.flat[:: len(schur) + 1] += light
        add_outer(schur, light, light / (light.sum() * len(light)))
        factor = sl.cho_factor(schur, overwrite_a=True, check_finite=False)
        small = sl.cho_solve(factor, H.T @ (residual[:long] / heavy) - residual[long:], check_finite=False)
        large = -(residual[:long] + H @ small) / heavy
        return np.concatenate([small, large] if transposed else [large, small])

    def independent_effects(self, A: FloatArray) -> FloatArray:
        """Effects of the rectangular independent model: ``E = rc'/sum A`` where they are free, ``E = 1`` elsewhere."""
        if not self.free_effects:
            return np.zeros(sum(A.shape))
        half_log_total = 0.5 * np.log(A.sum())
        return np.concatenate([np.log(A.sum(axis=1)) - half_log_total, np.log(A.sum(axis=0)) - half_log_total])

    def contains(self, X: FloatArray, tolerance: float) -> bool:
        """True: every rectangular matrix is admissible under the nuclear norm."""
        return True

    def canonical_factors(self, point: FactorPoint) -> PairedPoint:
        """Return a rectangular X in orthogonal columns in each half, equally long in both, by decreasing weight, signs fixed."""
        m = self.shape[0]
        first, second = self._halves(point.W)
        v = point.v
        if self.free_effects:
            shift, other = point.W[:m].mean(axis=0), point.W[m:].mean(axis=0)
            half = 0.5 * float(shift @ other)
            v = np.concatenate([v[:m] + first @ other + half, v[m:] + second @ shift + half])
        (left, upper), (right, lower) = np.linalg.qr(first), np.linalg.qr(second)
        inner, values, outer = np.linalg.svd(upper @ lower.T)
        keep = values > RELATIVE_ZERO * sum(self.shape) * values.max(initial=0.0)
        left, right = left @ inner[:, keep], right @ outer[keep].T
        both = np.concatenate([left, right]) * np.sqrt(values[keep])
        signs = np.sign(both[np.argmax(np.abs(both), axis=0), np.arange(both.shape[1])])
        return PairedPoint(v, both * signs, m)


def _raised_margins(sums: FloatArray) -> FloatArray:
    """Scales ``sqrt((d + mean d) / 2 mean d)`` of rectangular margins: even where these are even, and never far below."""
    return np.asarray(np.sqrt(0.5 + 0.5 * sums / sums.mean()))
