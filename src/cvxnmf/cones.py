"""Where X may lie, and the geometry of the steps: cones in a diagonal metric, and the nuclear norm of rectangular matrices.

With ``S = diag(s)`` distances are measured as ``||S (X - B) S||``. Each cone knows its penalty
``<N, X>``, ``N = S P S``: P is the projector on the directions that must be nonnegative, the whole
space for the PSD cone and the complement of s for the conditionally PSD cone. Rectangular matrices are not constrained;
their penalty is twice the nuclear norm, with or without free effects of rows and columns (docs/mathematics.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np
import scipy.linalg as sl

from cvxnmf import spectra
from cvxnmf.results import FloatArray, PairedPoint, Point

#: Eigenvalues below this share of the largest entry are rounding.
RELATIVE_ZERO = 1e-14


P = TypeVar("P", Point, PairedPoint)


class Geometry(ABC, Generic[P]):
    """What methods know of the set that X lies in: its metric, its projection and its penalty.

    Attributes
    ----------
    s : ndarray
        Positive weights of the rows of v and W.
    free_effects : bool
        Whether X may be changed by effects at no cost.
    """

    s: FloatArray
    free_effects: bool

    @abstractmethod
    def point(self, v: FloatArray, W: FloatArray) -> P:
        """The point with these factors."""

    @abstractmethod
    def scale(self, B: FloatArray) -> FloatArray:
        """``S B S``, in place."""

    @abstractmethod
    def unscale(self, B: FloatArray) -> FloatArray:
        """``S^-1 B S^-1``, in place."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """Sum of the squared weights over all entries of X."""

    @abstractmethod
    def project_scaled(self, B: FloatArray, threshold: float = 0.0, expected: int | None = None) -> P:
        """Return argmin ``||SYS - B||^2 / 2 + threshold penalty(Y)``; B is overwritten."""

    @abstractmethod
    def inner(self, X: FloatArray) -> float:
        """The penalty at a dense X."""

    @abstractmethod
    def penalty(self, point: P) -> float:
        """The penalty at a point in factors."""

    def factor_penalty(self, point: P) -> float:
        """A smooth function of the factors whose least value over all factors of X is the penalty."""
        return self.penalty(point)

    @abstractmethod
    def penalty_gradient(self, W: FloatArray) -> FloatArray:
        """Half the gradient of the factor penalty, shape of W."""

    @abstractmethod
    def pulled_back(self, G: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half the gradient over v and W of a function whose gradient over X is G."""

    @abstractmethod
    def independent_effects(self, A: FloatArray) -> FloatArray:
        """Effects of the best model of A without positions, by KL."""

    @abstractmethod
    def with_effects(self, X: FloatArray, v: FloatArray) -> FloatArray:
        """X with its entries raised by their effects, a new array."""

    @abstractmethod
    def margins(self, G: FloatArray) -> FloatArray:
        """Sums of G that belong to the effects, shape of v."""

    @abstractmethod
    def log_margins(self, X: FloatArray) -> FloatArray:
        """Logarithms of the margins of ``exp(X)``, overflow or not."""

    @abstractmethod
    def effects_step(self, H: FloatArray, residual: FloatArray) -> FloatArray:
        """Newton's step over the effects for entrywise curvature H, which is overwritten; may raise LinAlgError."""

    @abstractmethod
    def contains(self, X: FloatArray, tolerance: float) -> bool:
        """Whether X is admissible up to the tolerance."""

    @abstractmethod
    def tidied(self, point: P) -> P:
        """Return the same X in factors that are unique but for ties."""

    def scaled(self, X: FloatArray) -> FloatArray:
        """``S X S``, a new array."""
        return self.scale(X.copy())

    def unscaled(self, G: FloatArray) -> FloatArray:
        """``S^-1 G S^-1``, the gradient in scaled coordinates, a new array."""
        return self.unscale(G.copy())

    def project(self, X: FloatArray, threshold: float = 0.0) -> P:
        """Return argmin ``||S(Y - X)S||^2 / 2 + threshold penalty(Y)``, in factors."""
        return self.project_scaled(self.scaled(X), threshold)


