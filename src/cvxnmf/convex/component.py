"""A component: the connected piece of a problem that is solved on its own, as `solve`, `certify` and the methods see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cvxnmf.certificates import Statement
from cvxnmf.convex.dual import Dual
from cvxnmf.convex.effects import balancing_effects
from cvxnmf.convex.geometry import AnyGeometry
from cvxnmf.convex.losses import Loss
from cvxnmf.convex.methods.base import Methods
from cvxnmf.convex.methods.gradient import ProjectedGradient
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import SINGLE_THREAD_BELOW
from cvxnmf.results import AnyPoint, FactorPoint, MatrixPoint

Index = NDArray[np.intp]
P = TypeVar("P", bound=AnyPoint)

#: Entries of X beyond this size are cut off before X is projected or certified; their exp is 0 or infinite anyway.
LOWEST_LOG = -1e6
#: Columns of W with less than this share of the largest column's weight may be dropped at the end.
NEGLIGIBLE_COLUMN = 1e-6


class Certified(NamedTuple):
    """A certified point of a component: the point, the objective there, and a dual point for it, if one was found."""

    point: Any
    value: float
    dual: Dual | None


class Component(ABC, Generic[P]):
    """A component of a convex problem, the connected piece that is solved on its own."""

    certifies_start = True  # a certificate of the starting point is cheap enough to be asked for before the first step
    matrix_free = False  # whether its model is never formed
    dense_methods: tuple[str, ...] = ()  # methods beyond its own that can solve it when it is made dense
    threads_from = SINGLE_THREAD_BELOW  # size from which on BLAS gains by several threads

    @property
    @abstractmethod
    def scale(self) -> float:
        """The size of the component's data, against which a vanishing value is judged."""

    @property
    @abstractmethod
    def methods(self) -> Methods:
        """Methods that can solve the component by their names, the best first."""

    @abstractmethod
    def value(self, point: P) -> float:
        """The objective of the component at an admissible point."""

    @abstractmethod
    def start(self, given: Any = None) -> P:
        """The best starting point known for the component, or the user's, which covers the whole problem, if that is better."""

    @abstractmethod
    def dual_point(self, point: AnyPoint, candidate: FloatArray | None = None) -> Dual | None:
        """A dual point for an admissible point, accepted by the check; None if the point is too far from optimal to give one.

        The candidate comes from a method: a slope in the domain of the dual that lies in the dual cone up to rounding, or the
        multiplier of a limit on X; it may be overwritten. Without a candidate the gradient at the point is used.
        """

    def certify(self, point: P, value: float, candidate: FloatArray | None = None) -> Certified:
        """The component's point with effects balanced where they are free, the objective there, and a dual point for it."""
        return Certified(point, value, self.dual_point(point, candidate))

    def best_dual(self, point: AnyPoint) -> Dual | None:
        """The best dual point of the component where only the point is known, and no method has found a candidate."""
        return self.dual_point(point)

    def admits(self, point: P) -> bool:
        """Whether a point of another problem of equal size is a point of this component."""
        return True

    def in_single_precision(self) -> Component[P] | None:
        """The component with its first descent in single precision; None if that is not possible."""
        return None

    def tidy(self, point: P, limit: float) -> P:
        """The component's X in unique factors; negligible columns are dropped if the value stays within the limit."""
        return point

    @abstractmethod
    def rank(self, point: P) -> int:
        """The rank of a component's point: columns of W, or rows of a point without factors."""


class FactorComponent(Component[FactorPoint]):
    """A component whose points are factors (v, W): the rows `nodes` of the whole v and W.

    X lies in a cone, whose penalty has the weight `trace`.
    """

    nodes: Index
    cone: AnyGeometry
    trace: float

    @property
    def size(self) -> int:
        """Number of nodes of the component."""
        return len(self.nodes)

    @property
    @abstractmethod
    def average_curvature(self) -> float:
        """Mean curvature of the component's loss in the metric, at a model of the right size."""

    @abstractmethod
    def slopes(self, point: FactorPoint) -> tuple[float, FloatArray, FloatArray]:
        """The component's loss at a point (v, W), and half its gradients over v and W."""

    @property
    def entries(self) -> Any:
        """Index of the component's entries in the X of the whole problem."""
        return np.ix_(self.nodes, self.nodes)

    @abstractmethod
    def independent_model(self) -> FactorPoint:
        """The component's best model without positions."""

    def start(self, given: Any = None) -> FactorPoint:
        """The component's best start: the model without positions, the user's point, projected where necessary, or others."""
        candidates = [self.independent_model()]
        if isinstance(given, FactorPoint):
            point = given.restrict_to(self.nodes)
            candidates.append(point if self.cone.free_effects or not point.v.any() else self._project(point.dense()))
        elif given is not None:
            candidates.append(self._project(given[self.entries]))
        candidates += self._other_starts()
        values = [self.value(point) for point in candidates]
        return candidates[int(np.argmin([value if np.isfinite(value) else np.inf for value in values]))]

    def _project(self, X: FloatArray) -> FactorPoint:
        """The point of the component's cone nearest to X, entries beyond all logarithms cut off."""
        return self.cone.project(np.clip(X, LOWEST_LOG, -LOWEST_LOG))

    def _other_starts(self) -> list[FactorPoint]:
        """Points beside the model without positions that the component may start from."""
        return []

    def rank(self, point: FactorPoint) -> int:
        """The rank of a component's point in factors: columns of W."""
        return int(point.W.shape[1])

    def tidy(self, point: FactorPoint, limit: float) -> FactorPoint:
        """The component's columns orthogonal, by decreasing weight; light ones dropped while the value stays within the limit."""
        tidied = self.cone.canonical_factors(point)
        weights = np.sum((self.cone.s[:, None] * tidied.W) ** 2, axis=0)
        short = self.cone.point(tidied.v, tidied.W[:, weights > NEGLIGIBLE_COLUMN * weights.max(initial=0.0)])
        return short if self.value(short) <= limit else tidied


