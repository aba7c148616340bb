"""Dual points and gaps: every number is computed here from a problem and a point alone.

A dual point is proposed here, by one module per form of problem, and judged by :mod:`cvxnmf.checking`; the bound of a
certificate is the one the check proves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxnmf import validation
from cvxnmf.certificates import Certificate, CertificateError
from cvxnmf.convex import doubly_nonnegative_dual, matrix_free_dual, rectangular_dual, symmetric_dual
from cvxnmf.convex.component import Block
from cvxnmf.convex.doubly_nonnegative import DoublyNonnegativeProblem
from cvxnmf.convex.dual import Dual
from cvxnmf.convex.matrix_free import StreamedBlock
from cvxnmf.convex.problem import Problem
from cvxnmf.convex.rectangular import NonsymmetricProblem, PaperNonsymmetricProblem
from cvxnmf.convex.symmetric import SymmetricProblem
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import Solution

__all__ = ["Dual", "assemble", "at_point", "certify", "dual_point"]

#: A bound may exceed a value by rounding, which is then taken off the bound; by more it is a contradiction.
CONTRADICTION = 1e-6
#: Who proposes dual points for which problem.
FORMS: dict[type[Problem], Any] = {
    SymmetricProblem: symmetric_dual,
    NonsymmetricProblem: rectangular_dual,
    PaperNonsymmetricProblem: rectangular_dual.paper,
    DoublyNonnegativeProblem: doubly_nonnegative_dual,
}


def certify(problem: Problem, X: ArrayLike | Solution) -> Certificate:
    """Certify a point: its value, a proved lower bound on all values, and the witness.

    Parameters
    ----------
    problem : Problem
        Made by :func:`symmetric`, :func:`nonsymmetric` or :func:`sparse`.
    X : array-like or Solution
        Any matrix of the problem's shape (symmetric where the problem is). One outside the cone is projected onto it, or
        put inside, first (``restored``).

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
    validation.made_here(problem, Problem)
    with single_thread(problem.size), np.errstate(all="ignore"):  # values are tested for being finite
        value, duals, restored = FORMS[type(problem)].examined(problem, X)
        return assemble(problem, value, duals, restored)


def dual_point(problem: Problem, block: Any, X: FloatArray, multiplier: FloatArray | None = None) -> Dual | None:
    """Return a dual point for X, accepted by the check, or None if X is too far off to tell anything.

    Parameters
    ----------
    problem, block : Problem, Block
        The block belongs to the problem.
    X : ndarray
        An admissible point, on the nodes of the block.
    multiplier : ndarray, optional
        The multiplier of a limit on X, as a splitting method finds it; without it the bound may be loose.
    """
    dual: Dual | None = FORMS[type(problem)].dual_point(problem, block, X, multiplier)
    return dual


def at_point(
    problem: Problem, block: Any, point: Any, value: float, multiplier: FloatArray | None
) -> tuple[Any, float, Dual | None]:
    """The point with its effects balanced where they are free, its value, and a dual point for it.

    Parameters
    ----------
    problem, block : Problem, Block
        The block belongs to the problem.
    point, value : Point, float
        An admissible point and the objective there.
    multiplier : ndarray, optional
        See :func:`dual_point`.
    """
    if isinstance(block, StreamedBlock):
        return matrix_free_dual.at_point(problem, block, point)
    X = point.dense()
    if isinstance(block, Block) and block.cone.free_effects and block.lower is None:
        point = block.balanced(point, X)
        X = point.dense()
        value = block.objective(point, X)
    return point, value, dual_point(problem, block, X, multiplier)


def assemble(problem: Problem, value: float, duals: Sequence[Dual | None], restored: bool = False) -> Certificate:
    """Join the dual points of all blocks into one certificate of the whole problem."""
    scale = problem.scale
    value = max(0.0, value) if np.isfinite(value) else np.inf
    if all(dual is None for dual in duals):
        return Certificate(value, 0.0, "model", "zero", True, restored, scale, problem.statement, {})
    dual = duals[0] if len(duals) == 1 else symmetric_dual.joined(problem, duals)  # only symmetric problems fall apart
    if dual is None:
        return assemble(problem, value, [], restored)
    witness, bound, rigorous = dual
    cancelled = problem.trace * float(np.sum(problem.metric**2))  # what the penalty may lose at a dense X
    if bound > value + CONTRADICTION * max(value, scale, cancelled):
        raise CertificateError(f"The bound {bound:.12g} exceeds the value {value:.12g}: please report this as a bug.")
    if bound > value + 1e-12 * max(value, scale):  # the value is mostly rounding: claim nothing from it
        return assemble(problem, value, [], restored)
    return Certificate(value, min(bound, value), "model", "dual", rigorous, restored, scale, problem.statement, witness)
