"""Arrays as vector instructions see them: rows are cut into vectors, as long as the processor's registers.

Loops over vectors (:mod:`cvxnmf.linalg.vector_loops`) are written once for all processors, and differ in how much they hold in
registers. What a loop computes does not depend on that: every lane is a sum of its own, in the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]  # what numba compiles with
from numba.core import cgutils

from cvxnmf.linalg.lanes import LANES

LONG, SHORT = ir.IntType(64), ir.IntType(32)


def has_wide_registers(context: Any) -> bool:
    """Whether code is compiled for a processor with 32 registers of eight numbers; others have 16 of four."""
    return "+avx512f" in context.codegen().magic_tuple()[2].split(",")


class Run(NamedTuple):
    """A vector's place in a row: its first column, and its lanes."""

    column: Any
    lanes: int


def runs(context: Any, builder: Any, column: Any, lanes: int) -> list[Run]:
    """So many columns of a row from one on, in the longest vectors that the registers take."""
    longest, found, done = LANES * (2 if has_wide_registers(context) else 1), [], 0
    while done < lanes:
        found.append(Run(builder.add(column, LONG(done)), min(longest, lanes - done)))
        done += longest
    return found


class Array:
    """A contiguous array of two dimensions, or of one, inside of a compiled loop over vectors."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        if kind.layout != "C":
            raise TypeError("Compiled loops over vectors take contiguous arrays; pass np.ascontiguousarray of it.")
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.pointer, self.entry = builder, array.data, array.data.type.pointee
        self.columns = cgutils.unpack_tuple(builder, array.shape)[-1]  # type: ignore[no-untyped-call]

    def at(self, place: Any) -> Any:
        """The entry at a place of an array, for vector instructions: numbers in double precision, indices in full length."""
        found = self.builder.load(self.builder.gep(self.pointer, [place]))
        if found.type == ir.FloatType():
            return self.builder.fpext(found, ir.DoubleType())
        return self.builder.zext(found, LONG) if found.type == SHORT else found

    def row(self, number: Any) -> Any:
        """Pointer to the beginning of an array's row, for vector instructions."""
        return self.builder.gep(self.pointer, [self.builder.mul(number, self.columns)])

    def vectors(self, row: Any, places: list[Run]) -> list[Any]:
        """Pointers to the vectors at some places of a row."""
        pointers = [(self.builder.gep(row, [place.column]), place.lanes) for place in places]
        return [self.builder.bitcast(pointer, ir.VectorType(self.entry, lanes).as_pointer()) for pointer, lanes in pointers]

    def load(self, place: Any) -> Any:
        """Load a vector from an array; it need not begin at a multiple of its length."""
        found = self.builder.load(place)
        found.align = 4
        return found

    def store(self, vector: Any, place: Any) -> None:
        """Store a vector to an array, in single precision if the array is."""
        wanted = place.type.pointee
        rounded = vector if vector.type == wanted else self.builder.fptrunc(vector, wanted)
        self.builder.store(rounded, place).align = 4

    def variables(self, places: list[Run]) -> list[Any]:
        """Variables for the vectors at some places of a row, at zero; the compiler keeps them in registers."""
        kinds = [ir.VectorType(self.entry, place.lanes) for place in places]
        found = [cgutils.alloca_once(self.builder, kind) for kind in kinds]  # type: ignore[no-untyped-call]
        for variable, kind in zip(found, kinds, strict=True):
            self.builder.store(ir.Constant(kind, [0.0] * kind.count), variable)
        return found

    def broadcast(self, number: Any, lanes: int = LANES) -> Any:
        """A vector register whose lanes all hold one number."""
        nothing = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
        first = self.builder.insert_element(nothing, number, SHORT(0))
        return self.builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(SHORT, lanes), [0] * lanes))

    def shuffle(self, one: Any, other: Any, order: list[int]) -> Any:
        """Shuffle two vector registers: their numbers, counted through, in an order."""
        return self.builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(SHORT, len(order)), order))

    def transpose(self, square: list[Any]) -> list[Any]:
        """Transpose a square in vector registers, or one in each of their halves: columns of two rows, then those of four."""

        def shuffle(one: Any, other: Any, order: list[int]) -> Any:
            lanes = one.type.count
            halves = [[q % LANES + start + lanes * (q // LANES) for q in order] for start in range(0, lanes, LANES)]
            return self.shuffle(one, other, [place for half in halves for place in half])

        one, two, three, four = square
        first, second = ((shuffle(one, two, order), shuffle(three, four, order)) for order in ([0, 4, 2, 6], [1, 5, 3, 7]))
        return [shuffle(*pair, order) for order in ([0, 1, 4, 5], [2, 3, 6, 7]) for pair in (first, second)]

    def round(self, number: Any) -> Any:
        """Round a number in double precision to that of the array."""
        return number if self.entry == number.type else self.builder.fptrunc(number, self.entry)

    def in_double(self, found: Any) -> Any:
        """A number or a vector register in double precision."""
        scalar = getattr(found.type, "element", found.type)
        if scalar == ir.DoubleType():
            return found
        kind = ir.DoubleType() if scalar is found.type else ir.VectorType(ir.DoubleType(), found.type.count)
        return self.builder.fpext(found, kind)

    def sum(self, vector: Any) -> Any:
        """The sum of a vector register in double precision: always of halves, of quarters and so on."""
        number = vector.type.element
        name = f"llvm.vector.reduce.fadd.v{vector.type.count}f{32 if number == ir.FloatType() else 64}"
        add = cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(number, [number, vector.type]), name)  # type: ignore[no-untyped-call]
        return self.in_double(self.builder.call(add, [ir.Constant(number, 0.0), vector], fastmath=("reassoc",)))

    def multiply_add(self, a: Any, x: Any, y: Any) -> Any:
        """Vector instruction ``a x + y``, rounded once where the processor can."""
        return self.builder.fadd(y, self.builder.fmul(a, x, flags=("contract",)), flags=("contract",))

    def multiply_subtract(self, a: Any, x: Any, y: Any) -> Any:
        """Vector instruction ``y - a x``, rounded once where the processor can."""
        return self.builder.fsub(y, self.builder.fmul(a, x, flags=("contract",)), flags=("contract",))
