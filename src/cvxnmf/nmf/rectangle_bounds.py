"""Bounds for data with missing entries or weights: rectangles that cover as much as they can (docs/mathematics.md).

Rectangles are many sets of columns, each with the rows that are observed on all of them. Large sets prove more for every entry
and hold fewer rows. They are grown at random, seeded by what is missing, in classes by the rows that they keep; weights are
packed class by class, then moved towards rectangles in which a row is far from what the rank can explain.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.certificates.krylov import random_source
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.compiled import compiled
from cvxnmf.linalg.eigen import eigenpairs
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.bound_goal import Found, Goal
from cvxnmf.nmf.divergence_bounds import ky_fan_point, where_filled

IndexArray = NDArray[np.intp]
#: Shares of the rows that the sets of a class keep, and the most sets that it has.
CLASSES = ((0.1, 300), (0.3, 60), (0.5, 40), (0.7, 20))
#: Entries of the rectangles of a class, in units of the data's, and of all, beyond which no more are added.
REPEATED, MOST_ENTRIES = 20, 5_000_000
#: Shares of the largest limit of a row that entries of a pattern have at least.
LEVELS = (0.0, 0.1, 0.3, 0.6)
#: Rows of the data for every set of a class.
ROWS_PER_SET = 6
#: No set has more than this share of the columns; a row may miss the others.
WIDEST = 7 / 8
#: Columns of which the one that keeps most rows joins a set.
CHOICE = 6
#: Rows that a rectangle has at least, for every component.
ROWS_PER_COMPONENT = 3
#: Sweeps of a packing, rounds of moving weights, lengths of a move, and the power of what a row would gain.
SWEEPS, ROUNDS, MOVES, POWER = 10, 12, (0.5, 0.25, 0.12, 0.06), 3
#: A move that raises the bound by a smaller share is not made.
WORTHWHILE = 1e-3
#: Weights below this are none, and all together stay below 1 by this share.
LEAST, MARGIN = 1e-6, 1e-10
#: Steps towards the dual point of every rectangle, for KL.
STEPS = 10


def rectangle_bounds(goal: Goal) -> Iterator[Found]:
    """The bound from rectangles of observed entries, if entries are missing."""
    A = goal.A
    missing = bool(np.isnan(A.data if sp.issparse(A) else A).any())
    if not missing or not goal.may_fill or goal.statement.scaling is not None:
        return
    A = np.asarray(A.toarray() if sp.issparse(A) else A)
    witness = rectangles(A, (~np.isnan(A)).astype(np.float64), goal.statement.n_components, goal.statement.has_squared_error)
    if witness:
        yield from goal.prove_bound("rectangles", witness)


def rectangles(A: FloatArray, limits: FloatArray, k: int, squared_error: bool) -> dict[str, FloatArray]:
    """Rectangles that cover entries up to limits of at most 1, as a witness; none if none were found.

    A may be anything where the limit is zero.
    """
    turned = A.shape[0] < A.shape[1]
    A, limits = (M.T if turned else M for M in (A, limits))
    rows, columns = _order_by_content(np.where(limits > 0, A, -1.0), limits)
    A, limits = (np.ascontiguousarray(M[np.ix_(rows, columns)]) for M in (A, limits))
    with single_thread(A.shape[1]):
        cover = Cover.grow_sets(A, limits, k)
        if not cover.sets:
            return {}
        weights = cover.improve_weights(cover.pack_weights(cover.rows.astype(float)))
        found = cover.witness(weights, squared_error, np.argsort(rows), np.argsort(columns))
        return found | ({"transposed": np.ones(1)} if turned else {})


def _order_by_content(A: FloatArray, limits: FloatArray) -> tuple[IndexArray, IndexArray]:
    """Orders of rows and columns for rectangles that do not depend on the given orders, but for columns of equal entries."""
    columns = np.lexsort(np.vstack([np.sort(M, axis=0) for M in (A, limits)]))
    return np.lexsort(np.hstack([M[:, columns] for M in (A, limits)]).T), columns


class Cover:
    """A cover of the observed entries by rectangles in classes, for a rank."""

    def __init__(self, A: FloatArray, limits: FloatArray, k: int, classes: list[list[IndexArray]]) -> None:
        observed = limits > 0
        self.k, self.limits = k, limits
        self.sets = [columns for each in classes for columns in each]
        ends = np.cumsum([0, *map(len, classes)]).tolist()
        self.classes = [range(*pair) for pair in zip(ends, ends[1:], strict=False)]
        self.rows: NDArray[np.bool_] = np.array([observed[:, columns].all(axis=1) for columns in self.sets]).reshape(-1, len(A)).T
        self.kept = [np.flatnonzero(rows) for rows in self.rows.T]
        self.members = np.full((len(self.sets), A.shape[1] + 1), -1)
        for row, columns in zip(self.members, self.sets, strict=True):
            row[: len(columns)] = columns
        self.parts = [A[np.ix_(rows, columns)] for rows, columns in zip(self.kept, self.sets, strict=True)]

    @classmethod
    def grow_sets(cls, A: FloatArray, limits: FloatArray, k: int) -> Cover:
        """A cover by rectangles whose column sets grow from the columns that a row has, in classes by how many rows are kept.

        Where limits differ, all columns are the first set, and classes follow for entries whose limit is a share of the largest.
        """
        patterns = _patterns(limits)
        source = random_source(*(np.packbits(observed) for observed in patterns))
        classes = [[np.arange(A.shape[1])]] if patterns[0].all() else []
        for observed in patterns[len(classes) :]:
            classes.extend(_grown_classes(observed, k, source))
        return cls(A, limits, k, classes)

    def pack_weights(self, wish: FloatArray, one_class: bool = False) -> FloatArray:
        """Weights of rectangles in the proportions of a wish, raised as far as entries allow, widest first or all at once."""
        weights, load = wish.copy(), np.zeros_like(self.limits)
        for each in [range(len(self.sets))] if one_class else self.classes:
            raise_weights(weights, each.start, each.stop, self.members, self.limits, load)
        return weights

    def bound(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """The bound of weighted rectangles by tails of singular values, and its slope in the weight of every row and set."""
        total, gains = 0.0, np.zeros_like(weights)
        for b, (rows, part) in enumerate(zip(self.kept, self.parts, strict=True)):
            scaled = part * np.sqrt(weights[rows, b])[:, None]
            values, vectors = eigenpairs(scaled.T @ scaled)
            total += max(0.0, float(values[: -self.k].sum()))
            gains[rows, b] = np.sum((part @ vectors[:, : -self.k]) ** 2, axis=1)
        return total, gains

    def improve_weights(self, weights: FloatArray) -> FloatArray:
        """Weights of rectangles moved, by the longest helpful move, to packings of the rows' gains; the bound is concave."""
        sizes = np.array([len(columns) for columns in self.sets])
        best, gains = self.bound(weights)
        for _ in range(ROUNDS):
            gains /= sizes
            wish = (gains / np.maximum(gains.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)) ** POWER + LEAST
            wish = np.where(self.rows, wish, 0.0)
            targets = [self.pack_weights(wish, one_class=True), self.pack_weights(wish)]
            for target, length in ((target, length) for length in MOVES for target in targets):
                moved = (1.0 - length) * weights + length * target
                there, gains_there = self.bound(moved)
                if there > best * (1.0 + WORTHWHILE):
                    weights, best, gains = moved, there, gains_there
                    break
            else:
                break
        return weights

    def witness(self, weights: FloatArray, squared_error: bool, rows: IndexArray, columns: IndexArray) -> dict[str, FloatArray]:
        """The rectangles' witness in given orders: sets, weights, and for KL the dual points of the rectangles side by side."""
        weights = np.where(weights > LEAST, weights * (1.0 - MARGIN), 0.0)
        sets = np.zeros((len(self.sets), self.limits.shape[1]))
        for row, inside in zip(sets, self.sets, strict=True):
            row[inside] = 1.0
        ordered = {"sets": sets[:, columns], "weights": weights[rows]}
        if squared_error:
            return ordered
        points = []
        for b, (own, inside) in enumerate(zip(self.kept, self.sets, strict=True)):
            point, scaled = np.zeros((len(self.limits), len(inside))), self.parts[b] * weights[own, b, None]
            if scaled.any():
                point[own] = where_filled(scaled, lambda filled: ky_fan_point(filled, self.k, False, STEPS))
            points.append(point[rows][:, np.argsort(np.argsort(columns)[inside])])  # columns of a set as they are given
        return ordered | {"y": np.hstack(points)}