class Cone(Geometry[Point]):
    """A cone of symmetric matrices in the metric ``s``.

    Parameters
    ----------
    metric : ndarray of shape (n,)
        Positive weights s.
    """

    def __init__(self, metric: FloatArray) -> None:
        self.s = metric

    def point(self, v: FloatArray, W: FloatArray) -> Point:
        """``X = v1' + 1v' + WW'``."""
        return Point(v, W)

    @abstractmethod
    def _split(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split the scaled matrix into effects v and the part P B P that the cone constrains."""

    @abstractmethod
    def add_penalty(self, G: FloatArray, weight: float) -> FloatArray:
        """Return ``G + weight N``; G is overwritten."""

    def scale(self, B: FloatArray) -> FloatArray:
        """``S B S``, in place."""
        B *= self.s[:, None]
        B *= self.s[None, :]
        return B

    def unscale(self, B: FloatArray) -> FloatArray:
        """``S^-1 B S^-1``, in place."""
        B /= self.s[:, None]
        B /= self.s[None, :]
        return B

    @property
    def total_weight(self) -> float:
        """``sum_ij s_i^2 s_j^2``."""
        return float(np.sum(self.s**2) ** 2)

    def project_scaled(self, B: FloatArray, threshold: float = 0.0, expected: int | None = None) -> Point:
        """Return the projection of ``S^-1 B S^-1``; B is overwritten.

        Eigenvalues of the constrained part are lowered by the threshold and clipped at zero.
        """
        v, B = self._split(B)
        rounding = RELATIVE_ZERO * max(float(B.max(initial=0.0)), -float(B.min(initial=0.0))) * len(B)
        values, vectors = spectra.eigenpairs_above(B, max(threshold, rounding), expected)
        W = vectors * np.sqrt(values - threshold)[None, :]
        W /= self.s[:, None]
        return Point(v, W)

    def smallest_eigenvalue(self, G: FloatArray) -> float:
        """Smallest eigenvalue of ``S^-1 G S^-1`` on the directions that the cone constrains."""
        _, B = self._split(self.unscaled(G))
        return spectra.smallest_eigenvalue(self._null_space_lifted(B))

    def _null_space_lifted(self, B: FloatArray) -> FloatArray:
        """B with the direction outside P, if any, out of the way of the smallest eigenvalue."""
        return B

    def penalty(self, point: Point) -> float:
        """``<N, X>`` at a point in factors."""
        SW = self.s[:, None] * point.W
        return max(0.0, float(np.vdot(SW, SW)) - self._outside(SW))

    def _outside(self, SW: FloatArray) -> float:
        return 0.0

    def penalty_gradient(self, W: FloatArray) -> FloatArray:
        """``N W``, shape of W."""
        return self.s[:, None] ** 2 * W

    def pulled_back(self, G: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``G 1`` and ``G W``."""
        return G.sum(axis=1), G @ W

    def with_effects(self, X: FloatArray, v: FloatArray) -> FloatArray:
        """``X + v1' + 1v'``, symmetric to the last bit if X is."""
        Y: FloatArray = np.add.outer(v, v)
        Y += X
        return Y

    def margins(self, G: FloatArray) -> FloatArray:
        """Row sums."""
        return np.asarray(G.sum(axis=1))

    def log_margins(self, X: FloatArray) -> FloatArray:
        """Logarithms of the row sums of ``exp(X)``."""
        return _log_row_sums(X)

    def effects_step(self, H: FloatArray, residual: FloatArray) -> FloatArray:
        """Solve ``(H + Diag(H1)) step = -residual``."""
        H.flat[:: len(H) + 1] += H.sum(axis=1)
        factor = sl.cho_factor(H.T, overwrite_a=True, check_finite=False)
        return np.asarray(-sl.cho_solve(factor, residual, check_finite=False))

    def independent_effects(self, A: FloatArray) -> FloatArray:
        """``E = dd'/2m`` where effects are free, ``E = 1`` elsewhere."""
        if not self.free_effects:
            return np.zeros(len(A))
        degrees = A.sum(axis=1)
        return np.asarray(np.log(degrees) - 0.5 * np.log(degrees.sum()))

    def complementary(self, Y: FloatArray, span: FloatArray) -> FloatArray:
        """Project Y, in the dual metric, on the dual matrices that annihilate X.

        `span` is an orthonormal basis of the scaled directions that X charges, see :meth:`charged`.
        """
        B = self.unscaled(Y)
        B -= span @ (span.T @ B)
        B -= (B @ span) @ span.T
        values, vectors = spectra.eigenpairs_above(B, 0.0)
        half = vectors * np.sqrt(values)[None, :] * self.s[:, None]
        return np.asarray(half @ half.T)

    def charged(self, X: FloatArray) -> FloatArray:
        """Orthonormal basis of the scaled directions on which a complementary dual matrix vanishes."""
        SW = self.s[:, None] * self.project(X).W
        keep = np.sum(SW * SW, axis=0)
        SW = SW[:, keep > 1e-7 * keep.max(initial=0.0)]
        if self.free_effects:
            SW = np.column_stack([SW, self.s])
        return np.linalg.qr(SW)[0]

    def tidied(self, point: Point) -> Point:
        """Return the same X with columns orthogonal in the metric, by decreasing weight, signs fixed."""
        v, W = self._centred(point)
        U, sigma, _ = np.linalg.svd(self.s[:, None] * W, full_matrices=False)
        keep = sigma > RELATIVE_ZERO * len(W) * sigma.max(initial=0.0)
        U = U[:, keep]
        signs = np.sign(U[np.argmax(np.abs(U), axis=0), np.arange(U.shape[1])])
        return Point(v, U * (signs * sigma[keep])[None, :] / self.s[:, None])

    def _centred(self, point: Point) -> Point:
        return point

    def contains(self, X: FloatArray, tolerance: float) -> bool:
        """Whether no constrained eigenvalue of X lies below ``-tolerance`` (plain coordinates)."""
        _, B = type(self)(np.ones(len(X)))._split(X.copy())
        return spectra.smallest_eigenvalue(B) >= -tolerance


class PSD(Cone):
    """Positive semidefinite matrices: ``P = I``, ``N = diag(s^2)``."""

    free_effects = False

    def _split(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(B)), B

    def add_penalty(self, G: FloatArray, weight: float) -> FloatArray:
        """Return ``G + weight diag(s^2)``; G is overwritten."""
        G.flat[:: len(G) + 1] += weight * self.s**2
        return G

    def inner(self, X: FloatArray) -> float:
        """``sum s_i^2 X_ii``."""
        return float(self.s**2 @ np.diag(X))


class ConditionallyPSD(Cone):
    """``{X : x'Xx >= 0 whenever 1'x = 0} = {v1' + 1v' + Q, Q PSD}``: ``P = I - ss'/|s|^2``."""

    free_effects = True

    def _split(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        s = self.s
        u = s / np.linalg.norm(s)
        b = B @ u
        b -= 0.5 * (u @ b) * u
        spectra.add_outer(B, u, -b)
        spectra.add_outer(B, -b, u)
        return b / (s * np.linalg.norm(s)), B

    def add_penalty(self, G: FloatArray, weight: float) -> FloatArray:
        """Return ``G + weight (diag(s^2) - s^2 s^2' / sum s^2)``; G is overwritten."""
        if weight:
            t = self.s**2
            q = t * np.sqrt(weight / t.sum())
            spectra.add_outer(G, -q, q)
            G.flat[:: len(G) + 1] += weight * t
        return G

    def inner(self, X: FloatArray) -> float:
        """``sum t_i X_ii - t'Xt / sum t`` with ``t = s^2``; unchanged by effects."""
        t = self.s**2
        share = t / t.sum()
        return float(t @ (np.diag(X) - X @ share))

    def _null_space_lifted(self, B: FloatArray) -> FloatArray:
        u = self.s / np.linalg.norm(self.s)
        spectra.add_outer(B, u, u * float(np.abs(B).sum(axis=1).max()))
        return B

    def _centred(self, point: Point) -> Point:
        """Move the weighted mean of the positions into the effects."""
        t = self.s**2
        mean = t @ point.W / t.sum()
        W = point.W - mean[None, :]
        return Point(point.v + W @ mean + 0.5 * (mean @ mean), W)

    def _outside(self, SW: FloatArray) -> float:
        along = self.s @ SW / np.linalg.norm(self.s)
        return float(along @ along)

    def penalty_gradient(self, W: FloatArray) -> FloatArray:
        """``N W``, shape of W."""
        t = self.s**2
        gradient: FloatArray = t[:, None] * (W - (t @ W / t.sum())[None, :])
        return gradient


class NuclearNorm(Geometry[PairedPoint]):
    """Rectangular matrices ``X = a1' + 1b' + W_1 W_2'`` with penalty ``2 ||J X J||_*``; J centres where effects are free.

    Parameters
    ----------
    A : ndarray of shape (m, n)
        The data: their margins scale the variables of a descent over factors; steps over X are in the plain metric.
    free_effects : bool
        Whether effects a and b of rows and columns cost nothing; if not, J is the identity.
    """

    def __init__(self, A: FloatArray, free_effects: bool) -> None:
        self.shape, self.free_effects = (len(A), A.shape[1]), free_effects
        self.s = np.concatenate([_raised_margins(A.sum(axis=1)), _raised_margins(A.sum(axis=0))])

    def point(self, v: FloatArray, W: FloatArray) -> PairedPoint:
        """``X = a1' + 1b' + W_1 W_2'``, rows first in v and W."""
        return PairedPoint(v, W, self.shape[0])

    def scale(self, B: FloatArray) -> FloatArray:
        """All weights are 1."""
        return B

    unscale = scale

    @property
    def total_weight(self) -> float:
        """Number of entries."""
        return float(self.shape[0] * self.shape[1])

    def centred(self, X: FloatArray) -> FloatArray:
        """``J X J``, in place: row and column means are taken off where effects are free."""
        if self.free_effects:
            X -= X.mean(axis=1)[:, None]
            X -= X.mean(axis=0)[None, :]
        return X

    def project_scaled(self, B: FloatArray, threshold: float = 0.0, expected: int | None = None) -> PairedPoint:
        """Singular values of the centred part are lowered by twice the threshold; B is overwritten."""
        m = self.shape[0]
        v = np.zeros(sum(self.shape))
        if self.free_effects:
            mean = float(B.mean())
            v[:m], v[m:] = B.mean(axis=1) - 0.5 * mean, B.mean(axis=0) - 0.5 * mean
        left, values, right = spectra.singular_triples_above(self.centred(B), 2.0 * threshold)
        root = np.sqrt(values - 2.0 * threshold)
        return PairedPoint(v, np.concatenate([left * root, right * root]), m)

    def inner(self, X: FloatArray) -> float:
        """Twice the nuclear norm of the centred X."""
        return 2.0 * float(np.linalg.svd(self.centred(X.copy()), compute_uv=False).sum())

    def _halves(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Positions of rows and columns, centred where effects are free."""
        halves = W[: self.shape[0]], W[self.shape[0] :]
        if not self.free_effects:
            return halves
        return halves[0] - halves[0].mean(axis=0), halves[1] - halves[1].mean(axis=0)

    def penalty(self, point: PairedPoint) -> float:
        """Twice the nuclear norm of ``J W_1 W_2' J``, from its factors."""
        first, second = (np.asarray(np.linalg.qr(half, mode="r")) for half in self._halves(point.W))
        return 2.0 * float(np.linalg.svd(first @ second.T, compute_uv=False).sum())

    def factor_penalty(self, point: PairedPoint) -> float:
        """``||J W_1||^2 + ||J W_2||^2``, never below twice the nuclear norm of the product."""
        first, second = self._halves(point.W)
        return float(np.vdot(first, first) + np.vdot(second, second))

    def penalty_gradient(self, W: FloatArray) -> FloatArray:
        """The centred positions."""
        return np.concatenate(self._halves(W))

    def pulled_back(self, G: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half of ``(G 1, G' 1)`` and of ``(G W_2, G' W_1)``."""
        m = self.shape[0]
        effects = np.concatenate([G.sum(axis=1), G.sum(axis=0)])
        return 0.5 * effects, 0.5 * np.concatenate([G @ W[m:], G.T @ W[:m]])

    def with_effects(self, X: FloatArray, v: FloatArray) -> FloatArray:
        """``X + a1' + 1b'``."""
        Y: FloatArray = np.add.outer(v[: self.shape[0]], v[self.shape[0] :])
        Y += X
        return Y

    def margins(self, G: FloatArray) -> FloatArray:
        """Row sums, then column sums."""
        return np.concatenate([G.sum(axis=1), G.sum(axis=0)])

    def log_margins(self, X: FloatArray) -> FloatArray:
        """Logarithms of the row sums, then of the column sums, of ``exp(X)``."""
        return np.concatenate([_log_row_sums(X), _log_row_sums(X.T)])

    def effects_step(self, H: FloatArray, residual: FloatArray) -> FloatArray:
        """Solve ``[[Diag(H1), H], [H', Diag(H'1)]] step = -residual`` by the smaller side's Schur complement.

        Raising all rows and lowering all columns by the same changes nothing: that direction is lifted.
        """
        m = self.shape[0]
        transposed = self.shape[0] < self.shape[1]
        if transposed:
            H, residual = H.T, np.concatenate([residual[m:], residual[:m]])
        long = len(H)
        heavy, light = H.sum(axis=1), H.sum(axis=0)
        schur = -(H.T @ (H / heavy[:, None]))
        schur.flat[:: len(schur) + 1] += light
        schur += np.outer(light, light / light.sum()) / len(light)
        factor = sl.cho_factor(schur, overwrite_a=True, check_finite=False)
        small = sl.cho_solve(factor, H.T @ (residual[:long] / heavy) - residual[long:], check_finite=False)
        large = -(residual[:long] + H @ small) / heavy
        return np.concatenate([small, large] if transposed else [large, small])

    def independent_effects(self, A: FloatArray) -> FloatArray:
        """``E = rc'/sum A`` where effects are free, ``E = 1`` elsewhere."""
        if not self.free_effects:
            return np.zeros(sum(A.shape))
        half_log_total = 0.5 * np.log(A.sum())
        return np.concatenate([np.log(A.sum(axis=1)) - half_log_total, np.log(A.sum(axis=0)) - half_log_total])

    def contains(self, X: FloatArray, tolerance: float) -> bool:
        """Every matrix is admissible."""
        return True

    def tidied(self, point: PairedPoint) -> PairedPoint:
        """Return the same X with orthogonal columns in each half, of equal length in both, by decreasing weight, signs fixed."""
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
    """``sqrt((d + mean d) / 2 mean d)``: even where margins are even, and never far below."""
    return np.asarray(np.sqrt(0.5 + 0.5 * sums / sums.mean()))


def _log_row_sums(X: FloatArray) -> FloatArray:
    """Logarithms of the row sums of ``exp(X)``, overflow or not."""
    highest = X.max(axis=1)
    E = X - highest[:, None]
    return np.asarray(highest + np.log(np.exp(E, out=E).sum(axis=1)))


#: Cones by the names a user gives.
CONES: dict[str, type[Cone]] = {"conditional": ConditionallyPSD, "psd": PSD}
