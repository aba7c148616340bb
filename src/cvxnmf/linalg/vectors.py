"""Sums of rows and additions to rows that compilers do not turn into vector instructions by themselves, written as such.

A row of few columns is a short loop inside of a long one over entries of the data. Compilers take the long one for vectors, and
gather; here the columns are the vectors, and their sums stay in registers: of up to four vectors, or with dense data of several
rows at once. Each takes its sums in the order of the entries, whatever the processor: the same input gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # what numba compiles with
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from cvxnmf.linalg.lanes import LANES
from cvxnmf.linalg.prefetching import prefetch_at

_LONG, _SHORT = ir.IntType(64), ir.IntType(32)
#: Rows whose sums are taken at once with so many vectors: twelve sums hide the time of a multiplication and leave registers.
_TOGETHER = {1: 8, 2: 6, 3: 4, 4: 3}


class _Array:
    """A contiguous array of two dimensions, or of one, inside of a compiled loop over vectors."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        if kind.layout != "C":
            raise TypeError("Compiled loops over vectors take contiguous arrays; pass np.ascontiguousarray of it.")
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.pointer, self.entry = builder, array.data, array.data.type.pointee
        self.columns = cgutils.unpack_tuple(builder, array.shape)[-1]  # type: ignore[no-untyped-call]
        self.vector = ir.VectorType(self.entry, LANES)

    def at(self, place: Any) -> Any:
        """The entry at a place of an array, for vector instructions: numbers in double precision, indices in full length."""
        found = self.builder.load(self.builder.gep(self.pointer, [place]))
        if found.type == ir.FloatType():
            return self.builder.fpext(found, ir.DoubleType())
        return self.builder.zext(found, _LONG) if found.type == _SHORT else found

    def row(self, number: Any) -> Any:
        """Pointer to the beginning of an array's row, for vector instructions."""
        return self.builder.gep(self.pointer, [self.builder.mul(number, self.columns)])

    def vectors(self, row: Any, columns: list[Any]) -> list[Any]:
        """Pointers to the vectors that begin at some columns of a row."""
        wide = self.vector.as_pointer()
        return [self.builder.bitcast(self.builder.gep(row, [column]), wide) for column in columns]

    def load(self, place: Any) -> Any:
        """Load a vector from an array; it need not begin at a multiple of its length."""
        found = self.builder.load(place)
        found.align = 4
        return found

    def store(self, vector: Any, place: Any) -> None:
        """Store a vector to an array, in single precision if the array is."""
        rounded = vector if vector.type == self.vector else self.builder.fptrunc(vector, self.vector)
        self.builder.store(rounded, place).align = 4

    def broadcast(self, number: Any) -> Any:
        """A vector register whose lanes all hold one number."""
        nothing = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.Constant(_SHORT, 0))
        return self.builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_SHORT, LANES), [0] * LANES))

    def shuffle(self, one: Any, other: Any, order: list[int]) -> Any:
        """Shuffle two vector registers: their numbers, counted through, in an order."""
        return self.builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_SHORT, LANES), order))

    def multiply_add(self, a: Any, x: Any, y: Any) -> Any:
        """Vector instruction ``a x + y``, rounded once where the processor can."""
        return self.builder.fadd(y, self.builder.fmul(a, x, flags=("contract",)), flags=("contract",))


def _columns(builder: Any, first: Any, last: Any, vectors: int) -> list[Any]:
    """Columns at which vectors of a row begin: one after the other from `first` on, but the last one at `last`."""
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
                a, near = rows.broadcast(numbers.at(entry)), rows.row(entries.at(entry))
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
                a, near = sums.broadcast(numbers.at(entry)), sums.row(entries.at(entry))
                for vector, place in zip(own, sums.vectors(near, columns), strict=True):
                    sums.store(sums.multiply_add(a, vector, sums.load(place)), place)
            return context.get_dummy_value()

        number = types.int64
        return types.void(indices, data, number, number, x, result, number), generate

    return add


