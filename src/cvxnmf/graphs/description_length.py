"""How many nats it takes to describe a graph by clusters: the likelihood of a planted partition, and what labels and rates cost.

With E_r twice the weight inside cluster r, D_r its degree sum, n_r its size, T the sum of degrees and phi the dispersion,

    -LL/phi + log(n! / prod n_r!) + log C(n-1, k-1) + log n + (number of rates)/2 log m,

less the same for a single cluster. LL is the degree-corrected likelihood at its best rates, one inside all clusters or one for
each; of graphs whose edges are all alike every pair is joined once at most. Where the clusters explain the degrees of their
nodes, these need no description of their own, and all nodes of a cluster are alike. Weights enter as their square roots, whose
variance does not grow with them (docs/mathematics.md).
"""

from __future__ import annotations

from functools import cached_property
from math import log
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from cvxnmf.graphs.block_model import PlantedPartition, RateModel
from cvxnmf.graphs.merges import join
from cvxnmf.graphs.moves import Effort, Labels, Level, Sums, cluster_sums, level_of, log_factorials, renumber
from cvxnmf.graphs.multilevel import Ascent
from cvxnmf.graphs.order import in_order
from cvxnmf.graphs.score import EXACT, Score, once_at_most
from cvxnmf.linalg.arrays import FloatArray, equal_values, is_held_once
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.results.hierarchy import Code

#: A common rate inside must be this much above the one across to be worth moving for.
LEAST_RATIO = 1.01
#: Gains below this many nats are rounding.
LEAST_GAIN = 1e-9
#: Share of entries from which a graph is dense; a missing loop of others is nothing to speak of.
DENSE = 0.1
#: Rounds in which loops and the degrees that they raise are made to agree.
DIAGONAL_ROUNDS = 3
#: Edges that one brings along per neighbour, for every wedge that is closed beyond what degrees explain.
TIED = 0.5
#: Nodes at which wedges are looked at, and neighbours of each.
WEDGE_NODES, WEDGE_NEIGHBOURS = 20_000, 30


