"""Loops over vectors for Kullback-Leibler: what Newton's steps need of a row of data, and logarithms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # what numba compiles with
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from cvxnmf.linalg.arrays import LINE
from cvxnmf.linalg.lanes import LANES
from cvxnmf.linalg.vectors import LONG, Array, Run

_DOUBLES = ir.VectorType(ir.DoubleType(), 2 * LANES)


def gathered_columns() -> Callable[..., None]:
    """A function that gathers rows of X by index and transposes them in registers, with their products with a row u.

    ``gather(places, size, X, u, H, w)``: ``H[r size + j] = X[places[j], r]`` and ``w[j] = sum_r u[r] X[places[j], r]`` for all
    ``j < size``, a multiple of two vectors, and as many r as X has columns, a multiple of one.
    """

    @intrinsic
    def gather(_: Any, places: Any, size: Any, X: Any, u: Any, H: Any, w: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            entries, x, weights, h, model = (Array(context, builder, signature.args[at], given[at]) for at in (0, 2, 3, 4, 5))
            with cgutils.for_range_slice(builder, LONG(0), given[1], LONG(2 * LANES), intp=LONG) as (j, _):
                run = Run(j, 2 * LANES)
                rows = [x.row(entries.at(builder.add(j, LONG(number)))) for number in range(2 * LANES)]
                (total,) = x.variables([run])
                with cgutils.for_range_slice(builder, LONG(0), x.columns, LONG(LANES), intp=LONG) as (column, _):
                    parts = []
                    for number, vector in enumerate(_gathered_square(x, rows, column)):
                        r = builder.add(column, LONG(number))
                        h.store(vector, h.vectors(builder.gep(h.pointer, [builder.mul(r, given[1])]), [run])[0])
                        parts.append((x.broadcast(weights.at(r), run.lanes), vector))
                    one, other = (x.multiply_add(*parts[at + 1], builder.fmul(*parts[at])) for at in (0, 2))
                    builder.store(builder.fadd(builder.load(total), builder.fadd(one, other)), total)
                model.store(builder.load(total), model.vectors(model.pointer, [run])[0])
            return context.get_dummy_value()

        return types.void(places, types.int64, X, u, H, w), generate

    return gather


def _gathered_square(x: Array, rows: list[Any], column: Any) -> list[Any]:
    """Columns, a vector's length of them, of twice as many rows, each as a vector of its own."""
    parts = [x.load(x.vectors(row, [Run(column, LANES)])[0]) for row in rows]
    whole = list(range(2 * LANES))
    return x.transpose([x.shuffle(*pair, whole) for pair in zip(parts[:LANES], parts[LANES:], strict=True)])