@compiled
def raise_weights(weights: FloatArray, first: int, last: int, members: IndexArray, limits: FloatArray, load: FloatArray) -> None:
    """Raise the weights of rectangles as far as the load of every entry keeps to its limit, row by row; add to the load.

    `members` lists the columns of every set, and -1 behind them. Each weight in turn is divided by the largest share of the room
    that is taken in its columns; in the end all at once, which fits.
    """
    room, own = np.empty(load.shape[1]), np.empty(load.shape[1])
    for i in range(len(weights)):
        for j in range(len(room)):
            room[j], own[j] = max(limits[i, j] - load[i, j], 0.0), 0.0
        for sweep in range(SWEEPS + 2):  # the first adds up, the last makes all fit
            for b in range(first, last):
                if weights[i, b] <= 0.0:
                    continue
                taken, place = 0.0, 0
                while members[b, place] >= 0 and sweep > 0:
                    j = members[b, place]
                    taken = max(taken, own[j] / room[j] if room[j] > LEAST else np.inf)
                    place += 1
                taken = max(taken, 1.0) if sweep in (0, SWEEPS + 1) else taken
                change = weights[i, b] if sweep == 0 else weights[i, b] / taken - weights[i, b]
                weights[i, b] = weights[i, b] / taken
                target = load[i] if sweep == SWEEPS + 1 else own
                amount = weights[i, b] if sweep == SWEEPS + 1 else change
                place = 0
                while members[b, place] >= 0:
                    target[members[b, place]] += amount
                    place += 1


