"""The sparse problem: minimise ``||A - X||^2 + l1 sum X + trace Tr X``, X positive semidefinite and nonnegative.

Its dual points are a nonnegative N, the multiplier of ``X >= 0``, and the best S for it: the negative part of ``B + N``, turned
positive. What is left, ``Z = B + S + N``, is the positive part; at an optimal X, ``Z = X``, and N lives where X vanishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cvxnmf import validation
from cvxnmf.certificates import DoublyNonnegativeStatement
from cvxnmf.convex.component import Certified, Component
from cvxnmf.convex.dual import Dual, Witness, prove_least_shift
from cvxnmf.convex.methods import DualAscent, ProjectionSplitting
from cvxnmf.convex.methods.schedules import projection_schedule
from cvxnmf.convex.problem import Problem
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import smaller_definite_part, smallest_eigenvalue
from cvxnmf.linalg.row_chunks import cached_rows
from cvxnmf.results import AnyPoint, MatrixPoint, Solution
from cvxnmf.typing import MatrixLike

#: A matrix counts as positive semidefinite if no eigenvalue is below minus this share of its norm, per row.
ROUNDING = 8 * float(np.finfo(np.float64).eps)
#: Steps of dual ascent when only X is known.
ASCENT_STEPS = 60
#: Quantiles of what is below zero by which a positive semidefinite matrix is raised, for trial.
RAISES = (0.9, 0.99, 0.999)
#: First diagonal raise of S, per row and unit of its trace.
FIRST_PAD = 1e-15
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class ProjectionComponent(Component[MatrixPoint]):
    """The whole problem as one projection: the doubly nonnegative matrix nearest to ``B = A - l1/2 11' - trace/2 I``."""

    A: FloatArray
    statement: DoublyNonnegativeStatement

    entries = ...
    methods = {"adaptive": projection_schedule, "splitting": ProjectionSplitting, "accelerated": DualAscent}

    @property
    def B(self) -> FloatArray:
        """The matrix B whose projection is the doubly nonnegative solution, a new array."""
        return self.add_data(np.zeros_like(self.A))

    def add_data(self, M: FloatArray) -> FloatArray:
        """The sum ``M + B`` with the matrix that is projected, in the place of M."""
        M += self.A
        M -= 0.5 * self.statement.l1
        M.flat[:: len(M) + 1] -= 0.5 * self.statement.trace
        return M

    def positive_part(self, N: FloatArray) -> FloatArray:
        """The positive semidefinite part of ``B + N`` in the doubly nonnegative projection."""
        part, is_positive = smaller_definite_part(self.add_data(N.copy()))
        if not is_positive:
            part += N
            self.add_data(part)
        return part

    def parts(self, N: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The positive and negative semidefinite parts of ``B + N``, which is ``positive - negative``."""
        part, is_positive = smaller_definite_part(self.add_data(N.copy()))
        other = self.add_data(N.copy())
        if is_positive:
            return part, np.subtract(part, other, out=other)
        other += part
        return other, part

    @cached_property
    def scale(self) -> float:
        """Sum of squares of the data of the doubly nonnegative problem."""
        return float(np.vdot(self.A, self.A))

    def rank(self, point: MatrixPoint) -> int:
        """Number of rows: a doubly nonnegative X is not kept in factors."""
        return len(point.matrix)

    def value(self, point: MatrixPoint) -> float:
        """The objective of the sparse problem at a doubly nonnegative matrix."""
        X, l1, total = point.matrix, self.statement.l1, 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for rows in cached_rows(X):
                D = X[rows] - self.A[rows]
                total += float(np.vdot(D, D)) + l1 * float(np.abs(X[rows]).sum())
            return total + self.statement.trace * float(np.trace(X))

    def start(self, given: MatrixPoint | None = None) -> MatrixPoint:
        """The best of the nonnegative part of B and the user's matrix, made doubly nonnegative where necessary."""
        candidates = [self.nearest_admissible(np.maximum(self.B, 0.0))]
        if given is not None:
            candidates.append(given if self.contains(given.matrix) else self.nearest_admissible(given.matrix))
        return min(candidates, key=self.value)

    def contains(self, X: FloatArray) -> bool:
        """Whether X is doubly nonnegative: nonnegative, and positive semidefinite up to rounding."""
        if X.min() < 0:
            return False
        return smallest_eigenvalue(X.copy()) >= -ROUNDING * len(X) * float(np.abs(X).max())

    def nearest_admissible(self, X: FloatArray) -> MatrixPoint:
        """Return a doubly nonnegative matrix near X: its nonnegative part with a raised diagonal, scaled to fit best."""
        Y = np.maximum(X, 0.0)
        norm = float(np.linalg.norm(Y))
        lowest = smallest_eigenvalue(Y.copy())
        Y.flat[:: len(Y) + 1] += max(0.0, -lowest) + ROUNDING * len(Y) * norm  # with room for rounding: truly PSD
        Y *= max(0.0, self._fit(Y)) / max(float(np.vdot(Y, Y)), np.finfo(np.float64).tiny)
        return MatrixPoint(Y)

    def dual_value(self, P: FloatArray) -> float:
        """The bound that a multiplier N of ``X >= 0`` proves, from the positive semidefinite part P of ``B + N``."""
        return self.scale - float(np.vdot(P, P))

    def nonnegative_near(self, P: FloatArray) -> MatrixPoint:
        """Return a doubly nonnegative matrix near a positive semidefinite P, without a decomposition.

        P is raised by a constant, what is still negative is clipped, and the clipped row sums go to the diagonal: all three
        leave it positive semidefinite. The best constant of a few, scaled to fit best.
        """
        below = np.minimum(P, 0.0)
        np.negative(below, out=below)
        raises = (0.0, *np.quantile(below, RAISES, overwrite_input=True)) if below.any() else (0.0,)
        Y, best, best_fit = below, 0.0, -np.inf  # its room is free now
        for raised_by in raises:
            fit = self._fit(self._raise_and_clip(P, raised_by, Y)) / max(float(np.linalg.norm(Y)), TINY)
            if fit > best_fit:
                best, best_fit = raised_by, fit
        self._raise_and_clip(P, best, Y)
        Y *= max(0.0, best_fit) / max(float(np.linalg.norm(Y)), TINY)
        return MatrixPoint(Y)

    def _fit(self, Y: FloatArray) -> float:
        """The inner product ``<B, Y>`` with the projected matrix for a nonnegative Y."""
        terms = self.statement
        return float(np.vdot(Y, self.A)) - 0.5 * terms.l1 * float(Y.sum()) - 0.5 * terms.trace * float(np.trace(Y))

    def _raise_and_clip(self, P: FloatArray, raised_by: float, Y: FloatArray) -> FloatArray:
        """Write P raised by a constant into Y, negative entries clipped, and the clipped row sums on the diagonal."""
        np.add(P, raised_by, out=Y)
        before = Y.sum(axis=1)
        np.maximum(Y, 0.0, out=Y)
        clipped = np.maximum(Y.sum(axis=1) - before, 0.0)
        room = ROUNDING * len(Y) * float(np.linalg.norm(Y))  # for the rounding of those sums, too
        Y.flat[:: len(Y) + 1] += clipped + room
        return Y

    def restore(self, X: FloatArray) -> tuple[FloatArray, bool]:
        """Return X, or a doubly nonnegative matrix near X, and whether X had to be restored."""
        return (X, False) if self.contains(X) else (self.nearest_admissible(X).matrix, True)

    def dual_point(self, point: AnyPoint, candidate: FloatArray | None = None) -> Dual | None:
        """Return the dual point of the multiplier N of ``X >= 0``; where none is given, N is sought from X by dual ascent."""
        N = self._ascend_dual(point.dense()) if candidate is None else candidate
        return self._prove(N, self.parts(N)[1])

    def certify(self, point: MatrixPoint, value: float, candidate: FloatArray | None = None) -> Certified:
        """The better of the point and of a matrix near the positive part of ``B + N``, and the dual point of the multiplier N."""
        if candidate is None:
            return super().certify(point, value)
        N = candidate
        P, S = self.parts(N)
        other = self.nonnegative_near(P)
        value_there = self.value(other)
        point, value = (other, value_there) if value_there < value else (point, value)
        del P, other  # the check needs the room
        return Certified(point, value, self._prove(N, S))

    def _prove(self, N: FloatArray, S: FloatArray) -> Dual | None:
        """The dual point (S, N) of the doubly nonnegative problem, the diagonal of S raised until the check accepts it."""
        unit, diagonal = float(np.trace(S)), np.diag(S).copy()

        def family(shift: float) -> Witness:
            S.flat[:: len(S) + 1] = diagonal + shift * unit
            return {"S": S, "N": N}

        return prove_least_shift(self.A, self.statement, 0.0, family, FIRST_PAD * len(S), largest=1.0)

    def _ascend_dual(self, X: FloatArray) -> FloatArray:
        """The best multiplier of some steps of ascent, started where X says N must live."""
        N = np.where(X <= 1e-9 * X.max(initial=0.0), np.maximum(0.0, X - self.B), 0.0)
        ascent = DualAscent(self, MatrixPoint(X), N)
        for _ in range(ASCENT_STEPS):
            ascent.step()
        return ascent.best_N


@dataclass(frozen=True, eq=False)
class DoublyNonnegativeProblem(Problem):
    """The problem made by :func:`sparse`; its metric is all ones, and its one component the whole of it."""

    statement: DoublyNonnegativeStatement
    components: tuple[ProjectionComponent, ...] = field(repr=False)

    @property
    def size(self) -> int:
        """Number of rows of A in the sparse doubly nonnegative problem."""
        return len(self.A)

    def matrix(self, X: Any, name: str = "X") -> FloatArray:
        """Check a finite symmetric matrix as a point of the doubly nonnegative problem."""
        checked = validation.log_matrix(X, self.size, name)
        if not np.isfinite(checked).all():
            validation.refuse(f"{name} has infinite entries; only finite numbers are allowed.")
        return checked

    def value(self, X: ArrayLike) -> float:
        """Objective at X, shape (n, n), admissible or not: ``||A - X||^2 + l1 sum |X| + trace Tr X``."""
        return self.components[0].value(MatrixPoint(self.matrix(X)))

    def gradient(self, X: ArrayLike) -> FloatArray:
        """Gradient of the objective at X for nonnegative X: ``2 (X - A) + l1 11' + trace I``."""
        with np.errstate(over="ignore"):
            return 2.0 * (self.matrix(X) - self.components[0].B)

    def with_trace(self, trace: float | Literal["auto"]) -> DoublyNonnegativeProblem:
        """Return the doubly nonnegative problem with another trace weight."""
        return _assemble(self.A, self.statement.l1, trace)

    def starting_point(self, start: Any) -> MatrixPoint:
        """Check a warm start: a solution or a matrix X."""
        point = getattr(start, "point", start)
        if point is not start and not isinstance(point, MatrixPoint):
            validation.refuse("start is a Solution of another kind of problem; give one of a sparse problem, or a matrix X.")
        return MatrixPoint(self.matrix(point.matrix if isinstance(point, MatrixPoint) else start, "start"))

    def restrict_solution(self, solution: Solution) -> list[MatrixPoint] | None:
        """The solution itself, as the one point, if X is doubly nonnegative."""
        if not (isinstance(solution.point, MatrixPoint) and len(solution.point.matrix) == self.size):
            validation.refuse(f"X is a Solution of another problem; give one of a sparse problem of {self.size} nodes.")
        return [solution.point] if self.components[0].contains(solution.point.matrix) else None

    def join_points(self, points: Sequence[MatrixPoint]) -> tuple[MatrixPoint, None]:
        """The one point of the doubly nonnegative problem."""
        return points[0], None


def sparse(A: MatrixLike, l1: float = 0.0, trace: float = 0.0) -> DoublyNonnegativeProblem:
    """State the sparse doubly nonnegative problem.

    ``min ||A - X||^2 + l1 sum |X| + trace Tr X`` over X that are positive semidefinite and nonnegative: every ``UU'`` with
    ``U >= 0`` is one of them. With ``l1 = trace = 0`` the proved bound therefore holds for symmetric NMF of every rank. X
    itself is the model here, not its exponential.

    Parameters
    ----------
    A : array-like or scipy.sparse matrix of shape (n, n)
        Nonnegative and symmetric.
    l1 : float
        Weight of the sum of the entries: the larger, the more of them are zero.
    trace : float
        Weight of the trace: the larger, the fewer directions carry weight. (``solution.rank`` counts those above 1e-4 of the
        heaviest; an exactly positive semidefinite and nonnegative X has a slightly raised diagonal.)

    Returns
    -------
    DoublyNonnegativeProblem

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(30, 0.2, 0.8)
    >>> solution = cvxnmf.solve(cvxnmf.sparse(A, l1=0.5))
    >>> solution.status.name, bool(solution.X.min() >= 0)
    ('OPTIMAL', True)
    """
    checked = validation.symmetric_matrix(A)
    validation.magnitude(checked, "mse")
    return _assemble(checked, validation.number("l1", l1, minimum=0.0), trace)


def _assemble(A: FloatArray, l1: float, trace: Any) -> DoublyNonnegativeProblem:
    if isinstance(trace, str):
        validation.refuse("trace='auto' is not known for sparse problems; give trace as a number of at least 0.")
    weight = validation.number("trace", trace, minimum=0.0)
    if max(l1, weight) > 1e50:
        validation.refuse("l1 and trace must not exceed 1e50; beyond the largest entry of A the solution is 0 anyway.")
    A.flags.writeable = False  # a certificate is about these very numbers
    statement = DoublyNonnegativeStatement(l1, weight)
    return DoublyNonnegativeProblem(A, statement, np.ones(len(A)), (ProjectionComponent(A, statement),))
