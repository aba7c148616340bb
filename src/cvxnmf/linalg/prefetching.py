"""Entries of arrays that a loop will need soon: processors load them meanwhile. Results are the same, whatever is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxnmf.linalg.compiled import Deferred, compile_with

#: How many places ahead the begin of a row is asked for, then its columns, then what stands there.
ROWS, COLUMNS, VALUES = 16, 10, 4
#: Columns of a row that are asked for at most, and how many of them come together.
MOST, TOGETHER = 32, 16
#: How many entries ahead of all rows in their order.
ENTRIES = 24


def prefetch_at(builder: Any, address: Any) -> None:
    """Build the processor's instruction to load what stands at an address, for reading it more than once."""
    from llvmlite import ir  # type: ignore[import-untyped]  # what numba compiles with
    from numba.core import cgutils

    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    load = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")  # type: ignore[no-untyped-call]
    builder.call(load, [builder.bitcast(address, byte), number(0), number(3), number(1)])


def _prefetch() -> Callable[..., None]:
    """Make ``prefetch(array, place)`` for compiled loops: the processor's instruction to load an entry of an array soon."""
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def ask(_: Any, array: Any, place: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            entries = context.make_array(signature.args[0])(context, builder, given[0]).data
            prefetch_at(builder, builder.gep(entries, [given[1]]))
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

    return ask


#: ``prefetch(array, place)`` inside of a compiled loop: the entry at this place of a one-dimensional array will be read soon.
#: The place need not be within the array.
prefetch = Deferred(_prefetch)


@compile_with(error_model="numpy", nogil=True, forceinline=True)
def look_ahead(indptr: Any, indices: Any, x: Any, rows: Any, place: int) -> None:
    """Prefetch the next rows of a matrix in compressed rows, and x at their columns, before work on ``rows[place]``.

    After the last of the rows come the first ones.
    """
    count = len(rows)
    prefetch(indptr, np.int64(rows[(place + ROWS) % count]))
    begin = np.int64(indptr[rows[(place + COLUMNS) % count]])
    prefetch(indices, begin)
    prefetch(indices, begin + TOGETHER)
    row = rows[(place + VALUES) % count]
    for p in range(indptr[row], min(indptr[row] + MOST, indptr[row + 1])):
        prefetch(x, np.int64(indices[p]))


@compile_with(error_model="numpy", nogil=True, forceinline=True)
def look_along(indices: Any, x: Any, place: int) -> None:
    """Prefetch x at the column of a later entry, before work on entries of a sparse matrix in the order of their rows."""
    prefetch(x, np.int64(indices[min(place + ENTRIES, len(indices) - 1)]))
