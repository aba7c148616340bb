"""Certificates of the convex problems: every number is computed from a problem and a point alone.

A dual point is proposed beside the equation of each problem and judged by :mod:`cvxnmf.certificates`; the bound of a
certificate is the one that the check proves.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cvxnmf import validation
from cvxnmf.certificates import Certificate, CertificateError, Proof
from cvxnmf.convex.dual import Dual
from cvxnmf.convex.problem import Problem
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import MatrixPoint, Solution

#: A bound may exceed a value by rounding, which is then taken off the bound; by more it is a contradiction.
CONTRADICTION = 1e-6


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
    validation.require_problem(problem, Problem)
    with single_thread(problem.size), np.errstate(all="ignore"):  # values are tested for being finite
        certificate = _certify_solution(problem, X) if isinstance(X, Solution) else _certify_matrix(problem, X)
    return _with_bound_of(X.certificate, certificate, problem) if isinstance(X, Solution) else certificate


def _certify_solution(problem: Problem, solution: Solution) -> Certificate:
    """Certify a solution of a convex problem in factors, or its matrix where the factors are not admissible there."""
    points = problem.restrict_solution(solution)
    if points is None:
        return _certify_matrix(problem, problem.matrix_of(solution))
    pairs = list(zip(problem.components, points, strict=True))
    value = sum(component.value(point) for component, point in pairs)
    return assemble(problem, value, [component.best_dual(point) for component, point in pairs])


def _certify_matrix(problem: Problem, X: ArrayLike) -> Certificate:
    """Certify a matrix X as a point of a convex problem, put inside the cone first."""
    whole, restored, duals = problem.matrix(X), False, []
    for component in problem.dense().components:
        part, moved = component.restore(whole[component.entries])
        whole[component.entries], restored = part, restored or moved
        duals.append(component.best_dual(MatrixPoint(part)))
    return assemble(problem, problem.value(whole), duals, restored)


def _with_bound_of(other: Certificate, certificate: Certificate, problem: Problem) -> Certificate:
    """The certificate of a point with the bound of another one if that is about the same convex problem, and proves more."""
    if other.statement != certificate.statement or not certificate.bound < other.bound <= certificate.value:
        return certificate
    try:
        proof = problem.statement.prove(problem.A, other.kind, other.witness)
    except CertificateError:  # of other data
        return certificate
    return Certificate.of_proof(certificate.value, other.kind, proof, problem.statement, other.witness, certificate.restored)


def assemble(problem: Problem, value: float, duals: Sequence[Dual | None], restored: bool = False) -> Certificate:
    """Join the dual points of all components into one certificate of the whole problem."""
    scale = problem.scale
    value = max(0.0, value) if np.isfinite(value) else np.inf
    dual = None if all(dual is None for dual in duals) else problem.join_duals(duals)
    if dual is None:
        return _zero_bound(problem, value, restored)
    witness, bound, rigorous, probable = dual
    cancelled = problem.trace * float(np.sum(problem.metric**2))  # what the penalty may lose at a dense X
    if bound > value + CONTRADICTION * max(value, scale, cancelled):
        sentence = f"The bound {bound:.12g} exceeds the value {value:.12g}, so none is claimed: please report this as a bug."
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)
    if bound > value + 1e-12 * max(value, scale):  # the value is mostly rounding: claim nothing from it
        return _zero_bound(problem, value, restored)
    return Certificate.of_proof(
        value, "dual", Proof(bound, rigorous, scale, probable=probable), problem.statement, witness, restored
    )


def _zero_bound(problem: Problem, value: float, restored: bool) -> Certificate:
    """The certificate of a convex problem that claims no more than that a loss is never negative."""
    return Certificate.of_proof(value, "zero", Proof(0.0, True, problem.scale), problem.statement, restored=restored)
