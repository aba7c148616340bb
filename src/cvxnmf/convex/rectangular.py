"""The nonsymmetric problem: minimise ``loss(A, exp(X)) + 2 trace ||X||_*`` over rectangular X (docs/mathematics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cvxnmf import validation
from cvxnmf.certificates import NonsymmetricStatement
from cvxnmf.convex.component import DenseComponent
from cvxnmf.convex.cones import PSD
from cvxnmf.convex.losses import LOSSES, KullbackLeibler, PairedKullbackLeibler
from cvxnmf.convex.noise import rectangular_noise_edge
from cvxnmf.convex.nuclear import NuclearNorm
from cvxnmf.convex.problem import Problem, refuse_auto
from cvxnmf.convex.rectangular_component import NuclearComponent, PairedComponent
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import singular_triples_above, spectral_norm
from cvxnmf.results import PairedPoint, Point, Solution
from cvxnmf.typing import MatrixLike


@dataclass(frozen=True, eq=False)
class NonsymmetricProblem(Problem):
    """The problem made by :func:`nonsymmetric` with the nuclear norm.

    Its metric is 1, and 0 for rows and columns without data that were set aside; its one component is what carries data.
    """

    statement: NonsymmetricStatement
    components: tuple[DenseComponent, ...] = field(repr=False)

    @property
    def size(self) -> int:
        """The smaller side of the rectangular A."""
        return int(min(self.A.shape))

    @cached_property
    def gamma_max(self) -> float:
        """The least trace at which the solution has no positions; with effects and KL it is then ``rc'/sum A``."""
        (component,) = self.components
        X = component.balance_effects(component.independent_model()).dense()
        return 0.5 * spectral_norm(component.loss.value_and_gradient(X)[1])

    def matrix(self, X: Any, name: str = "X") -> FloatArray:
        """Check a rectangular matrix of logarithms of the shape of A."""
        return validation.rectangular_logs(X, self.A.shape, name)

    def value(self, X: ArrayLike) -> float:
        """Objective at X, shape (m, n): loss plus ``2 trace ||X||_*``, of the centred X where effects are free.

        ``-inf`` entries stand for ``exp(X) = 0``; within the rows and columns that carry data the penalty is infinite there.
        """
        return self._objective(LOSSES[self.statement.loss](self.A), self.matrix(X))

    def gradient(self, X: ArrayLike) -> FloatArray:
        """A gradient of the objective at X, shape (m, n); of the nuclear norm the one of least size."""
        whole, (component,) = self.matrix(X), self.components
        with np.errstate(over="ignore", invalid="ignore"):
            _, G = LOSSES[self.statement.loss](self.A).value_and_gradient(whole)
        part = whole[component.entries]
        if not np.abs(part).max() < 1e100:
            validation.refuse("X has entries beyond 1e100 where there are data; the penalty has no gradient there.")
        left, _, right = singular_triples_above(component.cone.penalised_part(part), 0.0)
        G[component.entries] += 2.0 * self.trace * (left @ right.T)
        return G

    def with_trace(self, trace: float | Literal["auto"]) -> Problem:
        """Return the rectangular problem with another trace weight."""
        return _assemble(self.A, self.statement.loss, trace, self.statement.effects, self.statement.penalty)

    def starting_point(self, start: Any) -> PairedPoint | FloatArray:
        """Check a warm start: a solution, a pair (v, W) of m + n rows, or a matrix X."""
        factors = validation.factors(start, sum(self.A.shape), PairedPoint, len(self.A))
        return self.matrix(start, "start") if factors is None else PairedPoint(*factors, len(self.A))

    def starting_multiplier(self, start: Any) -> FloatArray | None:
        """The slope ``Z - f`` of a solution's certificate for a rectangular problem; X alone does not tell it."""
        if not isinstance(start, Solution) or not isinstance(start.certificate.statement, NonsymmetricStatement):
            return None
        statement, Z = start.certificate.statement, start.certificate.witness.get("Z")
        floor = self.components[0].loss.floor()
        if Z is None or Z.shape != floor.shape or replace(statement, trace=self.trace) != self.statement:
            return None
        return Z - floor

    def _paired_point(self, solution: Solution) -> PairedPoint:
        """The point of a solution of rectangular data of equal shape."""
        point = solution.point
        if not isinstance(point, PairedPoint) or (point.n_rows, len(point.v) - point.n_rows) != self.A.shape:
            validation.refuse(f"X is a Solution of another problem; give one of data of shape {self.A.shape}, or a matrix.")
        return point

    def restrict_solution(self, solution: Solution) -> list[PairedPoint] | None:
        """A solution's factors on rows and columns that carry data; None where effects are not free or infinite."""
        point = self._paired_point(solution).restrict_to(self.components[0].nodes)
        return [point] if np.isfinite(point.v).all() and (self.statement.effects or not point.v.any()) else None

    def join_points(self, points: Sequence[PairedPoint]) -> tuple[PairedPoint, None]:
        """Effects and positions of all rows and columns of a rectangular problem; ``-inf`` effects where there are no data."""
        v, W, _ = self._join_factors(sum(self.A.shape), points)
        return PairedPoint(v, W, len(self.A)), None


