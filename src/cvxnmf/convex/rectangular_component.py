"""Components of the nonsymmetric problem, with the nuclear norm and with the paper's penalty, and their dual points.

With g the gradient of the loss at X and f its floor, ``Z = (1 - shift)(g + f) + shift f`` lies in the domain of the dual, and
``Y = (1 - shift) g`` is as small as the penalty asks for (docs/mathematics.md). Where effects are free they are
balanced first, so that the margins of ``g + f`` are those of f; their rounding errors are then corrected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxnmf.convex.component import DenseComponent, Index
from cvxnmf.convex.dual import ABSURD, FIRST_PAD, Dual, Witness, clip_spectrum, prove_least_shift
from cvxnmf.convex.losses import PairedKullbackLeibler
from cvxnmf.convex.methods import Accelerated, Factored, LossSplitting, Methods, ProjectedGradient
from cvxnmf.convex.methods.schedules import paired_schedule, rectangular_schedule
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import add_outer, spectral_norm
from cvxnmf.linalg.row_chunks import cached_rows
from cvxnmf.results import AnyPoint

#: Relative error of one operation.
ROUNDOFF = float(np.finfo(np.float64).eps)
#: Methods of every rectangular problem beside its own.
PLAIN_METHODS: Methods = {
    "accelerated": Accelerated,
    "factored": Factored,
    "projected-gradient": ProjectedGradient,
}


@dataclass(frozen=True, eq=False)
class NuclearComponent(DenseComponent):
    """The rectangular component ``loss(A, exp(X)) + 2 trace ||X||_*`` on the rows and columns that carry data."""

    rows: Index
    columns: Index
    methods = {"adaptive": rectangular_schedule, "splitting": LossSplitting, **PLAIN_METHODS}

    @property
    def entries(self) -> Any:
        """Index of the rows and columns that carry data in a rectangular component."""
        return np.ix_(self.rows, self.columns)

    def dual_point(self, point: AnyPoint, candidate: FloatArray | None = None) -> Dual | None:
        """Rectangular dual point: the candidate, or the balanced gradient, singular values clipped at twice the trace.

        Clipping must stay in the domain of the dual, so that some values may still exceed the limit before all are shrunk.
        """
        loss, cone = self.loss, self.cone
        g = self.balanced_gradient(point) if candidate is None else candidate
        if not (-ABSURD < g.min() and g.max() < ABSURD):
            return None
        limit = 2.0 * self.trace
        if limit:
            clip_spectrum(loss, cone, g, self.trace)
        norm = spectral_norm(g)
        if not norm < np.inf:
            return None
        least = max(0.0, 1.0 - limit / norm) if norm > 0 else 0.0
        margins = _margins(loss.floor())
        size = sum(g.shape) * (float(np.linalg.norm(g)) / limit) ** 2 + 64 * float(margins[0].sum()) / limit

        def family(shift: float) -> Witness:
            Z: FloatArray = (1.0 - min(shift, 1.0)) * g
            Z += loss.floor()
            np.maximum(Z, 0.0, out=Z)
            if cone.free_effects:
                _mend_margins(Z, *margins)
            return {"Z": Z}

        return prove_least_shift(loss.A, self.statement, least, family, max(4 * ROUNDOFF * size, FIRST_PAD), largest=10.0)


@dataclass(frozen=True, eq=False)
class PairedComponent(DenseComponent):
    """The paper's nonsymmetric component ``KL(A || exp(X_12)) + weight (tr exp(X_11) + tr exp(X_22))``, X psd of m + n rows."""

    loss: PairedKullbackLeibler
    entries = ...
    methods = {"adaptive": paired_schedule, **PLAIN_METHODS}

    def dual_point(self, point: AnyPoint, candidate: FloatArray | None = None) -> Dual | None:
        """The dual point of the paper's nonsymmetric component: ``T = A + s(E - A)``, ``p = trace e^{X_ii}`` and q alike."""
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


def _margins(M: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Row and column sums of a rectangular dual matrix by pairwise summation, which needs contiguous rows."""
    return M.sum(axis=1), _column_sums(M)


def _column_sums(M: FloatArray) -> FloatArray:
    return np.concatenate([np.ascontiguousarray(M.T[columns]).sum(axis=1) for columns in cached_rows(M.T)])


def _mend_margins(Z: FloatArray, rows: FloatArray, columns: FloatArray, rounds: int = 2) -> None:
    """Give a rectangular dual Z its margins to the last digits: scale down the heavy, add the missing; in place."""
    for _ in range(rounds):
        Z *= np.minimum(1.0, rows / Z.sum(axis=1))[:, None]
        Z *= np.minimum(1.0, columns / _column_sums(Z))[None, :]
        missing, lacking = np.maximum(0.0, rows - Z.sum(axis=1)), np.maximum(0.0, columns - _column_sums(Z))
        total = min(float(missing.sum()), float(lacking.sum()))
        if total > 0:
            add_outer(Z, missing / missing.sum(), lacking * (total / lacking.sum()))