def transposed_square() -> Callable[..., None]:
    """A function that copies a square of X, a vector wide, and transposes it in registers.

    ``copy(X, row, column, Y, to_row, to_column)``: ``Y[to_row + j, to_column + i] = X[row + i, column + j]``.
    """

    @intrinsic
    def copy(_: Any, X: Any, row: Any, column: Any, Y: Any, to_row: Any, to_column: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            x, y = (_Array(context, builder, signature.args[at], given[at]) for at in (0, 3))
            rows = [builder.add(given[1], ir.Constant(_LONG, number)) for number in range(LANES)]
            _copy_square(x, rows, given[2], y, given[4], given[5])
            return context.get_dummy_value()

        n = types.int64
        return types.void(X, n, n, Y, n, n), generate

    return copy


def gathered_square() -> Callable[..., None]:
    """Transposes a square of rows by index, a function: ``Y[to_row + j, to_column + i] = X[indices[place + i], column + j]``."""

    @intrinsic
    def copy(
        _: Any, indices: Any, place: Any, X: Any, column: Any, Y: Any, to_row: Any, to_column: Any
    ) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            entries, x, y = (_Array(context, builder, signature.args[at], given[at]) for at in (0, 2, 4))
            rows = [entries.at(builder.add(given[1], ir.Constant(_LONG, number))) for number in range(LANES)]
            _copy_square(x, rows, given[3], y, given[5], given[6])
            return context.get_dummy_value()

        n = types.int64
        return types.void(indices, n, X, n, Y, n, n), generate

    return copy


def _copy_square(x: _Array, rows: list[Any], column: Any, y: _Array, to_row: Any, to_column: Any) -> None:
    """Transpose a square in vector registers: columns of two rows in turn, then halves of two such pairs."""
    one, two, three, four = (x.load(x.vectors(x.row(row), [column])[0]) for row in rows)
    first, second = ((x.shuffle(one, two, order), x.shuffle(three, four, order)) for order in ([0, 4, 2, 6], [1, 5, 3, 7]))
    columns = [x.shuffle(*pair, order) for order in ([0, 1, 4, 5], [2, 3, 6, 7]) for pair in (first, second)]
    for number, vector in enumerate(columns):
        row = y.row(y.builder.add(to_row, ir.Constant(_LONG, number)))
        y.store(vector, y.vectors(row, [to_column])[0])


def product_strip(vectors: int) -> Callable[..., None]:
    """A function that adds a product of dense matrices to so many vectors of columns of C, several rows at a time.

    ``add(A, place, across, along, rows, count, B, first, C, row, column, ahead)`` adds
    ``sum_q A[place + r across + q along] B[first + q]`` over ``q < count`` to the row ``row + r`` of C for all ``r < rows``,
    with A read as a flat array: by rows it is A that is multiplied, by columns its transpose. Unless `ahead` is 0, entries of A
    so many places ahead are asked for meanwhile, as if rows at hand were whole.
    """

    @intrinsic
    def add(
        _: Any,
        A: Any,
        place: Any,
        across: Any,
        along: Any,
        rows: Any,
        count: Any,
        B: Any,
        first: Any,
        C: Any,
        row: Any,
        column: Any,
        ahead: Any,
    ) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            a, b, c = (_Array(context, builder, signature.args[at], given[at]) for at in (0, 6, 8))
            strip = _Strip(builder, a, b, c, given, vectors)
            together = ir.Constant(_LONG, _TOGETHER[vectors])
            whole = builder.sub(given[4], builder.srem(given[4], together))
            for start, end, step in ((ir.Constant(_LONG, 0), whole, together), (whole, given[4], ir.Constant(_LONG, 1))):
                with cgutils.for_range_slice(builder, start, end, step, intp=_LONG) as (r, _):
                    strip.add_tile(r, _TOGETHER[vectors] if step is together else 1)
            return context.get_dummy_value()

        n = types.int64
        return types.void(A, n, n, n, n, n, B, n, C, n, n, n), generate

    return add


class _Strip:
    """Strip of a dense product: some vectors of columns."""

    def __init__(self, builder: Any, a: _Array, b: _Array, c: _Array, given: Any, vectors: int) -> None:
        self.builder, self.a, self.b, self.c = builder, a, b, c
        _, self.place, self.across, self.along, _, self.count, _, self.first, _, self.row, column, self.ahead = given
        self.columns = [builder.add(column, ir.Constant(_LONG, LANES * number)) for number in range(vectors)]

    def add_tile(self, r: Any, rows: int) -> None:
        """Add to a strip of a dense product: so many rows from the r-th on."""
        builder, c, each = self.builder, self.c, [ir.Constant(_LONG, number) for number in range(rows)]
        numbers = [builder.add(r, number) for number in each]
        starts = [builder.add(self.place, builder.mul(number, self.across)) for number in numbers]
        zero = ir.Constant(c.vector, [0.0] * LANES)
        sums = [[cgutils.alloca_once(builder, c.vector) for _ in self.columns] for _ in each]  # type: ignore[no-untyped-call]
        for total in (total for line in sums for total in line):
            builder.store(zero, total)
        if rows == 1:
            self._multiply_all(sums, starts, streamed=False)
        else:
            with builder.if_else(builder.icmp_signed("==", self.ahead, ir.Constant(_LONG, 0))) as (at_hand, from_memory):
                with at_hand:
                    self._multiply_all(sums, starts, streamed=False)
                with from_memory:
                    self._multiply_all(sums, starts, streamed=True)
        for line, number in zip(sums, numbers, strict=True):
            for total, place in zip(line, c.vectors(c.row(builder.add(self.row, number)), self.columns), strict=True):
                c.store(builder.fadd(c.load(place), builder.load(total)), place)

    def _multiply_all(self, sums: list[list[Any]], starts: list[Any], streamed: bool) -> None:
        """The loop of a dense product over entries of its sums; of streamed data those of later rows are asked for meanwhile."""
        zero, one = ir.Constant(_LONG, 0), ir.Constant(_LONG, 1)
        with cgutils.for_range_slice(self.builder, zero, self.count, one, intp=_LONG) as (q, _):
            if streamed:
                self._ask_for_later(starts[0], q, len(starts))
            self._multiply(sums, starts, q)

    def _ask_for_later(self, start: Any, q: Any, rows: int) -> None:
        """Ask for a cache line that a dense product will need later: all at once they would wait for each other.

        By rows those of as many rows as are at hand, one after the other; by columns that of the row as far ahead.
        """
        builder, by_rows = self.builder, self.builder.icmp_signed("==", self.along, ir.Constant(_LONG, 1))
        step = builder.select(by_rows, ir.Constant(_LONG, rows), self.along)
        place = builder.add(builder.add(start, self.ahead), builder.mul(q, step))
        prefetch_at(builder, builder.gep(self.a.pointer, [place]))

    def _multiply(self, sums: list[list[Any]], starts: list[Any], q: Any) -> None:
        """Vectors of one row of B times one entry of each row: the fewer ones are loaded first, since all registers are taken."""
        builder, b, c = self.builder, self.b, self.c
        along, near = builder.mul(q, self.along), b.vectors(b.row(builder.add(self.first, q)), self.columns)

        def entry(start: Any) -> Any:
            return c.broadcast(builder.load(builder.gep(self.a.pointer, [builder.add(start, along)])))

        def multiply_add(total: Any, x: Any, y: Any) -> None:
            builder.store(c.multiply_add(x, y, builder.load(total)), total)

        if len(starts) < len(near):
            entries = [entry(start) for start in starts]
            for number, place in enumerate(near):
                vector = b.load(place)
                for line, x in zip(sums, entries, strict=True):
                    multiply_add(line[number], x, vector)
            return
        vectors = [b.load(place) for place in near]
        for line, start in zip(sums, starts, strict=True):
            x = entry(start)
            for total, vector in zip(line, vectors, strict=True):
                multiply_add(total, x, vector)
