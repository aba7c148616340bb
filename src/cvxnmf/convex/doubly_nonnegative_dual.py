"""Dual points of the doubly nonnegative problem: a nonnegative N, and the best S for it.

For given N the best S is the negative part of ``B + N``, turned positive; what is left, ``Z = B + S + N``, is its positive part.
At an optimal X, ``Z = X``: N lives where X vanishes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxnmf import validation
from cvxnmf.convex.doubly_nonnegative import DoublyNonnegativeProblem, Projection
from cvxnmf.convex.dual import Dual, Witness, accepted
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import definite_parts
from cvxnmf.results import MatrixPoint, Solution

#: Steps of dual ascent when only X is known.
ASCENT_STEPS = 60
#: First diagonal raise of S, per row and unit of its trace.
FIRST_PAD = 1e-15


def examined(problem: DoublyNonnegativeProblem, X: ArrayLike | Solution) -> tuple[float, list[Dual | None], bool]:
    """Value, dual point, and whether X had to be restored."""
    (block,) = problem.blocks
    if isinstance(X, Solution) and not (isinstance(X.point, MatrixPoint) and len(X.point.matrix) == problem.size):
        validation.refuse(f"X is a Solution of another problem; give one of a sparse problem of {problem.size} nodes.")
    whole = problem.matrix(X.X if isinstance(X, Solution) else X)
    restored = not block.contains(whole)
    point = block.restored(whole) if restored else MatrixPoint(whole)
    return block.objective(point), [dual_point(problem, block, point.matrix)], restored


def dual_point(
    problem: DoublyNonnegativeProblem, block: Projection, X: FloatArray, multiplier: FloatArray | None = None
) -> Dual | None:
    """Return the dual point of the multiplier N of ``X >= 0``; if it is not given, N is sought from X by dual ascent."""
    N = _ascended(block, X) if multiplier is None else np.maximum(multiplier, 0.0)
    S = definite_parts(block.B + N)[1]
    unit = float(np.trace(S))

    def family(shift: float) -> Witness:
        raised = S.copy()
        raised.flat[:: len(S) + 1] += shift * unit
        return {"S": raised, "N": N}

    return accepted(block.A, problem.statement, 0.0, family, FIRST_PAD * len(S), largest=1.0)


def _ascended(block: Projection, X: FloatArray) -> FloatArray:
    """Accelerated ascent of the dual over N >= 0, started where X says N must live."""
    B = block.B
    N = np.where(X <= 1e-9 * X.max(initial=0.0), np.maximum(0.0, X - B), 0.0)
    ahead, weight = N, 1.0
    for _ in range(ASCENT_STEPS):
        following = np.maximum(0.0, ahead - definite_parts(B + ahead)[0])
        if float(np.vdot(ahead - following, following - N)) > 0:
            weight = max(1.0, 0.5 * weight)
        longer = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * weight**2))
        ahead, N, weight = following + (weight - 1.0) / longer * (following - N), following, longer
    return N
