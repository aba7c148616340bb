"""Dual points of nonsymmetric problems.

With g the gradient of the loss at X and f its floor, ``Z = (1 - shift)(g + f) + shift f`` lies in the domain of the dual, and
``Y = (1 - shift) g`` is as small as the penalty asks for (docs/mathematics.md). Where effects are free they are
balanced first, so that the margins of ``g + f`` are those of f; what is left of their rounding is mended exactly.
"""

from __future__ import annotations

import numpy as np

from cvxnmf.certificates import Statement
from cvxnmf.convex.component import DenseComponent
from cvxnmf.convex.dual import ABSURD, FIRST_PAD, Dual, Witness, prove_least_shift
from cvxnmf.convex.effects import balancing_effects
from cvxnmf.convex.nuclear import NuclearNorm
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import add_outer, spectral_norm

#: Relative error of one operation.
ROUNDOFF = float(np.finfo(np.float64).eps)


def nuclear_dual_point(component: DenseComponent[NuclearNorm], X: FloatArray) -> Dual | None:
    """Return a dual point for X: the gradient, shrunk until its spectral norm is at most twice the trace."""
    loss, cone = component.loss, component.cone
    if cone.free_effects:
        X = cone.with_effects(X, balancing_effects(loss, cone, X))
    _, g = loss.value_and_gradient(X)
    if not (-ABSURD < g.min() and g.max() < ABSURD):
        return None
    floor, limit = loss.floor(), 2.0 * component.trace
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

    return prove_least_shift(loss.A, component.statement, least, family, max(pad, FIRST_PAD), largest=10.0)


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


def paper_dual_point(A: FloatArray, trace: float, statement: Statement, X: FloatArray) -> Dual | None:
    """Return a dual point for the paper's penalty: ``T = A + s(E - A)``, ``p = trace e^{X_ii}`` and q alike."""
    m = len(A)
    diagonal = trace * np.exp(np.diag(X))
    p, q, G = diagonal[:m], diagonal[m:], np.exp(X[:m, m:]) - A
    if not (np.all(np.abs(G) < ABSURD) and np.all((diagonal > 1e-100) & (diagonal < 1e100))):
        return None
    norm = spectral_norm(0.5 * G / np.sqrt(np.outer(p, q)))
    if not norm < np.inf:
        return None
    least = max(0.0, 1.0 - 1.0 / norm) if norm > 0 else 0.0

    def family(shift: float) -> Witness:
        return {"Z": np.maximum(0.0, A + (1.0 - min(shift, 1.0)) * G), "p": p, "q": q}

    return prove_least_shift(A, statement, least, family, FIRST_PAD, largest=10.0)
