"""The degree-corrected planted partition model: rates, likelihood, posterior memberships, mean field.

A node of degree d_i in cluster r is joined to node j at the rate ``d_i d_j w_r`` if j is in r too, and ``d_i d_j w_0`` elsewhere,
``w_r >= w_0``. Given memberships q of the other nodes, the log odds of node i for cluster r are, in units of the dispersion,

    L_ir = sum_j A_ij q_jr log(w_r / w_0) - d_i (w_r - w_0) sum_j d_j q_jr.

Mean field improves rates and memberships in turn until neither changes any more (docs/mathematics.md).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from cvxnmf.graphs.moves import Labels
from cvxnmf.linalg.arrays import FloatArray, is_held_once
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.sparse_products import csr_times, over_rows

#: Told the share of a work that is done; a true answer asks for its end.
Report = Callable[[float], bool]

#: Membership of a node in the cluster of its label when mean field begins.
FIRST_MEMBERSHIP = 0.9
#: Rates inside are at least this much above the rate across, and counts at least this share of all: logarithms stay finite.
LEAST_RATIO, TINY = 1.0001, 1e-12


class RateModel(Enum):
    """Rates of the planted partition model: one inside all clusters, as modularity supposes, or each its own."""

    COMMON = "common"
    PER_CLUSTER = "per cluster"


class Clusters(NamedTuple):
    """Clusters of the block model: labels, memberships, largest at the label, and how many were empty and got a node."""

    labels: Labels
    memberships: FloatArray
    n_filled: int = 0

    def of_nodes(self, nodes: Any) -> Clusters:
        """The clusters and memberships of these nodes only, in this order."""
        return self._replace(labels=self.labels[nodes], memberships=self.memberships[nodes])

    def by_size(self) -> Clusters:
        """The clusters with their memberships, numbered by decreasing size."""
        order = size_order(self.labels, self.memberships.shape[1])
        return self._replace(labels=np.argsort(order)[self.labels], memberships=self.memberships[:, order])


def size_order(labels: Any, count: int = 0) -> Labels:
    """Numbers of clusters by decreasing size, the lower one first of those of one size; of at least so many clusters."""
    return np.argsort(-np.bincount(labels, minlength=count), kind="stable")


class Stopping(NamedTuple):
    """When mean field ends: after so many rounds, or when memberships change by less, at most or in the mean of the nodes."""

    rounds: int
    largest_change: float
    mean_change: float


class Inside(NamedTuple):
    """Weight of edges and product of degrees inside each cluster, in ordered pairs, for rates of the block model."""

    edges: FloatArray
    pairs: FloatArray

    def of(self, rates: RateModel) -> Inside:
        """Sums inside clusters, one per rate: over all clusters if they have one rate in common."""
        return self if rates is RateModel.PER_CLUSTER else Inside(*(x.sum(keepdims=True) for x in self))


class PlantedPartition:
    """A graph under the planted partition model; the graph stays as it is, clusters are handed in.

    A is a symmetric csr_array of shape (n, n) with at least one edge, the dispersion the variance of an entry over its mean. With
    even degrees all nodes of a cluster are alike: the mean stands for the degree of each.
    """

    def __init__(self, A: sp.csr_array, dispersion: float, even: bool = False) -> None:
        self.A, self.dispersion = A, max(dispersion, TINY)
        uniform = is_held_once(A)
        self.degrees: FloatArray = np.diff(A.indptr) * A.data[0] if uniform else np.asarray(A.sum(axis=1)).ravel()
        self.total = float(self.degrees.sum())
        if even:
            self.degrees = np.full(A.shape[0], self.total / A.shape[0])

    @cached_property
    def rows(self) -> Labels:
        """The row of each stored entry of the graph under the planted partition model."""
        return np.repeat(np.arange(self.A.shape[0]), np.diff(self.A.indptr))

    def inside(self, labels: Labels, k: int) -> Inside:
        """Weight of edges and product of degrees inside the clusters of these labels."""
        own = labels[self.rows]
        same = own == labels[self.A.indices]
        edges, volumes = np.bincount(own[same], self.A.data[same], k), np.bincount(labels, self.degrees, k)
        return Inside(np.asarray(edges, float), np.asarray(volumes, float) ** 2)

    def log_rates(self, inside: Inside, rates: RateModel) -> tuple[FloatArray, FloatArray]:
        """Of each cluster ``log(w_r / w_0)`` and ``w_r - w_0`` at the best rates, none of them below the one across."""
        tiny = TINY * self.total
        across = max(self.total - float(inside.edges.sum()), tiny)
        across /= max(self.total**2 - float(inside.pairs.sum()), tiny * self.total)
        edges, pairs = inside.of(rates)
        if rates is RateModel.PER_CLUSTER:
            within = (edges + tiny) / (pairs + tiny * self.total)
        else:
            within = np.repeat(edges / np.maximum(pairs, tiny * self.total), len(inside.edges))
        within = np.maximum(within, LEAST_RATIO * across)
        return np.log(within / across), within - across

    def log_likelihood(self, labels: Labels, k: int, rates: RateModel) -> float:
        """Log-likelihood of labels under the planted partition model at their best rates, less that of a single cluster."""
        edges, pairs = self.inside(labels, k).of(rates)
        edges = np.append(edges, self.total - edges.sum())
        pairs = np.append(pairs, self.total**2 - pairs.sum())
        some = (edges > 0) & (pairs > 0)
        if some[-1] and np.max(edges[:-1] / np.maximum(pairs[:-1], 1e-300)) * pairs[-1] <= edges[-1]:
            return 0.0  # nowhere denser inside than across
        return float(0.5 * np.sum(edges[some] * np.log(edges[some] * self.total / pairs[some])) / self.dispersion)

    def posterior(self, q: FloatArray, rates: RateModel, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior memberships given those of other nodes, as ``exp(L_ir + prior_r)``; largest and summed change."""
        affinities, volumes = csr_times(self.A, q), self.degrees @ q
        logs, excess = self.log_rates(Inside(np.sum(affinities * q, axis=0), volumes**2), rates)
        odds = np.array([logs / self.dispersion, volumes * excess / self.dispersion, prior])
        new = np.empty_like(q)
        parts = over_rows(self.A, lambda first, last: _posterior(affinities, self.degrees, odds, q, new, first, last))
        largest, total = np.array(parts).T
        return new, np.array([largest.max(), total.sum()])

    def mean_field(self, labels: Labels, k: int, stopping: Stopping, report: Report = lambda share: False) -> FloatArray:
        """Mean field: memberships at which posterior and rates of each cluster agree, from almost certain ones."""
        q = FIRST_MEMBERSHIP * np.eye(k)[labels] + (1.0 - FIRST_MEMBERSHIP) / k
        for step in range(stopping.rounds):
            q, (largest, total) = self.posterior(q, RateModel.PER_CLUSTER, np.log(q.mean(axis=0) + TINY))
            settled = largest < stopping.largest_change or total <= stopping.mean_change * len(labels)
            if report((step + 1) / stopping.rounds) or settled:
                break
        return q

    def free_energy(self, q: FloatArray) -> float:
        """Free energy: nats that describe the graph by uncertain memberships, told no more exactly than they are."""
        inside = Inside(np.sum(csr_times(self.A, q) * q, axis=0), (self.degrees @ q) ** 2)
        logs, excess = self.log_rates(inside, RateModel.PER_CLUSTER)
        across = max(self.total - float(inside.edges.sum()), TINY * self.total)
        across /= max(self.total**2 - float(inside.pairs.sum()), TINY * self.total**2)
        expected = across * self.total**2
        likelihood = float(inside.edges @ logs - inside.pairs @ excess)
        likelihood += self.total * float(np.log(expected / self.total)) - expected + self.total
        return float(np.sum(xlogy(q, q)) - np.sum(xlogy(q, q.mean(axis=0)))) - 0.5 * likelihood / self.dispersion

    def with_posterior(self, labels: Labels, k: int, rates: RateModel) -> Clusters:
        """Labels with each node's posterior when all others are where their labels say; its own label has the largest."""
        q, _ = self.posterior(np.eye(k)[labels], rates, np.zeros(k))
        rows, top = np.arange(len(q)), np.argmax(q, axis=1)
        q[rows, top], q[rows, labels] = q[rows, labels], q[rows, top]
        q[rows, labels] *= 1.0 + 1e-9  # of equal memberships the label's is the largest by a hair
        return Clusters(labels, q / q.sum(axis=1, keepdims=True))

    def label_all(self, q: FloatArray) -> Clusters:
        """Labels of the largest memberships; an empty cluster takes the node that is least at home where it is."""
        n, k = q.shape
        labels = np.argmax(q, axis=1)
        at_home = q[np.arange(n), labels] + (self.degrees == 0)  # nodes without edges go last
        labels, n_filled = fill_empty_clusters(labels, k, lambda _: -at_home)
        return self.with_posterior(labels, k, RateModel.COMMON)._replace(n_filled=n_filled) if n_filled else Clusters(labels, q)


