"""Qualities of partitions that are linear in co-membership, in whole numbers where the data are.

Every quality here is a sum over ordered pairs of nodes in one cluster (a node with itself included),

    Q = (offset + sum_{i ~ j} (alpha W_ij - beta p_i p_j)) / unit,

with a sparse symmetric W, sizes p >= 0 and beta >= 0. Of whole numbers (or halves, quarters, ...) and a resolution with few
decimals all of these are integers, and then every sum below is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.certificates.data import real_matrix
from cvxnmf.certificates.rounding import UNIT, is_finite
from cvxnmf.certificates.statement import CertificateError

Integers = NDArray[np.int64]
#: Weights that are whole after this many doublings count as whole numbers.
DOUBLINGS = 16
#: Whole pair weights stay below this, and their sum below the next: no sum of 64 bits overflows.
LARGEST_PAIR, LARGEST_SUM = 2**50, 2**61
#: Pair weights that are not whole are rounded up to this share of the largest one.
GRAINS = 2.0**40


@dataclass(frozen=True)
class PairObjective:
    """One quality on one graph, as integers ``L_ij >= scale (alpha W_ij - beta p_i p_j)``, with equality if `exact`.

    Attributes
    ----------
    n : int
        Number of nodes.
    rows, columns, weights : ndarray
        The entries of W with ``row <= column``, sorted by row and column.
    sizes : ndarray of shape (n,)
        p.
    alpha, beta, offset, unit : int or float
        See the formula above.
    scale : float
        Power of two that pair weights are multiplied with before they are rounded up; 1 if `exact`.
    exact : bool
        Whether everything is a whole number.
    """

    n: int
    rows: Integers
    columns: Integers
    weights: Any
    sizes: Any
    alpha: Any
    beta: Any
    offset: Any
    unit: Any
    scale: float
    exact: bool

    def pairs(self, i: Any, j: Any) -> Integers:
        """Pair weights ``L_ij`` of a quality of partitions, for pairs of nodes."""
        keys = self.rows * self.n + self.columns
        wanted = np.minimum(i, j) * self.n + np.maximum(i, j)
        place = np.searchsorted(keys, wanted)
        found = np.append(keys, -1)[place] == wanted
        return self.of_weights(np.where(found, np.append(self.weights, 0)[place], 0), i, j)

    def of_weights(self, w: Any, i: Any, j: Any) -> Integers:
        """Pair weights ``L_ij`` for pairs of nodes whose weights ``W_ij`` are at hand."""
        gain, cost = self.alpha * w, self.beta * self.sizes[i] * self.sizes[j]
        if self.exact:
            return np.asarray(gain - cost, dtype=np.int64)
        slack = (4 * self._longest_row() + 64) * UNIT * (np.abs(gain) + cost)  # two degrees and the total, each a sum
        values = np.asarray(np.ceil(self.scale * (gain - cost + slack)), dtype=np.int64) + 1
        return np.where(w == 0, np.minimum(values, 0), values)

    def edges(self) -> Integers:
        """Pair weights ``L_ij`` of the entries of W, diagonal entries among them."""
        return self.of_weights(self.weights, self.rows, self.columns)

    def diagonal(self) -> Integers:
        """Pair weights ``L_ii`` of all nodes with themselves."""
        nodes = np.arange(self.n)
        return self.pairs(nodes, nodes)

    def dense(self) -> Integers:
        """All pair weights L of a quality of partitions as a dense matrix."""
        nodes = np.arange(self.n)
        L = self.of_weights(np.zeros((self.n, self.n), dtype=self.weights.dtype), nodes[:, None], nodes[None, :])
        values = self.edges()
        L[self.rows, self.columns] = values
        L[self.columns, self.rows] = values
        return L

    def value(self, labels: Integers) -> Fraction:
        """The quality of a partition, exactly if `exact`, else up to rounding."""
        inside = labels[self.rows] == labels[self.columns]
        both = np.where(self.rows == self.columns, 1, 2)[inside]
        if self.exact:
            joined = exact_sum(self.weights[inside] * both)
            volumes = np.zeros(int(labels.max()) + 1, dtype=np.int64)
            np.add.at(volumes, labels, self.sizes)
            squares = sum(int(volume) ** 2 for volume in volumes.tolist())
            return Fraction(self.offset + int(self.alpha) * joined - int(self.beta) * squares, self.unit)
        volumes = np.bincount(labels, weights=self.sizes)
        total = self.alpha * math.fsum(self.weights[inside] * both) - self.beta * math.fsum(volumes * volumes)
        return Fraction((self.offset + total) / self.unit)

    def quality(self, total: Fraction) -> Fraction:
        """The quality of which `total`, in units of L, is an upper bound of the sum over pairs; rounded up unless `exact`."""
        if self.exact:
            return (Fraction(self.offset) + total) / Fraction(self.unit)
        sum_of_pairs = total / Fraction(self.scale) + Fraction(self.offset)
        margin = (4 * self._longest_row() + 16) * UNIT * (abs(float(sum_of_pairs)) + abs(self.offset))
        return (sum_of_pairs + Fraction(margin)) / Fraction(self.unit)

    def step(self) -> int:
        """Step by which sums over pairs of all partitions differ, as multiples of it; 0 if there is no such number."""
        if not self.exact:
            return 0
        weights = self.weights[self.rows < self.columns]
        return 2 * math.gcd(
            int(self.alpha) * int(np.gcd.reduce(weights, initial=0)), int(self.beta) * int(np.gcd.reduce(self.sizes)) ** 2
        )

    def highest_attainable(self, total: Fraction) -> Fraction:
        """The highest sum over pairs up to `total` that a partition can have, by divisibility; `total` itself unless `exact`."""
        if not self.exact:
            return total
        step, alone = self.step(), exact_sum(self.diagonal())
        return Fraction(alone + step * ((total - alone) // step)) if step else Fraction(alone)

    def largest_pair(self) -> int:
        """Bound on the size ``|L_ij|`` of the largest pair weight."""
        gain = float(self.alpha) * float(np.abs(self.weights).max(initial=0))
        cost = float(self.beta) * float(self.sizes.max()) ** 2
        return math.ceil(1.001 * float(self.scale) * (gain + cost)) + 4

    def magnitude(self) -> float:
        """Size of the data of a pair objective: the sum of all weights, as the quality counts them."""
        both = np.where(self.rows == self.columns, 1, 2)
        total = float(self.alpha) * float(np.abs(self.weights * both).sum()) + float(self.beta) * float(self.sizes.sum()) ** 2
        return max(total / float(self.unit), float(np.finfo(np.float64).tiny))

    def _longest_row(self) -> int:
        ends = np.concatenate([self.rows, self.columns])
        return int(np.bincount(ends, minlength=1).max())


class PairBound(NamedTuple):
    """A bound on the sum of L over ordered pairs in one cluster, and what it could spare of its allowances for rounding."""

    total: Fraction
    spare: Fraction = Fraction(0)


def exact_sum(values: Any) -> int:
    """Sum of 64-bit integers, such as pair weights, exact whatever its size."""
    whole = np.asarray(values, dtype=np.int64).ravel()
    return (int((whole >> 32).sum()) << 32) + int((whole & 0xFFFFFFFF).sum())


def decimal(resolution: float) -> Fraction:
    """The exact decimal that a resolution of a pair objective is written as: 0.1 is a tenth."""
    return Fraction(repr(float(resolution)))


def pair_objective(A: Any, objective: str, resolution: float) -> PairObjective:
    """Read a graph as one of the pair objectives in :data:`OBJECTIVES`."""
    upper = _upper_triangle(A, signed=objective == "correlation")
    if objective == "performance":
        upper.data[:] = 1.0
    n, rows, columns = upper.shape[0], upper.row.astype(np.int64), upper.col.astype(np.int64)
    doublings = next((t for t in range(DOUBLINGS + 1) if np.all(upper.data * 2.0**t % 1 == 0)), None)
    if doublings is not None and np.abs(upper.data).sum() * 2.0**doublings < LARGEST_SUM:
        whole = (upper.data * 2.0**doublings).astype(np.int64)
        exact = OBJECTIVES[objective](n, rows, columns, whole, decimal(resolution), 2**doublings)
        if _fits(exact):
            return exact
    return _round_up(OBJECTIVES[objective](n, rows, columns, upper.data, decimal(resolution), 1))


def _upper_triangle(A: Any, signed: bool) -> Any:
    """The symmetric part of a graph for a pair objective: its entries on and above the diagonal, sorted."""
    wrong = "a square matrix of finite numbers" if signed else "a square matrix of finite nonnegative numbers"
    numbers = real_matrix(A)
    if numbers is None or numbers.shape[0] != numbers.shape[1]:
        raise CertificateError(f"The data must be {wrong}; of a graph it is partition(graph).A.")
    matrix = sp.csr_array(numbers)
    if not (is_finite(matrix.data) and (signed or matrix.data.min(initial=0.0) >= 0)):
        raise CertificateError(f"The data must be {wrong}.")
    if abs(matrix - matrix.T).nnz:
        matrix = (matrix + matrix.T) / 2
    upper = sp.csr_array(sp.triu(matrix))
    upper.sum_duplicates()
    upper.eliminate_zeros()
    if len(upper.data) and not 1e-100 < np.abs(upper.data).max() < 1e100:
        raise CertificateError("The data are so small or large that no bound is safe against rounding.")
    return upper.tocoo()


def _fits(exact: PairObjective) -> bool:
    """Whether pair weights and their sums stay within 64 bits."""
    largest = int(exact.alpha) * int(np.abs(exact.weights).max(initial=0)), int(exact.beta) * int(exact.sizes.max()) ** 2
    total = 2 * int(exact.alpha) * exact_sum(np.abs(exact.weights)) + int(exact.beta) * exact_sum(exact.sizes) ** 2
    return max(largest) < LARGEST_PAIR and total < LARGEST_SUM


def _round_up(terms: PairObjective) -> PairObjective:
    """The pair objective in floating point, rounded up, with a scale for its integers; some weight is not 0."""
    try:
        numbers: dict[str, Any] = {name: float(getattr(terms, name)) for name in ("alpha", "beta", "offset", "unit")}
    except OverflowError:
        raise CertificateError("The resolution is so small or large that no bound is safe against rounding.") from None
    largest = numbers["alpha"] * np.abs(terms.weights).max(initial=0.0) + numbers["beta"] * float(terms.sizes.max()) ** 2
    scale = 2.0 ** math.floor(math.log2(GRAINS / largest))
    arrays: dict[str, Any] = {"weights": terms.weights.astype(np.float64), "sizes": terms.sizes.astype(np.float64)}
    return replace(terms, **arrays, **numbers, scale=scale, exact=False)


def _modularity(n: int, rows: Integers, columns: Integers, w: Any, resolution: Fraction, one: int) -> PairObjective:
    """Modularity as a pair objective, ``sum (A_ij - g d_i d_j / 2m) / 2m``: times ``b (2m)^2`` for ``g = a / b``."""
    degrees = np.zeros(n, dtype=w.dtype)
    np.add.at(degrees, rows, w)
    np.add.at(degrees, columns[rows != columns], w[rows != columns])
    if w.dtype == np.int64:
        total = exact_sum(degrees) or 1
        alpha, beta, unit = resolution.denominator * total, resolution.numerator, resolution.denominator * total**2
        return PairObjective(n, rows, columns, w, degrees, alpha, beta, 0, unit, 1.0, True)
    weight = math.fsum(degrees)
    return PairObjective(n, rows, columns, w, degrees, 1.0, float(resolution) / weight, 0.0, weight, 1.0, False)


def _constant_potts(n: int, rows: Integers, columns: Integers, w: Any, resolution: Fraction, one: int) -> PairObjective:
    """The constant Potts model (CPM) as a pair objective: ``sum (A_ij - g)``."""
    ones, parts = np.ones(n, dtype=np.int64), resolution.denominator
    return PairObjective(n, rows, columns, w, ones, parts, resolution.numerator * one, 0, parts * one, 1.0, True)


def _performance(n: int, rows: Integers, columns: Integers, w: Any, resolution: Fraction, one: int) -> PairObjective:
    """Performance as a pair objective: ``1 - #{(i, j) : A_ij != [same cluster]} / n^2``, every entry 1; no resolution."""
    ones = np.ones(n, dtype=np.int64)
    joined = 2 * len(w) - int(np.count_nonzero(rows == columns))
    return PairObjective(n, rows, columns, w, ones, 2, 1, n * n - joined, n * n, 1.0, True)


def _correlation(n: int, rows: Integers, columns: Integers, w: Any, resolution: Fraction, one: int) -> PairObjective:
    """Correlation clustering as a pair objective: ``sum A_ij``, the data being signed agreements; there is no resolution."""
    return PairObjective(n, rows, columns, w, np.ones(n, dtype=np.int64), 1, 0, 0, one, 1.0, True)


#: How each quality reads sizes, signs and resolution off the data.
OBJECTIVES: dict[str, Callable[..., PairObjective]] = {
    "modularity": _modularity,
    "cpm": _constant_potts,
    "performance": _performance,
    "correlation": _correlation,
}
