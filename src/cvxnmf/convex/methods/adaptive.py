"""Methods that change to another one when the first steps have shown what kind of problem it is."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxnmf.convex.methods.augmented import AugmentedDescent
from cvxnmf.convex.methods.base import Method
from cvxnmf.convex.methods.dual_ascent import DualAscent
from cvxnmf.convex.methods.factored import Factored
from cvxnmf.convex.methods.gradient import Accelerated, ProjectedGradient
from cvxnmf.convex.methods.laplacian import LaplacianDescent
from cvxnmf.convex.methods.splitting import LossSplitting, ProjectionSplitting
from cvxnmf.linalg.arrays import FloatArray

if TYPE_CHECKING:
    from cvxnmf.convex.component import DenseComponent
    from cvxnmf.convex.doubly_nonnegative import ProjectionComponent
    from cvxnmf.convex.rectangular_component import NuclearComponent
    from cvxnmf.results import MatrixPoint

#: Columns of W per row or column of X, whichever is fewer, up to which descents over factors are faster.
LOW_RANK = 0.125
#: Data of which at least this share is not zero are dense.
DENSE = 0.3


class Adaptive(Method):
    """A method at work, and what comes after it."""

    trial: int  # steps of the first method before it is judged

    def __init__(self, component: Any, first: Method) -> None:
        self.component, self.at_work, self.taken, self.value = component, first, 0, first.value
        self.check_every, self.patience = self.trial + 1, first.patience

    @property
    def point(self) -> Any:
        """That of the method at work; no second one is kept."""
        return self.at_work.point

    @property
    def expected_bound(self) -> float:
        """What the method at work expects."""
        return self.at_work.expected_bound

    @property
    def distance(self) -> float:
        """That of the method at work."""
        return self.at_work.distance

    @property
    def gradient_proves_more(self) -> bool:
        """What the method at work says."""
        return self.at_work.gradient_proves_more

    def take_multiplier(self, slopes: FloatArray) -> None:
        """Hand them to the method at work."""
        self.at_work.take_multiplier(slopes)
        self.check_every = min(self.check_every, self.at_work.check_every)

    def dual_candidate(self) -> FloatArray | None:
        """The candidate of the method at work."""
        return self.at_work.dual_candidate()

    def settle(self) -> None:
        """Bring the method at work up to date."""
        self.at_work.settle()
        self.value = self.at_work.value

    def step(self) -> None:
        """One step of the method at work, which may be the last of its kind."""
        self.at_work.aim = self.aim
        self.at_work.step()
        self.value = self.at_work.value
        self.taken += 1
        following = self._following()
        if following is not None:
            self.at_work, self.taken = following, 0
        if following is not None or self.taken == self.trial:
            self.check_every, self.patience = self.at_work.check_every, self.at_work.patience

    @abstractmethod
    def _following(self) -> Method | None:
        """The method that takes over now, if any."""


class SymmetricAdaptive(Adaptive):
    """Accelerated steps while the residuals of their projections soon are dual points, as on dense data.

    Elsewhere, and where a penalty makes for a low rank, one descent over factors, and if that does not reach the end, descents in
    the metric of the model's Laplacian.
    """

    trial = 4
    patient = 20  # accelerated steps that a residual near the domain is given to enter it
    longest = 60  # accelerated steps in all
    near = 2.5e-3  # share of the floor by which a residual may be outside

    def __init__(self, component: DenseComponent[Any], point: Any) -> None:
        if not component.trace:
            super().__init__(component, Accelerated(component, point))
            return
        may_accelerate = component.loss.enters_domain and not component.rank(point) and _is_dense(component)
        super().__init__(component, (ProjectedGradient if may_accelerate else Factored)(component, point))
        self.check_every = Factored.check_every

    def _following(self) -> Method | None:
        work = self.at_work
        if type(work) is ProjectedGradient:
            return self._by_rank(work.point)
        if isinstance(work, Accelerated):
            return self._factored(work) if self._is_hopeless(work) or self.taken >= self.longest else None
        return self._after_descent() if isinstance(work, Factored) else None

    def _by_rank(self, point: Any) -> Method:
        """What follows when one projected step has shown the rank."""
        return (Factored if _has_low_rank(self.component, point) else Accelerated)(self.component, point)

    def _is_hopeless(self, work: Accelerated) -> bool:
        """Whether the residual is far from the domain of the dual, or does not enter it."""
        return work.outside > 0 and (self.taken >= self.patient or (self.taken >= self.trial and work.outside > self.near))

    def _factored(self, before: ProjectedGradient) -> Method:
        descent = Factored(self.component, before.point)
        descent.L = before.L
        return descent

    def _after_descent(self) -> Method | None:
        if self.at_work.expected_bound > -np.inf or not self.point.W.shape[1]:
            return None
        return LaplacianDescent(self.component, self.point)


class PairedAdaptive(SymmetricAdaptive):
    """The same on the psd cone, whose effects are not free: accelerated steps, then descents over factors."""

    trial = longest = 60

    def __init__(self, component: DenseComponent[Any], point: Any) -> None:
        Adaptive.__init__(self, component, Accelerated(component, point))

    def _is_hopeless(self, work: Accelerated) -> bool:
        return False

    def _after_descent(self) -> Method | None:
        return None


class DefiniteAdaptive(Adaptive):
    """Accelerated steps on the psd cone; where data of a wide range leave them far from the end, alternating directions.

    The curvature of a squared error spans the square of that range, which no gradient step follows.
    """

    trial = 16

    def __init__(self, component: DenseComponent[Any], point: Any) -> None:
        super().__init__(component, Accelerated(component, point))

    def _following(self) -> Method | None:
        lasts = isinstance(self.at_work, LossSplitting) or self.taken < self.trial
        return None if lasts else LossSplitting(self.component, self.at_work.point)


class ProjectionAdaptive(Adaptive):
    """Ascent of the dual while it is about to reach the end soon; alternating directions elsewhere, as on sparse graphs."""

    trial = 6
    most_to_go = 8

    def __init__(self, component: ProjectionComponent, point: MatrixPoint) -> None:
        super().__init__(component, DualAscent(component, point))

    def _following(self) -> Method | None:
        work = self.at_work
        soon = not isinstance(work, DualAscent) or self.taken < self.trial or work.steps_to_go() <= self.most_to_go
        return None if soon else ProjectionSplitting(self.component, work.point)


class FreeDiagonalAdaptive(SymmetricAdaptive):
    """Where the diagonal is ignored alternating directions while the rank is high; descents over factors where it is low.

    A free diagonal makes room for high ranks, and the residual of a projection, which has one, is no dual point.
    """

    trial = 10
    descent: type[Any] = Factored  # where the first projection shows a low rank
    later: type[Any] = LaplacianDescent  # where the first rounds do

    def __init__(self, component: DenseComponent[Any], point: Any) -> None:
        Adaptive.__init__(self, component, ProjectedGradient(component, point))
        self.check_every = self.trial

    def _by_rank(self, point: Any) -> Method:
        following: Method = (self.descent if _has_low_rank(self.component, point) else LossSplitting)(self.component, point)
        return following

    def _following(self) -> Method | None:
        if not isinstance(self.at_work, LossSplitting):
            return super()._following()
        judged = self.taken == self.trial and _has_low_rank(self.component, self.point)
        return self.later(self.component, self.point) if judged else None


class LimitedAdaptive(FreeDiagonalAdaptive):
    """The same under the paper's lower limit on X."""

    descent = later = AugmentedDescent


class RectangularAdaptive(Adaptive):
    """Alternating directions; where their first steps show a low rank, descents over factors instead."""

    trial = 10

    def __init__(self, component: NuclearComponent, point: Any) -> None:
        super().__init__(component, LossSplitting(component, point))

    def _following(self) -> Method | None:
        judged = self.taken == self.trial and isinstance(self.at_work, LossSplitting)
        return Factored(self.component, self.point) if judged and _has_low_rank(self.component, self.point) else None


def _is_dense(component: DenseComponent[Any]) -> bool:
    return bool(np.count_nonzero(component.loss.A) >= DENSE * component.loss.A.size)


def _has_low_rank(component: DenseComponent[Any], point: Any) -> bool:
    return bool(component.rank(point) <= LOW_RANK * min(component.loss.A.shape))