def fill_empty_clusters(labels: Labels, k: int, misfit: Callable[[Labels], FloatArray]) -> tuple[Labels, int]:
    """Give every empty one of k <= n clusters the node that fits least where it is; return how many were empty, too.

    `misfit` says how badly each node fits where the labels put it; nodes that are alone in their cluster stay.
    """
    labels, sizes = labels.copy(), np.bincount(labels, minlength=k)
    empty = np.flatnonzero(sizes == 0)
    for cluster in empty:
        node = int(np.argmax(np.where(sizes[labels] > 1, misfit(labels), -np.inf)))
        sizes[labels[node]] -= 1
        labels[node], sizes[cluster] = cluster, 1
    return labels, len(empty)


@compile_with(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _posterior(
    affinities: FloatArray, degrees: FloatArray, odds: FloatArray, before: FloatArray, q: FloatArray, first: int, last: int
) -> tuple[float, float]:
    """Rows of posterior q, as ``exp(affinities_ir odds_0r - degrees_i odds_1r + odds_2r)``; largest and summed change."""
    logs, costs, prior = odds
    k = len(logs)
    largest, total = 0.0, 0.0
    for i in range(first, last):
        top = -np.inf
        row, x, d = q[i], affinities[i], degrees[i]
        for r in range(k):
            row[r] = x[r] * logs[r] - d * costs[r] + prior[r]
            top = max(top, row[r])
        mass = 0.0
        for r in range(k):
            row[r] = np.exp(row[r] - top)
            mass += row[r]
        mass = 1.0 / mass
        for r in range(k):
            row[r] *= mass
            change = abs(row[r] - before[i, r])
            largest = max(largest, change)
            total += change
    return largest, total
