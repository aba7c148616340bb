"""Dual points and gaps: every number is computed here from a problem and a point alone.

A dual point is proposed here and judged by :mod:`cvxnmf.checking`; the bound of a certificate is the one
the check proves. With g the gradient of the loss at X and f its floor, ``Z = g + f >= 0`` always lies in the
domain of the dual, and one shift puts ``Y = Z - f + trace N`` into the dual cone (docs/mathematics.md):

    psd            Z + shift S^2                              S^2 is inside the cone
    conditional    (1 - shift) Z + shift Diag(f1)             g1 = 0 by the effects; shift = 1 gives a Laplacian
    free diagonal  (1 - shift) Z + shift f                    shift = 1 gives Y = trace N

Under a lower limit on X the gradient is first lowered by the limit's multiplier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike

from cvxnmf import checking, spectra, validation
from cvxnmf.checking import Certificate, CertificateError
from cvxnmf.problems import Block, Problem
from cvxnmf.results import FloatArray, Point, Solution

#: Smallest shift beyond the computed one, per node; it grows tenfold until the check accepts.
FIRST_PAD = 1e-12
#: A bound may exceed a value by rounding, which is then taken off the bound; by more it is a contradiction.
CONTRADICTION = 1e-6
#: An entry of X closer than this to its lower limit counts as touching it.
TOUCHING = 1e-3
#: Gradients as large as this tell nothing.
ABSURD = 1e150
#: Beyond this shift a dual point is worth nothing.
LARGEST_SHIFT = 1e6


class Dual(NamedTuple):
    """A dual point of one block that the check has accepted, and what it proves."""

    Z: FloatArray
    bound: float
    rigorous: bool


def certify(problem: Problem, X: ArrayLike | Solution) -> Certificate:
    """Certify a point: its value, a proved lower bound on all values, and the witness.

    Parameters
    ----------
    problem : Problem
        Made by :func:`symmetric`.
    X : array-like of shape (n, n) or Solution
        Any symmetric matrix. One outside the cone is projected onto it first (``restored``).

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> problem = cvxnmf.symmetric(A, cone="psd", metric="uniform")
    >>> certificate = cvxnmf.certify(problem, np.zeros((20, 20)))
    >>> bool(certificate.check(A) <= certificate.value)
    True
    """
    validation.made_by_symmetric(problem, Problem)
    with spectra.single_thread(problem.size), np.errstate(all="ignore"):  # values are tested for being finite
        if isinstance(X, Solution):
            return _certify_factors(problem, X)
        whole = validation.log_matrix(X, problem.size)
        restored, duals = False, []
        for block in problem.blocks:
            square = np.ix_(block.nodes, block.nodes)
            part, moved = block.restore(whole[square])
            whole[square], restored = part, restored or moved
            duals.append(dual_point(problem, block, part, constraint_multiplier(block, part)))
        return assemble(problem, problem.value(whole), duals, restored)


def _certify_factors(problem: Problem, solution: Solution) -> Certificate:
    """Certify a point in factors; it lies in the cone unless it comes from another problem."""
    value, duals = 0.0, []
    for block in problem.blocks:
        if len(solution.v) != problem.size or (solution.groups is not None and np.ptp(solution.groups[block.nodes])):
            return certify(problem, solution.X)
        point = Point(solution.v, solution.W).restricted(block.nodes)
        X = point.dense()
        if (point.v.any() and not block.cone.free_effects) or block.lift(X):
            return certify(problem, solution.X)
        value += block.objective(point, X)
        duals.append(dual_point(problem, block, X, constraint_multiplier(block, X)))
    return assemble(problem, value, duals)


def assemble(problem: Problem, value: float, duals: Sequence[Dual | None], restored: bool = False) -> Certificate:
    """Join the dual points of all blocks into one certificate of the whole problem."""
    scale = sum(block.loss.scale for block in problem.blocks)
    value = max(0.0, value) if np.isfinite(value) else np.inf
    known = [dual for dual in duals if dual is not None]
    if not known:
        return Certificate(value, 0.0, "model", "zero", True, restored, scale, problem.statement, {})
    kept = problem.kept
    witness = {"Z": _joined(problem, duals), "metric": problem.metric[kept]}
    if len(duals) == 1:
        proof = checking.Proof(known[0].bound, known[0].rigorous, scale)
    else:
        try:
            proof = checking.prove(problem.A, "dual", problem.statement, witness)
        except CertificateError:  # a component without a dual point may fail within rounding
            return assemble(problem, value, [], restored)
    cancelled = problem.trace * float(np.sum(problem.metric**2))  # what <N, X> may lose at a dense X
    if proof.bound > value + CONTRADICTION * max(value, scale, cancelled):
        raise CertificateError(f"The bound {proof.bound:.12g} exceeds the value {value:.12g}: please report this as a bug.")
    if proof.bound > value + 1e-12 * max(value, scale):  # the value is mostly rounding: claim nothing from it
        return assemble(problem, value, [], restored)
    bound = min(proof.bound, value)
    return Certificate(value, bound, "model", "dual", proof.rigorous, restored, scale, problem.statement, witness)


def _joined(problem: Problem, duals: Sequence[Dual | None]) -> FloatArray:
    """The dual points of the blocks as one matrix on the nodes that carry data."""
    if len(duals) == 1 and duals[0] is not None:
        return duals[0].Z
    kept = problem.kept
    Z = np.zeros((len(kept), len(kept)))
    for block, dual in zip(problem.blocks, duals, strict=True):
        here = np.searchsorted(kept, block.nodes)
        Z[np.ix_(here, here)] = _anchor(block) if dual is None else dual.Z
    return Z


def dual_point(problem: Problem, block: Block, X: FloatArray, multiplier: FloatArray | None = None) -> Dual | None:
    """Return a dual point for X, accepted by the check, or None if X is too far off to tell anything.

    Parameters
    ----------
    problem, block : Problem, Block
        The block belongs to the problem.
    X : ndarray of shape (n, n)
        A point of the cone, on the nodes of the block.
    multiplier : ndarray of shape (n, n), optional
        A matrix W with ``W + trace N`` in the dual cone, as a splitting method finds it; under a lower limit
        on X the gradient alone gives a loose bound.
    """
    if multiplier is None and block.cone.free_effects:
        X = with_effects(X, balancing_effects(block, X))
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
    return _accepted(problem, block, least, family)


Family = Callable[[float], FloatArray]


def _accepted(problem: Problem, block: Block, least: float, family: Family) -> Dual | None:
    """Raise the shift from `least` until the check accepts the dual point."""
    statement = problem.statement | {"metric": "own"}  # a component's metric is cut out of the whole one
    pad = FIRST_PAD * block.size
    while least + pad <= LARGEST_SHIFT:
        Z = family(least + pad)
        witness = {"Z": Z if np.array_equal(Z, Z.T) else (Z + Z.T) / 2, "metric": block.cone.s}
        try:
            proof = checking.prove(block.loss.A, "dual", statement, witness)
        except CertificateError:
            pad *= 10.0
            continue
        return Dual(witness["Z"], proof.bound, proof.rigorous)
    return None


def _shifted_family(block: Block, g: FloatArray) -> tuple[float, Family]:
    """The least shift that makes the gradient dual feasible, and the dual point for any shift."""
    if block.loss.ignore_diagonal:
        return _shrunk_family(block, g)
    if block.cone.free_effects:
        return _blended_family(block, g)
    return _raised_family(block, g)


def _raised_family(block: Block, g: FloatArray) -> tuple[float, Family]:
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


def _shrunk_family(block: Block, g: FloatArray) -> tuple[float, Family]:
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


def _anchor(block: Block) -> FloatArray:
    """The dual point that always exists on the conditional cone: Y is a Laplacian plus the penalty."""
    return np.diag(block.loss.floor().sum(axis=1))


def _blended_family(block: Block, g: FloatArray) -> tuple[float, Family]:
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
        spectra.add_outer(M, direction, direction)
    try:
        ratio = max(0.0, -spectra.smallest_eigenvalue(here, there))
    except sl.LinAlgError:
        ratio = 0.0

    def family(shift: float) -> FloatArray:
        blended = (1.0 - min(shift, 1.0)) * Z
        blended.flat[:: len(Z) + 1] += min(shift, 1.0) * diagonal
        return blended

    return ratio / (1.0 + ratio), family


def constraint_multiplier(block: Block, X: FloatArray, rounds: int = 100) -> FloatArray | None:
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


def with_effects(X: FloatArray, v: FloatArray) -> FloatArray:
    """``X + v1' + 1v'``, symmetric to the last bit if X is."""
    Y: FloatArray = np.add.outer(v, v)
    Y += X
    return Y


def balancing_effects(block: Block, X: FloatArray, max_iter: int = 40) -> FloatArray:
    """Return effects v for which the gradient at ``X + v1' + 1v'`` has vanishing row sums.

    They minimise the loss over v, to which the penalty is blind: damped Newton with the Hessian
    ``H + Diag(H1)``, H the curvature, after a few multiplicative steps towards the row sums of A.
    """
    v = _matching_effects(block, X)
    weights = block.loss.floor().sum(axis=1)

    def slope(v: FloatArray) -> tuple[float, FloatArray, float]:
        value, g = block.loss.value_and_gradient(with_effects(X, v))
        residual = g.sum(axis=1)
        return value, residual, float(np.max(np.abs(residual) / weights))

    value, residual, size = slope(v)
    for _ in range(max_iter):
        step = _newton_step(block, with_effects(X, v), residual) if 1e-15 < size < np.inf else None
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


def _newton_step(block: Block, X: FloatArray, residual: FloatArray) -> FloatArray | None:
    """Newton's step for the effects, no longer than 2 in any of them; None if the Hessian is singular."""
    H = block.loss.curvature(X)
    H.flat[:: len(H) + 1] += H.sum(axis=1)
    try:
        factor = sl.cho_factor(H.T, overwrite_a=True, check_finite=False)
        step: FloatArray = -sl.cho_solve(factor, residual, check_finite=False)
    except sl.LinAlgError:
        return None
    longest = float(np.abs(step).max())
    return step * min(1.0, 2.0 / longest) if 0 < longest < np.inf else None


def _matching_effects(block: Block, X: FloatArray, max_iter: int = 10) -> FloatArray:
    """Effects that bring the row sums of ``exp(X)`` within a factor of two of those of A, overflow or not."""
    target = np.log(block.loss.A.sum(axis=1))
    v = np.zeros(len(X))
    for _ in range(max_iter):
        logs = with_effects(X, v)
        if block.loss.ignore_diagonal:
            np.fill_diagonal(logs, -np.inf)
        highest = logs.max(axis=1)
        logs -= highest[:, None]
        ratio = target - highest - np.log(np.exp(logs, out=logs).sum(axis=1))
        if np.abs(ratio).max() < 0.5:
            break
        v += 0.5 * ratio
    return v
