"""Large graphs coarsened: groups of nodes share a position in the convex problem.

If ``w_i`` is the same for all nodes i of a group g, the best effects are ``v_i = v_g + log(d_i / D_g)`` with the degrees d and
their sums D, and KL of the graph is KL of the sums of its entries over pairs of groups plus a constant. With the squared metric
summed alike, the penalty is the same too: the problem of the sums *is* the problem of the graph restricted to such positions,
and its certificate bounds all of them (docs/mathematics.md).
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.certificates import Certificate, GroupedStatement
from cvxnmf.certificates.grouped import graph_sums
from cvxnmf.certificates.row_pieces import GroupSums
from cvxnmf.convex.noise import ROUNDING, Noise, admitting_trace, degree_metric, leading_directions, noise_level
from cvxnmf.convex.solve import solve
from cvxnmf.convex.symmetric import SymmetricProblem, symmetric
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Iterate, Point, Solution
from cvxnmf.results.status import keep_best

Groups = NDArray[np.intp]

#: Graphs with more nodes are solved in groups, and in this many.
LARGEST_WHOLE, GROUPS = 5000, 1000
#: Where directions of the noise are wanted, those above this share of its edge.
WITHIN_NOISE = 0.9
#: Directions of a large graph that are looked for at first, and at most.
FIRST_DIRECTIONS, MOST_DIRECTIONS = 24, 100


@dataclass(frozen=True, eq=False)
class Coarsening:
    """A coarsened graph: the group of each node, and the sums of the graph over pairs of groups.

    The squared metric of a group is the sum of those of its nodes.
    """

    groups: NDArray[np.integer[Any]]
    found: GroupSums
    metric: FloatArray

    def problem(self, trace: float) -> SymmetricProblem:
        """The convex problem of the graph, restricted to positions that groups of nodes share."""
        return symmetric(self.found.pairs, metric=self.metric, trace=trace)

    def solve(self, trace: float, callback: Callable[[Iterate], Any] | None = None, **options: Any) -> Solution:
        """Solve the convex problem of the coarsened graph; the solution is one on the nodes of the graph."""
        prolonged = None if callback is None else lambda iterate: callback(self._prolong_iterate(iterate))
        with keep_best(lambda solution: solution and self.prolong(solution)):
            return self.prolong(solve(self.problem(trace), callback=prolonged, **options))

    def prolong(self, solution: Solution) -> Solution:
        """A solution on the coarsened graph's groups as one on nodes, its certificate about the graph."""
        degrees = self.found.degrees
        v = (solution.v - np.log(np.bincount(self.groups, degrees)))[self.groups] + np.log(degrees)
        return dataclasses.replace(
            solution,
            point=Point(v, solution.W[self.groups]),
            certificate=self._certificate(solution.certificate),
            history=tuple(map(self._prolong_iterate, solution.history)),
            groups=None,
        )

    def _prolong_iterate(self, iterate: Iterate) -> Iterate:
        """An iterate on the groups of a coarsened graph as one on nodes: value and bound plus a constant."""
        return dataclasses.replace(iterate, value=iterate.value + self.constant, bound=iterate.bound + self.constant)

    def _certificate(self, coarse: Certificate) -> Certificate:
        """The certificate of the coarsened graph as one of the graph: value and bound are higher by one constant."""
        terms = {name: coarse.statement[name] for name in ("loss", "cone", "diagonal", "trace")}
        statement = GroupedStatement(**terms, metric="degree", groups=len(self.metric))
        witness = dict(coarse.witness) | {"groups": self.groups.astype(np.float64)}
        if coarse.kind == "zero":
            witness |= {"metric": self.metric}
        proof = statement.prove_sums(self.found, coarse.kind, witness)
        return Certificate.of_proof(coarse.value + self.constant, coarse.kind, proof, statement, witness, coarse.restored)

    @cached_property
    def constant(self) -> float:
        """KL of the graph less KL of its coarsened sums, which no model with positions of groups changes."""
        pairs, degrees = self.found.pairs.data, self.found.degrees
        terms = (pairs, -1.0), (degrees, -2.0), (np.bincount(self.groups, degrees), 2.0)
        return float(sum((sign * np.sum(x * np.log(np.where(x > 0, x, 1.0))) for x, sign in terms), self.found.logs))


def coarsen(A: sp.csr_array, s: FloatArray, groups: Groups) -> Coarsening:
    """Sum a graph without empty rows, whose nodes have the metric s, over groups numbered from 0 without a gap."""
    return Coarsening(groups, graph_sums(A, groups, int(groups.max()) + 1), np.sqrt(np.bincount(groups, s * s)))


