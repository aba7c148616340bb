"""Components of the nonsymmetric problem, with the nuclear norm and with the paper's penalty, and their dual points.

With g the gradient of the loss at X and f its floor, ``Z = (1 - shift)(g + f) + shift f`` lies in the domain of the dual, and
``Y = (1 - shift) g`` is as small as the penalty asks for (docs/mathematics.md). Where effects are free they are
balanced first, so that the margins of ``g + f`` are those of f; what is left of their rounding is mended exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxnmf.convex.component import DenseComponent, Index
from cvxnmf.convex.cones import PSD
from cvxnmf.convex.dual import ABSURD, FIRST_PAD, Dual, Witness, prove_least_shift
from cvxnmf.convex.losses import PairedKullbackLeibler
from cvxnmf.convex.methods import (
    Accelerated,
    Factored,
    Method,
    NuclearSplitting,
    PairedAdaptive,
    ProjectedGradient,
    RectangularAdaptive,
)
from cvxnmf.convex.nuclear import NuclearNorm
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import add_outer, singular_triples_above, spectral_norm
from cvxnmf.results import AnyPoint

#: Relative error of one operation.
ROUNDOFF = float(np.finfo(np.float64).eps)
#: Rounds of clipping the singular values of a dual point.
CLIPPING_ROUNDS = 3
#: A clipped dual point keeps at least this share of its distance to the edge of the domain.
INSIDE = 0.02
#: Methods of every rectangular problem beside its own.
PLAIN_METHODS: Mapping[str, Callable[[Any, Any], Method]] = {
    "accelerated": Accelerated,
    "factored": Factored,
    "projected-gradient": ProjectedGradient,
}


@dataclass(frozen=True, eq=False)
class NuclearComponent(DenseComponent[NuclearNorm]):
    """``loss(A, exp(X)) + 2 trace ||X||_*`` on the rows and columns that carry data."""

    rows: Index
    columns: Index
    methods = {"adaptive": RectangularAdaptive, "splitting": NuclearSplitting, **PLAIN_METHODS}

    @property
    def entries(self) -> Any:
        """Rows and columns that carry data."""
        return np.ix_(self.rows, self.columns)

    def dual_point(self, point: AnyPoint, candidate: FloatArray | None = None) -> Dual | None:
        """The candidate, or the gradient at balanced effects, its singular values clipped at twice the trace as well as possible.

        What is left beyond is taken off by shrinking.
        """
        loss, cone = self.loss, self.cone
        g = self.balanced_gradient(point) if candidate is None else candidate
        if not (-ABSURD < g.min() and g.max() < ABSURD):
            return None
        floor, limit = loss.floor(), 2.0 * self.trace
        g = self._clip_spectrum(g, limit) if limit else g
        norm = spectral_norm(g)
        if not norm < np.inf:
            return None
        least = max(0.0, 1.0 - limit / norm) if norm > 0 else 0.0
        pad = 4 * ROUNDOFF * (sum(g.shape) * float(np.vdot(g / limit, g / limit)) + 64 * float(floor.sum()) / limit)

        def family(shift: float) -> Witness:
            Z: FloatArray = (1.0 - min(shift, 1.0)) * g
            Z += floor
            np.maximum(Z, 0.0, out=Z)
            return {"Z": _with_margins_of(floor, Z) if cone.free_effects else Z}

        return prove_least_shift(loss.A, self.statement, least, family, max(pad, FIRST_PAD), largest=10.0)

    def _clip_spectrum(self, g: FloatArray, limit: float) -> FloatArray:
        """The best of some rounds of clipping singular values, staying in the domain of the dual, and mending the margins.

        Shrinking all of g because of one singular value would be ruinous where the data span a wide range.
        """
        floor = self.loss.floor()
        lowest = INSIDE * (g + floor) - floor
        best, best_bound = g, -np.inf
        for remaining in reversed(range(CLIPPING_ROUNDS + 1)):
            left, values, right = singular_triples_above(g, limit)
            shrunk = g * min(1.0, limit / values.max(initial=limit))
            bound = self.loss.dual_value(shrunk)
            if bound > best_bound:
                best, best_bound = g, bound
            if not len(values) or not remaining:
                break
            clipped = g - (left * (values - limit)) @ right.T
            g = _scaled_to_margins(floor, np.maximum(clipped, lowest) + floor, self.cone.free_effects) - floor
        return best


@dataclass(frozen=True, eq=False)
class PairedComponent(DenseComponent[PSD]):
    """``KL(A || exp(X_12)) + weight (tr exp(X_11) + tr exp(X_22))`` over a positive semidefinite X of m + n rows."""

    loss: PairedKullbackLeibler
    entries = ...
    methods = {"adaptive": PairedAdaptive, **PLAIN_METHODS}

    def dual_point(self, point: AnyPoint, candidate: FloatArray | None = None) -> Dual | None:
        """``T = A + s(E - A)``, ``p = trace e^{X_ii}`` and q alike."""
        A, X, m = self.loss.rectangle, point.dense(), len(self.loss.rectangle)
        diagonal = self.loss.weight * np.exp(np.diag(X))
        p, q, G = diagonal[:m], diagonal[m:], np.exp(X[:m, m:]) - A
        if not (np.all(np.abs(G) < ABSURD) and np.all((diagonal > 1e-100) & (diagonal < 1e100))):
            return None
        norm = spectral_norm(0.5 * G / np.sqrt(np.outer(p, q)))
        if not norm < np.inf:
            return None
        least = max(0.0, 1.0 - 1.0 / norm) if norm > 0 else 0.0

        def family(shift: float) -> Witness:
            return {"Z": np.maximum(0.0, A + (1.0 - min(shift, 1.0)) * G), "p": p, "q": q}

        return prove_least_shift(A, self.statement, least, family, FIRST_PAD, largest=10.0)


def _scaled_to_margins(floor: FloatArray, Z: FloatArray, free_effects: bool, rounds: int = 30) -> FloatArray:
    """Z, its rows and columns scaled in turns until they sum to those of the floor; only where effects are free must they."""
    if free_effects:
        rows, columns = floor.sum(axis=1), floor.sum(axis=0)
        for _ in range(rounds):
            Z *= (rows / Z.sum(axis=1))[:, None]
            Z *= columns / Z.sum(axis=0)
    return Z


def _with_margins_of(floor: FloatArray, Z: FloatArray, rounds: int = 2) -> FloatArray:
    """Give Z the margins of the floor to the last digits: scale down what is too heavy, add what is missing."""
    rows, columns = floor.sum(axis=1), _column_sums(floor)
    for _ in range(rounds):
        Z *= np.minimum(1.0, rows / Z.sum(axis=1))[:, None]
        Z *= np.minimum(1.0, columns / _column_sums(Z))[None, :]
        missing, lacking = np.maximum(0.0, rows - Z.sum(axis=1)), np.maximum(0.0, columns - _column_sums(Z))
        total = min(float(missing.sum()), float(lacking.sum()))
        if total > 0:
            add_outer(Z, missing / missing.sum(), lacking * (total / lacking.sum()))
    return Z


def _column_sums(M: FloatArray) -> FloatArray:
    """Column sums by pairwise summation, which needs contiguous columns."""
    return np.asarray(np.ascontiguousarray(M.T).sum(axis=1))
