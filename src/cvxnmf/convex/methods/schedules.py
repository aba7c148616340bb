"""Schedules: which method takes the next step, as the steps before have shown what kind of problem it is.

A schedule is a generator that yields the method of the next step and sees, when it is resumed, where that step has led. It keeps
no method that is done, whose arrays are large. A method alone is its own schedule.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxnmf.convex.methods.augmented import AugmentedDescent
from cvxnmf.convex.methods.base import Method
from cvxnmf.convex.methods.dual_ascent import DualAscent
from cvxnmf.convex.methods.factored import Factored
from cvxnmf.convex.methods.gradient import Accelerated, ProjectedGradient
from cvxnmf.convex.methods.laplacian import LaplacianDescent
from cvxnmf.convex.methods.splitting import LossSplitting, ProjectionSplitting

if TYPE_CHECKING:
    from cvxnmf.convex.component import DenseComponent
    from cvxnmf.convex.doubly_nonnegative import ProjectionComponent
    from cvxnmf.convex.symmetric_component import LimitedComponent, SymmetricComponent
    from cvxnmf.results import MatrixPoint

Schedule = Iterator[Method]
#: Part of a schedule, which returns the point that it has reached.
Part = Generator[Method, None, Any]

#: Columns of W per row or column of X, whichever is fewer, up to which descents over factors are faster.
LOW_RANK = 0.125
#: Data of which at least this share is not zero are dense.
DENSE = 0.3
#: Accelerated steps after which they are judged, after which the residual must lie in the domain of the dual, and at most.
FIRST_JUDGED, LAST_JUDGED, LONGEST = 4, 20, 60
#: Share of the floor by which a residual may lie outside the domain when it is first judged.
NEARLY_INSIDE = 2.5e-3
#: Accelerated steps on the psd cone.
DEFINITE_STEPS = 16
#: Rounds of alternating directions that show the rank of the solution.
SPLITTING_ROUNDS = 10
#: Steps of dual ascent that show its rate, and steps still to go up to which it is kept.
ASCENT_STEPS, NEAR_END = 6, 8


def symmetric_schedule(component: SymmetricComponent, point: Any) -> Schedule:
    """Symmetric schedule: accelerated steps while the residuals of their projections soon are dual points, as on dense data.

    Elsewhere, and where a penalty makes for a low rank, one descent over factors, and if that does not reach the end, descents in
    the metric of the model's Laplacian.
    """
    accelerates = not component.trace
    if component.trace and component.loss.enters_domain and not component.rank(point) and _is_dense(component):
        point = yield from _projected_step(component, point)
        accelerates = not _has_low_rank(component, point)
    if accelerates:
        point = yield from _accelerated_steps(component, point)
    point = yield from _descents_while_bounded(component, point)
    yield from LaplacianDescent(component, point)


def paired_schedule(component: DenseComponent, point: Any) -> Schedule:
    """Schedule of the paper's nonsymmetric problem: accelerated steps, then descents over factors."""
    method: Method = Accelerated(component, point)
    for _ in range(LONGEST):
        yield method
    method = Factored(component, method.point)
    yield from method


def definite_schedule(component: DenseComponent, point: Any) -> Schedule:
    """Schedule on the psd cone: accelerated steps; where data of a wide range leave them far off, alternating directions.

    The curvature of a squared error spans the square of that range, which no gradient step follows.
    """
    method: Method = Accelerated(component, point)
    for _ in range(DEFINITE_STEPS):
        yield method
    method = LossSplitting(component, method.point)
    yield from method


def projection_schedule(component: ProjectionComponent, point: MatrixPoint) -> Schedule:
    """Schedule of the doubly nonnegative problem: dual ascent while it nears the end, else alternating directions."""
    ascent = DualAscent(component, point)
    del point  # a dense matrix, as what the ascent holds
    for _ in range(ASCENT_STEPS):
        yield ascent
    while ascent.steps_to_go() <= NEAR_END:
        yield ascent
    splitting = ProjectionSplitting(component, ascent.point)
    del ascent
    yield from splitting


def free_diagonal_schedule(component: SymmetricComponent, point: Any) -> Schedule:
    """Schedule for an ignored diagonal: alternating directions while the rank is high, descents over factors where low.

    A free diagonal makes room for high ranks, and the residual of a projection, which has one, is no dual point.
    """
    point = yield from _projected_step(component, point)
    if _has_low_rank(component, point):
        point = yield from _descents_while_bounded(component, point)
    else:
        point = yield from _splitting_while_high_rank(component, point)
    yield from LaplacianDescent(component, point)


def limited_schedule(component: LimitedComponent, point: Any) -> Schedule:
    """The free-diagonal schedule under the paper's lower limit on X, which asks for descents on an augmented Lagrangian."""
    point = yield from _projected_step(component, point)
    if not _has_low_rank(component, point):
        point = yield from _splitting_while_high_rank(component, point)
    yield from AugmentedDescent(component, point)


def rectangular_schedule(component: DenseComponent, point: Any) -> Schedule:
    """Schedule of rectangular problems: alternating directions, or descents over factors if first steps show a low rank."""
    point = yield from _splitting_while_high_rank(component, point)
    yield from Factored(component, point)


def _projected_step(component: DenseComponent, point: Any) -> Part:
    """One projected gradient step at the beginning of a schedule, which shows the rank."""
    method = ProjectedGradient(component, point)
    yield method
    return method.point


def _accelerated_steps(component: DenseComponent, point: Any) -> Part:
    """Accelerated steps of a schedule, until their residuals are far from the domain of the dual, or do not enter it."""
    method = Accelerated(component, point)
    for taken in range(1, LONGEST + 1):
        yield method
        if taken >= (FIRST_JUDGED if method.outside > NEARLY_INSIDE else LAST_JUDGED) and method.outside > 0:
            break
    return method.point


def _descents_while_bounded(component: DenseComponent, point: Any) -> Part:
    """Descents over factors in a schedule, until one has positions and no residual that is a dual point."""
    method = Factored(component, point)
    yield method
    while method.expected_bound > -np.inf or not component.rank(method.point):
        yield method
    return method.point


def _splitting_while_high_rank(component: DenseComponent, point: Any) -> Part:
    """Alternating directions in a schedule; for some rounds only if these show a low rank."""
    method = LossSplitting(component, point)
    for _ in range(SPLITTING_ROUNDS):
        yield method
    if not _has_low_rank(component, method.point):
        yield from method
    return method.point


def _is_dense(component: DenseComponent) -> bool:
    return bool(np.count_nonzero(component.loss.A) >= DENSE * component.loss.A.size)


def _has_low_rank(component: DenseComponent, point: Any) -> bool:
    return bool(component.rank(point) <= LOW_RANK * min(component.loss.A.shape))
