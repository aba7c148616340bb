"""The set that X lies in, as methods see it: metric, projection, penalty, effects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import PairedPoint, Point

#: Eigenvalues below this share of the largest entry are rounding.
RELATIVE_ZERO = 1e-14
#: Rounds in which rows and columns are scaled to their margins.
SCALING_ROUNDS = 30

P = TypeVar("P", Point, PairedPoint)


class Geometry(ABC, Generic[P]):
    """The geometry of the set that X lies in, as methods see it: metric, projection, penalty and effects.

    s holds positive weights of the rows of v and W; with free effects X may be changed by effects at no cost.
    """

    s: FloatArray
    free_effects: bool

    @abstractmethod
    def point(self, v: FloatArray, W: FloatArray) -> P:
        """The point of the geometry's set with given factors v and W."""

    @abstractmethod
    def scale(self, B: FloatArray) -> FloatArray:
        """The matrix ``S B S`` in the metric of the geometry, in place."""

    @abstractmethod
    def unscale(self, B: FloatArray) -> FloatArray:
        """The matrix ``S^-1 B S^-1`` in the metric of the geometry, in place."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """Sum of the squared weights over all entries of X in the metric of the geometry."""

    @abstractmethod
    def project_scaled(self, B: FloatArray, threshold: float = 0.0, expected: int | None = None) -> P:
        """Return the projection argmin ``||SYS - B||^2 / 2 + threshold penalty(Y)`` of the geometry; B is overwritten."""

    @abstractmethod
    def penalised_part(self, X: FloatArray) -> FloatArray:
        """The part of X, in the metric, that the penalty of the geometry sees; X is overwritten."""

    @abstractmethod
    def entries(self, X: FloatArray) -> FloatArray:
        """The entries that make up X in the geometry, as a vector: those of a triangle where X is symmetric."""

    @abstractmethod
    def matrix(self, entries: FloatArray) -> FloatArray:
        """The X of given entries in the geometry, with which it may share memory."""

    @abstractmethod
    def entry_scales(self) -> FloatArray | None:
        """The scales by which the geometry's :meth:`scale` multiplies the entries; None where all are 1."""

    @abstractmethod
    def typical_multiplier(self, trace: float) -> float:
        """The size of a dual matrix over that of X, both in the metric, for logarithms of the size of 1."""

    @abstractmethod
    def inner(self, X: FloatArray) -> float:
        """The penalty of the geometry at a dense X."""

    @abstractmethod
    def penalty(self, point: P) -> float:
        """The penalty of the geometry at a point in factors."""

    def factor_penalty(self, point: P) -> float:
        """The geometry's factor penalty: a smooth function whose least value over all factors of X is the penalty."""
        return self.penalty(point)

    @abstractmethod
    def penalty_gradient(self, W: FloatArray) -> FloatArray:
        """Half the gradient of the geometry's factor penalty, shape of W."""

    @abstractmethod
    def factor_gradients(self, G: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half the gradient over v and W of a function whose gradient over X is G."""

    @abstractmethod
    def independent_effects(self, A: FloatArray) -> FloatArray:
        """Effects of the best model of A without positions, by KL, in the geometry of X."""

    @abstractmethod
    def with_effects(self, X: FloatArray, v: FloatArray) -> FloatArray:
        """X with its entries raised by the effects v of the geometry, a new array."""

    @abstractmethod
    def margins(self, G: FloatArray) -> FloatArray:
        """Sums of G that belong to the effects of the geometry, shape of v."""

    @abstractmethod
    def log_margins(self, X: FloatArray) -> FloatArray:
        """Logarithms of the margins of ``exp(X)`` in the geometry, overflow or not."""

    @abstractmethod
    def scale_to_margins(self, Z: FloatArray, margins: FloatArray) -> None:
        """Scale the rows and columns of a nonnegative Z, in place, nearly to the margins that the geometry's effects see."""

    @abstractmethod
    def spectral_lack(self, g: FloatArray, trace: float) -> tuple[float, FloatArray | None]:
        """The largest multiple of g, up to 1, in the geometry's dual set, and the matrix that clips g; None if g is feasible.

        Adding that matrix raises eigenvalues, or lowers singular values, that are not feasible to the limit.
        """

    @abstractmethod
    def effects_step(self, H: FloatArray, residual: FloatArray) -> FloatArray:
        """Newton's step over the effects of the geometry for entrywise curvature H, overwritten; may raise LinAlgError."""

    @abstractmethod
    def contains(self, X: FloatArray, tolerance: float) -> bool:
        """Whether X lies in the geometry's set up to the tolerance."""

    @abstractmethod
    def canonical_factors(self, point: P) -> P:
        """Return the point of the geometry's set in factors that are unique but for ties."""

    def project(self, X: FloatArray, threshold: float = 0.0) -> P:
        """Return the geometry's projection argmin ``||S(Y - X)S||^2 / 2 + threshold penalty(Y)``, in factors."""
        return self.project_scaled(self.scale(X.copy()), threshold)


def log_row_sums(X: FloatArray) -> FloatArray:
    """Logarithms of the row sums of ``exp(X)``, overflow or not."""
    highest = X.max(axis=1)
    E = X - highest[:, None]
    return np.asarray(highest + np.log(np.exp(E, out=E).sum(axis=1)))
