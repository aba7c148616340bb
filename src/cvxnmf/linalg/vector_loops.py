"""Loops that compilers do not turn into vector instructions by themselves, written as such.

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

from cvxnmf.linalg.arrays import LINE
from cvxnmf.linalg.lanes import LANES
from cvxnmf.linalg.prefetching import prefetch_at
from cvxnmf.linalg.vectors import LONG, Array, Run, has_wide_registers, runs

#: Rows of a product whose sums stay in registers, with so many vectors each: eight sums or more hide a multiplication's time.
_TOGETHER, _TOGETHER_IN_WIDE_REGISTERS = {1: 8, 2: 6, 3: 4, 4: 3, 5: 2, 6: 2}, 8
#: Columns that a descent takes at a time, four sums each.
_SWEPT, _SWEPT_IN_WIDE_REGISTERS = 3 * LANES, 6 * LANES


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
            entries, numbers, rows, sums = (Array(context, builder, signature.args[at], given[at]) for at in places)
            columns = _overlapping_runs(context, builder, given[7], given[8], vectors)
            totals = sums.variables(columns)
            with cgutils.for_range_slice(builder, given[2], given[3], LONG(1), intp=LONG) as (entry, _):
                a, near = numbers.at(entry), rows.row(entries.at(entry))
                for total, place, run in zip(totals, rows.vectors(near, columns), columns, strict=True):
                    times = rows.multiply_add(rows.broadcast(a, run.lanes), rows.load(place), builder.load(total))
                    builder.store(times, total)
            for total, place in zip(totals, sums.vectors(sums.row(given[6]), columns), strict=True):
                sums.store(builder.load(total), place)
            return context.get_dummy_value()

        number = types.int64
        return types.void(indices, data, number, number, X, result, number, number, number), generate

    return add


def _overlapping_runs(context: Any, builder: Any, first: Any, last: Any, vectors: int) -> list[Run]:
    """Columns of so many vectors from the first one on, but the last of them at `last`, in as long vectors as there are."""
    if vectors < 3 or not has_wide_registers(context):
        return [*(Run(builder.add(first, LONG(LANES * number)), LANES) for number in range(vectors - 1)), Run(last, LANES)]
    end = Run(builder.sub(last, LONG(LANES)), 2 * LANES) if vectors % 2 == 0 else Run(last, LANES)
    return [*(Run(builder.add(first, LONG(LANES * number)), 2 * LANES) for number in range(0, vectors - 2, 2)), end]


def addition_to_rows(vectors: int) -> Callable[..., None]:
    """A function that adds so many vectors of a row x, times entries of sparse data, to rows of the result.

    ``add(indices, data, start, end, x, result, first, ahead)``: the vectors begin at the column `first`, all within the rows.
    Unless `ahead` is 0, the row of the entry so many places ahead is asked for meanwhile: additions wait for those before them.
    """

    @intrinsic
    def add(
        _: Any, indices: Any, data: Any, start: Any, end: Any, x: Any, result: Any, first: Any, ahead: Any
    ) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            places = (0, 1, 4, 5)
            entries, numbers, row, sums = (Array(context, builder, signature.args[at], given[at]) for at in places)
            columns = runs(context, builder, given[6], LANES * vectors)
            own = [row.load(place) for place in row.vectors(row.pointer, columns)]

            def add_all(streamed: bool) -> None:
                with cgutils.for_range_slice(builder, given[2], given[3], LONG(1), intp=LONG) as (entry, _):
                    if streamed:
                        _ask_for_row(builder, entries, builder.add(entry, given[7]), sums, given[6], vectors)
                    a, near = numbers.at(entry), sums.row(entries.at(entry))
                    for vector, place, run in zip(own, sums.vectors(near, columns), columns, strict=True):
                        sums.store(sums.multiply_add(sums.broadcast(a, run.lanes), vector, sums.load(place)), place)

            with builder.if_else(builder.icmp_signed("==", given[7], LONG(0))) as (at_hand, from_memory):
                with at_hand:
                    add_all(streamed=False)
                with from_memory:
                    add_all(streamed=True)
            return context.get_dummy_value()

        number = types.int64
        return types.void(indices, data, number, number, x, result, number, number), generate

    return add


def _ask_for_row(builder: Any, entries: Array, place: Any, sums: Array, first: Any, vectors: int) -> None:
    """Ask for so many vectors of the row of an entry of sparse data, of the last entry where there are no more."""
    last = builder.sub(entries.columns, LONG(1))
    row = sums.row(entries.at(builder.select(builder.icmp_signed("<", place, last), place, last)))
    for lane in range(0, LANES * vectors, LINE):
        prefetch_at(builder, builder.gep(row, [builder.add(first, LONG(lane))]))


def transposed_square() -> Callable[..., None]:
    """A function that copies a square of X, a vector wide, and transposes it in registers.

    ``copy(X, row, column, Y, to_row, to_column)``: ``Y[to_row + j, to_column + i] = X[row + i, column + j]``.
    """

    @intrinsic
    def copy(_: Any, X: Any, row: Any, column: Any, Y: Any, to_row: Any, to_column: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            x, y = (Array(context, builder, signature.args[at], given[at]) for at in (0, 3))
            rows = [builder.add(given[1], LONG(number)) for number in range(LANES)]
            _copy_square(x, rows, given[2], y, given[4], given[5])
            return context.get_dummy_value()

        n = types.int64
        return types.void(X, n, n, Y, n, n), generate

    return copy


def _copy_square(x: Array, rows: list[Any], column: Any, y: Array, to_row: Any, to_column: Any) -> None:
    """Copy a square of x to a place in y, transposed."""
    square = [x.load(x.vectors(x.row(row), [Run(column, LANES)])[0]) for row in rows]
    for number, vector in enumerate(x.transpose(square)):
        row = y.row(y.builder.add(to_row, LONG(number)))
        y.store(vector, y.vectors(row, [Run(to_column, LANES)])[0])


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
            a, b, c = (Array(context, builder, signature.args[at], given[at]) for at in (0, 6, 8))
            strip = _Strip(builder, a, b, c, given, runs(context, builder, given[10], LANES * vectors))
            together = _TOGETHER_IN_WIDE_REGISTERS if has_wide_registers(context) else _TOGETHER[vectors]
            whole = builder.sub(given[4], builder.srem(given[4], LONG(together)))
            for start, end, step in ((LONG(0), whole, together), (whole, given[4], 1)):
                with cgutils.for_range_slice(builder, start, end, LONG(step), intp=LONG) as (r, _):
                    strip.add_tile(r, step)
            return context.get_dummy_value()

        n = types.int64
        return types.void(A, n, n, n, n, n, B, n, C, n, n, n), generate

    return add


class _Strip:
    """Strip of a dense product: some vectors of columns."""

    def __init__(self, builder: Any, a: Array, b: Array, c: Array, given: Any, columns: list[Run]) -> None:
        self.builder, self.a, self.b, self.c, self.columns = builder, a, b, c, columns
        _, self.place, self.across, self.along, _, self.count, _, self.first, _, self.row, _, self.ahead = given

    def add_tile(self, r: Any, rows: int) -> None:
        """Add to a strip of a dense product: so many rows from the r-th on."""
        builder, c, each = self.builder, self.c, [LONG(number) for number in range(rows)]
        numbers = [builder.add(r, number) for number in each]
        starts = [builder.add(self.place, builder.mul(number, self.across)) for number in numbers]
        sums = [c.variables(self.columns) for _ in each]
        if rows == 1:
            self._multiply_all(sums, starts, streamed=False)
        else:
            with builder.if_else(builder.icmp_signed("==", self.ahead, LONG(0))) as (at_hand, from_memory):
                with at_hand:
                    self._multiply_all(sums, starts, streamed=False)
                with from_memory:
                    self._multiply_all(sums, starts, streamed=True)
        for line, number in zip(sums, numbers, strict=True):
            for total, place in zip(line, c.vectors(c.row(builder.add(self.row, number)), self.columns), strict=True):
                c.store(builder.fadd(c.load(place), builder.load(total)), place)

    def _multiply_all(self, sums: list[list[Any]], starts: list[Any], streamed: bool) -> None:
        """The loop of a dense product over entries of its sums; of streamed data those of later rows are asked for meanwhile."""
        with cgutils.for_range_slice(self.builder, LONG(0), self.count, LONG(1), intp=LONG) as (q, _):
            if streamed:
                self._ask_for_later(starts[0], q, len(starts))
            self._multiply(sums, starts, q)

    def _ask_for_later(self, start: Any, q: Any, rows: int) -> None:
        """Ask for a cache line that a dense product will need later: all at once they would wait for each other.

        By rows those of as many rows as are at hand, one after the other; by columns that of the row as far ahead.
        """
        builder, by_rows = self.builder, self.builder.icmp_signed("==", self.along, LONG(1))
        step = builder.select(by_rows, LONG(rows), self.along)
        place = builder.add(builder.add(start, self.ahead), builder.mul(q, step))
        prefetch_at(builder, builder.gep(self.a.pointer, [place]))

    def _multiply(self, sums: list[list[Any]], starts: list[Any], q: Any) -> None:
        """Vectors of one row of B times one entry of each row: the fewer ones are loaded first, since all registers are taken."""
        builder, b, c = self.builder, self.b, self.c
        along, near = builder.mul(q, self.along), b.vectors(b.row(builder.add(self.first, q)), self.columns)

        def entry(start: Any) -> Any:
            return self.a.at(builder.add(start, along))

        def multiply_add(total: Any, x: Any, y: Any) -> None:
            times = c.broadcast(x, y.type.count)
            builder.store(c.multiply_add(times, y, builder.load(total)), total)

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


def strip_vectors() -> Callable[..., int]:
    """A function of compiled loops that says how many vectors of columns a strip of a product may have on this processor."""

    @intrinsic
    def count(_: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return LONG(6 if has_wide_registers(context) else 4)

        return types.int64(), generate

    return count


def coordinate_descent(components: int) -> Callable[..., None]:
    """A function that descends along so many components in turn, for all columns of x at once, each with an objective of its own.

    ``descend(Q, inverse, first, x, p, active, change)`` minimises ``<Qx, x>/2 - <p, x>`` over one row of x after the other from
    `first` on, where x >= 0: ``x_r <- (x_r + (p_r - q_r x) / Q_rr)_+``, with the inverse of the diagonal, where `active` is 1.
    Squares of the changes are added to `change`. The slopes of all these rows are taken together, with x as it is at first, and
    then changed as each row is. The columns are as many as any processor takes at a time, or a multiple.
    """

    @intrinsic
    def descend(
        _: Any, Q: Any, inverse: Any, first: Any, x: Any, p: Any, active: Any, change: Any
    ) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            arrays = [Array(context, builder, signature.args[at], given[at]) for at in (0, 1, 3, 4, 5, 6)]
            rows = [builder.add(given[2], LONG(number)) for number in range(components)]
            lanes = _SWEPT_IN_WIDE_REGISTERS if has_wide_registers(context) else _SWEPT
            with cgutils.for_range_slice(builder, LONG(0), arrays[2].columns, LONG(lanes), intp=LONG) as (column, _):
                _descend(builder, arrays, rows, runs(context, builder, column, lanes))
            return context.get_dummy_value()

        return types.void(Q, inverse, types.int64, x, p, active, change), generate

    return descend


def _descend(builder: Any, arrays: list[Array], rows: list[Any], columns: list[Run]) -> None:
    """Coordinate descent along some components, for as many columns as registers hold."""
    Q, inverse, x, p, active, change = arrays
    slopes = _slopes(builder, Q, x, p, rows, columns)
    moving, places = (
        [active.load(place) for place in active.vectors(active.pointer, columns)],
        change.vectors(change.pointer, columns),
    )
    changes = [change.load(place) for place in places]
    for number, row in enumerate(rows):
        factor, steps = builder.load(builder.gep(inverse.pointer, [row])), []
        for at, place in enumerate(x.vectors(x.row(row), columns)):
            lanes, old = columns[at].lanes, x.load(place)
            moved = x.multiply_add(moving[at], builder.fmul(slopes[number][at], x.broadcast(factor, lanes)), old)
            zero = ir.Constant(moved.type, [0.0] * lanes)
            new = builder.select(builder.fcmp_ordered(">", moved, zero), moved, zero)
            steps.append(builder.fsub(new, old))
            changes[at] = x.multiply_add(steps[at], steps[at], changes[at])
            x.store(new, place)
        for later in range(number + 1, len(rows)):
            q = builder.load(builder.gep(Q.row(rows[later]), [row]))
            slopes[later] = [_less(x, q, step, slope) for step, slope in zip(steps, slopes[later], strict=True)]
    for place, total in zip(places, changes, strict=True):
        change.store(total, place)


def _slopes(builder: Any, Q: Array, x: Array, p: Array, rows: list[Any], columns: list[Run]) -> list[list[Any]]:
    """Vectors of the negative slopes ``p - Qx`` of coordinate descent, for some components and columns."""
    variables = [p.variables(columns) for _ in rows]
    for line, row in zip(variables, rows, strict=True):
        for variable, place in zip(line, p.vectors(p.row(row), columns), strict=True):
            builder.store(p.load(place), variable)
    with cgutils.for_range_slice(builder, LONG(0), Q.columns, LONG(1), intp=LONG) as (component, _):
        vectors = [x.load(place) for place in x.vectors(x.row(component), columns)]
        for line, row in zip(variables, rows, strict=True):
            q = builder.load(builder.gep(Q.row(row), [component]))
            for variable, vector in zip(line, vectors, strict=True):
                builder.store(_less(x, q, vector, builder.load(variable)), variable)
    return [[builder.load(variable) for variable in line] for line in variables]


def _less(x: Array, q: Any, vector: Any, slope: Any) -> Any:
    return x.multiply_subtract(x.broadcast(q, vector.type.count), vector, slope)
