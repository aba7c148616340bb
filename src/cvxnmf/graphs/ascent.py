"""Ascents: moves and refinement, then the same on the smaller graph whose nodes are clusters or their parts.

This is the idea of Louvain and Leiden (Traag, Waltman and van Eck 2019). Levels of many entries are divided and aggregated in
threads: the parts of one cluster do not depend on those of another, nor a row of the smaller graph on other rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.graphs.moves import (
    WHOLE,
    Effort,
    Labels,
    Level,
    merge_alone,
    move_nodes,
    refine,
    renumber,
    single_parts,
    visiting_order,
    weight,
)
from cvxnmf.graphs.numbering import count_of, first_numbers, labels_at
from cvxnmf.graphs.score import EXACT, Score
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.prefetching import look_ahead
from cvxnmf.linalg.sparse_products import ONE_SHARE_BELOW, shares_of_rows
from cvxnmf.linalg.threads import map_in_threads

#: No rows before the first, as a number of the kind that calls from elsewhere have: a literal would be compiled for itself.
NONE = WHOLE(0)
#: Nodes from which clusters are divided in threads.
SHARED_NODES = 10_000


@compile_with(**EXACT)
def nodes_by_cluster(order: Any, labels: Any, count: int) -> Any:
    """Nodes of a level in this order, cluster by cluster, and where each of the clusters 0, ..., count - 1 begins."""
    starts, members = np.zeros(count + 1, np.int64), np.empty(len(order), np.int32)
    for i in range(len(labels)):
        starts[labels[i] + 1] += 1
    for c in range(count):
        starts[c + 1] += starts[c]
    place = starts[:-1].copy()
    for node in order:
        members[place[labels[node]]] = node
        place[labels[node]] += 1
    return members, starts


def aggregate(level: Level, parts: Labels) -> Level:
    """Aggregate a level: its nodes are parts, numbered from 0; rows of a large one in threads, each share where all have room."""
    parts, count = parts.astype(np.int32, copy=False), count_of(parts)
    room = np.append(0, np.cumsum(np.bincount(parts, np.diff(level.indptr), count).astype(np.int64)))
    shares = shares_of_rows(room)
    smaller, members, starts = _room_for(level, parts, count)
    work = lambda share: _aggregate_rows(level, parts, members, starts, smaller, room[share[0]], *share)  # noqa: E731
    filled = 0
    for (first, _), length in zip(shares, map_in_threads(work, shares), strict=True):
        begin = room[first]
        if begin > filled:
            for array in (smaller.indices, smaller.weights):
                array[filled : filled + length] = array[begin : begin + length]
        filled += length
    return _trim_level(smaller, filled)


@compile_with(**EXACT)
def _aggregate(level: Level, parts: Any) -> Level:
    """Aggregate a level, whose parts become nodes, on this thread alone."""
    count = count_of(parts)
    smaller, members, starts = _room_for(level, parts, count)
    return _trim_level(smaller, _aggregate_rows(level, parts, members, starts, smaller, NONE, NONE, count))


@compile_with(**EXACT)
def _room_for(level: Level, parts: Any, count: int) -> Any:
    """Room for the aggregated level whose nodes are parts; nodes part by part, and where each part begins."""
    facts = np.zeros(count), np.zeros(count), np.zeros(count, np.int64)
    smaller = Level(np.zeros(count + 1, np.int64), np.empty_like(level.indices), np.empty(len(level.indices)), *facts)
    return (smaller, *nodes_by_cluster(first_numbers(len(parts)), parts, count))


@compile_with(**EXACT)
def _aggregate_rows(
    level: Level, parts: Any, members: Any, starts: Any, smaller: Level, filled: int, first: int, last: int
) -> Any:
    """Aggregate rows of a level into those of its parts, written from a place on: how long each is, and all of them."""
    slot, written = np.full(len(starts) - 1, -1), filled
    for c in range(first, last):
        begin = written
        for q in range(starts[c], starts[c + 1]):
            look_ahead(level.indptr, level.indices, parts, members, q)
            i = members[q]
            inside = level.loops[i]
            for p in range(level.indptr[i], level.indptr[i + 1]):
                d = parts[level.indices[p]]
                if d == c:
                    inside += weight(level, p)
                    continue
                if slot[d] < begin:
                    slot[d], smaller.indices[written], smaller.weights[written] = written, d, 0.0
                    written += 1
                smaller.weights[slot[d]] += weight(level, p)
            smaller.loops[c] += inside
            smaller.masses[c] += level.masses[i]
            smaller.counts[c] += level.counts[i]
        smaller.indptr[c + 1] = written - begin
    return written - filled


@compile_with(**EXACT)
def _trim_level(level: Level, filled: int) -> Level:
    """Trim an aggregated level whose row lengths are known: row pointers, and no room that it did not need."""
    for c in range(len(level.masses)):
        level.indptr[c + 1] += level.indptr[c]
    indices, weights = level.indices[:filled], level.weights[:filled]
    if 2 * filled < len(level.indices):
        indices, weights = indices.copy(), weights.copy()
    return Level(level.indptr, indices, weights, level.masses, level.loops, level.counts)


@compile_with(**EXACT)
def ascend(
    level: Level, score: Score, logs: Any, labels: Any, least: float, falling: bool, rounds: int, most: int, effort: Effort
) -> Any:
    """Ascent on this thread: moves, refinement, aggregation up to one node per cluster, again while that changes labels.

    There are never more than `most` clusters if there were not before.
    """
    for _ in range(rounds):
        before = renumber(labels.astype(np.int32))
        here, current, whole = level, before, first_numbers(len(labels))
        while True:
            order, inside, current = _move_step(here, score, logs, current, least, falling, most, effort)
            parts = renumber(refine(here, score, logs, inside, order, least)) if effort.divide else current
            parts = _fewer(parts, current)
            if count_of(parts) == len(current):
                break
            here, whole, current = _aggregate(here, parts), labels_at(parts, whole), _clusters_of(parts, current)
        found, same = renumber(labels_at(current, whole)), True
        for i in range(len(found)):
            same &= found[i] == before[i]
        labels = found.astype(np.int64)
        if same:
            break
    return labels


def climb(level: Level, score: Score, logs: Any, labels: Any, least: float, falling: bool, most: int, effort: Effort) -> Labels:
    """One round of an ascent, with the same labels: levels of many entries are divided and aggregated in threads."""
    current, whole = renumber(labels.astype(np.int32)), first_numbers(len(labels))
    while len(level.indices) >= ONE_SHARE_BELOW:
        order, inside, current = _move_step(level, score, logs, current, least, falling, most, effort)
        parts = renumber(_refine_in_threads(level, score, logs, inside, order, least)) if effort.divide else current
        parts = _fewer(parts, current)
        if count_of(parts) == len(current):
            break
        level, whole, current = aggregate(level, parts), labels_at(parts, whole), _clusters_of(parts, current)
    else:
        current = ascend(level, score, logs, current.astype(np.int64), least, falling, 1, most, effort)
    return np.asarray(renumber(labels_at(current, whole)), dtype=np.int64)


def _refine_in_threads(level: Level, score: Score, logs: Any, labels: Any, order: Any, least: float) -> Any:
    """Refine the clusters of a level into parts as `refine` does, several clusters at a time in threads."""
    parts, sums = single_parts(level)
    members, starts = nodes_by_cluster(order, labels, count_of(labels)) if len(labels) else (order, np.array([0, len(order)]))
    slices = [members[starts[first] : starts[last]] for first, last in shares_of_rows(starts, SHARED_NODES)]
    map_in_threads(lambda nodes: merge_alone(level, score, logs, labels, nodes, least, parts, sums), slices)
    return parts


@compile_with(**EXACT)
def _move_step(level: Level, score: Score, logs: Any, labels: Any, least: float, falling: bool, most: int, effort: Effort) -> Any:
    """Move nodes of a level: the order of visits, the clusters they are to be merged in, and their clusters after moves."""
    order = visiting_order(level, falling) if effort.by_mass else first_numbers(len(labels))
    if len(labels) > effort.largest:
        return order, labels[:0], labels
    labels = renumber(move_nodes(level, score, logs, labels.copy(), order, least, most, effort))
    return order, labels, labels


@compile_with(**EXACT)
def _fewer(parts: Any, labels: Any) -> Any:
    """Parts of a level for the next one of the ascent, or its clusters if every node is a part of its own."""
    return parts if count_of(parts) < len(parts) else labels


@compile_with(**EXACT)
def _clusters_of(parts: Any, labels: Any) -> Any:
    """The clusters of a level's parts, numbered: labels of the next level of the ascent."""
    clusters = np.empty(count_of(parts), np.int32)
    for i in range(len(parts)):
        clusters[parts[i]] = labels[i]
    return renumber(clusters)
