"""Local moves with refinement and aggregation on a quality that is linear in co-membership: the idea of the Leiden algorithm.

The sum over pairs in one cluster of ``w_ij - beta p_i p_j`` is raised by moving single nodes; clusters are then refined into well
connected parts, which become the nodes of a smaller graph, and so on (Traag, Waltman and van Eck 2019). Nothing is drawn at
random: nodes are first sorted by what does not depend on their order, and a few visiting orders and resolutions replace seeds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.certificates.pair_objectives import PairObjective
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

Labels = NDArray[np.int64]
#: Gains below this share of the total weight are rounding.
NEGLIGIBLE = 1e-14
#: Multiples of the resolution that starts are looked for at, before the resolution itself.
RESOLUTIONS = (1.0, 1.4, 0.7, 1.2, 0.85, 2.0)
#: Times that moves, refinement and aggregation are repeated from the nodes up, at most.
ROUNDS = 6
#: Times that the best partition is recombined with every other one.
PASSES = 2


class PairGraph(NamedTuple):
    """The graph of a quality: weights of ordered pairs of different nodes in compressed rows, sizes, and beta."""

    indptr: Labels
    indices: Labels
    data: FloatArray
    sizes: FloatArray
    beta: float
    least_gain: float


def pair_graph(objective: PairObjective) -> PairGraph:
    """The graph of a quality, with weights as large as its largest pair is 1."""
    off = objective.rows < objective.columns
    i, j, w = objective.rows[off], objective.columns[off], objective.alpha * objective.weights[off].astype(np.float64)
    unit = max(float(np.abs(w).max(initial=0.0)), float(objective.beta) * float(objective.sizes.max()) ** 2) or 1.0
    entries = (np.tile(w / unit, 2), (np.concatenate([i, j]), np.concatenate([j, i])))
    W = sp.csr_array(sp.coo_array(entries, shape=(objective.n, objective.n)))
    W.sort_indices()
    sizes = objective.sizes.astype(np.float64)
    least = NEGLIGIBLE * (float(np.abs(W.data).sum()) + 1.0)
    return PairGraph(W.indptr.astype(np.int64), W.indices.astype(np.int64), W.data, sizes, float(objective.beta) / unit, least)


def best_labels(objective: PairObjective, starts: tuple[Any, ...] = (), n_clusters: int | None = None) -> Labels:
    """Labels of a partition of high quality, the same whatever the order of the nodes.

    Parameters
    ----------
    objective : PairObjective
        What is raised.
    starts : tuple of ndarray of int, shape (n,)
        Partitions to start from, besides single nodes.
    n_clusters : int, optional
        The most clusters there may be.
    """
    order = canonical_order(objective)
    graph = _sorted_graph(pair_graph(objective), order)
    found = [_ascend_from(graph, np.ascontiguousarray(start, dtype=np.int64)[order], rounds=ROUNDS) for start in starts]
    found += [
        _ascend_from(graph, _start(graph, share, falling), rounds=ROUNDS, falling=falling)
        for share in RESOLUTIONS
        for falling in (False, True)
    ]
    best = _recombine(graph, found)
    if n_clusters is not None:
        best = _at_most(graph, best, n_clusters)
    labels = np.empty_like(best)
    labels[order] = best
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)


def improved_labels(objective: PairObjective, labels: Labels, n_clusters: int | None = None) -> Labels:
    """The partition that moves, refinement and aggregation make of one, merged down to `n_clusters` if it has more."""
    graph = pair_graph(objective)
    better = _ascend_from(graph, labels, rounds=2)
    return better if n_clusters is None else _at_most(graph, better, n_clusters)


def labels_at_resolution(objective: PairObjective, share: float) -> Labels:
    """The partition that one ascent from single nodes finds at a multiple of the resolution."""
    graph = pair_graph(objective)
    return _start(graph, share, falling=False)


def pair_sum(graph: PairGraph, labels: Labels) -> float:
    """Sum of ``w_ij - beta p_i p_j`` over ordered pairs of different nodes in one cluster, and of ``-beta p_i^2``."""
    return float(_pair_sum(graph.indptr, graph.indices, graph.data, graph.sizes, graph.beta, labels))


def _start(graph: PairGraph, share: float, falling: bool) -> Labels:
    """Single nodes, or the outcome at another resolution."""
    alone = np.arange(len(graph.sizes))
    return alone if share == 1.0 else _ascend_from(graph._replace(beta=graph.beta * share), alone, rounds=1, falling=falling)


def _ascend_from(graph: PairGraph, labels: Labels, rounds: int, falling: bool = False) -> Labels:
    first = np.argsort(-graph.sizes if falling else graph.sizes, kind="stable")
    return np.asarray(_ascend(*graph, labels.copy(), first, falling, rounds))


def _recombine(graph: PairGraph, found: list[Labels]) -> Labels:
    """The best of several partitions, improved by what it has in common with each of the others."""
    values = [pair_sum(graph, labels) for labels in found]
    ranking = sorted(range(len(found)), key=lambda place: -values[place])
    best, value = found[ranking[0]], values[ranking[0]]
    for place in ranking[1:] * PASSES:
        if values[place] >= value - graph.least_gain and _same(best, found[place]):
            continue
        common = np.unique(best * (len(best) + 1) + found[place], return_inverse=True)[1].astype(np.int64)
        indptr, indices, data, sizes = _aggregate(graph.indptr, graph.indices, graph.data, graph.sizes, common)
        smaller = PairGraph(indptr, indices, data, sizes, graph.beta, graph.least_gain)
        merged = _ascend_from(smaller, np.arange(len(smaller.sizes)), rounds=ROUNDS)
        labels = _ascend_from(graph, merged[common], rounds=2)
        if pair_sum(graph, labels) > value + graph.least_gain:
            best, value = labels, pair_sum(graph, labels)
    return best


def _same(first: Labels, second: Labels) -> bool:
    return len(np.unique(first * (len(first) + 1) + second)) == len(np.unique(first)) == len(np.unique(second))


def _at_most(graph: PairGraph, labels: Labels, n_clusters: int) -> Labels:
    """Merge clusters where it costs least until there are few enough, and move single nodes between them."""
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    count = int(labels.max()) + 1
    if count <= n_clusters:
        return labels
    joined = sp.csr_array((graph.data, graph.indices, graph.indptr), shape=(len(labels),) * 2)
    Z = sp.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)), shape=(len(labels), count))
    volumes = np.bincount(labels, weights=graph.sizes)
    gains = (Z.T @ joined @ Z).toarray() - graph.beta * np.outer(volumes, volumes)
    names = np.arange(count)
    np.fill_diagonal(gains, -np.inf)
    for _ in range(count - n_clusters):
        a, b = sorted(divmod(int(np.argmax(gains)), count))
        row = gains[a] + gains[b]
        row[[a, b]] = -np.inf
        gains[a], gains[:, a] = row, row
        gains[b], gains[:, b] = -np.inf, -np.inf
        names[names == b] = a
    labels = np.unique(names[labels], return_inverse=True)[1].astype(np.int64)
    first = np.argsort(graph.sizes, kind="stable")
    return np.asarray(_move(*graph, labels, first, n_clusters))


def canonical_order(objective: PairObjective, rounds: int = 4) -> NDArray[np.intp]:
    """An order of the nodes that does not depend on their numbers: by size, then by hashes of ever wider neighbourhoods."""
    mixer = np.uint64(0x9E3779B97F4A7C15)
    both = np.concatenate([objective.rows, objective.columns]), np.concatenate([objective.columns, objective.rows])
    weights = np.tile(_mixed(objective.weights.astype(np.float64).view(np.uint64)), 2)
    with np.errstate(over="ignore"):
        colours = _mixed(objective.sizes.astype(np.float64).view(np.uint64))
        for _ in range(rounds):
            sums = np.zeros(objective.n, dtype=np.uint64)
            np.add.at(sums, both[0], _mixed(colours[both[1]] * mixer + weights))
            colours = _mixed(colours * mixer + sums)
    return np.lexsort((colours, objective.sizes))


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of 64 bits."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))


def _sorted_graph(graph: PairGraph, order: NDArray[np.intp]) -> PairGraph:
    n = len(order)
    W = sp.csr_array((graph.data, graph.indices, graph.indptr), shape=(n, n))[order][:, order]
    W.sort_indices()
    parts = (W.indptr.astype(np.int64), W.indices.astype(np.int64), W.data, graph.sizes[order])
    return PairGraph(*parts, graph.beta, graph.least_gain)


@compile_with(error_model="numpy", nogil=True)
def _pair_sum(indptr: Any, indices: Any, data: Any, sizes: Any, beta: float, labels: Any) -> float:
    total = 0.0
    volumes = np.zeros(labels.max() + 1)
    for i in range(len(sizes)):
        volumes[labels[i]] += sizes[i]
        for p in range(indptr[i], indptr[i + 1]):
            if labels[indices[p]] == labels[i]:
                total += data[p]
    return float(total - beta * np.sum(volumes * volumes))


@compile_with(error_model="numpy", nogil=True)
def _move(
    indptr: Any, indices: Any, data: Any, sizes: Any, beta: float, least_gain: float, labels: Any, order: Any, most: int
) -> Any:
    """Move single nodes to the neighbouring cluster of highest gain, or to a new one, until no move gains.

    A queue holds the nodes to try. Labels are numbers below n and are overwritten; `most` is the largest number of clusters.
    """
    n = len(sizes)
    volumes, counts = np.zeros(n), np.zeros(n, np.int64)
    for i in range(n):
        volumes[labels[i]] += sizes[i]
        counts[labels[i]] += 1
    free = [c for c in range(n - 1, -1, -1) if counts[c] == 0]
    queue, waiting = order.copy(), np.ones(n, np.bool_)
    joined, seen = np.zeros(n), np.empty(n, np.int64)
    touched = np.zeros(n, np.bool_)
    first, length = 0, n
    while length > 0:
        i = queue[first]
        first = first + 1 if first + 1 < n else 0
        length -= 1
        waiting[i] = False
        a, found = labels[i], 0
        for p in range(indptr[i], indptr[i + 1]):
            c = labels[indices[p]]
            if not touched[c]:
                touched[c] = True
                seen[found] = c
                found += 1
            joined[c] += data[p]
        volumes[a] -= sizes[i]
        cost = beta * sizes[i]
        best, target = joined[a] - cost * volumes[a] + least_gain, a
        for s in range(found):
            c = seen[s]
            gain = joined[c] - cost * volumes[c]
            if gain > best:
                best, target = gain, c
            joined[c] = 0.0
            touched[c] = False
        if best < -least_gain and counts[a] > 1 and n - len(free) < most:
            target = free.pop()
        volumes[target] += sizes[i]
        if target != a:
            labels[i] = target
            counts[a] -= 1
            counts[target] += 1
            if counts[a] == 0:
                free.append(a)
            for p in range(indptr[i], indptr[i + 1]):
                j = indices[p]
                if labels[j] != target and not waiting[j]:
                    waiting[j] = True
                    last = first + length
                    queue[last if last < n else last - n] = j
                    length += 1
    return labels


@compile_with(error_model="numpy", nogil=True)
def _refine(indptr: Any, indices: Any, data: Any, sizes: Any, beta: float, least_gain: float, labels: Any, order: Any) -> Any:
    """Parts of the clusters: single nodes, each in turn merged with the part of its cluster of highest gain."""
    n = len(sizes)
    parts, volumes, counts = np.arange(n), sizes.copy(), np.ones(n, np.int64)
    joined, seen, touched = np.zeros(n), np.empty(n, np.int64), np.zeros(n, np.bool_)
    for i in order:
        if counts[parts[i]] != 1:
            continue
        found = 0
        for p in range(indptr[i], indptr[i + 1]):
            if labels[indices[p]] == labels[i]:
                c = parts[indices[p]]
                if not touched[c]:
                    touched[c] = True
                    seen[found] = c
                    found += 1
                joined[c] += data[p]
        best, target = least_gain, parts[i]
        for s in range(found):
            c = seen[s]
            gain = joined[c] - beta * sizes[i] * volumes[c]
            if gain > best:
                best, target = gain, c
            joined[c] = 0.0
            touched[c] = False
        if target != parts[i]:
            counts[parts[i]] -= 1
            volumes[parts[i]] -= sizes[i]
            parts[i] = target
            counts[target] += 1
            volumes[target] += sizes[i]
    return parts


@compile_with(error_model="numpy", nogil=True)
def _renumber(labels: Any) -> Any:
    """Labels as consecutive numbers from 0, in the order of their first nodes."""
    names, count = np.full(labels.max() + 1, -1), 0
    numbers = np.empty_like(labels)
    for i in range(len(labels)):
        if names[labels[i]] < 0:
            names[labels[i]] = count
            count += 1
        numbers[i] = names[labels[i]]
    return numbers


@compile_with(error_model="numpy", nogil=True)
def _aggregate(indptr: Any, indices: Any, data: Any, sizes: Any, parts: Any) -> Any:
    """The graph whose nodes are parts, numbered from 0: weights between different parts, and their sizes."""
    n, count = len(sizes), parts.max() + 1
    starts = np.zeros(count + 1, np.int64)
    for i in range(n):
        starts[parts[i] + 1] += 1
    starts = np.cumsum(starts)
    members, place = np.empty(n, np.int64), starts[:-1].copy()
    for i in range(n):
        members[place[parts[i]]] = i
        place[parts[i]] += 1
    new_indptr, volumes = np.zeros(count + 1, np.int64), np.zeros(count)
    new_indices, new_data = np.empty(len(data), np.int64), np.empty(len(data))
    slot, filled = np.full(count, -1), 0
    for c in range(count):
        begin = filled
        for q in range(starts[c], starts[c + 1]):
            i = members[q]
            volumes[c] += sizes[i]
            for p in range(indptr[i], indptr[i + 1]):
                d = parts[indices[p]]
                if d == c:
                    continue
                if slot[d] < begin:
                    slot[d] = filled
                    new_indices[filled] = d
                    new_data[filled] = 0.0
                    filled += 1
                new_data[slot[d]] += data[p]
        new_indptr[c + 1] = filled
    return new_indptr, new_indices[:filled].copy(), new_data[:filled].copy(), volumes


@compile_with(error_model="numpy", nogil=True)
def _ascend(
    indptr: Any,
    indices: Any,
    data: Any,
    sizes: Any,
    beta: float,
    least_gain: float,
    labels: Any,
    order: Any,
    falling: bool,
    rounds: int,
) -> Any:
    """Moves, refinement and aggregation up to one node per cluster, all of it again from the nodes up while that gains."""
    before = -np.inf
    for _ in range(rounds):
        ptr, nbr, w, p, visit = indptr, indices, data, sizes, order
        current, whole = _renumber(labels), np.arange(len(sizes))
        while True:
            current = _move(ptr, nbr, w, p, beta, least_gain, current, visit, len(p))
            parts = _renumber(_refine(ptr, nbr, w, p, beta, least_gain, current, visit))
            if parts.max() + 1 == len(p):
                parts = _renumber(current)
                if parts.max() + 1 == len(p):
                    break
            smaller = np.empty(parts.max() + 1, np.int64)
            for i in range(len(p)):
                smaller[parts[i]] = current[i]
            ptr, nbr, w, p = _aggregate(ptr, nbr, w, p, parts)
            whole, current = parts[whole], _renumber(smaller)
            visit = np.argsort(-p if falling else p, kind="mergesort")
        labels = current[whole]
        value = _pair_sum(indptr, indices, data, sizes, beta, labels)
        if value <= before + least_gain:
            break
        before = value
    return labels
