"""Points of the convex problems, kept as factors where they have any."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray, add_effects


class Point(NamedTuple):
    """A point of a symmetric cone in factors: ``X = v1' + 1v' + WW'``."""

    v: FloatArray
    W: FloatArray

    def dense(self) -> FloatArray:
        """Return the X of a symmetric point itself, shape (n, n), symmetric to the last bit."""
        X: FloatArray = self.W @ self.W.T
        return add_effects(X, self.v, self.v)

    def restrict_to(self, nodes: NDArray[np.intp]) -> Point:
        """Return the symmetric point on a subset of the nodes."""
        return Point(self.v[nodes], self.W[nodes])

    def halves(self) -> tuple[Point, Point]:
        """Return log-scalings and embedding of the rows of a symmetric X and of its columns: one and the same."""
        return self, self


class PairedPoint(NamedTuple):
    """A rectangular point in factors: ``X = a1' + 1b' + W_1 W_2'``, rows first in ``v = (a, b)`` and ``W = (W_1, W_2)``."""

    v: FloatArray
    W: FloatArray
    n_rows: int

    def dense(self) -> FloatArray:
        """Return the X of a rectangular point itself, shape (m, n)."""
        X: FloatArray = self.W[: self.n_rows] @ self.W[self.n_rows :].T
        return add_effects(X, self.v[: self.n_rows], self.v[self.n_rows :])

    def restrict_to(self, nodes: NDArray[np.intp]) -> PairedPoint:
        """Return the rectangular point on a subset of rows and columns, columns counted after the rows."""
        return PairedPoint(self.v[nodes], self.W[nodes], int(np.count_nonzero(nodes < self.n_rows)))

    def halves(self) -> tuple[Point, Point]:
        """Return log-scalings and embedding of the rows of a rectangular X and of its columns."""
        m = self.n_rows
        return Point(self.v[:m], self.W[:m]), Point(self.v[m:], self.W[m:])


class MatrixPoint(NamedTuple):
    """A point of the sparse problem: a matrix that is itself the model, with factors ``X = WW'`` up to rounding."""

    matrix: FloatArray

    @property
    def v(self) -> FloatArray:
        """Zeros: a matrix as a point has no effects."""
        return np.zeros(len(self.matrix))

    @property
    def W(self) -> FloatArray:
        """Factors W of a matrix as a point, columns by decreasing weight, signs fixed."""
        values, vectors = np.linalg.eigh(self.matrix)
        keep = values > 1e-12 * len(values) * values[-1]
        values, vectors = values[keep][::-1], vectors[:, keep][:, ::-1]
        signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])])
        return np.asarray(vectors * (signs * np.sqrt(values)))

    def dense(self) -> FloatArray:
        """Return a copy of the X of a matrix as a point."""
        return self.matrix.copy()


FactorPoint = Point | PairedPoint
AnyPoint = FactorPoint | MatrixPoint
