"""One piece of a problem whose model is never formed: KL on the conditional cone, with a penalty, of sparse data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse.linalg as spl

from cvxnmf.convex.cones import Cone
from cvxnmf.convex.model_operator import Model
from cvxnmf.convex.problem import Index
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.leading import operator_pairs
from cvxnmf.results import Point

#: Newton steps for the effects, and the residual, as a share of the degrees, that ends them.
NEWTON_STEPS, BALANCED = 20, 1e-14
#: No effect moves by more than this in one step.
LONGEST_STEP = 2.0
#: Weights of directions that enter together are lowered to this share at most.
SMALLEST_SHARE = 1e-4
#: Directions that are looked for at first.
FIRST_DIRECTIONS = 8


@dataclass(frozen=True, eq=False)
class StreamedBlock:
    """The nodes that carry data, with products in place of matrices.

    Attributes
    ----------
    nodes : ndarray of int
        Rows of the whole v and W that this piece covers.
    A : csr_array
        The data on these nodes.
    coarse_start : bool
        Whether a first descent may work in single precision; nothing else does.
    """

    nodes: Index
    A: Any
    cone: Cone
    trace: float
    coarse_start: bool = False
    lower: None = None

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @cached_property
    def degrees(self) -> FloatArray:
        """Row sums of the data."""
        return np.asarray(self.A.sum(axis=1)).ravel()

    @property
    def scale(self) -> float:
        """The size of the data."""
        return float(self.degrees.sum())

    @cached_property
    def constant(self) -> float:
        """The part of the loss that does not depend on X, ``sum A log A - A``."""
        return float(np.sum(self.A.data * np.log(self.A.data)) - self.A.data.sum())

    @property
    def average_curvature(self) -> float:
        """Mean curvature of the loss in the metric at the model without positions."""
        return self.scale / self.cone.total_weight

    def slopes(self, point: Point) -> tuple[float, FloatArray, FloatArray]:
        """Loss at a point, and half its gradients over v and W: ``(E - A)1`` and ``(E - A)W``."""
        v, W = point
        product = self._model(point) @ np.column_stack([np.ones(self.size), W])
        AW = self.A @ W
        inner = 2.0 * float(v @ self.degrees) + float(np.vdot(AW, W))
        total = float(product[:, 0].sum()) - inner + self.constant
        loss = max(0.0, total) if total < np.inf else np.inf
        return loss, product[:, 0] - self.degrees, product[:, 1:] - AW

    def _model(self, point: Point) -> Model:
        return Model(*point)

    def for_first_descent(self) -> StreamedBlock:
        """The same, in single precision if that was asked for."""
        return CoarseBlock(self.nodes, self.A, self.cone, self.trace) if self.coarse_start else self

    def objective(self, point: Point) -> float:
        """Loss plus penalty."""
        return self.slopes(point)[0] + self.trace * self.cone.penalty(point)

    def start(self) -> Point:
        """The best model without positions."""
        return Point(np.log(self.degrees) - 0.5 * np.log(self.scale), np.zeros((self.size, 0)))

    def best_start(self, given: Point | FloatArray | None = None) -> Point:
        """The better of the start above and the user's."""
        if isinstance(given, np.ndarray):
            given = self.cone.project(np.clip(given, -1e6, 1e6))
        if given is None or not np.isfinite(given.v).all() or not self.objective(given) < self.objective(self.start()):
            return self.start()
        return given

    def balanced(self, point: Point) -> Point:
        """Return the point with the best effects for its positions, those for which ``E1 = A1``.

        Newton's method, ``(E + Diag(E1)) step = A1 - E1``, by conjugate gradients.
        """
        v, best, least = point.v, point.v, np.inf
        for _ in range(NEWTON_STEPS):
            model = Model(v, point.W)
            sums = model @ np.ones(self.size)
            size = float(np.max(np.abs(sums - self.degrees) / self.degrees))
            if not size < least:
                break
            best, least = v, size
            if size < BALANCED:
                break
            v = v + self._newton_step(model, sums)
        return Point(best, point.W)

    def _newton_step(self, model: Model, sums: FloatArray) -> FloatArray:
        roots = np.sqrt(sums)  # scaled by them, the matrix is I plus one of norm 1
        operator = spl.LinearOperator(
            (self.size, self.size), matvec=lambda x: x + model.nearly_times(x / roots) / roots, dtype=np.float64
        )
        step, _ = spl.cg(operator, (self.degrees - sums) / roots, rtol=1e-6, maxiter=50)
        step = step / roots
        return np.asarray(step * min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-300)))

    def directions(self, point: Point, count: int) -> tuple[FloatArray, FloatArray]:
        """The largest eigenvalues of ``S^-1 (A - E) S^-1`` at a balanced point, decreasing, and ``S^-1`` times their vectors."""
        model, s = Model(*point), self.cone.s

        def product(x: FloatArray) -> FloatArray:
            y = np.asarray(x).ravel() / s
            return np.asarray((self.A @ y - model.nearly_times(y)) / s)

        values, vectors = operator_pairs(product, self.size, count)
        return values, vectors / s[:, None]

    def largest_eigenvalue(self, point: Point) -> float:
        """The largest eigenvalue of ``S^-1 (A - E) S^-1`` at a balanced point.

        At an optimum it is the trace, once for every direction of the positions: a cluster that iterations resolve badly, so
        that the best value is taken over the positions and what the iterations find, by exact products.
        """
        s = self.cone.s
        _, Y = self.directions(point, 1)
        Q = np.linalg.qr(s[:, None] * np.column_stack([point.W, Y]))[0]
        B = Q / s[:, None]
        small = B.T @ (self.A @ B - Model(*point) @ B)
        return float(np.linalg.eigvalsh((small + small.T) / 2)[-1])

    def entering(self, point: Point) -> tuple[FloatArray, FloatArray]:
        """All pairs of :meth:`directions` above the penalty: a model without them can be improved."""
        count = FIRST_DIRECTIONS
        while True:
            values, Y = self.directions(point, min(count, self.size - 1))
            if values[-1] <= self.trace or count >= self.size - 1:
                return values[values > self.trace], Y[:, values > self.trace]
            count *= 2

    def with_entering(self, point: Point) -> Point:
        """The point with the directions that enter, each as heavy as its slope and curvature suggest."""
        point = self.balanced(point)
        values, Y = self.entering(point)
        if not len(values):
            return point
        squares = Y * Y
        curvature = np.sum(squares * (Model(*point) @ squares), axis=0)
        weights = np.minimum((values - self.trace) / curvature, 1.0 / np.max(squares, axis=0))
        before, share = self.objective(point), 1.0
        while True:  # each weight is right for its direction alone; together they may be too much
            raised = Point(point.v, np.column_stack([point.W, Y * np.sqrt(share * weights)]))
            if self.objective(raised) <= before or share < SMALLEST_SHARE:
                return raised
            share *= 0.3


class CoarseBlock(StreamedBlock):
    """The same with slopes in single precision."""

    def _model(self, point: Point) -> Model:
        return Model(*point, single=True)