@dataclass(frozen=True, eq=False)
class DenseComponent(FactorComponent):
    """A component on dense matrices: ``loss(X) + trace penalty(X)``, the loss bound to its data.

    The statement says what its dual points prove, in the words of a certificate.
    """

    nodes: Index
    loss: Loss
    cone: AnyGeometry
    trace: float
    statement: Statement

    @property
    def scale(self) -> float:
        """The size of the data of a dense component."""
        return self.loss.scale

    def value(self, point: FactorPoint, X: FloatArray | None = None) -> float:
        """Loss plus penalty of a dense component at a point of the cone, whose X may be given if it is known."""
        loss = self.loss.value(point.dense() if X is None else X)
        return loss + self.trace * self.cone.penalty(point) if self.trace else loss

    def slopes(self, point: FactorPoint) -> tuple[float, FloatArray, FloatArray]:
        """The loss of a dense component at a point, and half its gradients over v and W."""
        X = point.dense()
        loss, G = self.loss.value_and_gradient(X, out=X)
        return loss, *self.cone.factor_gradients(G, point.W)

    def independent_model(self) -> FactorPoint:
        """The best model without positions of a dense component."""
        return self.cone.point(self.cone.independent_effects(self.loss.A), np.zeros((self.size, 0)))

    @cached_property
    def average_curvature(self) -> float:
        """Mean curvature of a dense component's loss in the metric, at a model that is nowhere below the data."""
        X = np.maximum(self.independent_model().dense(), self.loss.minimiser())
        return float(self.loss.curvature(X).sum() / self.cone.total_weight)

    def _other_starts(self) -> list[FactorPoint]:
        """The start ``log A`` of a dense component, projected on the cone, if A has no zero."""
        best = self.loss.minimiser()
        return [self.cone.project(best)] if best.min() > -np.inf else []

    def balance_effects(self, point: FactorPoint, max_iter: int = 40) -> FactorPoint:
        """Return a dense component's point with the best effects for its positions, if free; nearly so after few steps."""
        if not self.cone.free_effects:
            return point
        v = balancing_effects(self.loss, self.cone, point.dense(), max_iter)
        return self.cone.point(point.v + v, point.W)

    def certify(self, point: FactorPoint, value: float, candidate: FloatArray | None = None) -> Certified:
        """A dense component's point with effects balanced where they are free, the objective there, and a dual point for it."""
        if self.cone.free_effects:
            point = self.balance_effects(point)
            value = self.value(point)
        return super().certify(point, value, candidate)

    def best_dual(self, point: AnyPoint) -> Dual | None:
        """The better dual point of a dense component: the gradient's, or that of the residual of a projected step."""
        dual = self.dual_point(point)
        if dual is None:  # too far off
            return None
        step = ProjectedGradient(self, self.cone.project(point.dense()) if isinstance(point, MatrixPoint) else point)
        try:
            step.step()
        except np.linalg.LinAlgError:  # from an absurd point it overflows
            return dual
        residual = step.dual_candidate()
        other = None if residual is None else self.dual_point(step.point, residual)
        return dual if other is None or other.bound <= dual.bound else other

    def balanced_gradient(self, point: AnyPoint) -> FloatArray:
        """The gradient of a dense component's loss at a point whose effects are balanced where they are free."""
        X = point.dense()
        if self.cone.free_effects:
            X = self.cone.with_effects(X, balancing_effects(self.loss, self.cone, X))
        return self.loss.value_and_gradient(X, out=X)[1]

    @property
    def splitting_weight(self) -> float:
        """The first weight rho of alternating directions, for which the scaled multiplier has about the size of X."""
        return self.cone.typical_multiplier(self.trace)

    def admissible(self, point: FactorPoint) -> FactorPoint:
        """The point moved until it satisfies the component's constraints beyond the cone; unchanged where there are none."""
        return point

    def admits(self, point: FactorPoint) -> bool:
        """Whether the effects of a dense component are free, or the point has none."""
        return self.cone.free_effects or not point.v.any()

    def restore(self, X: FloatArray) -> tuple[FloatArray, bool]:
        """Return the nearest matrix that a dense component admits, and whether X lay outside beyond rounding."""
        if X.min() < LOWEST_LOG or X.max() > -LOWEST_LOG:
            return self.restore(np.clip(X, LOWEST_LOG, -LOWEST_LOG))[0], True
        tolerance = 8 * float(np.finfo(np.float64).eps) * len(X) * max(1.0, float(np.abs(X).max()))
        if self.cone.contains(X, tolerance):
            return X, False
        return self.cone.project(X).dense(), True
