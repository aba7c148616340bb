"""The one operation on data in blocks of rows: map a function over the blocks, and sum.

``run(function, kept, *shared)`` calls ``kept'_b, summand_b = function(block_b, kept_b, *shared)`` for every block b. What is kept
stays where the block is; summands are added in the order of the blocks, whoever finishes first, so that the same blocks give the
same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from cvxnmf.linalg.arrays import FloatArray

#: ``function(block, kept, *shared) -> (kept, summand)``; a summand is a tuple of arrays, numbers and tuples (which are joined).
Function = Callable[..., tuple[Any, tuple[Any, ...]]]


class Blocks(Protocol):
    """A matrix in blocks of rows, wherever they are."""

    shape: tuple[int, int]
    bounds: list[int]

    def run(self, function: Function, kept: Any, *shared: Any) -> tuple[Any, tuple[Any, ...]]:
        """Map the function over all blocks: what it keeps, where the blocks are, and the sum of its summands."""

    def scatter(self, X: FloatArray) -> Any:
        """Rows of X to their blocks."""

    def gather(self, kept: Any) -> FloatArray:
        """What is kept at the blocks as one array; of tuples their first entry."""

    def close(self) -> None:
        """Let go of what is held for the blocks."""


class Largest(float):
    """A number that "adds" by taking the larger one."""

    def __add__(self, other: float) -> Largest:
        return Largest(max(self, other))


def added(total: tuple[Any, ...] | None, summand: tuple[Any, ...]) -> tuple[Any, ...]:
    """The total with one more summand; arrays of the total are changed in place."""
    if total is None:
        return tuple(np.array(part) if isinstance(part, np.ndarray) else part for part in summand)
    return tuple(
        np.add(before, part, out=before) if isinstance(before, np.ndarray) else before + part
        for before, part in zip(total, summand, strict=True)
    )


def first_of(kept: Any) -> Any:
    """The rows that a block keeps; of a tuple its first entry."""
    return kept[0] if isinstance(kept, tuple) else kept
