"""From positions to clusters: centres, shares by the likelihood of a degree-corrected model, moves of single nodes.

A node of degree d_i in cluster r is joined to node j at the rate ``d_i d_j w_r`` if j is in r too, and ``d_i d_j w_0`` elsewhere,
``w_r >= w_0``. With shares q of the other nodes, the logarithm of the odds of node i is, in units of the dispersion,

    L_ir = sum_j A_ij q_jr log(w_r / w_0) - d_i (w_r - w_0) sum_j d_j q_jr.

Rates and shares are improved in turn, from centres of the positions that the convex problem found, until they settle (mean
field); then single nodes are moved as long as that is worth it (Kernighan & Lin). Where nothing stands above the noise, shares
would all become equal: then the centres themselves are the start of the moves, and all clusters have one rate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray

from cvxnmf.graphs.kernighan_lin import best_moves
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.centres import farthest_points, nearest_centres
from cvxnmf.linalg.sparse import csr_times

Labels = NDArray[np.intp]

#: Rounds of shares, and the largest change of a share that ends them.
ROUNDS, SETTLED = 50, 1e-4
#: Share of a node in its own cluster when the rounds begin.
FIRST_SHARE = 0.9
#: Moves of single nodes must raise the log-likelihood by this much in all, or settled clusters are left as they are.
WORTHWHILE = 0.5
#: How much longer than others the direction of the heaviest node is, so that no rounding decides which comes first.
HEAVIER = 1e-3
#: Likelihoods that differ by no more than this share are the same.
ALIKE = 1e-9
#: Passes of moves, and moves in vain that end a pass.
PASSES, PATIENCE = 20, 100
#: Rounds of nearest centres when somebody waits.
HASTY_ROUNDS = 5
#: Nodes, in canonical order and evenly spaced, that may become first centres by what they cover.
CANDIDATES = 300


class Clusters(NamedTuple):
    """Labels, shares whose largest entry in each row is at the label, and how many clusters had to be filled."""

    labels: Labels
    memberships: FloatArray
    filled: int = 0


def clustered(
    A: Any, W: FloatArray, k: int, dispersion: float, above_noise: int, refine: bool = True, hasty: bool = False
) -> Clusters:
    """Divide nodes into k clusters, none of them empty.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Symmetric adjacency matrix with at least one edge.
    W : ndarray of shape (n, r)
        Positions.
    k : int
        Number of clusters, from 1 to n.
    dispersion : float
        Variance of an entry over its mean.
    above_noise : int
        Number of directions that stand out of the noise.
    refine : bool
        Whether to improve the nearest centres by the likelihood.
    hasty : bool
        Whether somebody waits: one set of first centres, a few rounds, nothing else.
    """
    graph = Graph(A, dispersion)
    order = canonical_order(A, graph.degrees, W)
    graph, W = graph.permuted(order), W[order]
    if k == 1:
        return Clusters(np.zeros(len(W), dtype=np.intp), np.ones((len(W), 1)))
    first = [_filled(W, nearest_centres(W, farthest_points(W, k), HASTY_ROUNDS), k)] if hasty else _first_labels(W, k)
    labels, shares, filled = _best(graph, first, k, above_noise, refine and not hasty)
    rank = np.argsort(-np.bincount(labels, minlength=k), kind="stable")
    back = np.argsort(order, kind="stable")
    return Clusters(np.argsort(rank)[labels][back], shares[back][:, rank], filled)


def canonical_order(A: Any, degrees: FloatArray, W: FloatArray) -> Labels:
    """An order of the nodes that does not depend on their names, but for nodes that the graph cannot tell apart."""
    energy = np.sum(W * W, axis=1)
    keys, x = (
        [degrees, energy],
        degrees / max(float(degrees.max()), 1e-300) + energy / max(float(energy.max(initial=0.0)), 1e-300),
    )
    for _ in range(4):
        x = A @ np.sqrt(x) / max(float(degrees.max()), 1e-300)
        keys.append(x)
    rounded = [np.round(key / max(float(key.max(initial=0.0)), 1e-300), 9) for key in keys]
    return np.lexsort(rounded[::-1]).astype(np.intp)


class Rates(NamedTuple):
    """``log(w_r / w_0)`` and ``w_r - w_0`` of each cluster."""

    logs: FloatArray
    excess: FloatArray


class Graph:
    """The adjacency matrix, its degrees, and what a division into clusters means for them."""

    def __init__(self, A: Any, dispersion: float) -> None:
        self.A, self.dispersion = A, max(dispersion, 1e-12)
        self.degrees = np.asarray(A.sum(axis=1)).ravel()
        self.total = float(self.degrees.sum())

    def permuted(self, order: Labels) -> Graph:
        """The same graph with its nodes in another order."""
        return Graph(self.A[order][:, order].tocsr(), self.dispersion)

    def rates(self, q: FloatArray, own: bool, joined: FloatArray | None = None) -> Rates:
        """The best rates for shares q, one per cluster if `own`, else one for all; nowhere below the rate across."""
        inner = np.sum((csr_times(self.A, q) if joined is None else joined) * q, axis=0)
        pairs = (self.degrees @ q) ** 2
        tiny = 1e-12 * self.total
        across = max(self.total - float(inner.sum()), tiny) / max(self.total**2 - float(pairs.sum()), tiny * self.total)
        if own:
            inside = (inner + tiny) / (pairs + tiny * self.total)
        else:
            inside = np.full(len(inner), float(inner.sum()) / max(float(pairs.sum()), tiny * self.total))
        inside = np.maximum(inside, 1.0001 * across)
        return Rates(np.log(inside / across), inside - across)

    def log_odds(self, q: FloatArray, own: bool) -> FloatArray:
        """L of the module's formula."""
        joined = csr_times(self.A, q)
        logs, excess = self.rates(q, own, joined)
        return np.asarray((joined * logs - self.degrees[:, None] * ((self.degrees @ q) * excess)) / self.dispersion)

    def log_likelihood(self, labels: Labels, k: int, own: bool) -> float:
        """Log-likelihood of a division at its best rates, up to a constant."""
        q = np.eye(k)[labels]
        inner, pairs = np.sum(csr_times(self.A, q) * q, axis=0), (self.degrees @ q) ** 2
        if not own:
            inner, pairs = inner.sum(keepdims=True), pairs.sum(keepdims=True)
        inner = np.append(inner, self.total - inner.sum())
        pairs = np.append(pairs, self.total**2 - pairs.sum())
        some = (inner > 0) & (pairs > 0)
        if some[-1] and np.max(inner[:-1] / np.maximum(pairs[:-1], 1e-300)) * pairs[-1] <= inner[-1]:
            return 0.0  # nowhere denser inside than across: no better than a single cluster
        return float(0.5 * np.sum(inner[some] * np.log(inner[some] * self.total / pairs[some])) / self.dispersion)


