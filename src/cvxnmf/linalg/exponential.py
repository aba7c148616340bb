"""The exponential, compiled, in double and in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.compiled import Deferred, compile_with

#: What is added to a number of moderate size to round it to an integer, which then stands in the last bits.
ROUNDING, ROUNDING_SINGLE = 6755399441055744.0, 12582912.0


@compile_with(error_model="numpy", nogil=True)
def exponential(x: Any, scratch: Any) -> None:
    """Replace a flat x by its exponential, to within two units in the last place.

    ``e^x = 2^k e^r``, ``|r| <= log(2)/2``, by a polynomial of degree 12; k is written into the exponent through the bits of
    `scratch`, an array of the same size. Below -708 the result is that at -708, which is 0 for all purposes; above 709 it is
    infinite, and NaN stays NaN.
    """
    bits = scratch.view(np.int64)
    for j in range(x.size):
        t = min(max(x[j], -708.0), 709.0)
        scratch[j] = t * 1.4426950408889634 + ROUNDING
        k = scratch[j] - ROUNDING
        r = (t - k * 0.693145751953125) - k * 1.42860682030941723212e-6
        p = 2.08767569878681e-09 * r + 2.505210838544172e-08
        p = p * r + 2.755731922398589e-07
        p = p * r + 2.7557319223985893e-06
        p = p * r + 2.48015873015873e-05
        p = p * r + 1.984126984126984e-04
        p = p * r + 1.388888888888889e-03
        p = p * r + 8.333333333333333e-03
        p = p * r + 4.1666666666666664e-02
        p = p * r + 1.6666666666666666e-01
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        x[j] = p if x[j] <= 709.0 else x[j] * np.inf
    for j in range(x.size):
        bits[j] = (bits[j] + 1023) << 52
    for j in range(x.size):
        x[j] *= scratch[j]


@compile_with(error_model="numpy", nogil=True)
def exponential_single(x: Any, scratch: Any) -> None:
    """Exponential of every entry in single precision, in place, with a polynomial of degree 6, from -87 to 88."""
    bits = scratch.view(np.int32)
    magic = np.float32(ROUNDING_SINGLE)
    for j in range(x.size):
        t = min(max(x[j], np.float32(-87.0)), np.float32(88.0))
        scratch[j] = t * np.float32(1.442695) + magic
        k = scratch[j] - magic
        r = (t - k * np.float32(0.693359375)) - k * np.float32(-2.12194440e-4)
        p = np.float32(1.3888889e-3) * r + np.float32(8.3333333e-3)
        p = p * r + np.float32(4.1666668e-2)
        p = p * r + np.float32(1.6666667e-1)
        p = p * r + np.float32(0.5)
        p = p * r + np.float32(1.0)
        p = p * r + np.float32(1.0)
        x[j] = p if x[j] <= np.float32(88.0) else x[j] * np.float32(np.inf)
    for j in range(x.size):
        bits[j] = (bits[j] + np.int32(127)) << np.int32(23)
    for j in range(x.size):
        x[j] *= scratch[j]


def _exponentiate() -> Any:
    """A function that replaces x by its exponential in its own precision, for compiled loops to call."""
    from numba import float32
    from numba.extending import overload

    single, double = exponential_single.resolve(), exponential.resolve()  # type: ignore[attr-defined]

    def exponentiate(x: Any, scratch: Any) -> None: ...

    @overload(exponentiate, strict=False)
    def in_its_precision(x: Any, scratch: Any) -> Any:
        if x.dtype == float32:
            return lambda x, scratch: single(x, scratch)
        return lambda x, scratch: double(x, scratch)

    return exponentiate


#: ``exponentiate(x, scratch)`` inside of a compiled loop.
exponentiate = Deferred(_exponentiate)
