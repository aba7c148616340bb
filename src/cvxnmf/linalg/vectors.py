"""Sums of rows and additions to rows that compilers do not turn into vector instructions by themselves, written as such.

A row of few columns is a short loop inside of a long one over entries of sparse data. Compilers take the long one for vectors,
and gather; here the columns are the vectors, and sums of up to four of them stay in registers. Each takes its sums in the order
of the entries, whatever the processor: the same input gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # what numba compiles with
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from cvxnmf.linalg.sparse_products import LANES

_LONG, _SHORT = ir.IntType(64), ir.IntType(32)


class _Array:
    """A contiguous array of two dimensions, or of one, inside of a compiled loop."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.pointer, self.entry = builder, array.data, array.data.type.pointee
        self.columns = cgutils.unpack_tuple(builder, array.shape)[-1]  # type: ignore[no-untyped-call]
        self.vector = ir.VectorType(self.entry, LANES)

    def at(self, place: Any) -> Any:
        """The entry at a place, numbers in double precision and indices in full length."""
        found = self.builder.load(self.builder.gep(self.pointer, [place]))
        if found.type == ir.FloatType():
            return self.builder.fpext(found, ir.DoubleType())
        return self.builder.zext(found, _LONG) if found.type == _SHORT else found

    def row(self, number: Any) -> Any:
        """Where a row begins."""
        return self.builder.gep(self.pointer, [self.builder.mul(number, self.columns)])

    def vectors(self, row: Any, columns: list[Any]) -> list[Any]:
        """Where the vectors from some columns of a row on are."""
        wide = self.vector.as_pointer()
        return [self.builder.bitcast(self.builder.gep(row, [column]), wide) for column in columns]

    def load(self, place: Any) -> Any:
        """A vector, which need not begin at a multiple of its length."""
        found = self.builder.load(place)
        found.align = 4
        return found

    def store(self, vector: Any, place: Any) -> None:
        """Write a vector."""
        self.builder.store(vector, place).align = 4

    def repeated(self, number: Any) -> Any:
        """A vector of one number."""
        nothing = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.Constant(_SHORT, 0))
        return self.builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_SHORT, LANES), [0] * LANES))

    def multiply_add(self, a: Any, x: Any, y: Any) -> Any:
        """``a x + y``, rounded once where the processor can."""
        return self.builder.fadd(y, self.builder.fmul(a, x, flags=("contract",)), flags=("contract",))


def _columns(builder: Any, first: Any, last: Any, vectors: int) -> list[Any]:
    """Columns at which vectors begin: one after the other from `first` on, but the last one at `last`."""
    return [*(builder.add(first, ir.Constant(_LONG, LANES * number)) for number in range(vectors - 1)), last]


def sum_of_rows(vectors: int) -> Callable[..., None]:
    """A function that adds up so many vectors of rows of X, times entries of sparse data, into a row of the result.

    ``add(indices, data, start, end, X, result, row, first, last)``: vectors begin at the columns ``first, first + LANES, ...``,
    but the last one at `last`, where it may cover columns of the one before, which then come out the same.
    """

    @intrinsic
    def add(
        _: Any, indices: Any, data: Any, start: Any, end: Any, X: Any, result: Any, row: Any, first: Any, last: Any
    ) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            places = (0, 1, 4, 5)
            entries, numbers, rows, sums = (_Array(context, builder, signature.args[at], given[at]) for at in places)
            columns = _columns(builder, given[7], given[8], vectors)
            zero = ir.Constant(sums.vector, [0.0] * LANES)
            totals = [cgutils.alloca_once(builder, sums.vector) for _ in range(vectors)]  # type: ignore[no-untyped-call]
            for total in totals:
                builder.store(zero, total)
            with cgutils.for_range_slice(builder, given[2], given[3], ir.Constant(_LONG, 1), intp=_LONG) as (entry, _):
                a, near = rows.repeated(numbers.at(entry)), rows.row(entries.at(entry))
                for total, place in zip(totals, rows.vectors(near, columns), strict=True):
                    builder.store(rows.multiply_add(a, rows.load(place), builder.load(total)), total)
            for total, place in zip(totals, sums.vectors(sums.row(given[6]), columns), strict=True):
                sums.store(builder.load(total), place)
            return context.get_dummy_value()

        number = types.int64
        return types.void(indices, data, number, number, X, result, number, number, number), generate

    return add


def addition_to_rows(vectors: int) -> Callable[..., None]:
    """A function that adds so many vectors of a row x, times entries of sparse data, to rows of the result.

    ``add(indices, data, start, end, x, result, first)``: the vectors begin at the column `first`, all within the rows.
    """

    @intrinsic
    def add(
        _: Any, indices: Any, data: Any, start: Any, end: Any, x: Any, result: Any, first: Any
    ) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            places = (0, 1, 4, 5)
            entries, numbers, row, sums = (_Array(context, builder, signature.args[at], given[at]) for at in places)
            columns = _columns(builder, given[6], builder.add(given[6], ir.Constant(_LONG, LANES * (vectors - 1))), vectors)
            own = [row.load(place) for place in row.vectors(row.pointer, columns)]
            with cgutils.for_range_slice(builder, given[2], given[3], ir.Constant(_LONG, 1), intp=_LONG) as (entry, _):
                a, near = sums.repeated(numbers.at(entry)), sums.row(entries.at(entry))
                for vector, place in zip(own, sums.vectors(near, columns), strict=True):
                    sums.store(sums.multiply_add(a, vector, sums.load(place)), place)
            return context.get_dummy_value()

        number = types.int64
        return types.void(indices, data, number, number, x, result, number), generate

    return add
