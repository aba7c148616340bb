"""Components of the symmetric problem on dense matrices, with a loss alone and under a lower limit on X, and their dual points.

With g the gradient of the loss at X and f its floor, ``Z = g + f >= 0`` always lies in the domain of the dual, and one
shift puts ``Y = Z - f + trace N`` into the dual cone (docs/mathematics.md):

    psd            Z + shift S^2                              S^2 is inside the cone
    conditional    (1 - shift) Z + shift Diag(f1)             g1 = 0 by the effects; shift = 1 gives a Laplacian
    free diagonal  (1 - shift) Z + shift f                    shift = 1 gives Y = trace N

Under a lower limit on X the gradient is first lowered by the limit's multiplier.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from cvxnmf.convex.component import Certified, Component, DenseComponent
from cvxnmf.convex.cones import Cone
from cvxnmf.convex.distances import laplacian_pencil
from cvxnmf.convex.dual import ABSURD, FIRST_PAD, Dual, Witness, clip_spectrum, prove_least_shift
from cvxnmf.convex.losses import LimitedSquaredError, Loss
from cvxnmf.convex.methods import Accelerated, AugmentedDescent, Factored, LossSplitting, Methods, ProjectedGradient
from cvxnmf.convex.methods.schedules import definite_schedule, free_diagonal_schedule, limited_schedule, symmetric_schedule
from cvxnmf.linalg.arrays import FloatArray, add_effects
from cvxnmf.linalg.symmetry import make_symmetric
from cvxnmf.results import AnyPoint, FactorPoint, Point

Family = Callable[[float], FloatArray]
#: Where only X is known, alternating directions look for the multiplier of its lower limit: rounds at a time, and at most, and
#: the relative gap of their own points that ends them.
ROUNDS, MOST_ROUNDS, SMALL_GAP = 20, 100, 1e-4


@dataclass(frozen=True, eq=False)
class SymmetricComponent(DenseComponent):
    """The symmetric component ``loss(A, exp(X)) + trace <N, X>``, X in the cone, on the nodes of one connected component."""

    cone: Cone

    @property
    def methods(self) -> Methods:
        """Methods of a symmetric component; on the psd cone, where solutions have a high rank, factors do not pay."""
        plain = {"accelerated": Accelerated, "factored": Factored, "projected-gradient": ProjectedGradient}
        if self.cone.free_effects and not self.loss.ignore_diagonal:
            return {"adaptive": symmetric_schedule, **plain}
        definite = LossSplitting if self.loss.ignore_diagonal else definite_schedule
        adaptive = free_diagonal_schedule if self.cone.free_effects else definite
        return {"adaptive": adaptive, **plain, "splitting": LossSplitting}

    @property
    def splitting_weight(self) -> float:
        """First rho of alternating directions for a symmetric component: by the loss, or the penalty if the diagonal is free."""
        return super().splitting_weight if self.loss.ignore_diagonal else 0.3 * self.average_curvature

    def dual_point(self, point: AnyPoint, candidate: FloatArray | None = None) -> Dual | None:
        """Shift the candidate, or else the gradient at balanced effects, into the dual cone of a symmetric component."""
        g = self.balanced_gradient(point) if candidate is None else candidate
        return self._prove_shifted(g, within_rounding=candidate is not None)

    def _prove_shifted(self, g: FloatArray, within_rounding: bool = False) -> Dual | None:
        """The dual point of slope g, overwritten, shifted into the dual cone; `within_rounding`: it lies there already."""
        if not (-ABSURD < g.min() and g.max() < ABSURD):
            return None
        loss, cone = self.loss, self.cone
        try:
            least, family = _shifted_family(self, g, within_rounding)
        except sl.LinAlgError:
            return None

        def witness(shift: float) -> Witness:
            return {"Z": make_symmetric(family(shift)), "metric": cone.s}

        return prove_least_shift(loss.A, self.statement, least, witness, FIRST_PAD * self.size)


@dataclass(frozen=True, eq=False)
class LimitedComponent(SymmetricComponent):
    """A symmetric component under the paper's lower limit ``exp(X) >= A/2``, which balanced effects would break."""

    loss: LimitedSquaredError
    certifies_start = False  # the multiplier of the limit is not known, and to estimate it takes long

    @property
    def methods(self) -> Methods:
        """Methods of a symmetric component under a lower limit; descents over distances need free effects."""
        if not self.cone.free_effects:
            return {"splitting": LossSplitting}
        methods: Methods = {"factored": AugmentedDescent, "splitting": LossSplitting}
        return {"adaptive": limited_schedule, **methods} if self.loss.ignore_diagonal else methods

    def with_loss(self, loss: Loss) -> SymmetricComponent:
        """The symmetric component without its lower limit, under another loss."""
        return SymmetricComponent(self.nodes, loss, self.cone, self.trace, self.statement)

    def certify(self, point: FactorPoint, value: float, candidate: FloatArray | None = None) -> Certified:
        """The point and its value unchanged under the lower limit, and a dual point."""
        return Component.certify(self, point, value, candidate)

    def dual_point(self, point: AnyPoint, candidate: FloatArray | None = None) -> Dual | None:
        """Shift the candidate, the slope of the loss less the lower limit's multiplier, into the dual cone of the component.

        Without a candidate, alternating directions from the point look for one, until it proves their own points nearly optimal.
        """
        if candidate is not None:
            return self._prove_shifted(candidate)
        method, best = LossSplitting(self, self.cone.project(point.dense())), None
        with contextlib.suppress(sl.LinAlgError):  # from an absurd point it overflows
            for _ in range(MOST_ROUNDS // ROUNDS):
                for _ in range(ROUNDS):
                    method.step()
                dual = self._prove_shifted(method.dual_candidate())
                best = dual if best is None or (dual is not None and dual.bound > best.bound) else best
                if best is None or method.value - best.bound <= SMALL_GAP * method.value:
                    break
        return best

    def best_dual(self, point: AnyPoint) -> Dual | None:
        """The dual point that alternating directions find; a projected step does not know the lower limit."""
        return self.dual_point(point)

    def tidy(self, point: FactorPoint, limit: float) -> FactorPoint:
        """Columns orthogonal, by decreasing weight, under the lower limit; none is dropped, lest the limit be broken."""
        return self.cone.canonical_factors(point)

    def admits(self, point: FactorPoint) -> bool:
        """Whether the point has no effects that are not free, and respects the lower limit on X."""
        return super().admits(point) and not self.loss.lifting_direction(point.dense()).any()

    def restore(self, X: FloatArray) -> tuple[FloatArray, bool]:
        """Return the nearest matrix of the cone, raised to the lower limit, and whether X lay outside beyond rounding."""
        X, restored = super().restore(X)
        tolerance = 8 * float(np.finfo(np.float64).eps) * len(X) * max(1.0, float(np.abs(X).max()))
        direction = self.loss.lifting_direction(X)
        restored = restored or 0.5 * float(direction.max()) ** 2 > tolerance
        if not self.cone.free_effects:
            return X + np.outer(direction, direction), restored
        effects = self.loss.lifting_effects(X)
        return add_effects(X.copy(), effects, effects), restored

    def admissible(self, point: FactorPoint) -> Point:
        """Return the point raised until it respects the lower limit: by effects or, where those are not free, by one column."""
        if self.cone.free_effects:
            return Point(point.v + self.loss.lifting_effects(point.dense()), point.W)
        t = self.loss.lifting_direction(point.dense())
        return Point(point.v, np.column_stack([point.W, t]) if t.any() else point.W)


def _shifted_family(component: SymmetricComponent, g: FloatArray, within_rounding: bool) -> tuple[float, Family]:
    """The least shift that makes the gradient dual feasible, and the symmetric dual point for any shift."""
    if component.loss.ignore_diagonal:
        return _shrunk_family(component, g)
    if component.cone.free_effects:
        return _blended_family(component, g, within_rounding)
    return _raised_family(component, g, within_rounding)


def _raised_family(component: SymmetricComponent, g: FloatArray, within_rounding: bool) -> tuple[float, Family]:
    """The family of symmetric dual points with a raised diagonal, ``Z + shift S^2``, and the least shift."""
    t = component.cone.s**2
    unit = max(1e-300, float(g.max()), -float(g.min()))
    lowest = 0.0 if within_rounding else component.cone.smallest_eigenvalue(g) + component.trace
    g += component.loss.floor()
    diagonal = np.diag(g).copy()

    def family(shift: float) -> FloatArray:
        g.flat[:: len(g) + 1] = diagonal + shift * unit * t
        return g

    return max(0.0, -lowest) / unit, family


def _shrunk_family(component: SymmetricComponent, g: FloatArray) -> tuple[float, Family]:
    """The family of symmetric dual points with a shrunk, clipped gradient, ``Y = trace N + (1 - shift) g``."""
    if not component.loss.limited:  # else the domain has no edge
        clip_spectrum(component.loss, component.cone, g, component.trace)
    if component.cone.free_effects:
        if component.loss.limited:
            _balance_rows(component, g)
        _make_rows_sum_to_zero(g)
    lowest = component.cone.smallest_eigenvalue(g)
    bounded = component.loss.A == 0 if component.loss.limited else True

    def family(shift: float) -> FloatArray:
        Z: FloatArray = (1.0 - min(shift, 1.0)) * g
        Z += component.loss.floor()
        return np.maximum(Z, 0.0, out=Z, where=bounded)  # no lower than the edge of the domain, by rounding

    return max(0.0, 1.0 - component.trace / -lowest) if lowest < 0 else 0.0, family


def _balance_rows(component: SymmetricComponent, g: FloatArray) -> None:
    """Make the rows of a slope under a lower limit on X nearly sum to zero, in place: ``g_ij += m_ij (x_i + x_j)``.

    m is the floor; where the data are zero it is g, which must not become negative.
    """
    loss = component.loss
    m = loss.floor()
    np.copyto(m, g, where=loss.A == 0)
    with contextlib.suppress(sl.LinAlgError):
        x = component.cone.effects_step(m.copy(), g.sum(axis=1))
        m *= np.maximum(np.add.outer(x, x), -1.0, where=loss.A == 0, out=np.add.outer(x, x))
        g += m


def _make_rows_sum_to_zero(g: FloatArray) -> None:
    """Take the last rounding out of the row sums of a slope by ``x_i + x_j`` off the diagonal, in place."""
    n = len(g)
    for _ in range(2):
        x = g.sum(axis=1) / -(n - 2)
        x -= x.sum() / (2 * n - 2)
        add_effects(g, x, x)
        np.fill_diagonal(g, 0.0)


def _blended_family(component: SymmetricComponent, g: FloatArray, within_rounding: bool) -> tuple[float, Family]:
    """Least convex combination with the Laplacian that is dual feasible: a generalised eigenvalue. g is overwritten."""
    if component.loss.limited:
        _balance_rows(component, g)
    g.flat[:: len(g) + 1] -= g.sum(axis=1)
    ratio = 0.0
    if not within_rounding:
        with contextlib.suppress(sl.LinAlgError):  # data that are all but disconnected
            ratio = max(0.0, -float(laplacian_pencil(component, g.copy(), 1)[0][0]))
    floor = component.loss.floor()
    diagonal = floor.sum(axis=1)
    g += floor
    del floor
    own, share = np.diag(g).copy(), 1.0

    def family(shift: float) -> FloatArray:
        nonlocal g, share
        before, share = share, max(0.0, 1.0 - shift)
        g *= share / before if before else 1.0  # in place, for shifts that grow
        g.flat[:: len(g) + 1] = share * own + (1.0 - share) * diagonal
        return g

    return ratio / (1.0 + ratio), family
