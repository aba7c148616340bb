"""Are nonnegative factors the only ones of their product? Proved or refuted in exact arithmetic (docs/mathematics.md).

Other factors of ``UV'``, of full rank k, are ``UQ`` and ``V inv(Q)'``: the columns of Q lie in the cone ``{y : Uy >= 0}``, those
of ``inv(Q)'`` in ``{y : Vy >= 0}``. If both cones lie in ``{y : 1'y >= |y|}`` and touch its boundary along the axes alone (the
rows are *sufficiently scattered*), then ``1 = |det Q| |det inv(Q)|`` leaves permutations and scales as the only Q. Conversely,
where the support of a column contains that of another, a share of one can be moved to the other, and there are other factors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray

Ray = list[int]

#: An entry below this share of the largest of its column is taken for zero.
NEGLIGIBLE = 1e-6
#: Extreme rays that are enumerated at most; about two seconds.
MOST_RAYS = 5000
#: Scales of the columns are whole numbers, the least of them this one.
SHARES = 64
NOT_SCATTERED = "the rows are not scattered enough for the condition that would suffice."


@dataclass(frozen=True, eq=False)
class Uniqueness:
    """Whether other nonnegative factors of the same size have the same product; order and scale of components do not count.

    Attributes
    ----------
    status : {"proved", "refuted", "unknown"}
        Proved: there are no others. Refuted: there are others, for example the alternative. Unknown: neither could be shown.
    reason : str
        Why, in a sentence.
    alternative : pair of ndarray, optional
        If refuted, other nonnegative factors U and V of the same product.
    """

    status: Literal["proved", "refuted", "unknown"]
    reason: str
    alternative: tuple[FloatArray, FloatArray] | None = None

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}"

    def __repr__(self) -> str:
        return f"<Uniqueness {self}>"


def factor_uniqueness(U: Any, V: Any, most_rays: int = MOST_RAYS) -> Uniqueness:
    """Return whether U and V are the only nonnegative factors of ``UV'``; V is U for a symmetric factorisation ``UU'``."""
    factors = [np.asarray(F, dtype=np.float64) for F in ((U,) if V is U else (U, V))]
    if any(F.ndim != 2 or F.shape[1] != factors[0].shape[1] or not np.all((F >= 0) & np.isfinite(F)) for F in factors):
        return Uniqueness("unknown", "the factors must be two nonnegative tables with the same number of columns.")
    k, largest = factors[0].shape[1], [F.max(axis=0, initial=0.0) for F in factors]
    if any(np.any(top == 0) for top in largest):
        return Uniqueness("refuted", "a component is zero, so that its other factor can be anything.")
    if k == 1:
        return Uniqueness("proved", "of one component, only the scale is free.")
    rounded = [np.where(F > NEGLIGIBLE * top, F, 0.0) for F, top in zip(factors, largest, strict=True)]
    for F in rounded:
        for within, around in _nested_supports(F):
            return _alternative(rounded[0], rounded[-1], F is rounded[0], within, around)
    status, reason = _scattered_factors(rounded, most_rays)
    if any(np.any(F != R) for F, R in zip(factors, rounded, strict=True)):
        reason = f"{reason[:-1]} (entries below {NEGLIGIBLE:g} of the largest of their component count as zero)."
    return Uniqueness(status, reason)


def _nested_supports(F: FloatArray) -> Iterator[tuple[int, int]]:
    """Pairs of columns of a factor of which the first is positive only where the second is, which refutes uniqueness."""
    positive = F > 0
    outside = positive.T.astype(np.float64) @ ~positive  # rows where the one is positive and the other is not
    np.fill_diagonal(outside, 1.0)
    for within, around in np.argwhere(outside == 0):
        yield int(within), int(around)


def _alternative(U: FloatArray, V: FloatArray, of_U: bool, within: int, around: int) -> Uniqueness:
    """Uniqueness refuted: other factors, after a share of a component was moved to the one whose support contains it."""
    symmetric = V is U
    F, G = (U.copy(), V.copy()) if of_U else (V.copy(), U.copy())
    support = F[:, within] > 0
    share = 0.5 * float(np.min(F[support, around] / F[support, within]))
    if symmetric:  # a rotation by half of the angle that is allowed
        angle = math.atan(share)
        first, second = U[:, within], U[:, around]
        F[:, around] = np.maximum(0.0, math.cos(angle) * second - math.sin(angle) * first)
        F[:, within] = math.cos(angle) * first + math.sin(angle) * second
        G = F
    else:  # f g' + f_within g_within' = (f - share f_within) g' + f_within (g_within + share g)'
        F[:, around] -= share * F[:, within]
        G[:, within] += share * G[:, around]
    factor = "U" if of_U else "V"
    reason = (
        f"wherever component {within} is positive in {factor}, component {around} is too, "
        "so that a share of one can be moved to the other."
    )
    return Uniqueness("refuted", reason, (F, G) if of_U else (G, F))


def _scattered_factors(factors: list[FloatArray], most_rays: int) -> tuple[Literal["proved", "unknown"], str]:
    """Whether the rows of all factors are sufficiently scattered for one and the same scale of the components."""
    k = factors[0].shape[1]
    for scale in _scales(factors):
        counts = []
        for F, weights in zip(factors, (scale, 1.0 / scale), strict=False):
            cone = Cone(F, [round(SHARES * weight / weights.min()) for weight in weights])
            why = cone.refine(most_rays)
            if why:
                break
            counts.append(len(cone.rays))
        else:
            seen = " and ".join(str(count) for count in counts)
            return "proved", (
                f"no other {k} nonnegative components have this product; the rows are sufficiently scattered, "
                f"seen from {seen} extreme rays in exact arithmetic."
            )
        if why != NOT_SCATTERED:
            break
    return "unknown", why


def _scales(factors: list[FloatArray]) -> Iterator[FloatArray]:
    """Scales of components to prove uniqueness with: balanced sums, sums of either factor; symmetric ones have only their own."""
    U, V = factors[0], factors[-1]
    if len(factors) == 1:
        yield np.ones(U.shape[1])
        return
    with np.errstate(all="ignore"):
        for scale in (np.sqrt(U.sum(axis=0) / V.sum(axis=0)), U.sum(axis=0), 1.0 / V.sum(axis=0)):
            if np.all(np.isfinite(scale) & (scale > 0)) and scale.max() < 1e9 * scale.min():
                yield scale


class Cone:
    """The cone ``{y : h'y >= 0}`` for some rows h of a factor, by its extreme rays in whole numbers; more rows make it smaller.

    A ray is fine if ``(sum w_i y_i)^2 > sum (w_i y_i)^2`` with a positive sum, or if it is an axis. Rows are taken until all rays
    are fine, each time the row that cuts off most of the worst ray.
    """

    def __init__(self, F: FloatArray, weights: list[int]) -> None:
        self.F = F[np.any(F > 0, axis=1)]
        self.directions = self.F / self.F.max(axis=1, keepdims=True)
        self.directions /= np.linalg.norm(self.directions, axis=1, keepdims=True)
        self.weights, self.k = weights, F.shape[1]
        self.rays: list[Ray] = []
        self.margins: list[float] = []
        self.on_row = np.ones((0, 0), dtype=np.float32)  # which ray lies on the hyperplane of which row

    def refine(self, most_rays: int) -> str:
        """Cut the cone by rows of the factor until all its rays are fine, and return "", or else why this does not happen."""
        if not self.begin():
            return "the components depend linearly on each other."
        while len(self.rays) <= most_rays:
            worst = int(np.argmin(self.margins))
            if self.margins[worst] == np.inf:
                return ""
            row = self.cutting_row(self.rays[worst])
            if row is None:
                return NOT_SCATTERED
            self.cut(row)
        return f"there are more than {most_rays} extreme rays to look at."

    def begin(self) -> bool:
        """Begin the cone with the k rows of the factor that differ most; False if they depend on each other."""
        rays = _opposite_rays([whole_numbers(self.F[row]) for row in _spread_rows(self.directions, self.k)])
        if rays is None:
            return False
        self.rays, self.on_row = rays, 1 - np.eye(self.k, dtype=np.float32)
        self.margins = [self.margin(ray) for ray in rays]
        return True

    def margin(self, ray: Ray) -> float:
        """Margin of a ray of the cone: infinite if it is fine, exactly; else about how far inside it is, negative outside."""
        weighted = [weight * entry for weight, entry in zip(self.weights, ray, strict=True)]
        total, cross = sum(weighted), sum(weighted) ** 2 - sum(entry * entry for entry in weighted)
        if total > 0 and (cross > 0 or (cross == 0 and sum(entry != 0 for entry in ray) == 1)):
            return math.inf
        y = _ray_in_floats(weighted)
        return float(y.sum() * abs(y.sum()) / np.vdot(y, y))

    def cutting_row(self, ray: Ray) -> Ray | None:
        """The row of the factor with the most negative product with a ray of the cone, or None if none is negative."""
        products = self.directions @ _ray_in_floats(ray)
        for index in np.argsort(products, kind="stable")[: self.k + 1]:  # rounding may put rows of product zero first
            row = whole_numbers(self.F[index])
            if _product(row, ray) < 0:
                return row
        return None

    def cut(self, row: Ray) -> None:
        """Cut the cone by a row of the factor: its rays on the positive side, and one between neighbours on either side."""
        products = [_product(row, ray) for ray in self.rays]
        signs = np.array([(product > 0) - (product < 0) for product in products])
        inside, outside = np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)
        rays, common_rows = [], []
        for b in outside.tolist():
            for a, common in self.neighbours(b, inside):
                pair = zip(self.rays[a], self.rays[b], strict=True)
                rays.append(_primitive([products[a] * y - products[b] * x for x, y in pair]))
                common_rows.append(np.append(common, 1.0))
        kept = np.flatnonzero(signs >= 0)
        old = np.column_stack([self.on_row[kept], signs[kept] == 0]).astype(np.float32)
        self.on_row = np.vstack([old, *common_rows]).astype(np.float32)
        self.rays = [self.rays[a] for a in kept] + rays
        self.margins = [self.margins[a] for a in kept] + [self.margin(ray) for ray in rays]

    def neighbours(self, b: int, others: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Those of the other rays of the cone that span a face of dimension two with ray b, and the rows that vanish on it."""
        common = self.on_row[others] * self.on_row[b]
        counts = common.sum(axis=1)
        enough = np.flatnonzero(counts >= self.k - 2)
        on_all = np.count_nonzero(common[enough] @ self.on_row.T == counts[enough, None], axis=1)
        yield from ((int(others[a]), common[a]) for a in enough[on_all == 2])


def _spread_rows(directions: FloatArray, k: int) -> list[int]:
    """Choose k rows of a factor, scaled to unit norm, each the farthest from the span of those before."""
    rest, chosen = directions.copy(), []
    for _ in range(k):
        chosen.append(int(np.argmax(np.einsum("ij,ij->i", rest, rest))))
        direction = rest[chosen[-1]] / max(float(np.linalg.norm(rest[chosen[-1]])), 1e-300)
        rest -= np.outer(rest @ direction, direction)
    return chosen


def whole_numbers(row: FloatArray) -> Ray:
    """A row of a factor in whole numbers without a common factor, exactly up to scale."""
    fractions = [Fraction(float(entry)) for entry in row]
    denominator = math.lcm(*(entry.denominator for entry in fractions))
    return _primitive([int(entry * denominator) for entry in fractions])


def _primitive(ray: Ray) -> Ray:
    """A ray of the cone in whole numbers, without their common factor."""
    divisor = math.gcd(*ray)
    return [entry // divisor for entry in ray]


def _product(row: Ray, ray: Ray) -> int:
    return sum(x * y for x, y in zip(row, ray, strict=True))


def _ray_in_floats(ray: Ray) -> FloatArray:
    """A ray of the cone in floating point, its largest entry 1 in size."""
    top = max(abs(entry) for entry in ray)
    return np.array([entry / top for entry in ray])


def _opposite_rays(rows: list[Ray]) -> list[Ray] | None:
    """First rays of the cone: columns of the inverse of k rows of a factor, each times a positive number; None if singular."""
    k = len(rows)
    table = [[Fraction(entry) for entry in row] + [Fraction(i == j) for j in range(k)] for i, row in enumerate(rows)]
    for c in range(k):
        pivot = next((r for r in range(c, k) if table[r][c]), None)
        if pivot is None:
            return None
        table[c], table[pivot] = table[pivot], table[c]
        table[c] = [entry / table[c][c] for entry in table[c]]
        for r in range(k):
            if r != c and table[r][c]:
                table[r] = [x - table[r][c] * y for x, y in zip(table[r], table[c], strict=True)]
    columns = [[table[i][k + j] for i in range(k)] for j in range(k)]
    return [_primitive([int(x * math.lcm(*(y.denominator for y in column))) for x in column]) for column in columns]
