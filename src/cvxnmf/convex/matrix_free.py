"""A component whose model is never formed: KL on the conditional cone, with a penalty, of sparse data.

Its dual point: with ``G = E - A`` at balanced effects, ``G1 = 0``, and ``Y = trace N + share G`` is in the dual cone if share
times the largest eigenvalue of ``S^-1 (A - E) S^-1`` is at most the trace. Then ``Z = (1 - share) A + share E`` is the dual
point. Its witness is the share and the factors of the model; the last rounding of the row sums is put on the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse.linalg as spl

from cvxnmf.certificates import CertificateError, Statement
from cvxnmf.certificates.data import sparse_graph
from cvxnmf.certificates.matrix_free import LARGEST_DENSE, MatrixFreeDual, room_for_errors
from cvxnmf.convex.component import Certified, FactorComponent, Index
from cvxnmf.convex.cones import Cone
from cvxnmf.convex.dual import Dual, Witness, prove_least_shift
from cvxnmf.convex.losses import kl_constant
from cvxnmf.convex.methods import MatrixFreeDescent
from cvxnmf.convex.model_operator import Model, leading_pivots
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.leading import operator_pairs
from cvxnmf.results import AnyPoint, FactorPoint, Point

#: Newton steps for the effects, and the residual, as a share of the degrees, that ends them.
NEWTON_STEPS, BALANCED = 20, 1e-14
#: No effect moves by more than this in one step.
LONGEST_STEP = 2.0
#: Weights of directions that enter together are lowered to this share at most.
SMALLEST_SHARE = 1e-4
#: Directions that are looked for at first.
FIRST_DIRECTIONS = 8
#: Up to this many nodes a solve goes on with dense matrices if it stalls, or if the rank is above this share of the nodes.
LARGEST_FALLBACK, HIGH_RANK = 3000, 0.1
#: Smallest decrease of the dual point's share below the computed one, and as a part of its distance from 1.
FIRST_PAD, RELATIVE_PAD = 1e-9, 0.05
#: Bounds of large graphs are probable where that costs at most this share of the value; else eigenvalues that iterations found
#: are trusted, up to so much.
LITTLE, LARGE_PAD = 1e-4, 1e-3
#: Decreases of the share with which a rigorous proof is tried, and the columns of the model that it may take.
RIGOROUS_PADS, MOST_PIVOTS = (1e-3, 1e-4, 1e-5), 1000
#: Penalties below count as none.
TINY = 1e-300
#: From this many nodes on the check, which forms the model, gains by several threads; products have threads of their own.
THREADS_FROM = 2500


@dataclass(frozen=True, eq=False)
class MatrixFreeComponent(FactorComponent):
    """A matrix-free component: nodes that carry data, A in compressed rows on them, products in place of matrices.

    With `first_single` the first descent works in single precision; nothing else does. With more than `largest_dense` nodes no
    dense matrices are formed in proofs, which are rigorous if at most `most_pivots` columns of the model are nearly all of it.
    """

    nodes: Index
    A: Any
    cone: Cone
    trace: float
    statement: Statement
    first_single: bool = False
    largest_dense: int = LARGEST_DENSE
    most_pivots: int = MOST_PIVOTS

    certifies_start = False  # a certificate costs as much as a step, which is needed anyway
    matrix_free = True
    methods = {"factored": MatrixFreeDescent}
    dense_methods = ("accelerated", "projected-gradient", "adaptive")
    threads_from = THREADS_FROM

    @property
    def high_rank(self) -> int:
        """Columns of W from which on dense matrices are faster than matrix-free ones; larger graphs have no such rank."""
        return max(FIRST_DIRECTIONS, int(HIGH_RANK * self.size)) if self.size <= LARGEST_FALLBACK else self.size

    def in_single_precision(self) -> MatrixFreeComponent:
        """Return the matrix-free component with a first descent in single precision."""
        return replace(self, first_single=True)

    @cached_property
    def degrees(self) -> FloatArray:
        """Degrees of the nodes of a matrix-free component, the row sums of its data."""
        return np.asarray(self.A.sum(axis=1)).ravel()

    @property
    def scale(self) -> float:
        """The size of the data of a matrix-free component, the sum of degrees."""
        return float(self.degrees.sum())

    @cached_property
    def constant(self) -> float:
        """The part of a matrix-free component's loss that does not depend on X, ``sum A log A - A``."""
        return kl_constant(self.A.data)

    @property
    def average_curvature(self) -> float:
        """Mean curvature of a matrix-free component's loss in the metric at the model without positions."""
        return self.scale / self.cone.total_weight

    def slopes(self, point: FactorPoint, single: bool = False) -> tuple[float, FloatArray, FloatArray]:
        """Matrix-free loss at a point, and half its gradients over v and W: ``(E - A)1`` and ``(E - A)W``."""
        v, W = point.v, point.W
        product = Model(v, W, single) @ np.column_stack([np.ones(self.size), W])
        AW = self.A @ W
        inner = 2.0 * float(v @ self.degrees) + float(np.vdot(AW, W))
        total = float(product[:, 0].sum()) - inner + self.constant
        loss = max(0.0, total) if total < np.inf else np.inf
        return loss, product[:, 0] - self.degrees, product[:, 1:] - AW

    def value(self, point: FactorPoint) -> float:
        """Loss plus penalty of a matrix-free component at a point."""
        return self.slopes(point)[0] + self.trace * self.cone.penalty(point)

    def independent_model(self) -> Point:
        """The best model without positions of a matrix-free component, from its degrees."""
        return Point(np.log(self.degrees) - 0.5 * np.log(self.scale), np.zeros((self.size, 0)))

    def balance_effects(self, point: FactorPoint) -> Point:
        """Return a matrix-free component's point with the best effects for its positions, those for which ``E1 = A1``.

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
            (self.size, self.size), matvec=lambda x: x + model.times_in_single_precision(x / roots) / roots, dtype=np.float64
        )
        step, _ = spl.cg(operator, (self.degrees - sums) / roots, rtol=1e-6, maxiter=50)
        step = step / roots
        return np.asarray(step * min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-300)))

    def directions(self, point: Point, count: int) -> tuple[FloatArray, FloatArray]:
        """The largest eigenvalues of ``S^-1 (A - E) S^-1`` at a balanced point, decreasing, and ``S^-1`` times their vectors."""
        model, s = Model(*point), self.cone.s

        def product(x: FloatArray) -> FloatArray:
            y = np.asarray(x).ravel() / s
            return np.asarray((self.A @ y - model.times_in_single_precision(y)) / s)

        values, vectors = operator_pairs(product, self.size, count)
        return values, vectors / s[:, None]

    def largest_eigenvalue(self, point: Point) -> float:
        """The largest eigenvalue of ``S^-1 (A - E) S^-1`` at a balanced point.

        At an optimum it is the trace, once for every direction of the positions: a cluster that iterations resolve badly, so
        that the best value is taken over the positions and what the iterations find, by exact products.
        """
        return self._ritz_value(point, np.column_stack([point.W, self.directions(point, 1)[1]]))

    def _ritz_value(self, point: Point, Y: FloatArray) -> float:
        """The largest eigenvalue of ``S^-1 (A - E) S^-1`` in the span of SY."""
        s = self.cone.s
        B = np.linalg.qr(s[:, None] * Y)[0] / s[:, None]
        small = B.T @ (self.A @ B - Model(*point) @ B)
        return float(np.linalg.eigvalsh((small + small.T) / 2)[-1])

    def entering_directions(self, point: Point) -> tuple[FloatArray, FloatArray]:
        """Pairs of :meth:`directions` above the penalty, up to a high rank: with them a matrix-free model improves."""
        count, most = FIRST_DIRECTIONS, min(self.high_rank, self.size - 1)
        while True:
            values, Y = self.directions(point, min(count, most))
            if values[-1] <= self.trace or count >= most:
                return values[values > self.trace], Y[:, values > self.trace]
            count *= 2

    def add_entering_directions(self, point: Point) -> Point:
        """The matrix-free point with the directions that enter, each as heavy as slope and curvature suggest."""
        point = self.balance_effects(point)
        values, Y = self.entering_directions(point)
        if not len(values):
            return point
        squares = Y * Y
        curvature = np.sum(squares * (Model(*point) @ squares), axis=0)
        weights = np.minimum((values - self.trace) / curvature, 1.0 / np.max(squares, axis=0))
        before, share = self.value(point), 1.0
        while True:  # each weight is right for its direction alone; together they may be too much
            raised = Point(point.v, np.column_stack([point.W, Y * np.sqrt(share * weights)]))
            if self.value(raised) <= before or share < SMALLEST_SHARE:
                return raised
            share *= 0.3

    def certify(self, point: FactorPoint, value: float = np.nan, candidate: FloatArray | None = None) -> Certified:
        """A matrix-free component's point with balanced effects, its value, and a dual point that the check accepts."""
        point = self.balance_effects(point)
        loss, residual, _ = self.slopes(point)
        penalty = self.trace * self.cone.penalty(point)

        def witness(share: float) -> Witness:
            shares = np.array([share])
            return {"v": point.v, "W": point.W, "metric": self.cone.s, "share": shares, "diagonal": -shares * residual}

        if self.size > self.largest_dense:
            return Certified(point, loss + penalty, self._large_dual(point, witness, penalty, LITTLE * loss))
        largest = self.largest_eigenvalue(point)
        least = max(0.0, 1.0 - self.trace / largest) if largest > 0 else 0.0
        pad = max(FIRST_PAD, RELATIVE_PAD * least)
        dual = prove_least_shift(self.A, self.statement, least, lambda shift: witness(1.0 - min(shift, 1.0)), pad, largest=1.1)
        return Certified(point, loss + penalty, dual)

    def _large_dual(self, point: Point, witness: Callable[[float], Witness], penalty: float, little: float) -> Dual | None:
        """Matrix-free dual point of a large graph: rigorous if possible, or probable if the bound loses at most `little`."""
        share, probable = 0.0, False
        try:
            dual = MatrixFreeDual(sparse_graph(self.A), point.v, point.W, self.cone.s)
            proved = self._proved_share(dual, point, little / max(penalty, TINY))
            if proved is not None:
                share, pivots = proved
                proof = dual.rigorous_proof(share)
                return Dual({**witness(share), "pivots": pivots}, proof.bound, proof.rigorous)
            for upper, found in dual.largest_eigenvalues():
                safe, share = (min(1.0, self.trace / max(value, self.trace)) for value in (upper, found))
                probable = (share - safe) * penalty <= little
                if probable:
                    share = safe
                    break
            share *= 1.0 - (FIRST_PAD if probable else LARGE_PAD)
            proof = dual.proof(share, probable)
        except CertificateError:
            return None
        return Dual(witness(share), proof.bound, proof.rigorous, proof.probable)

    def _proved_share(self, dual: MatrixFreeDual, point: Point, largest_pad: float) -> tuple[float, FloatArray] | None:
        """The largest share of the gradient proved to be dual feasible with all rounding errors, and its pivots."""
        edge = self._ritz_value(point, point.W) if point.W.size else 0.0
        best, model = None, dual.model
        for pad in (pad for pad in RIGOROUS_PADS if pad <= largest_pad):
            share = min(1.0, self.trace / max(edge, self.trace)) * (1.0 - pad)
            pivots = leading_pivots(model.columns, model.diagonal(), room_for_errors(share, self.trace), self.most_pivots)
            try:
                if pivots is None or not dual.is_in_cone(share, self.trace, pivots):
                    break
            except CertificateError:
                break
            best = share, pivots
        return best

    def dual_point(self, point: AnyPoint, candidate: FloatArray | None = None) -> Dual | None:
        """Return a matrix-free dual point, accepted by the check, for the point with balanced effects."""
        return self.certify(Point(point.v, point.W)).dual