def _best(graph: Graph, starts: list[Labels], k: int, above_noise: int, refine: bool) -> Clusters:
    """The division of the highest likelihood among those that the starts lead to."""
    own = above_noise > 0
    if not refine:
        return with_shares(graph, max(starts, key=lambda z: graph.log_likelihood(z, k, own)), k, own)
    candidates = [without_empty(graph, _settled(graph, z, k), k) for z in starts]
    if above_noise < k - 1 or any(candidate.filled for candidate in candidates):
        candidates = [Clusters(z, np.eye(k)[z]) for z in starts] + candidates
    best = _likeliest(graph, candidates, k, own)
    moved = _moved(graph, best.labels, k, own)
    return best if moved is best.labels else with_shares(graph, moved, k, own)._replace(filled=best.filled)


def _likeliest(graph: Graph, candidates: list[Clusters], k: int, own: bool) -> Clusters:
    """The candidate of the highest likelihood; of those that differ by rounding only, the one with the fewest clusters filled."""
    scores = [graph.log_likelihood(candidate.labels, k, own) for candidate in candidates]
    least = max(scores) - ALIKE * max(1.0, abs(max(scores)))
    return min((c for c, score in zip(candidates, scores, strict=True) if score >= least), key=lambda c: c.filled)


def _settled(graph: Graph, labels: Labels, k: int) -> FloatArray:
    """Shares after rounds of rates and odds, from almost certain ones."""
    q = FIRST_SHARE * np.eye(k)[labels] + (1.0 - FIRST_SHARE) / k
    for _ in range(ROUNDS):
        before, q = q, _shares(graph.log_odds(q, own=True) + np.log(q.mean(axis=0) + 1e-12))
        if np.abs(q - before).max() < SETTLED:
            break
    return q


def _shares(log_odds: FloatArray) -> FloatArray:
    """Rows of odds as shares that sum to 1."""
    q: FloatArray = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    return q


