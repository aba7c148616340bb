"""The best effects at given positions: those for which the margins of the gradient vanish.

They minimise the loss over the effects, on which no penalty depends.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from cvxnmf.convex.geometry import AnyGeometry
from cvxnmf.convex.losses import Loss
from cvxnmf.linalg.arrays import FloatArray

#: Margins of the gradient below this share of the data's need no multiplicative steps.
NEAR = 0.3
#: No effect moves by more than this in one step.
LONGEST_STEP = 2.0


def balancing_effects(loss: Loss, cone: AnyGeometry, X: FloatArray, max_iter: int = 40) -> FloatArray:
    """Return effects v for which the gradient at X with effects v has vanishing margins.

    Damped Newton steps; where the margins are far from zero, a few multiplicative steps towards the margins of A come first.
    """
    v = np.zeros(len(cone.s))
    weights = cone.margins(loss.floor())

    def slope(v: FloatArray) -> tuple[float, FloatArray, float]:
        there = cone.with_effects(X, v)
        value, g = loss.value_and_gradient(there, out=there)
        residual = cone.margins(g)
        return value, residual, float(np.max(np.abs(residual) / weights))

    value, residual, size = slope(v)
    if not size < NEAR:
        v = _matching_effects(loss, cone, X)
        value, residual, size = slope(v)
    for _ in range(max_iter):
        step = _newton_step(loss, cone, cone.with_effects(X, v), residual) if 1e-15 < size < np.inf else None
        if step is None:
            break
        for damping in (1.0, 0.5, 0.25, 0.1, 0.01):
            value_there, residual_there, size_there = slope(v + damping * step)
            if size_there < size or value_there < value - 1e-12 * abs(value):
                break
        else:
            break
        v, value, residual, size = v + damping * step, value_there, residual_there, size_there
    return v


def _newton_step(loss: Loss, cone: AnyGeometry, X: FloatArray, residual: FloatArray) -> FloatArray | None:
    """Newton's step for the balancing effects at X, overwritten, bounded in length; None if the Hessian is singular."""
    try:
        step = cone.effects_step(loss.curvature(X, out=X), residual)
    except sl.LinAlgError:
        return None
    longest = float(np.abs(step).max())
    return step * min(1.0, LONGEST_STEP / longest) if 0 < longest < np.inf else None


def _matching_effects(loss: Loss, cone: AnyGeometry, X: FloatArray, max_iter: int = 10) -> FloatArray:
    """First effects, which bring the margins of ``exp(X)`` within a factor of two of those of A, overflow or not."""
    target = np.log(cone.margins(loss.A))
    v = np.zeros(len(target))
    for _ in range(max_iter):
        logs = cone.with_effects(X, v)
        if loss.ignore_diagonal:
            np.fill_diagonal(logs, -np.inf)
        ratio = target - cone.log_margins(logs)
        if np.abs(ratio).max() < 0.5:
            break
        v += 0.5 * ratio
    return v
