"""What every problem offers: its equation as value and gradient, its components, its statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cvxnmf import validation
from cvxnmf.convex.component import Index
from cvxnmf.convex.dual import Dual
from cvxnmf.convex.losses import Loss
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import AnyPoint, FactorPoint, Solution


def refuse_auto(trace: str, known: bool, needed: str, domain: str) -> None:
    """Refuse a problem's trace given as a word that is not "auto", or "auto" where the edge of the noise is not known."""
    if trace != "auto":
        validation.refuse(f"trace must be 'auto' or a number {domain}, not {trace!r}.")
    if not known:
        validation.refuse(f"trace='auto' is known for {needed} only; give trace as a number for this problem.")


@dataclass(frozen=True, eq=False)
class Problem(ABC):
    """A convex problem, made by :func:`symmetric`, :func:`nonsymmetric` or :func:`sparse`.

    Attributes
    ----------
    A : ndarray or csr_array
        The checked data; large sparse data of a symmetric problem stay sparse.
    statement : Statement
        The problem in the words of a certificate: loss, cone, penalties.
    metric : ndarray
        The vector s of weights, one per node (rows, then columns of a rectangular A); 0 for those that carry no data and
        were set aside.
    components : tuple of Component
        The independent pieces to solve.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> problem = cvxnmf.symmetric(A, loss="kl", trace="auto")
    >>> problem.A.shape, problem.statement.loss, problem.trace > 0
    ((20, 20), 'kl', True)
    """

    A: Any = field(repr=False)
    statement: Any
    metric: FloatArray = field(repr=False)
    components: tuple[Any, ...] = field(repr=False)

    @property
    def trace(self) -> float:
        """Weight of the problem's penalty, resolved to its number."""
        return float(self.statement.trace)

    @property
    @abstractmethod
    def size(self) -> int:
        """The smaller side of the matrices that are decomposed to solve the problem."""

    @abstractmethod
    def value(self, X: ArrayLike) -> float:
        """Objective of the convex problem at X."""

    @abstractmethod
    def gradient(self, X: ArrayLike) -> FloatArray:
        """Gradient of the convex problem's objective at X."""

    @abstractmethod
    def with_trace(self, trace: float | Literal["auto"]) -> Problem:
        """Return the convex problem with another trace weight."""

    @abstractmethod
    def matrix(self, X: Any, name: str = "X") -> FloatArray:
        """Check a matrix that a user gives as a point of the problem."""

    @abstractmethod
    def starting_point(self, start: Any) -> Any:
        """Check a warm start of the problem: a solution, factors or a matrix."""

    def starting_multiplier(self, start: Any) -> FloatArray | None:
        """Slopes of the loss that proved the bound of a solution of the problem with another trace; None if there are none."""
        return None

    @abstractmethod
    def restrict_solution(self, solution: Solution) -> list[Any] | None:
        """The points of a solution on the components, None if one is not admissible; a solution of another problem is refused."""

    @abstractmethod
    def join_points(self, points: Sequence[Any]) -> tuple[AnyPoint, Index | None]:
        """The points of all components of the problem as one, and the component of every node if there are several."""

    def join_duals(self, duals: Sequence[Dual | None]) -> Dual | None:
        """The dual points of all components of the problem as one."""
        (dual,) = duals
        return dual

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods that can solve the problem, the best first."""
        return (*self.components[0].methods, *self.components[0].dense_methods)

    @property
    def matrix_free(self) -> bool:
        """Whether the problem is solved by products with a model that is never formed."""
        return any(component.matrix_free for component in self.components)

    @property
    def scale(self) -> float:
        """The size of the problem's data, against which a vanishing value is judged."""
        return float(sum(component.scale for component in self.components))

    def dense(self) -> Problem:
        """The problem itself, stated on dense matrices."""
        return self

    def for_method(self, name: str, single: bool = False) -> Problem:
        """The problem in the form that the method needs; if `single`, with a first descent in single precision."""
        if name not in self.components[0].methods:
            return self.dense().for_method(name, single)
        if not single:
            return self
        components = tuple(component.in_single_precision() for component in self.components)
        if None in components:
            validation.refuse(
                "precision='single' is for method='factored' on large sparse data (KL, conditional cone, trace > 0) only."
            )
        return replace(self, components=components)

    def matrix_of(self, solution: Solution) -> ArrayLike:
        """The matrix X of a solution, of the shape that :meth:`matrix` takes."""
        return solution.X

    def _objective(self, loss: Loss, X: FloatArray) -> float:
        """The loss of the whole X and the penalty of its parts; infinite at a limit that the penalty does not allow."""
        parts = [(component.cone, X[component.entries]) for component in self.components] if self.trace else []
        if not all(np.isfinite(part).all() for _, part in parts):
            return float("inf")
        with np.errstate(over="ignore", invalid="ignore"):
            return loss.value(X) + self.trace * float(sum(cone.inner(part) for cone, part in parts))

    def _join_factors(self, n: int, points: Sequence[FactorPoint]) -> tuple[FloatArray, FloatArray, Index | None]:
        """Effects and positions of all components of the problem, ``-inf`` effects without data; the component of every node."""
        v, numbers = np.full(n, -np.inf), np.full(n, -1)
        W = np.zeros((n, sum(point.W.shape[1] for point in points)))
        column = 0
        for number, (component, point) in enumerate(zip(self.components, points, strict=True)):
            rank = point.W.shape[1]
            v[component.nodes], numbers[component.nodes] = point.v, number
            W[component.nodes, column : column + rank] = point.W
            column += rank
        return v, W, numbers if len(points) > 1 else None
