"""Clusters of a graph that has changed, from those of before: where to start, and numbers that follow their clusters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from cvxnmf import validation
from cvxnmf.graphs.clusters import Division, in_number_order
from cvxnmf.graphs.moves import Labels
from cvxnmf.results import Partition

#: Said of a start whose nodes are not those of the graph.
STRANGERS = "start knows none of the nodes of the graph; are they named as they were before?"


def start_labels(start: Any, nodes: tuple[Any, ...]) -> Labels:
    """The clusters that nodes had before as numbers to start from, -1 for nodes that had none."""
    if isinstance(start, Partition):
        return _labels_before(start, nodes)
    if not isinstance(start, Mapping):
        start = np.array(start, dtype=object) if isinstance(start, list | tuple) else np.asarray(start)
        if start.shape != (len(nodes),):
            validation.refuse(
                f"start must be a Partition, a mapping from nodes to clusters, or labels of all {len(nodes)} nodes in order."
            )
        if start.dtype.kind in "iu":
            return np.asarray(start, dtype=np.int64)
        start = dict(zip(nodes, start.tolist(), strict=True))
    known = [start.get(node) for node in nodes]
    if all(label is None for label in known):
        validation.refuse(STRANGERS)
    if all(label is None or isinstance(label, Integral) for label in known):
        return np.array([-1 if label is None else label for label in known], dtype=np.int64)
    if not all(isinstance(label, Hashable) for label in known):
        validation.refuse("The clusters of start must be numbers or names.")
    numbers: dict[Any, int] = {}
    return np.array([-1 if label is None else numbers.setdefault(label, len(numbers)) for label in known], dtype=np.int64)


def _labels_before(start: Partition, nodes: tuple[Any, ...]) -> Labels:
    """The clusters that nodes had before in a partition, which may have millions of nodes, -1 for those it did not have."""
    if start.nodes == nodes:
        return start.labels.astype(np.int64)
    before = dict(zip(start.nodes, start.labels.tolist(), strict=True))
    labels = np.fromiter((before.get(node, -1) for node in nodes), dtype=np.int64, count=len(nodes))
    if not np.any(labels >= 0):
        validation.refuse(STRANGERS)
    return labels


def follow(division: Division, before: Labels) -> Division:
    """The division with numbers that follow their clusters: the one that most of the nodes had before, where it is free.

    Clusters of before and now are matched by the nodes that they share, most first. Numbers stay below the number of clusters.
    """
    k, known = int(division.labels.max()) + 1, before >= 0
    pairs, shared = np.unique(before[known] * k + division.labels[known], return_counts=True)
    order, taken = np.full(k, -1), np.zeros(k, dtype=np.bool_)
    for pair in pairs[np.argsort(-shared, kind="stable")].tolist():
        old, new = divmod(pair, k)
        if old < k and order[old] < 0 and not taken[new]:
            order[old], taken[new] = new, True
    order[order < 0] = np.flatnonzero(~taken)
    return in_number_order(division, order)