def _patterns(limits: FloatArray) -> list[NDArray[np.bool_]]:
    """Where entries may be covered by rectangles, and where the limit is a share of the largest in its row; each once."""
    largest = limits.max(axis=1, keepdims=True)
    patterns = [(limits > 0) & (limits >= share * largest) for share in LEVELS]
    return [each for i, each in enumerate(patterns) if i == 0 or not np.array_equal(each, patterns[i - 1])]


def _grown_classes(observed: NDArray[np.bool_], k: int, source: np.random.RandomState) -> list[list[IndexArray]]:
    """Column sets of rectangles grown from the columns that a row has, in classes by how many rows are kept."""
    classes = []
    for share, count in CLASSES:
        wanted = max(ROWS_PER_COMPONENT * (k + 1), round(share * len(observed)))
        grown: list[IndexArray] = []
        entries = min(REPEATED * observed.size, MOST_ENTRIES)
        for _ in range(min(count, 10 + len(observed) // ROWS_PER_SET)):
            columns = _grow_column_set(observed, wanted, source)
            entries -= len(columns) * int(np.count_nonzero(observed[:, columns].all(axis=1)))
            if len(columns) > k:
                grown.append(columns)
            if entries < 0:
                break
        classes.append(grown)
    return classes


def _grow_column_set(observed: NDArray[np.bool_], wanted: int, source: np.random.RandomState) -> IndexArray:
    """Columns of a rectangle, of those a row has, each the one of a few that keeps most rows, while enough are kept."""
    pool = source.permutation(np.flatnonzero(observed[source.randint(len(observed))])).tolist()
    rows = np.ones(len(observed), dtype=bool)
    columns: list[int] = []
    while pool and len(columns) < WIDEST * observed.shape[1]:
        kept = [np.count_nonzero(rows & observed[:, column]) for column in pool[:CHOICE]]
        if max(kept) < wanted:
            break
        columns.append(pool.pop(int(np.argmax(kept))))
        rows &= observed[:, columns[-1]]
    return np.sort(np.array(columns, dtype=np.intp))
