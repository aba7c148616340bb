"""Dual points of symmetric problems.

With g the gradient of the loss at X and f its floor, ``Z = g + f >= 0`` always lies in the domain of the dual, and one
shift puts ``Y = Z - f + trace N`` into the dual cone (docs/mathematics.md):

    psd            Z + shift S^2                              S^2 is inside the cone
    conditional    (1 - shift) Z + shift Diag(f1)             g1 = 0 by the effects; shift = 1 gives a Laplacian
    free diagonal  (1 - shift) Z + shift f                    shift = 1 gives Y = trace N

Under a lower limit on X the gradient is first lowered by the limit's multiplier.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as sl

from cvxnmf.convex.component import DenseComponent
from cvxnmf.convex.cones import Cone
from cvxnmf.convex.dual import ABSURD, FIRST_PAD, Dual, Witness, prove_least_shift
from cvxnmf.convex.effects import balancing_effects
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import add_outer, smallest_eigenvalue

#: An entry of X closer than this to its lower limit counts as touching it.
TOUCHING = 1e-3


def dual_point(component: DenseComponent[Cone], X: FloatArray, multiplier: FloatArray | None = None) -> Dual | None:
    """Return a dual point for X in the cone; under a lower limit on X the gradient is first lowered to the multiplier."""
    loss, cone = component.loss, component.cone
    if multiplier is None and cone.free_effects:
        X = cone.with_effects(X, balancing_effects(loss, cone, X))
    _, g = loss.value_and_gradient(X)
    del X
    if not (-ABSURD < g.min() and g.max() < ABSURD):
        return None
    if multiplier is not None:  # lower the gradient towards the multiplier where the limit on X allows it: where A > 0
        g -= np.where(loss.A > 0, np.maximum(0.0, g - multiplier), 0.0)
    try:
        least, family = _shifted_family(component, g)
    except sl.LinAlgError:
        return None
    del g  # the check below needs the room

    def witness(shift: float) -> Witness:
        Z = family(shift)
        return {"Z": Z if np.array_equal(Z, Z.T) else (Z + Z.T) / 2, "metric": cone.s}

    return prove_least_shift(loss.A, component.statement, least, witness, FIRST_PAD * component.size)


Family = Callable[[float], FloatArray]


def _shifted_family(component: DenseComponent[Cone], g: FloatArray) -> tuple[float, Family]:
    """The least shift that makes the gradient dual feasible, and the dual point for any shift."""
    if component.loss.ignore_diagonal:
        return _shrunk_family(component, g)
    if component.cone.free_effects:
        return _blended_family(component, g)
    return _raised_family(component, g)


def _raised_family(component: DenseComponent[Cone], g: FloatArray) -> tuple[float, Family]:
    """Raise the diagonal: ``Z + shift S^2``."""
    t = component.cone.s**2
    unit = max(1e-300, float(g.max()), -float(g.min()))
    lowest = component.cone.smallest_eigenvalue(g) + component.trace
    Z = g + component.loss.floor()

    def family(shift: float) -> FloatArray:
        raised = Z.copy()
        raised.flat[:: len(Z) + 1] += shift * unit * t
        return raised

    return max(0.0, -lowest) / unit, family


def _shrunk_family(component: DenseComponent[Cone], g: FloatArray) -> tuple[float, Family]:
    """Shrink the gradient: ``Y = trace N + (1 - shift) g``."""
    floor = component.loss.floor()
    lowest = component.cone.smallest_eigenvalue(g)
    if component.cone.free_effects:
        g = _rows_summing_to_zero(g)
    bounded = np.where(component.loss.A == 0, 0.0, -np.inf) if component.loss.limited else 0.0

    def family(shift: float) -> FloatArray:
        Z: FloatArray = (1.0 - min(shift, 1.0)) * g
        Z += floor
        return np.maximum(Z, bounded, out=Z)  # no lower than the edge of the domain, by rounding

    return max(0.0, 1.0 - component.trace / -lowest) if lowest < 0 else 0.0, family


def _rows_summing_to_zero(g: FloatArray) -> FloatArray:
    """Take the last rounding out of the row sums by ``x_i + x_j`` off the diagonal; g is overwritten."""
    n = len(g)
    for _ in range(2):
        x = g.sum(axis=1) / -(n - 2)
        x -= x.sum() / (2 * n - 2)
        g += np.add.outer(x, x)
        np.fill_diagonal(g, 0.0)
    return g


def laplacian_dual(component: DenseComponent[Cone]) -> FloatArray:
    """The dual point Z that always exists on the conditional cone: Y is a Laplacian plus the penalty."""
    return np.diag(component.loss.floor().sum(axis=1))


def _blended_family(component: DenseComponent[Cone], g: FloatArray) -> tuple[float, Family]:
    """Smallest convex combination with the Laplacian that is dual feasible: a generalised eigenvalue. g is overwritten."""
    floor = component.loss.floor()
    diagonal = floor.sum(axis=1)
    g.flat[:: len(g) + 1] -= g.sum(axis=1)
    Z = g + floor
    here = component.cone.add_penalty(g, component.trace)
    there = -floor
    there.flat[:: len(there) + 1] += diagonal
    there = component.cone.add_penalty(there, component.trace)
    scaling = 1.0 / np.sqrt(np.where(np.diag(there) > 0, np.diag(there), 1.0))  # a lone node has a zero Laplacian
    direction = 1.0 / scaling / np.linalg.norm(1.0 / scaling)
    for M in (here, there):
        M *= scaling[:, None]
        M *= scaling[None, :]
        add_outer(M, direction, direction)
    try:
        ratio = max(0.0, -smallest_eigenvalue(here, there))
    except sl.LinAlgError:
        ratio = 0.0

    def family(shift: float) -> FloatArray:
        blended = (1.0 - min(shift, 1.0)) * Z
        blended.flat[:: len(Z) + 1] += min(shift, 1.0) * diagonal
        return blended

    return ratio / (1.0 + ratio), family


def constraint_multiplier(
    component: DenseComponent[Cone], lower: FloatArray, X: FloatArray, rounds: int = 100
) -> FloatArray | None:
    """Estimate the multiplier W of the dual cone at X under ``X >= lower``.

    ``W = g - M``, ``M >= 0`` only where X touches its limit, and ``Y = W + trace N`` in the dual cone with
    ``<X, Y> = 0``: alternating projections between the two sets.
    """
    cone, trace = component.cone, component.trace
    gradient = cone.add_penalty(component.loss.value_and_gradient(X)[1], trace)
    if not np.all(np.abs(gradient) < ABSURD):
        return None
    penalty = cone.add_penalty(np.zeros_like(X), trace)
    touching = X - lower < TOUCHING
    span = cone.charged_directions(X)
    Y = gradient
    for _ in range(rounds):
        inside = cone.project_complementary(Y, span)
        Y = np.where(touching, np.minimum(inside, gradient), gradient)
    return inside - penalty