def without_empty(graph: Graph, q: FloatArray, k: int) -> Clusters:
    """Labels of the largest shares; a cluster left empty takes the node that is least at home where it is."""
    labels = np.argmax(q, axis=1)
    sizes = np.bincount(labels, minlength=k)
    if sizes.all():
        return Clusters(labels, q)
    home = q[np.arange(len(q)), labels] + (graph.degrees == 0)  # nodes without edges go last
    missing = np.flatnonzero(sizes == 0)
    for empty in missing:
        node = int(np.argmin(np.where(sizes[labels] > 1, home, np.inf)))
        sizes[labels[node]] -= 1
        labels[node], home[node], sizes[empty] = empty, np.inf, 1
    return with_shares(graph, labels, k, own=False)._replace(filled=len(missing))


def with_shares(graph: Graph, labels: Labels, k: int, own: bool) -> Clusters:
    """Shares of each node when all others are where their labels say; its own label has the largest."""
    q = _shares(graph.log_odds(np.eye(k)[labels], own))
    rows, top = np.arange(len(q)), np.argmax(q, axis=1)
    q[rows, top], q[rows, labels] = q[rows, labels], q[rows, top]
    q[rows, labels] *= 1.0 + 1e-9  # of equal shares the label's is the largest by a hair
    return Clusters(labels, q / q.sum(axis=1, keepdims=True))


def _moved(graph: Graph, labels: Labels, k: int, own: bool) -> Labels:
    """Labels after passes of moves that are worth it; no cluster is emptied."""
    A, patience = graph.A, min(len(labels), PATIENCE)
    for _ in range(PASSES):
        logs, excess = graph.rates(np.eye(k)[labels], own)
        moved, gain = best_moves(A.indptr, A.indices, A.data, graph.degrees, labels, logs, excess, patience)
        if gain / (2.0 * graph.dispersion) <= (WORTHWHILE if own else 1e-9):
            return labels
        labels = moved
    return labels


# First labels from positions ---------------------------------------------------------------------------------------------------


def _first_labels(W: FloatArray, k: int) -> list[Labels]:
    """Nearest centres of positions and of their directions, from several first centres that do not depend on names."""
    n = len(W)
    if W.shape[1] == 0 or not np.ptp(W, axis=0).any():  # nothing tells the nodes apart but their degrees
        return [np.arange(n) * k // n]
    lengths = np.linalg.norm(W, axis=1, keepdims=True)
    found = []
    unit = W / np.maximum(lengths, 1e-12 * lengths.max())  # of weak nodes only the direction tells much
    for X in (W, unit * (1.0 + HEAVIER * lengths / lengths.max())):
        found += [_filled(X, nearest_centres(X, first(X, k)), k) for first in (farthest_points, _pivots, _most_covering)]
    return found


def _pivots(W: FloatArray, k: int) -> FloatArray:
    """K points that span the positions and a constant best: pivots of an orthogonal decomposition."""
    spread = np.sqrt(float(np.sum(W * W)) / W.size)
    _, _, pivots = sl.qr(np.column_stack([np.full(len(W), spread), W]).T, mode="economic", pivoting=True)
    first = W[pivots[: min(k, W.shape[1] + 1)]]
    return first if len(first) == k else np.vstack([first, farthest_points(W, k)[: k - len(first)]])


def _most_covering(W: FloatArray, k: int) -> FloatArray:
    """K points, each the one of many that brings all points nearest to a chosen one."""
    candidates = W[:: -(-len(W) // max(CANDIDATES, 2 * k))]
    squares = np.sum(W * W, axis=1)
    distances = squares[:, None] + np.sum(candidates**2, axis=1)[None, :] - 2.0 * (W @ candidates.T)
    nearest, chosen = np.sum((W - W.mean(axis=0)) ** 2, axis=1), []
    for _ in range(k):
        chosen.append(int(np.argmax(np.maximum(nearest[:, None] - distances, 0.0).sum(axis=0))))
        nearest = np.minimum(nearest, distances[:, chosen[-1]])
    return np.asarray(candidates[chosen])


def _filled(W: FloatArray, labels: Labels, k: int) -> Labels:
    """No cluster empty: one that is takes the node farthest from its centre."""
    sizes = np.bincount(labels, minlength=k)
    for empty in np.flatnonzero(sizes == 0):
        centres = np.eye(k)[labels].T @ W / np.maximum(sizes, 1)[:, None]
        distance = np.sum((W - centres[labels]) ** 2, axis=1)
        node = int(np.argmax(np.where(sizes[labels] > 1, distance, -1.0)))
        sizes[labels[node]] -= 1
        labels[node], sizes[empty] = empty, 1
    return labels
