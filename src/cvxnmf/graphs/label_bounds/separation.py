"""Cuts that a fractional co-membership matrix violates, found greedily: triangles, stars, 2-partitions, cliques.

All are of the one family of `certificates.label_cuts`: a vector b of signs on a few nodes, ``-sum_{i<j} b_i b_j x_ij <=
side(b)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cvxnmf.certificates.label_cuts import Cuts
from cvxnmf.certificates.pair_objectives import Integers
from cvxnmf.graphs.multilevel import Labels
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compile_with

#: How much a cut other than a triangle must be violated.
VIOLATION = 1e-3
#: Largest number of nodes on both sides of a 2-partition.
MOST_NODES = 15


def triangles(X: FloatArray, most: int, violation: float, positive: Any = None) -> tuple[Cuts, float]:
    """The most violated triangle cuts ``x_ij + x_jk - x_ik <= 1``, one for every pair (i, k), and the largest violation.

    Parameters
    ----------
    X : ndarray of shape (n, n)
        Co-memberships from 0 to 1; the search is faster in single precision.
    most : int
        How many to return.
    violation : float
        The least violation.
    positive : ndarray of bool, shape (n, n), optional
        Pairs of which a triangle needs one as a short side; if all others are 0 or 1 by themselves, these triangles are enough.
    """
    X = X.copy()
    np.fill_diagonal(X, -9.0)  # a node is no centre of its own pairs
    amounts, nodes = _triangles(X, np.ones(X.shape, dtype=bool) if positive is None else positive, violation)
    return make_triangles(nodes[np.argsort(-amounts, kind="stable")[:most]]), float(amounts.max(initial=0.0))


def tight_triangles(D: FloatArray, labels: Labels, most: int) -> Cuts:
    """Triangle cuts without slack at a partition that a direction D of co-memberships violates most, the centre with an end."""
    first = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    amounts, nodes = _tight_triangles(D, labels, first, np.argsort(labels, kind="stable"))
    return make_triangles(nodes[np.argsort(-amounts, kind="stable")[:most]])


def stars(X: FloatArray, most: int) -> Cuts:
    """The most violated star cuts: a centre i and a set T with ``sum_T x_it - sum_{s<t in T} x_st <= 1``."""
    amounts, sides = _stars(X, VIOLATION, 1.0 - VIOLATION, VIOLATION, len(X), len(X), 0)
    return _select(amounts, sides, most)


def few_stars(X: FloatArray, most: int, turn: int, between: tuple[float, float] = (0.05, 2.0), violation: float = 0.03) -> Cuts:
    """Violated star cuts of at most a dozen leaves, grown from a few first leaves of every centre; `turn` varies which.

    Leaves have a co-membership `between` two numbers with the centre.
    """
    amounts, sides = _stars(X, *between, violation, 12, 6, turn)
    return _select(amounts, sides, most)


def two_partitions(X: FloatArray, most: int, tries: int, turn: int) -> Cuts:
    """The most violated 2-partition cuts ``x(S:T) - x(S) - x(T) <= min(|S|, |T|)``, grown from nodes; `turn` varies this."""
    amounts, sides = _two_partitions(X, VIOLATION, tries, turn)
    return _select(amounts, sides, most)


def cliques(X: FloatArray, n_clusters: int) -> Cuts:
    """Violated clique cuts: of ``n_clusters + 1`` nodes two share a cluster, ``sum_{i<j} x_ij >= 1``."""
    if len(X) <= n_clusters:
        return no_cuts()
    sets = _cliques(X, n_clusters + 1, VIOLATION)
    ordered = np.unique(np.sort(sets, axis=1), axis=0)
    return make_cuts(ordered.ravel(), np.ones(ordered.size, dtype=np.int64), np.full(len(ordered), n_clusters + 1))


def make_cuts(nodes: Any, signs: Any, lengths: Any) -> Cuts:
    """Cuts of these nodes and signs with multipliers 0."""
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    zeros = np.zeros(len(lengths), dtype=np.int64)
    return Cuts(starts, np.asarray(nodes, dtype=np.int64), np.asarray(signs, dtype=np.int64), zeros, zeros)


def make_triangles(nodes: Any) -> Cuts:
    """Triangle cuts ``x_ij + x_jk - x_ik <= 1`` from rows ``(j, i, k)``, with multipliers 0."""
    return make_cuts(nodes.ravel(), np.tile(np.array([1, -1, -1]), len(nodes)), np.full(len(nodes), 3))


def no_cuts() -> Cuts:
    """An empty list of cuts, where separation finds none."""
    return make_cuts(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))


def join_cuts(parts: list[Cuts]) -> Cuts:
    """Several lists of separated cuts joined to one."""
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Cuts(starts, *(np.concatenate([getattr(part, name) for part in parts]) for name in Cuts._fields[1:]))


class Rows(NamedTuple):
    """Cuts as rows of a sparse matrix: pairs of nodes, coefficients ``-b_i b_j``, and where rows start and the last one ends."""

    i: Integers
    j: Integers
    coefficients: Integers
    starts: Integers

    @property
    def lengths(self) -> Integers:
        """Number of pairs in every row of cuts."""
        return np.diff(self.starts)


def cut_rows(cuts: Cuts) -> Rows:
    """All separated cuts as rows of a sparse matrix."""
    lengths = np.diff(cuts.starts)
    i, j, products = cuts._replace(multipliers=np.ones_like(lengths)).pairs()
    groups = [np.repeat(np.flatnonzero(lengths == length), length * (length - 1) // 2) for length in np.unique(lengths)]
    order = np.argsort(np.concatenate(groups), kind="stable") if groups else np.zeros(0, dtype=np.intp)
    starts = np.concatenate([[0], np.cumsum(lengths * (lengths - 1) // 2)]).astype(np.int64)
    return Rows(i[order], j[order], -products[order], starts)


def cuts_witness(cuts: Cuts, branches: Any = (), grain: int = 1) -> dict[str, Any]:
    """The arrays of a witness of kind "cuts", whose multipliers are whole numbers of a grain."""
    table = np.array(branches, dtype=np.float64).reshape(-1, 4)
    return cut_arrays(cuts) | {"branches": table, "grain": grain}


def cut_arrays(cuts: Cuts) -> dict[str, Any]:
    """Cuts as arrays of a label bound's witness."""
    return {f"cut_{name}": array for name, array in cuts._asdict().items()}


