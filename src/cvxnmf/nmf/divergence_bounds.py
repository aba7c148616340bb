"""Bounds for the Kullback-Leibler divergence: dual points of every rank (docs/mathematics.md).

The bounds are derived in `certificates.divergence`, where they are proved; here good dual points are sought.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.linalg as sl

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import eigenpairs
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.bound_goal import Found, Goal, Part, observed_part

#: Decompositions after which the bounds hardly gain.
MOST_STEPS, MOST_REWEIGHTINGS = 30, 10
#: A share of the value that, once proved by singular values, is more than subspaces can prove.
MORE_THAN_SUBSPACES = 1 / 3

#: Step of the splitting, in units of the largest singular value that a model can have.
STEP = 0.4
#: Distances below this share of the longest column do not count as smaller.
SHORTEST = 1e-9


def divergence_bounds(goal: Goal) -> Iterator[Found]:
    """Divergence bounds: the product of the margins, best of rank one; above, dual points for singular values and subspaces."""
    A, symmetric, k = goal.A, goal.statement.symmetric, goal.statement.n_components
    part = observed_part(A, symmetric) if goal.may_fill and not goal.is_full_rank(A) else None
    if part is None or not part.A.any():
        return
    if k == 1:
        yield from goal.prove_bound("independence", part.witness)
        return
    yield from goal.prove_bound("pinsker", part.witness)
    left = goal.limits.decompositions(part.A.shape, goal.effort)
    if not left:
        return
    y = where_filled(part.A, lambda filled: ky_fan_point(filled, k, symmetric, min(left, MOST_STEPS)))
    found = goal.prove_bound("ky-fan", part.witness | {"y": y})
    yield from found
    if all(each.proof.bound < MORE_THAN_SUBSPACES * goal.value for each in found):
        yield from _subspace_bounds(goal, part, min(left, MOST_REWEIGHTINGS))


def _subspace_bounds(goal: Goal, part: Part, steps: int) -> Iterator[Found]:
    """Divergence bounds from distances of the columns, and of the rows, from subspaces."""
    for A, orientation in ((part.A, {}), (part.A.T, {"transposed": np.ones(1)})):
        Y = where_filled(A, lambda filled: subspace_point(filled, goal.statement.n_components, steps))
        yield from goal.prove_bound("subspace", part.witness | orientation | {"Y": Y})


def where_filled(A: FloatArray, point: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """A dual point of the divergence bound on rows and columns that carry data, zero elsewhere."""
    filled, whole = np.ix_(A.any(axis=1), A.any(axis=0)), np.zeros_like(A)
    whole[filled] = point(A[filled])
    return whole


def ky_fan_point(A: FloatArray, k: int, symmetric: bool, steps: int) -> FloatArray:
    """The y of the Ky Fan bound, by Douglas and Rachford's splitting; every step takes one decomposition.

    In ``G = uv' y`` and over the sum of A, the bound is ``sum P log G - <uv', G>`` less the sum of the ``k - 1`` largest singular
    values of G beside u and v. The first part is maximised entry by entry, the second by its singular values.
    """
    splitting = Splitting(A, k, symmetric)
    with single_thread(min(A.shape)):
        for _ in range(steps):
            splitting.step()
    return np.asarray(splitting.entries() / splitting.base)


class Splitting:
    """Douglas-Rachford splitting of the Ky Fan bound between entries of G and singular values; no row or column is empty."""

    def __init__(self, A: FloatArray, k: int, symmetric: bool) -> None:
        self.P, self.k, self.symmetric = A / A.sum(), k, symmetric
        self.u, self.v = np.sqrt(self.P.sum(axis=1)), np.sqrt(self.P.sum(axis=0))
        self.base = np.outer(self.u, self.v)
        self.V = 0.5 * (self.P / self.base + self.base)

    def entries(self) -> FloatArray:
        """The G of the Ky Fan splitting that is best entry by entry."""
        return entries_maximised(self.V, self.P, self.base)

    def beside(self, M: FloatArray) -> FloatArray:
        """The part ``(I - uu') M (I - vv')`` of M beside the roots of the margins, in the Ky Fan splitting."""
        M = M - np.outer(self.u, self.u @ M)
        M -= np.outer(M @ self.v, self.v)
        return M

    def step(self) -> None:
        """One step of the Ky Fan splitting, which takes one decomposition."""
        G = self.entries()
        self.V -= G  # V + (reflected - drawn) - G with the reflection 2G - V
        reflected = G - self.V
        drawn = _leading_part(self.beside(reflected), self.k - 1, self.symmetric)
        self.V += np.subtract(reflected, drawn, out=drawn)


def entries_maximised(V: FloatArray, P: FloatArray, base: FloatArray) -> FloatArray:
    """The G of largest ``P log G - base G - (G - V)^2 / 2 STEP`` in the Ky Fan splitting; positive where P is."""
    b, P = 0.5 * (V - STEP * base), STEP * P
    larger = np.sqrt(b * b + P) + np.abs(b)  # of the two roots; their product is -P
    return np.where(b > 0, larger, P / (larger + np.finfo(np.float64).tiny))


def _leading_part(M: FloatArray, count: int, symmetric: bool) -> FloatArray:
    """The nearest matrix to M whose singular values are at most STEP and sum to at most ``count STEP``: a ball's projection.

    If symmetric, the nearest positive semidefinite one.
    """
    if symmetric:
        values, vectors = eigenpairs(M)
        return np.asarray((vectors * project_to_capped_simplex(values, count)) @ vectors.T)
    if M.shape[0] < M.shape[1]:
        return _leading_part(M.T, count, symmetric).T
    squares, vectors = eigenpairs(M.T @ M, overwrite=True)
    values = np.sqrt(np.maximum(squares, 0.0))
    shares = project_to_capped_simplex(values, count) / np.maximum(values, np.finfo(np.float64).tiny)
    return np.asarray(M @ ((vectors * shares) @ vectors.T))


def project_to_capped_simplex(values: FloatArray, count: int) -> FloatArray:
    """The nearest spectrum with values from 0 to STEP and a sum of at most ``count STEP``: values less a level, cut off."""
    capped = np.clip(values, 0.0, STEP)
    if capped.sum() <= count * STEP:
        return capped
    knots = np.sort(np.concatenate([values, values - STEP]))  # the sum is piecewise linear in the level, and falls
    low, high = 0, len(knots) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if np.clip(values - knots[middle], 0.0, STEP).sum() >= count * STEP else (low, middle)
    above, below = (float(np.clip(values - knots[end], 0.0, STEP).sum()) for end in (low, high))
    share = (above - count * STEP) / (above - below) if above > below else 0.0
    return np.asarray(np.clip(values - (knots[low] + share * (knots[high] - knots[low])), 0.0, STEP))


def subspace_point(A: FloatArray, k: int, steps: int) -> FloatArray:
    """The Y of the subspace bound: least squares over projections of rank ``k - 1``, reweighted until distances are summed.

    Works in the span of the columns where these are fewer than the rows.
    """
    rows = A.sum(axis=1)
    u = np.sqrt(rows / rows.sum())
    B = A / np.sqrt(rows)[:, None]
    B -= np.outer(u, u @ B)
    with single_thread(min(A.shape)):
        Q, R = sl.qr(B, mode="economic") if B.shape[0] > B.shape[1] else (None, B)
        Y = _reweighted_dual_point(R, k - 1, steps)
    Y = Y if Q is None else Q @ Y
    longest = np.sqrt(np.sum(Y * Y, axis=0)) * (1.0 + 1e-10)
    return np.asarray(Y / np.maximum(longest, 1.0))


def _reweighted_dual_point(B: FloatArray, k: int, steps: int) -> FloatArray:
    """The unit vectors from the nearest points of a relaxed subspace to the columns of B that prove most."""
    lengths = np.sqrt(np.sum(B * B, axis=0))
    if not lengths.any():
        return B
    least = SHORTEST * float(lengths.max())
    weights, best, best_Y = 1.0 / np.maximum(lengths, least), -np.inf, B
    for _ in range(steps):
        values, vectors = eigenpairs((B * weights) @ B.T, overwrite=True)
        left = vectors.T @ B
        left *= _outside(values, k)[:, None]
        weights = 1.0 / np.maximum(np.sqrt(np.sum(left * left, axis=0)), least)
        Y = vectors @ (left * weights)
        M = B @ Y.T
        leading = np.linalg.eigvalsh((M + M.T) / 2)[::-1][:k]
        proved = float(np.sum(Y * B) - np.sum(np.maximum(leading, 0.0)))
        if proved > best:
            best, best_Y = proved, Y
    return best_Y


def _outside(values: FloatArray, k: int) -> FloatArray:
    """Shares q in [0, 1] outside a subspace, all but k in sum, of least ``sum values q^2``: inverse to values, cut off at 1."""
    values = np.maximum(values, len(values) * np.finfo(np.float64).tiny)  # their inverses have a sum
    order = np.sort(values)
    wanted, inverse = len(values) - k, np.cumsum((1.0 / order)[::-1])[::-1]
    # with the j smallest values cut off at 1, the others share the rest: level / value
    cut = np.arange(len(order))
    levels = (wanted - cut) / inverse
    fits = np.flatnonzero(levels <= order)
    level = levels[fits[0]] if len(fits) else order[-1]
    return np.asarray(np.minimum(1.0, level / values))