def pair_sums() -> Callable[..., tuple[float, ...]]:
    """A function that takes the sums of a pair of coordinates for Newton's steps on Kullback-Leibler, and brings the model up.

    ``N, M, q, cross, s = take(a, H, w, r, size, moves)``, with H as flat rows of this size, first adds to the model w what the
    pair before r moved: ``moves[0] H_(r-2) + moves[1] H_(r-1)``, where moves are zeros for r = 0. Then, with h and g for the rows
    r and r + 1, come ``N = sum a h / w``, ``M = sum a g / w``, ``q = sum a h² / w²``, ``cross = sum a h g / w²`` and
    ``s = sum a g² / w²``.
    The size is a multiple of the numbers on a cache line.
    """

    @intrinsic
    def take(_: Any, a: Any, H: Any, w: Any, r: Any, size: Any, moves: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            arrays = [Array(context, builder, signature.args[at], given[at]) for at in (0, 1, 2, 5)]
            lanes, h, row = 64 * LINE // H.dtype.bitwidth, arrays[1], given[3]
            last = builder.select(builder.icmp_signed("==", row, LONG(0)), row, builder.sub(row, LONG(2)))
            starts = [builder.mul(builder.add(start, LONG(number)), given[4]) for start in (last, row) for number in range(2)]
            pairs = [builder.gep(h.pointer, [start]) for start in starts]
            moved = [h.broadcast(h.round(arrays[3].at(LONG(number))), lanes) for number in range(2)]
            totals = h.variables([Run(row, lanes)] * 5)
            with cgutils.for_range_slice(builder, LONG(0), given[4], LONG(lanes), intp=LONG) as (j, _):
                _add_pair(arrays, [h.load(h.vectors(start, [Run(j, lanes)])[0]) for start in pairs], moved, totals, Run(j, lanes))
            return context.make_tuple(builder, signature.return_type, [h.sum(builder.load(total)) for total in totals])

        five = types.UniTuple(types.float64, 5)  # type: ignore[no-untyped-call]
        return five(a, H, w, types.int64, types.int64, moves), generate

    return take


def _add_pair(arrays: list[Array], rows: list[Any], moved: list[Any], totals: list[Any], run: Run) -> None:
    """One vector of the sums of a pair of coordinates: rows of the pair before it and of its own."""
    a, x, w, _ = arrays
    place, (before, beside, h, g), builder = w.vectors(w.pointer, [run])[0], rows, w.builder
    model = x.multiply_add(moved[1], beside, x.multiply_add(moved[0], before, w.load(place)))
    w.store(model, place)
    inverse = builder.fdiv(ir.Constant(model.type, [1.0] * run.lanes), model)
    ratio = builder.fmul(a.load(a.vectors(a.pointer, [run])[0]), inverse)
    curvature = builder.fmul(ratio, inverse)
    first, second = builder.fmul(curvature, h), builder.fmul(curvature, g)
    for total, one, other in zip(totals, (ratio, ratio, first, first, second), (h, g, h, g, g), strict=True):
        builder.store(x.multiply_add(one, other, builder.load(total)), total)


def weighted_logarithms() -> Callable[..., float]:
    """A function that takes the sum ``sum_j a[j] log w[j]``: ``take(a, w, size)``, the size a multiple of two vectors.

    ``w = 2^e m`` with m in [0.7, 1.4], and ``log m = 2 artanh((m - 1)/(m + 1))`` by its series: 1e-15 relative to max(1, |log|).
    """

    @intrinsic
    def take(_: Any, a: Any, w: Any, size: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            numbers, x = (Array(context, builder, signature.args[at], given[at]) for at in range(2))
            total = cgutils.alloca_once_value(builder, ir.Constant(_DOUBLES, [0.0] * _DOUBLES.count))  # type: ignore[no-untyped-call]
            with cgutils.for_range_slice(builder, LONG(0), given[2], LONG(_DOUBLES.count), intp=LONG) as (j, _):
                run = Run(j, _DOUBLES.count)
                weight, number = (y.in_double(y.load(y.vectors(y.pointer, [run])[0])) for y in (numbers, x))
                builder.store(x.multiply_add(weight, _logarithm(x, number), builder.load(total)), total)
            return x.sum(builder.load(total))

        return types.float64(a, w, types.int64), generate

    return take


def _logarithm(x: Array, w: Any) -> Any:
    """The logarithm of a vector of positive numbers."""
    builder = x.builder

    def all_lanes(number: float) -> Any:
        return ir.Constant(w.type, [number] * w.type.count)

    def all_bits(number: int) -> Any:
        return ir.Constant(ir.VectorType(LONG, w.type.count), [number] * w.type.count)

    lowest = all_bits(0x3FE6A09E667F3BCD)  # the square root of 1/2
    shifted = builder.sub(builder.bitcast(w, lowest.type), lowest)
    m = builder.bitcast(builder.add(builder.and_(shifted, all_bits((1 << 52) - 1)), lowest), w.type)
    rounding = builder.bitcast(all_bits(0x4338000000000000), w.type)  # an integer added to its bits is one added to it
    exponent = builder.bitcast(builder.add(builder.ashr(shifted, all_bits(52)), all_bits(0x4338000000000000)), w.type)
    exponent = builder.fsub(exponent, rounding)
    s = builder.fdiv(builder.fsub(m, all_lanes(1.0)), builder.fadd(m, all_lanes(1.0)))
    z, series = builder.fmul(s, s), all_lanes(1.0 / 19.0)
    for odd in range(17, 0, -2):
        series = x.multiply_add(z, series, all_lanes(1.0 / odd))
    return x.multiply_add(exponent, all_lanes(0.6931471805599453), builder.fmul(builder.fadd(s, s), series))
