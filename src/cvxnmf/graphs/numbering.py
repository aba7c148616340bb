"""Arrays of numbers for compiled loops. Numpy's own functions do the same, but take seconds to compile at a first call."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.graphs.score import EXACT
from cvxnmf.linalg.compiled import compile_with


@compile_with(**EXACT)
def first_numbers(count: int) -> Any:
    """The numbers 0, ..., count - 1, for compiled loops over nodes."""
    numbers = np.empty(count, np.int32)
    for i in range(count):
        numbers[i] = i
    return numbers


@compile_with(**EXACT)
def count_of(labels: Any) -> int:
    """The number of clusters in labels: the largest label and one, for compiled loops."""
    largest = -1
    for i in range(len(labels)):
        largest = max(largest, int(labels[i]))
    return largest + 1


@compile_with(**EXACT)
def labels_at(labels: Any, nodes: Any) -> Any:
    """The labels of some nodes, for compiled loops."""
    chosen = np.empty(len(nodes), labels.dtype)
    for i in range(len(nodes)):
        chosen[i] = labels[nodes[i]]
    return chosen


@compile_with(**EXACT)
def rising_order(keys: Any, sign: float) -> Any:
    """Order of numbers by rising `sign` times key, for compiled loops; equal keys keep theirs. Ever longer runs are merged."""
    count, width = len(keys), 1
    order, spare = first_numbers(count), np.empty(count, np.int32)
    while width < count:
        for first in range(0, count, 2 * width):
            middle, last = min(first + width, count), min(first + 2 * width, count)
            a, b = first, middle
            for place in range(first, last):
                if a < middle and (b >= last or sign * keys[order[a]] <= sign * keys[order[b]]):
                    spare[place] = order[a]
                    a += 1
                else:
                    spare[place] = order[b]
                    b += 1
        order, spare = spare, order
        width *= 2
    return order
