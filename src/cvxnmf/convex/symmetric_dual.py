"""Dual points of symmetric problems.

With g the gradient of the loss at X and f its floor, ``Z = g + f >= 0`` always lies in the domain of the dual, and one
shift puts ``Y = Z - f + trace N`` into the dual cone (docs/mathematics.md):

    psd            Z + shift S^2                              S^2 is inside the cone
    conditional    (1 - shift) Z + shift Diag(f1)             g1 = 0 by the effects; shift = 1 gives a Laplacian
    free diagonal  (1 - shift) Z + shift f                    shift = 1 gives Y = trace N

Under a lower limit on X the gradient is first lowered by the limit's multiplier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike

from cvxnmf import certificates, validation
from cvxnmf.certificates import CertificateError
from cvxnmf.convex import matrix_free_dual
from cvxnmf.convex.component import Block
from cvxnmf.convex.cones import Cone
from cvxnmf.convex.dual import ABSURD, FIRST_PAD, Dual, Witness, accepted
from cvxnmf.convex.effects import balancing_effects
from cvxnmf.convex.matrix_free import StreamedBlock
from cvxnmf.convex.problem import Problem
from cvxnmf.convex.symmetric import SymmetricProblem
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import add_outer, smallest_eigenvalue
from cvxnmf.results import Point, Solution

#: An entry of X closer than this to its lower limit counts as touching it.
TOUCHING = 1e-3


def examined(problem: SymmetricProblem, X: ArrayLike | Solution) -> tuple[float, list[Dual | None], bool]:
    """Value, dual points of all blocks, and whether X had to be restored."""
    if isinstance(problem.blocks[0], StreamedBlock):
        if isinstance(X, Solution) and isinstance(X.point, Point) and len(X.v) == problem.size and X.groups is None:
            return matrix_free_dual.examined(problem, X.point)
        problem = problem.dense()
    if isinstance(X, Solution):
        return _examined_factors(problem, X)
    whole = problem.matrix(X)
    restored, duals = False, []
    for block in problem.blocks:
        square = np.ix_(block.nodes, block.nodes)
        part, moved = block.restore(whole[square])
        whole[square], restored = part, restored or moved
        duals.append(dual_point(problem, block, part, constraint_multiplier(block, part)))
    return problem.value(whole), duals, restored


def _examined_factors(problem: SymmetricProblem, solution: Solution) -> tuple[float, list[Dual | None], bool]:
    """Examine a point in factors; it lies in the cone unless it comes from another problem."""
    value, duals = 0.0, []
    whole, groups = solution.point, solution.groups
    if not isinstance(whole, Point) or len(whole.v) != problem.size:
        validation.refuse(f"X is a Solution of another problem; give one of a symmetric problem of {problem.size} nodes.")
    for block in problem.blocks:
        if groups is not None and np.ptp(groups[block.nodes]):
            return examined(problem, solution.X)
        point = whole.restricted(block.nodes)
        X = point.dense()
        if (point.v.any() and not block.cone.free_effects) or block.lift(X):
            return examined(problem, solution.X)
        value += block.objective(point, X)
        duals.append(dual_point(problem, block, X, constraint_multiplier(block, X)))
    return value, duals, False


def joined(problem: Problem, duals: Sequence[Dual | None]) -> Dual | None:
    """The dual points of all components as one, on the nodes that carry data; None if the check does not accept it."""
    assert isinstance(problem, SymmetricProblem)
    kept = problem.kept
    Z = np.zeros((len(kept), len(kept)))
    for block, dual in zip(problem.blocks, duals, strict=True):
        here = np.searchsorted(kept, block.nodes)
        Z[np.ix_(here, here)] = _anchor(block) if dual is None else dual.witness["Z"]
    witness = {"Z": Z, "metric": problem.metric[kept]}
    try:
        proof = certificates.prove(problem.A, "dual", problem.statement, witness)
    except CertificateError:  # a component without a dual point may fail within rounding
        return None
    return Dual(witness, proof.bound, proof.rigorous)


def dual_point(problem: SymmetricProblem, block: Block[Cone], X: FloatArray, multiplier: FloatArray | None = None) -> Dual | None:
    """Return a dual point for X in the cone; under a lower limit on X the gradient is first lowered to the multiplier."""
    if multiplier is None and block.cone.free_effects:
        X = block.cone.with_effects(X, balancing_effects(block.loss, block.cone, X))
    _, g = block.loss.value_and_gradient(X)
    del X
    if not (-ABSURD < g.min() and g.max() < ABSURD):
        return None
    if multiplier is not None:  # lower the gradient towards the multiplier where the limit on X allows it: where A > 0
        g -= np.where(block.loss.A > 0, np.maximum(0.0, g - multiplier), 0.0)
    try:
        least, family = _shifted_family(block, g)
    except sl.LinAlgError:
        return None
    del g  # the check below needs the room
    statement = problem.statement | {"metric": "own"}  # a component's metric is cut out of the whole one

    def witness(shift: float) -> Witness:
        Z = family(shift)
        return {"Z": Z if np.array_equal(Z, Z.T) else (Z + Z.T) / 2, "metric": block.cone.s}

    return accepted(block.loss.A, statement, least, witness, FIRST_PAD * block.size)


Family = Callable[[float], FloatArray]


def _shifted_family(block: Block[Cone], g: FloatArray) -> tuple[float, Family]:
    """The least shift that makes the gradient dual feasible, and the dual point for any shift."""
    if block.loss.ignore_diagonal:
        return _shrunk_family(block, g)
    if block.cone.free_effects:
        return _blended_family(block, g)
    return _raised_family(block, g)


def _raised_family(block: Block[Cone], g: FloatArray) -> tuple[float, Family]:
    """Raise the diagonal: ``Z + shift S^2``."""
    t = block.cone.s**2
    unit = max(1e-300, float(g.max()), -float(g.min()))
    lowest = block.cone.smallest_eigenvalue(g) + block.trace
    Z = g + block.loss.floor()

    def family(shift: float) -> FloatArray:
        raised = Z.copy()
        raised.flat[:: len(Z) + 1] += shift * unit * t
        return raised

    return max(0.0, -lowest) / unit, family


def _shrunk_family(block: Block[Cone], g: FloatArray) -> tuple[float, Family]:
    """Shrink the gradient: ``Y = trace N + (1 - shift) g``."""
    floor = block.loss.floor()
    lowest = block.cone.smallest_eigenvalue(g)
    if block.cone.free_effects:
        g = _rows_summing_to_zero(g)
    bounded = 0.0 if block.lower is None else np.where(block.loss.A == 0, 0.0, -np.inf)

    def family(shift: float) -> FloatArray:
        Z: FloatArray = (1.0 - min(shift, 1.0)) * g
        Z += floor
        return np.maximum(Z, bounded, out=Z)  # no lower than the edge of the domain, by rounding

    return max(0.0, 1.0 - block.trace / -lowest) if lowest < 0 else 0.0, family


def _rows_summing_to_zero(g: FloatArray) -> FloatArray:
    """Take the last rounding out of the row sums by ``x_i + x_j`` off the diagonal; g is overwritten."""
    n = len(g)
    for _ in range(2):
        x = g.sum(axis=1) / -(n - 2)
        x -= x.sum() / (2 * n - 2)
        g += np.add.outer(x, x)
        np.fill_diagonal(g, 0.0)
    return g


def _anchor(block: Block[Cone]) -> FloatArray:
    """The dual point that always exists on the conditional cone: Y is a Laplacian plus the penalty."""
    return np.diag(block.loss.floor().sum(axis=1))


def _blended_family(block: Block[Cone], g: FloatArray) -> tuple[float, Family]:
    """Blend with the anchor; the pencil of the two gives the least share. The gradient is overwritten."""
    floor = block.loss.floor()
    diagonal = floor.sum(axis=1)
    g.flat[:: len(g) + 1] -= g.sum(axis=1)
    Z = g + floor
    here = block.cone.add_penalty(g, block.trace)
    there = -floor
    there.flat[:: len(there) + 1] += diagonal
    there = block.cone.add_penalty(there, block.trace)
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


def constraint_multiplier(block: Block[Cone], X: FloatArray, rounds: int = 100) -> FloatArray | None:
    """Estimate the multiplier W of the dual cone at X under ``X >= lower``; None without a lower limit.

    ``W = g - M``, ``M >= 0`` only where X touches its limit, and ``Y = W + trace N`` in the dual cone with
    ``<X, Y> = 0``: alternating projections between the two sets.
    """
    if block.lower is None:
        return None
    gradient = block.cone.add_penalty(block.loss.value_and_gradient(X)[1], block.trace)
    if not np.all(np.abs(gradient) < ABSURD):
        return None
    penalty = block.cone.add_penalty(np.zeros_like(X), block.trace)
    touching = X - block.lower < TOUCHING
    span = block.cone.charged(X)
    Y = gradient
    for _ in range(rounds):
        inside = block.cone.complementary(Y, span)
        Y = np.where(touching, np.minimum(inside, gradient), gradient)
    return inside - penalty
