"""Vectors of a processor's registers: how long they are, and functions of vectors for compiled loops to call."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from cvxnmf.linalg.compiled import Deferred, compile_with

#: Numbers of a vector.
LANES = 4


def vector_loop(name: str, *counts: int) -> Deferred:
    """A function of :mod:`cvxnmf.linalg.vector_loops`, which needs the compiler."""
    return Deferred(partial(_vector_loop, name, *counts))


def of_vectors(name: str, most: int = 4) -> list[Deferred]:
    """A function of :mod:`cvxnmf.linalg.vector_loops` for one vector of lanes at a time, for two, and so on."""
    return [vector_loop(name, count) for count in range(1, most + 1)]


def _vector_loop(name: str, *counts: int) -> Any:
    return getattr(import_module("cvxnmf.linalg.vector_loops"), name)(*counts)


_SQUARE, _GATHERED_SQUARE = vector_loop("transposed_square"), vector_loop("gathered_square")


@compile_with(error_model="numpy", nogil=True)
def copy_transposed(X: Any, row: int, column: int, rows: int, columns: int, Y: Any, to_row: int, to_column: int) -> None:
    """Copy ``Y[to_row + j, to_column + i] = X[row + i, column + j]`` in squares of lanes; the last ones overlap those before."""
    if rows < LANES or columns < LANES:
        for i in range(rows):
            for j in range(columns):
                Y[to_row + j, to_column + i] = X[row + i, column + j]
        return
    for start in range(0, rows, LANES):
        i = min(start, rows - LANES)
        for beginning in range(0, columns, LANES):
            j = min(beginning, columns - LANES)
            _SQUARE(X, row + i, column + j, Y, to_row + j, to_column + i)


@compile_with(error_model="numpy", nogil=True)
def gather_transposed(indices: Any, place: int, count: int, X: Any, Y: Any) -> None:
    """Gather rows of X, transposed, in lanes: ``Y[j, i] = X[indices[place + i], j]`` for all ``i < count``."""
    whole = count - count % LANES
    for i in range(0, whole, LANES):
        for j in range(0, X.shape[1], LANES):
            _GATHERED_SQUARE(indices, place + i, X, j, Y, j, i)
    for i in range(whole, count):
        row = X[np.uint32(indices[place + i])]  # unsigned: no index counts from the end
        for j in range(X.shape[1]):
            Y[j, i] = row[j]
