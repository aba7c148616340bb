"""Clusters of a large graph improved on the graph itself, at a cost in proportion to its edges.

Shares and rates of the degree-corrected model of :mod:`cvxnmf.graphs.clusters` in turn, then passes over the nodes, each of which
goes where the likelihood is highest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxnmf.graphs.clusters import FIRST_SHARE, Clusters, Graph, Labels, with_shares, without_empty
from cvxnmf.graphs.local_moves import local_moves, posterior_memberships
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.sparse import csr_times

#: Rounds of shares, and the mean change of a node's shares that ends them.
ROUNDS, SETTLED = 40, 1e-3
#: Passes of moves, and the share of nodes that move in a pass when there are no more.
PASSES, QUIET = 10, 1e-5

Heard = Callable[[float], bool]


def polished(graph: Graph, labels: Labels, k: int, heard: Heard) -> Clusters:
    """Clusters at which neither rounds of shares nor moves of single nodes raise the likelihood any more.

    Parameters
    ----------
    graph : Graph
        Without empty rows.
    labels : ndarray of int, shape (n,)
        The start.
    k : int
        Number of clusters.
    heard : callable
        Told the share of the work that is done; a true answer ends it.
    """
    q = FIRST_SHARE * np.eye(k)[labels] + (1.0 - FIRST_SHARE) / k
    stopped = False
    for step in range(ROUNDS):
        q, change = _round(graph, q)
        stopped = heard(0.8 * (step + 1) / ROUNDS)
        if stopped or change <= SETTLED * len(labels):
            break
    found = without_empty(graph, q, k)
    likelihood = graph.log_likelihood(found.labels, k, own=True)
    if graph.log_likelihood(labels, k, own=True) > likelihood:  # where nothing stands out, shares become equal
        found = with_shares(graph, labels, k, own=True)
    moved = found.labels if stopped else _moved(graph, found.labels, k, heard)
    return found if moved is found.labels else with_shares(graph, moved, k, own=True)._replace(filled=found.filled)


def _round(graph: Graph, q: FloatArray) -> tuple[FloatArray, float]:
    """Shares at the rates of the last ones, and how much they have changed."""
    joined = csr_times(graph.A, q)
    logs, excess = graph.rates(q, True, joined)
    unit = graph.dispersion
    prior = np.log(q.mean(axis=0) + 1e-12)
    return posterior_memberships(graph.A, joined, graph.degrees, logs / unit, (graph.degrees @ q) * excess / unit, prior, q)


def _moved(graph: Graph, labels: Labels, k: int, heard: Heard) -> Labels:
    """Labels after passes of moves, if they are better."""
    new = labels.copy()
    for step in range(PASSES):
        logs, excess = graph.rates(np.eye(k)[new], True)
        count = local_moves(graph.A, graph.degrees, new, logs, excess)
        if heard(0.8 + 0.2 * (step + 1) / PASSES) or count <= QUIET * len(new):
            break
    better = graph.log_likelihood(new, k, own=True) > graph.log_likelihood(labels, k, own=True)
    return new if better else labels