@dataclass(frozen=True, eq=False)
class PaperNonsymmetricProblem(NonsymmetricProblem):
    """The paper's reading: ``KL(A || exp(X_12)) + trace (tr exp(X_11) + tr exp(X_22))`` over a PSD block matrix X.

    Points are the whole X, shape (m + n, m + n), where a matrix is asked for or given; a solution's X is ``X_12``.
    """

    @property
    def size(self) -> int:
        """Rows and columns of the rectangular A together, the side of the paper's block matrix."""
        return sum(self.A.shape)

    @property
    def gamma_max(self) -> float:
        """There is none: the penalty does not force X to zero."""
        raise AttributeError("penalty='paper' has no largest trace; use the nuclear norm (penalty='nuclear').")

    def matrix(self, X: Any, name: str = "X") -> FloatArray:
        """Check a symmetric matrix of logarithms of m + n rows for the paper's nonsymmetric problem."""
        if np.shape(X) == self.A.shape:
            validation.refuse(f"With penalty='paper' {name} is the whole block matrix, of shape ({self.size}, {self.size}).")
        return validation.log_matrix(X, self.size, name)

    def value(self, X: ArrayLike) -> float:
        """Objective of the paper's nonsymmetric problem at the block matrix X, shape (m + n, m + n)."""
        return self.components[0].loss.value(self.matrix(X))

    def gradient(self, X: ArrayLike) -> FloatArray:
        """Gradient of the paper's nonsymmetric objective at the block matrix X."""
        return self.components[0].loss.value_and_gradient(self.matrix(X))[1]

    def starting_point(self, start: Any) -> Point | FloatArray:  # type: ignore[override]
        """Check a warm start: a solution, a pair (v, W) of m + n rows, or a block matrix X."""
        factors = validation.factors(start, self.size, PairedPoint, len(self.A))
        return self.matrix(start, "start") if factors is None else Point(*factors)

    def restrict_solution(self, solution: Solution) -> None:
        """None: a solution of the paper's nonsymmetric problem is examined as a matrix."""
        return

    def matrix_of(self, solution: Solution) -> FloatArray:
        """The whole block matrix X of a solution of the paper's nonsymmetric problem."""
        point = self._paired_point(solution)
        return Point(point.v, point.W).dense()

    def join_points(self, points: Sequence[Point]) -> tuple[PairedPoint, None]:  # type: ignore[override]
        """Positions of rows and columns in the paper's nonsymmetric problem; their products are ``X_12``."""
        return PairedPoint(points[0].v, points[0].W, len(self.A)), None