def _select(amounts: Any, sides: Any, most: int) -> Cuts:
    """The most violated of the cuts that rows of signs describe, without repetitions."""
    if not len(amounts):
        return no_cuts()
    keys = np.random.default_rng(0).integers(2**62, size=sides.shape[1])  # rows of one sum are taken to be the same
    _, first = np.unique(sides.astype(np.int64) @ keys, return_index=True)
    chosen = np.sort(first[np.argsort(-amounts[first], kind="stable")[:most]])
    rows, nodes = np.nonzero(sides[chosen])
    return make_cuts(nodes, sides[chosen][rows, nodes], np.bincount(rows, minlength=len(chosen)))


@compile_with(nogil=True, fastmath=True)
def _triangles(X: Any, positive: Any, violation: float) -> Any:
    """Separation of triangles: for every pair (i, k) the centre j of the most violated one; X far below 0 on the diagonal.

    The largest sum is found first without its place, which runs on whole vectors and rules out most pairs.
    """
    n = len(X)
    amounts, nodes, count = np.empty(n * (n - 1) // 2), np.empty((n * (n - 1) // 2, 3), np.int64), 0
    for i in range(n):
        for k in range(i + 1, n):
            best, centre = 1.0 + X[i, k] + violation, -1
            if best > 2.0:
                continue
            largest = X[i, i]
            for j in range(n):
                largest = max(largest, X[i, j] + X[k, j])
            if largest <= best:
                continue
            for j in range(n):
                if X[i, j] + X[k, j] > best and (positive[i, j] or positive[k, j]):
                    best, centre = X[i, j] + X[k, j], j
            if centre >= 0:
                amounts[count] = best - 1.0 - X[i, k]
                nodes[count, 0], nodes[count, 1], nodes[count, 2] = centre, i, k
                count += 1
    return amounts[:count], nodes[:count]


@compile_with(nogil=True)
def _tight_triangles(D: Any, labels: Any, first: Any, order: Any) -> Any:
    """Separation of tight triangles: for pairs (i, k) the centre j in their clusters of largest ``D_ij + D_jk - D_ik > 0``.

    The nodes of cluster c are ``order[first[c]:first[c + 1]]``.
    """
    n = len(D)
    amounts, nodes, count = np.empty(n * (n - 1) // 2), np.empty((n * (n - 1) // 2, 3), np.int64), 0
    for i in range(n):
        for k in range(i + 1, n):
            best, centre = D[i, k] + 1e-12, -1
            for side in range(1 if labels[i] == labels[k] else 2):
                cluster = labels[k] if side else labels[i]
                for q in range(first[cluster], first[cluster + 1]):
                    j = order[q]
                    amount = D[i, j] + D[k, j]
                    if amount > best and j != i and j != k:
                        best, centre = amount, j
            if centre >= 0:
                amounts[count] = best - D[i, k]
                nodes[count, 0], nodes[count, 1], nodes[count, 2] = centre, i, k
                count += 1
    return amounts[:count], nodes[:count]


@compile_with(nogil=True)
def _stars(X: Any, low: float, high: float, violation: float, leaves: int, tries: int, turn: int) -> Any:
    """Separation of stars by greedy growth from a centre and a first leaf: the leaf of highest gain joins while there is one.

    Leaves have co-memberships between `low` and `high`. If a centre has more first leaves than `tries`, some of them are tried,
    others at every turn.
    """
    n = len(X)
    amounts, sides = [0.0], [np.zeros(n, np.int8)]
    state = np.uint64(turn)
    for i in range(n):
        near = np.array([j for j in range(n) if j != i and low < X[i, j] < high])
        for attempt in range(min(tries, len(near)) if len(near) >= 3 else 0):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            first = attempt if len(near) <= tries else np.int64(state >> np.uint64(33)) % len(near)
            gains = np.array([X[i, j] - X[j, near[first]] for j in near])
            gains[first] = -1e9
            side, total, size = np.zeros(n, np.int8), X[i, near[first]], 1
            side[i], side[near[first]] = 1, -1
            while size < leaves:
                best = np.argmax(gains)
                if gains[best] <= 1e-6:
                    break
                total += gains[best]
                side[near[best]] = -1
                size += 1
                for q in range(len(near)):
                    gains[q] -= X[near[q], near[best]]
                gains[best] = -1e9
            if total > 1.0 + violation and size >= 3:
                amounts.append(total - 1.0)
                sides.append(side)
    return _stack_cuts(amounts, sides)


@compile_with(nogil=True)
def _two_partitions(X: Any, violation: float, tries: int, turn: int) -> Any:
    """Separation of 2-partitions by greedy growth of both sides from a node, with small pseudo-random changes of gains."""
    n = len(X)
    amounts, sides = [0.0], [np.zeros(n, np.int8)]
    fractional = np.array([i for i in range(n) if np.any((X[i] > violation) & (X[i] < 1.0 - violation))])
    state = np.uint64(turn * 7919 + 1)
    for attempt in range(tries if len(fractional) >= 5 else 0):
        side = np.zeros(n, np.int8)
        start = fractional[attempt % len(fractional)]
        side[start] = 1
        here, there, total = 1, 0, 0.0
        joined = X[start].copy()  # co-memberships with S less those with T
        for _ in range(MOST_NODES - 1):
            best, node, sign = -1e9, -1, 0
            for q in fractional:
                if side[q] == 0:
                    state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                    noise = 0.2 * float(state >> np.uint64(40)) / 16777216.0
                    if there <= 2 * here and joined[q] + noise > best:
                        best, node, sign = joined[q] + noise, q, -1
                    if here < there and -joined[q] - 1.0 + noise > best:
                        best, node, sign = -joined[q] - 1.0 + noise, q, 1
            if node < 0 or best < -0.3:
                break
            side[node] = sign
            total -= sign * joined[node]
            here, there = (here + 1, there) if sign > 0 else (here, there + 1)
            joined = joined + sign * X[node]
            if 2 <= here < there and total > here + violation:
                amounts.append(total - here)
                sides.append(side.copy())
    return _stack_cuts(amounts, sides)


@compile_with(nogil=True)
def _stack_cuts(amounts: Any, sides: Any) -> Any:
    """Violations and signs of separated cuts as arrays, without the first entries, which only tell their types."""
    count = len(amounts) - 1
    values, table = np.empty(count), np.empty((count, len(sides[0])), np.int8)
    for c in range(count):
        values[c] = amounts[c + 1]
        table[c] = sides[c + 1]
    return values, table


@compile_with(nogil=True)
def _cliques(X: Any, size: int, violation: float) -> Any:
    """Separation of cliques: from every node so many nodes, each of least co-membership with those before, if below 1 in all."""
    n = len(X)
    found, count = np.empty((n, size), np.int64), 0
    for first in range(n):
        joined = X[first].copy()
        joined[first] = np.inf
        found[count, 0] = first
        total = 0.0
        for step in range(1, size):
            node = np.argmin(joined)
            total += joined[node]
            found[count, step] = node
            joined += X[node]
            joined[node] = np.inf
        if total < 1.0 - violation:
            count += 1
    return found[:count]
