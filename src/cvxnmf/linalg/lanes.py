"""Vectors of a processor's registers: how long they are, and functions of vectors for compiled loops to call."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import LINE
from cvxnmf.linalg.compiled import Deferred, compile_with

#: Numbers of a vector.
LANES = 4


def vector_loop(name: str, *counts: int, module: str = "vector_loops") -> Deferred:
    """A function of :mod:`cvxnmf.linalg.vector_loops`, or of another module of loops, which needs the compiler."""
    return Deferred(partial(_vector_loop, module, name, *counts))


def of_vectors(name: str, most: int = 4) -> list[Deferred]:
    """A function of :mod:`cvxnmf.linalg.vector_loops` for one vector of lanes at a time, for two, and so on."""
    return [vector_loop(name, count) for count in range(1, most + 1)]


def _vector_loop(module: str, name: str, *counts: int) -> Any:
    return getattr(import_module(f"cvxnmf.linalg.{module}"), name)(*counts)


_SQUARE = vector_loop("transposed_square")


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


@compile_with(error_model="numpy", nogil=True, inline="always")
def aligned_zeros(size: int, like: Any) -> Any:
    """Zeros of the type of another array, from the beginning of a cache line on, inside of a compiled loop."""
    line = 8 * LINE // like.itemsize
    memory = np.zeros(size + line, like.dtype)
    first = -memory.ctypes.data // like.itemsize % line
    return memory[first : first + size]