def nonsymmetric(
    A: MatrixLike, loss: str = "kl", trace: float | Literal["auto"] = 1.0, effects: bool = True, penalty: str = "nuclear"
) -> NonsymmetricProblem:
    """State the convex restriction of nonsymmetric NMF.

    ``min loss(A, exp(X)) + 2 trace ||X||_*`` over all m-by-n matrices X, where the nuclear norm leaves out effects of rows and
    columns: ``X = a1' + 1b' + W_1 W_2'``, of low rank for a large enough trace. Then ``exp(X)`` (entrywise) factors as
    ``UV'`` with ``U, V >= 0`` (:func:`exp_factor`).

    Parameters
    ----------
    A : array-like or scipy.sparse matrix of shape (m, n)
        Nonnegative: documents by words, images by pixels, cells by genes. All work is done in dense float64.
    loss : {"kl", "mse"}
        ``sum A log(A/E) - A + E`` over all entries, with ``E = exp(X)``; or ``sum (E - A)^2`` (no half), continued by its
        tangent where ``E < A/2``, which makes it convex.
    trace : float or "auto"
        Weight of the penalty, above 0; its effect depends on the scale of A, and sensible values lie between 0.001 and 1 times
        ``problem.gamma_max``. "auto" takes the edge of the noise spectrum, so that only structure that noise cannot
        explain enters X; it assumes independent entries whose variance is proportional to their mean, and is known for KL
        with effects only. At ``problem.gamma_max`` and above the model has no positions.
    effects : bool
        Whether effects of rows and columns are free. Without them, X itself is penalised.
    penalty : {"nuclear", "paper"}
        The nuclear norm of the logs, or the paper's ``trace (tr exp(X_11) + tr exp(X_22))`` over positive semidefinite
        block matrices ``[[X_11, X], [X', X_22]]``, for KL without effects; it works on matrices of m + n rows.

    Returns
    -------
    NonsymmetricProblem

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> A = np.kron([[5, 1], [1, 5]], np.ones((6, 4)))
    >>> problem = cvxnmf.nonsymmetric(A, trace=1.0)
    >>> solution = cvxnmf.solve(problem)
    >>> solution.status.name, solution.rank, solution.X.shape
    ('OPTIMAL', 1, (12, 8))
    """
    validation.choice("loss", loss, [name for name, kind in LOSSES.items() if not kind.limited])
    validation.choice("penalty", penalty, ("nuclear", "paper"))
    if not isinstance(effects, bool | np.bool_):
        validation.refuse(f"effects must be True or False, not {effects!r}.")
    if penalty == "paper" and (LOSSES[loss] is not KullbackLeibler or effects):
        validation.refuse("penalty='paper' is for loss='kl' without effects; set effects=False and loss='kl'.")
    checked = validation.rectangular_matrix(A)
    validation.magnitude(checked, loss)
    if penalty == "paper":
        validation.fits_in_memory(sum(checked.shape))
    return _assemble(checked, loss, trace, bool(effects), penalty)


def _assemble(A: FloatArray, loss: str, trace: float | Literal["auto"], effects: bool, penalty: str) -> NonsymmetricProblem:
    """Build a rectangular problem from checked data: the rows and columns that carry data, and the trace."""
    s = np.concatenate([A.any(axis=1), A.any(axis=0)]).astype(np.float64) if effects else np.ones(sum(A.shape))
    nodes, rows, columns = np.flatnonzero(s), np.flatnonzero(s[: len(A)]), np.flatnonzero(s[len(A) :])
    data = A[np.ix_(rows, columns)]
    if isinstance(trace, str):
        refuse_auto(trace, LOSSES[loss].noise_known and effects, "loss='kl' with effects", "above 0")
        weight = 0.5 * rectangular_noise_edge(data)
    else:
        weight = validation.number("trace", trace, minimum=0.0, strict=True)
    if weight == 0:
        validation.refuse("trace='auto' finds no noise in these data; give trace as a number above 0.")
    if not 1e-100 <= weight <= 1e100:
        validation.refuse(f"trace={weight:g} is out of range; sensible values lie between 0.001 and 1 times problem.gamma_max.")
    A.flags.writeable = s.flags.writeable = False  # a certificate is about these very numbers
    statement = NonsymmetricStatement(loss, penalty, effects, weight)
    if penalty == "paper":
        paired = PairedComponent(nodes, PairedKullbackLeibler(data, weight), PSD(np.ones(len(nodes))), 0.0, statement)
        return PaperNonsymmetricProblem(A, statement, s, (paired,))
    component = NuclearComponent(nodes, LOSSES[loss](data), NuclearNorm(data, effects), weight, statement, rows, columns)
    return NonsymmetricProblem(A, statement, s, (component,))