class Candidate(NamedTuple):
    """Candidate: labels, how many rates the model has, and the description length in nats, less that of a single cluster."""

    labels: Labels
    rates: RateModel
    length: float

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the candidate."""
        return int(self.labels.max()) + 1


class DescribedGraph:
    """A graph under the code of description lengths; A is a symmetric csr_array without empty rows.

    With even degrees all nodes of a cluster are alike.
    """

    def __init__(self, A: sp.csr_array, simple: bool, dispersion: float, even: bool = False) -> None:
        self.A, self.simple, self.dispersion, self.even = A, simple, dispersion, even
        self.model = PlantedPartition(A, dispersion, even)
        self._known_sums: tuple[Labels, Sums] | None = None

    @cached_property
    def level(self) -> Level:
        """The described graph as a level for local moves."""
        return level_of(self.A, self.model.degrees)

    @cached_property
    def logs(self) -> FloatArray:
        """Logarithms of factorials, for description lengths of labels."""
        return log_factorials(self.A.shape[0])

    @cached_property
    def log_edges(self) -> float:
        """Logarithm of the number of edges, which a rate costs in a description."""
        return log(max(self.A.nnz / 2.0, 2.0))

    @property
    def is_dense(self) -> bool:
        """Whether so many pairs of the described graph are joined that counts of edges are no Poisson numbers."""
        return bool(self.A.nnz > DENSE * self.A.shape[0] ** 2)

    @property
    def code(self) -> Code:
        """The code of a described graph: the dispersion that was measured, and whether degrees are even."""
        return Code(self.dispersion, self.even)

    def with_code(self, code: Code) -> DescribedGraph:
        """The described graph under the code that was measured on it before."""
        graph = self._with_even_degrees() if code.even and not self.even else self
        return graph.with_dispersion(code.dispersion)

    def with_dispersion(self, dispersion: float) -> DescribedGraph:
        """The described graph under another dispersion."""
        other = DescribedGraph(self.A, self.simple, dispersion, self.even)
        vars(other).update({name: getattr(self, name) for name in ("level", "logs", "_known_sums")})
        return other

    def in_order(self, order: Labels) -> DescribedGraph:
        """The described graph with its nodes in another order, if it is another one."""
        if np.array_equal(order, np.arange(len(order))):
            return self
        other = DescribedGraph(in_order(self.A, order, lean=True), self.simple, self.dispersion, self.even)
        vars(other).update(logs=self.logs)
        return other

    def with_fitting_degrees(self, labels: Labels) -> DescribedGraph:
        """The graph with even degrees, if that makes the description of these clusters and of the degrees shorter."""
        if self.even or not self.simple:
            return self
        other = self._with_even_degrees()
        shorter = other.candidate(labels).length + other.degree_cost < self.candidate(labels).length
        return other if shorter else self

    def with_measured_code(self, labels: Labels) -> DescribedGraph:
        """The described graph with the dispersion and the degrees that these clusters leave."""
        if int(labels.max()) == 0:
            return self
        graph = self.with_dispersion(self.weight_dispersion(labels)).with_fitting_degrees(labels)
        return graph.with_dispersion(graph.tied_edges(labels) * graph.dispersion)

    def with_own_degrees(self) -> DescribedGraph:
        """The described graph with the degrees that its nodes have."""
        return DescribedGraph(self.A, self.simple, self.dispersion)

    def _with_even_degrees(self) -> DescribedGraph:
        other = DescribedGraph(self.A, self.simple, self.dispersion, even=True)
        vars(other).update(level=self.level._replace(masses=other.model.degrees), logs=self.logs)
        return other

    @property
    def degree_cost(self) -> float:
        """Nats that degrees cost more as ends of edges spread evenly over all nodes, if they are even, than by their histogram.

        Ends spread evenly have the degrees d with probability ``T! / (n^T prod d_i!)``; given degrees, both models of a single
        cluster are the same.
        """
        if not self.even:
            return 0.0
        degrees = np.diff(self.A.indptr)
        n, ends, histogram = len(degrees), int(degrees.sum()), np.bincount(degrees)
        spread = ends * log(n) - float(gammaln(ends + 1) - np.sum(gammaln(degrees + 1)))
        known = float(gammaln(n + 1) - np.sum(gammaln(histogram + 1))) + 0.5 * log(n) * np.count_nonzero(histogram)
        return spread - float(known)

    def sums(self, labels: Labels) -> Sums:
        """Sums inside the clusters 0, 1, ... of these labels, for description lengths; the last answer is kept."""
        if self._known_sums is None or not np.array_equal(self._known_sums[0], labels):
            labels = np.ascontiguousarray(labels, dtype=np.int64)
            self._known_sums = labels, np.asarray(cluster_sums(self.level, labels.astype(np.int32), int(labels.max()) + 1))
        return self._known_sums[1]

    def candidate(self, labels: Any, rates: RateModel | None = None) -> Candidate:
        """A candidate: labels with their description length, under the model of the two that makes it shorter."""
        labels = renumber(np.ascontiguousarray(labels, dtype=np.int64))
        return Candidate(labels, *self.shortest(self.sums(labels), rates))

    def excess(self, labels: Any) -> float:
        """How much longer the description by these clusters is than by a single one, in nats for each node."""
        return self.candidate(labels, RateModel.PER_CLUSTER).length / len(labels)

    def shortest(self, sums: Sums, rates: RateModel | None = None) -> tuple[RateModel, float]:
        """The model of the two, unless one is given, that makes the description of clusters shorter, and its length."""
        both = RateModel if rates is None else (rates,)
        return min(((model, self._length(sums, model)) for model in both), key=lambda found: found[1])

    def _length(self, sums: Sums, rates: RateModel) -> float:
        own, facts = rates is RateModel.PER_CLUSTER, (self.model.total, self.dispersion, self.log_edges)
        return float(_length(sums, self.logs, *facts, own, self.simple)) if len(sums) > 1 else 0.0

    def score(self, labels: Labels, rates: RateModel) -> Score | None:
        """The score that moves raise to shorten the description, at rates of these labels; None if clusters are not denser."""
        sums, T = self.sums(labels), self.model.total
        k, inside, pairs = len(sums), float(sums["edges"].sum()), float(np.sum(sums["masses"] ** 2))
        across = max(T - inside, 0.5 * self.unit) / max(T * T - pairs, 1e-12 * T * T)
        charge = log(max(self.A.shape[0] - k, 1) / k)
        simple = float(self.simple) / self.dispersion
        if rates is RateModel.PER_CLUSTER:
            return Score(0.0, 0.0, 1.0 / self.dispersion, across, 1.0, charge + 0.5 * self.log_edges, simple)
        within = inside / pairs
        if within <= LEAST_RATIO * across:
            return None
        half = 0.5 / self.dispersion
        return Score(half * log(within / across), half * (within - across), 0.0, 1.0, 1.0, charge, simple)

    @cached_property
    def unit(self) -> float:
        """Mean weight of an edge of the described graph."""
        return self.model.total / max(int(self.A.nnz), 1)

    def first_score(self) -> Score:
        """Score of a description with a rate for each cluster, from single nodes: as if all weight lay across."""
        charge = log(5.0) + 0.5 * self.log_edges
        return Score(0.0, 0.0, 1.0 / self.dispersion, 1.0 / self.model.total, 1.0, charge, float(self.simple) / self.dispersion)

    def modularity_score(self, resolution: float) -> Score:
        """Score of modularity on the described graph, in units of the mean weight."""
        return Score(1.0 / self.unit, resolution / (self.model.total * self.unit))

    def ascent(self, score: Score, effort: Effort = Effort()) -> Ascent:  # noqa: B008  # an immutable tuple
        """Ascents of a score on the described graph."""
        return Ascent(self.level, score, self.logs, LEAST_GAIN, effort=effort)

    def tied_edges(self, labels: Labels) -> float:
        """How many edges hang together in clusters: what closed triangles multiply the description's dispersion with.

        If wedges inside clusters are closed more often than their degrees explain, by the share c of those that could be more,
        an edge brings ``c (d - 1) / 2`` others along, d being the mean degree inside: independent facts are fewer than edges.
        """
        observed, expected, wedges, entries = self._wedges(labels)
        excess = (observed - expected) / (wedges - expected) if wedges > expected * (1.0 + 1e-9) else 0.0
        return 1.0 + TIED * max(excess, 0.0) * max(entries / float(self.A.shape[0]) - 1.0, 0.0)

    def _wedges(self, labels: Labels) -> tuple[float, float, float, float]:
        """Wedges inside clusters: how many are closed, how many degrees explain, how many there are; and the entries inside."""
        closed, expected, wedges = map(float, _closure(self.level, labels, int(labels.max()) + 1))
        return closed, expected, wedges, float(_count_inside(self.A.indptr, self.A.indices, labels))

    def weight_dispersion(self, labels: Labels) -> float:
        """``sum (A - M)_ij^2 / sum M_ij`` with the model M of a rate for each cluster; 1 for graphs whose edges are alike."""
        if self.simple:
            return 1.0
        sums, T, degrees = self.sums(labels), self.model.total, self.model.degrees
        edges, pairs = sums["edges"], sums["masses"] ** 2
        across = max(T - float(edges.sum()), 0.0) / max(T * T - float(np.sum(pairs)), 1e-12 * T * T)
        within = edges / np.maximum(pairs, 1e-300)
        squared, cross = self._squares(labels, within, across)
        squares = np.bincount(labels, degrees**2, len(within))
        model = float(np.sum((within * squares) ** 2) + across**2 * (float(squares.sum()) ** 2 - float(np.sum(squares**2))))
        return max(squared - 2.0 * cross + model, 1e-9 * T * self.unit) / T

    def _squares(self, labels: Labels, within: FloatArray, across: float) -> tuple[float, float]:
        """The sum of squares of all entries, and of their products with the model at these rates, for the dispersion."""
        degrees, rows, own = self.model.degrees, self.model.rows, labels[self.model.rows]
        rates = np.where(own == labels[self.A.indices], within[own], across)
        return float(np.sum(self.A.data**2)), float(np.sum(self.A.data * rates * degrees[rows] * degrees[self.A.indices]))


def merged_lengths(graph: DescribedGraph, level: Level, pairs: Labels) -> FloatArray:
    """Description lengths of the clusters that are the nodes of a level, before the first merge of two and after each."""
    count = len(level.masses)
    divisions = (join(np.arange(count), pairs[:step]) for step in range(count))
    sums = (cluster_sums(level, labels.astype(np.int32), int(labels.max()) + 1) for labels in divisions)
    return np.array([graph.shortest(inside)[1] for inside in sums])


def _with_expected_diagonal(A: sp.csr_array) -> sp.csr_array:
    """A dense graph without loops with those that degrees explain, so that its description learns nothing from their absence.

    Of smooth similarities all other entries are about as expected, and a missing one would count for more than any cluster.
    """
    if A.nnz <= DENSE * A.shape[0] ** 2 or A.diagonal().any():
        return A
    degrees = np.asarray(A.sum(axis=1)).ravel()
    filled = degrees
    for _ in range(DIAGONAL_ROUNDS):
        filled = degrees + filled**2 / filled.sum()
    return sp.csr_array(A + sp.diags_array(filled - degrees))


def describe_graph(A: sp.csr_array) -> DescribedGraph:
    """A graph without empty rows under the code: edges that are all alike as they are, other weights as their square roots."""
    if is_held_once(A):
        simple, values = True, equal_values(1.0, A.nnz)
    else:
        off = A.data[np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)) != A.indices]
        simple = len(off) > 0 and float(off.min()) == float(off.max())
        values = A.data / off[0] if simple else np.sqrt(A.data)
    view = sp.csr_array((values, A.indices, A.indptr), shape=A.shape)
    graph = DescribedGraph(view if simple else _with_expected_diagonal(view), simple, 1.0)
    one = np.zeros(A.shape[0], dtype=np.int64)
    return graph if simple else graph.with_dispersion(graph.weight_dispersion(one))


@compile_with(**EXACT)
def _length(sums: Any, logs: Any, total: float, dispersion: float, log_edges: float, own: bool, simple: bool) -> float:
    """The description length of at least two clusters, from the sums inside them."""
    k, n, inside, pairs = len(sums), 0, 0.0, 0.0
    for r in range(k):
        n += sums[r].sizes
        inside += sums[r].edges
        pairs += sums[r].masses * sums[r].masses
    cost = logs[n] + logs[n - 1] - logs[k - 1] - logs[n - k] + np.log(n) + 0.5 * log_edges * (k if own else 1)
    for r in range(k):
        cost -= logs[sums[r].sizes]
    if inside * total <= pairs:  # clusters that are no denser inside explain nothing
        return float(cost)
    likelihood = _entropy(total - inside, total - pairs / total)
    if own:
        for r in range(k):
            likelihood += _entropy(sums[r].edges, sums[r].masses ** 2 / total)
    else:
        likelihood += _entropy(inside, pairs / total)
    likelihood, places = 0.5 * likelihood, 0.5 * n * (n - 1.0)
    once = -once_at_most(total, places)
    for r in range(k):
        within = 0.5 * sums[r].sizes * (sums[r].sizes - 1.0)
        once += once_at_most(sums[r].edges, within)
        places -= within
    once += once_at_most(total - inside, places)
    return float(cost - (likelihood + (once if simple else 0.0)) / dispersion)


@compile_with(**EXACT)
def _entropy(x: float, y: float) -> float:
    """Term of a description length: ``x log(x / y)``, 0 where either is not positive."""
    return float(x * np.log(x / y)) if x > 0.0 and y > 0.0 else 0.0


@compile_with(**EXACT)
def _count_inside(indptr: Any, indices: Any, labels: Any) -> int:
    """How many stored entries of a described graph join nodes of one cluster."""
    count = 0
    for i in range(len(labels)):
        for p in range(indptr[i], indptr[i + 1]):
            count += labels[indices[p]] == labels[i]
    return count


@compile_with(**EXACT)
def _degrees_inside(level: Level, labels: Any, count: int) -> Any:
    """Numbers of neighbours in the own cluster; of each cluster the rate at which such neighbours are joined, per degrees."""
    n = len(labels)
    inside, total, squares = np.zeros(n), np.zeros(count), np.zeros(count)
    for i in range(n):
        for p in range(level.indptr[i], level.indptr[i + 1]):
            if labels[level.indices[p]] == labels[i]:
                inside[i] += 1.0
        total[labels[i]] += inside[i]
        squares[labels[i]] += inside[i] ** 2
    rates = np.zeros(count)
    for c in range(count):
        free = total[c] ** 2 - squares[c]
        rates[c] = total[c] / free if free > 0 else 0.0
    return inside, rates


@compile_with(**EXACT)
def _closure(level: Level, labels: Any, count: int) -> Any:
    """Wedges inside clusters on a sample: how many are closed, how many their degrees explain, and how many there are."""
    n = len(labels)
    inside, rates = _degrees_inside(level, labels, count)
    observed, expected, wedges = 0.0, 0.0, 0.0
    near, mark = np.empty(WEDGE_NEIGHBOURS, np.int64), np.full(n, -1)
    for i in range(0, n, max(1, n // WEDGE_NODES)):
        found, stride = 0, max(1, -(-int(inside[i]) // WEDGE_NEIGHBOURS))
        place = 0
        for p in range(level.indptr[i], level.indptr[i + 1]):
            if labels[level.indices[p]] == labels[i]:
                if place % stride == 0:
                    near[found] = level.indices[p]
                    found += 1
                place += 1
        for a in range(found):
            j = near[a]
            for p in range(level.indptr[j], level.indptr[j + 1]):
                mark[level.indices[p]] = j
            for b in range(a + 1, found):
                wedges += 1.0
                expected += min(1.0, rates[labels[i]] * inside[j] * inside[near[b]])
                observed += 1.0 if mark[near[b]] == j else 0.0
    return observed, expected, wedges