def coarsen_by_directions(A: sp.csr_array, k: int, n_groups: int) -> tuple[Coarsening, float]:
    """Coarsen a graph without empty rows to groups of nodes that are near in its k - 1 leading directions.

    Also the trace that admits these directions.
    """
    s = degree_metric(np.asarray(A.sum(axis=1)).ravel())
    edge = floored_noise_level(A, s).edge
    values, positions = leading_positions(A, s, edge, k, k + 1)
    return coarsen(A, s, group_near_points(positions, s * s, n_groups)), admitting_trace(edge, values, k, k)


def floored_noise_level(A: sp.csr_array, s: FloatArray) -> Noise:
    """The noise of a graph without empty rows that is to be coarsened, its edge never below rounding."""
    return floored_noise(noise_level(A, s), np.asarray(A.sum(axis=1)).ravel(), s)


def floored_noise(level: Noise, degrees: FloatArray, s: FloatArray) -> Noise:
    """The noise of a graph of given degrees with an edge that is never below rounding."""
    return level._replace(edge=max(level.edge, ROUNDING * float(np.max(degrees / (s * s)))))


def leading_positions(
    A: sp.csr_array, s: FloatArray, edge: float, k: int | None, most: int, report: Callable[[int], Any] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of the modularity matrix above the noise edge, and positions of the nodes in their directions.

    Positions are eigenvectors over the metric s, times the roots of their eigenvalues. With k there are at least k - 1
    directions: where fewer stand above the noise, the highest of the noise itself. At most `most` directions are looked for;
    `report` is told the number of every round.
    """
    wanted, count = (0, FIRST_DIRECTIONS) if k is None else (k - 1, k + 1)
    while True:
        count = min(count, most)
        values, vectors = leading_directions(A, s, edge, count, report)
        if np.count_nonzero(values > edge) < wanted:
            values, vectors = leading_directions(A, s, WITHIN_NOISE * edge, count, report)
        kept = max(1, wanted, int(np.count_nonzero(values > edge)))
        if k is not None or kept < count or count == most:
            return values[:kept], vectors[:, :kept] / s[:, None] * np.sqrt(np.maximum(values[:kept], 0.0))
        count *= 2


def directions_above_noise(A: sp.csr_array, most: int) -> int:
    """In how many directions a graph without empty rows differs from noise, counted up to `most`."""
    s = degree_metric(np.asarray(A.sum(axis=1)).ravel())
    edge = floored_noise_level(A, s).edge
    return int(np.count_nonzero(leading_positions(A, s, edge, None, most)[0] > edge))


def group_near_points(Y: FloatArray, weights: FloatArray, count: int) -> Groups:
    """Bisect the weighted rows of Y into groups of near ones: the group with the largest scatter is cut in two, again and again.

    A group is cut at its mean along the direction in which it is widest. There are `count` groups, at least 2; fewer if fewer
    points differ, and two halves if none do.
    """
    whole = np.arange(len(Y))
    heap = [(-_scatter(Y, weights), 0, whole)]
    done: list[Groups] = []
    numbers = itertools.count(1)  # of equal scatters the older group is cut first
    while heap and len(heap) + len(done) < count:
        scatter, _, nodes = heapq.heappop(heap)
        sides = _sides_of_mean(Y[nodes], weights[nodes]) if scatter < 0 else None
        if sides is None:
            done.append(nodes)
            continue
        for side in (nodes[sides], nodes[~sides]):
            heapq.heappush(heap, (-_scatter(Y[side], weights[side]), next(numbers), side))
    done += [nodes for _, _, nodes in heap]
    if len(done) == 1:  # nothing tells the points apart
        return np.asarray(whole >= (len(Y) + 1) // 2, dtype=np.intp)
    groups = np.empty(len(Y), dtype=np.intp)
    for number, nodes in enumerate(sorted(done, key=lambda nodes: int(nodes[0]))):
        groups[nodes] = number
    return groups


def _scatter(Y: FloatArray, weights: FloatArray) -> float:
    """Scatter of the points of a group: weighted squared distances from the mean; 0 where there is nothing to cut."""
    if len(Y) < 2:
        return 0.0
    centred = Y - (weights @ Y) / weights.sum()
    scatter = float(weights @ np.einsum("ij,ij->i", centred, centred))
    return scatter if scatter > 1e-24 * float(weights @ np.einsum("ij,ij->i", Y, Y)) else 0.0


def _sides_of_mean(Y: FloatArray, weights: FloatArray) -> NDArray[np.bool_] | None:
    """On which side of the mean the points of a group lie along the widest direction; None if all are on one side."""
    centred = Y - (weights @ Y) / weights.sum()
    widest = np.linalg.eigh(centred.T @ (weights[:, None] * centred))[1][:, -1]
    sides = np.asarray(centred @ widest > 0)
    return None if sides.all() or not sides.any() else sides
