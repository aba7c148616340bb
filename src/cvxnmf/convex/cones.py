"""Positive semidefinite and conditionally positive semidefinite matrices, in a diagonal metric."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray, log_row_sums
from cvxnmf.linalg.eigen import add_outer, eigenpairs_above, smallest_eigenvalue
from cvxnmf.results import FactorPoint, Point

#: Eigenvalues below this share of the largest entry are rounding.
RELATIVE_ZERO = 1e-14
#: Rounds in which rows and columns are scaled to their margins.
SCALING_ROUNDS = 30
#: Newton's steps to margins, after rounds in which rows are scaled to them by turns.
NEWTON_ROUNDS = 6


class Cone(ABC):
    """A cone of symmetric matrices in the metric s, n positive weights."""

    free_effects: bool

    def __init__(self, metric: FloatArray) -> None:
        self.s = metric

    def point(self, v: FloatArray, W: FloatArray) -> Point:
        """The point ``X = v1' + 1v' + WW'`` of a cone from its factors."""
        return Point(v, W)

    @abstractmethod
    def _split(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split the scaled matrix into effects v and the part P B P that the cone constrains."""

    @abstractmethod
    def inner(self, X: FloatArray) -> float:
        """The penalty ``<N, X>`` of the cone at a dense X."""

    @abstractmethod
    def add_penalty(self, G: FloatArray, weight: float) -> FloatArray:
        """Return ``G + weight N``, N the penalty's matrix of the cone; G is overwritten."""

    def scale(self, B: FloatArray) -> FloatArray:
        """The matrix ``S B S`` in the metric s of the cone, in place."""
        B *= self.s[:, None]
        B *= self.s[None, :]
        return B

    def unscale(self, B: FloatArray) -> FloatArray:
        """The matrix ``S^-1 B S^-1`` in the metric s of the cone, in place."""
        B /= self.s[:, None]
        B /= self.s[None, :]
        return B

    @property
    def total_weight(self) -> float:
        """The sum ``sum_ij s_i^2 s_j^2`` of weights in the metric of the cone."""
        return float(np.sum(self.s**2) ** 2)

    def penalised_part(self, X: FloatArray) -> FloatArray:
        """The part ``P S X S P`` of X that the cone constrains, in place."""
        return self._split(self.scale(X))[1]

    @cached_property
    def _upper(self) -> NDArray[np.bool_]:
        return np.tri(len(self.s), dtype=bool).T

    def entries(self, X: FloatArray) -> FloatArray:
        """The entries of a symmetric matrix of the cone, its upper triangle by rows."""
        return X[self._upper]

    def matrix(self, entries: FloatArray) -> FloatArray:
        """The symmetric matrix of the cone with a given upper triangle."""
        X = np.empty((len(self.s), len(self.s)))
        X[self._upper] = entries
        X.T[self._upper] = entries
        return X

    def entry_scales(self) -> FloatArray:
        """The scales ``s_i s_j`` of the entries in the metric of the cone."""
        return self.entries(np.outer(self.s, self.s))

    def typical_multiplier(self, trace: float) -> float:
        """The size of a dual matrix of the cone over that of X: eigenvalues of the size of the trace, to either side."""
        return trace * float(np.sqrt(2.0 / len(self.s))) / float(np.mean(self.s**2))

    def project(self, X: FloatArray, threshold: float = 0.0) -> Point:
        """Return the projection argmin ``||S(Y - X)S||^2 / 2 + threshold <N, Y>`` on the cone."""
        return self.project_scaled(self.scale(X.copy()), threshold)

    def project_scaled(self, B: FloatArray, threshold: float = 0.0, expected: int | None = None) -> Point:
        """Return the projection of ``S^-1 B S^-1`` on the cone; B is overwritten.

        Eigenvalues of the constrained part are lowered by the threshold and clipped at zero.
        """
        v, B = self._split(B)
        rounding = RELATIVE_ZERO * max(float(B.max(initial=0.0)), -float(B.min(initial=0.0))) * len(B)
        values, vectors = eigenpairs_above(B, max(threshold, rounding), expected)
        W = vectors * np.sqrt(values - threshold)[None, :]
        W /= self.s[:, None]
        return Point(v, W)

    def smallest_eigenvalue(self, G: FloatArray) -> float:
        """Smallest eigenvalue of ``P S^-1 G S^-1 P``, which is 0 along a direction that the cone leaves free."""
        return smallest_eigenvalue(self._split(self.unscale(G.copy()))[1])

    def penalty(self, point: FactorPoint) -> float:
        """The penalty ``<N, X>`` of the cone at a point in factors."""
        W = point.W
        return max(0.0, float(self.s**2 @ np.einsum("ij,ij->i", W, W)) - self._along_free_direction(W))

    factor_penalty = penalty  # it is smooth in the factors

    def _along_free_direction(self, W: FloatArray) -> float:
        """The part ``|u'SW|^2`` along the unit vector u of a direction that the cone leaves free, which is not penalised."""
        return 0.0

    def penalty_gradient(self, W: FloatArray) -> FloatArray:
        """Half the gradient ``N W`` of the cone's penalty over W, shape of W."""
        return self.s[:, None] ** 2 * W

    def factor_gradients(self, G: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The products ``G 1`` and ``G W``, half the gradients over the factors of a point of the cone."""
        return G.sum(axis=1), G @ W

    def with_effects(self, X: FloatArray, v: FloatArray) -> FloatArray:
        """The matrix ``X + v1' + 1v'`` with effects v, symmetric to the last bit if X is."""
        Y: FloatArray = np.add.outer(v, v)
        Y += X
        return Y

    def margins(self, G: FloatArray) -> FloatArray:
        """Row sums of a symmetric G, the margins that belong to the effects of the cone."""
        return np.asarray(G.sum(axis=1))

    def log_margins(self, X: FloatArray) -> FloatArray:
        """Logarithms of the row sums of ``exp(X)``, the margins of a symmetric X in the cone."""
        return log_row_sums(X)

    def scale_to_margins(self, Z: FloatArray, margins: FloatArray) -> None:
        """Scale rows and columns of a symmetric Z alike to the margins, by turns and then by Newton's method."""
        scaling = np.ones(len(Z))
        for _ in range(SCALING_ROUNDS):
            scaling = np.sqrt(scaling * margins / (Z @ scaling))
        for _ in range(NEWTON_ROUNDS):
            Z *= scaling[:, None]
            Z *= scaling
            residual = Z.sum(axis=1) - margins
            if float(np.max(np.abs(residual) / margins)) <= RELATIVE_ZERO:
                break
            with contextlib.suppress(sl.LinAlgError):
                scaling = np.exp(np.clip(self.effects_step(Z.copy(), residual), -1.0, 1.0))

    def spectral_lack(self, g: FloatArray, trace: float) -> tuple[float, FloatArray | None]:
        """The feasible multiple of g in the dual cone, and what clips its eigenvalues, feasible down to minus the trace."""
        B = self._split(self.unscale(g.copy()))[1]
        values, vectors = eigenpairs_above(np.negative(B, out=B), trace)
        if not len(values):
            return 1.0, None
        lack = (vectors * (values - trace)) @ vectors.T
        return float(trace / values[0]), self.scale(lack)

    def effects_step(self, H: FloatArray, residual: FloatArray) -> FloatArray:
        """Newton's step over the effects of the cone: solve ``(H + Diag(H1)) step = -residual``."""
        H.flat[:: len(H) + 1] += H.sum(axis=1)
        factor = sl.cho_factor(H.T, overwrite_a=True, check_finite=False)
        return np.asarray(-sl.cho_solve(factor, residual, check_finite=False))

    def independent_effects(self, A: FloatArray) -> FloatArray:
        """Effects of the independent model in the cone: ``E = dd'/2m`` where they are free, ``E = 1`` elsewhere."""
        if not self.free_effects:
            return np.zeros(len(A))
        degrees = A.sum(axis=1)
        return np.asarray(np.log(degrees) - 0.5 * np.log(degrees.sum()))

    def canonical_factors(self, point: FactorPoint) -> Point:
        """Return the point of the cone with columns of W orthogonal in the metric, by decreasing weight, signs fixed."""
        v, W = self._centre(point)
        U, sigma, _ = np.linalg.svd(self.s[:, None] * W, full_matrices=False)
        keep = sigma > RELATIVE_ZERO * len(W) * sigma.max(initial=0.0)
        U = U[:, keep]
        signs = np.sign(U[np.argmax(np.abs(U), axis=0), np.arange(U.shape[1])])
        return Point(v, U * (signs * sigma[keep])[None, :] / self.s[:, None])

    def _centre(self, point: FactorPoint) -> tuple[FloatArray, FloatArray]:
        return point.v, point.W

    def contains(self, X: FloatArray, tolerance: float) -> bool:
        """Whether no eigenvalue of X that the cone constrains lies below ``-tolerance`` (plain coordinates)."""
        _, B = type(self)(np.ones(len(X)))._split(X.copy())
        return smallest_eigenvalue(B) >= -tolerance


class PSD(Cone):
    """The cone of positive semidefinite matrices: ``P = I``, ``N = diag(s^2)``."""

    free_effects = False

    def _split(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(B)), B

    def add_penalty(self, G: FloatArray, weight: float) -> FloatArray:
        """Return ``G + weight diag(s^2)``, the penalty of the psd cone; G is overwritten."""
        G.flat[:: len(G) + 1] += weight * self.s**2
        return G

    def inner(self, X: FloatArray) -> float:
        """The penalty ``sum s_i^2 X_ii`` of the psd cone at a dense X."""
        return float(self.s**2 @ np.diag(X))


class ConditionallyPSD(Cone):
    """``{X : x'Xx >= 0 whenever 1'x = 0} = {v1' + 1v' + Q, Q PSD}``: ``P = I - ss'/|s|^2``."""

    free_effects = True

    def _split(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        s = self.s
        u = s / np.linalg.norm(s)
        b = B @ u
        b -= 0.5 * (u @ b) * u
        add_outer(B, u, -b)
        add_outer(B, -b, u)
        return b / (s * np.linalg.norm(s)), B

    def add_penalty(self, G: FloatArray, weight: float) -> FloatArray:
        """Return ``G + weight (diag(s^2) - s^2 s^2' / sum s^2)``, the conditional cone's penalty; G is overwritten."""
        if weight:
            t = self.s**2
            q = t * np.sqrt(weight / t.sum())
            add_outer(G, -q, q)
            G.flat[:: len(G) + 1] += weight * t
        return G

    def inner(self, X: FloatArray) -> float:
        """The penalty ``sum t_i X_ii - t'Xt / sum t``, ``t = s^2``, of the conditional cone; unchanged by effects."""
        t = self.s**2
        share = t / t.sum()
        return float(t @ (np.diag(X) - X @ share))

    def _centre(self, point: FactorPoint) -> tuple[FloatArray, FloatArray]:
        """Move the weighted mean of the positions into the effects, which the conditional cone leaves free."""
        t = self.s**2
        mean = t @ point.W / t.sum()
        W = point.W - mean[None, :]
        return point.v + W @ mean + 0.5 * (mean @ mean), W

    def _along_free_direction(self, W: FloatArray) -> float:
        along = self.s**2 @ W / np.linalg.norm(self.s)
        return float(along @ along)

    def penalty_gradient(self, W: FloatArray) -> FloatArray:
        """Half the gradient ``N W`` of the conditional cone's penalty over W, shape of W."""
        t = self.s**2
        gradient: FloatArray = W - (t @ W / t.sum())[None, :]
        gradient *= t[:, None]
        return gradient


#: Cones by the names a user gives.
CONES: dict[str, type[Cone]] = {"conditional": ConditionallyPSD, "psd": PSD}
