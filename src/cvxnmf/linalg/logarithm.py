"""Logarithms of many numbers at a time in SIMD lanes, and sums of ``a log w``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.compiled import compiled, inlined


@inlined
def logarithms(w: Any, bits: Any, mantissa: Any, size: int) -> None:
    """Logarithms ``log(w)`` of many numbers, written to `mantissa`, scratch of the same length; `bits` is w seen as integers.

    ``w = 2^e m`` with m in [0.7, 1.4], and ``log m = 2 artanh((m-1)/(m+1))`` by its series: 1e-15 relative to max(1, |log|).
    """
    scratch = mantissa.view(np.int64)
    for j in range(size):
        scratch[j] = ((bits[j] - 0x3FE6A09E667F3BCD) & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD
    for j in range(size):
        exponent = (bits[j] - 0x3FE6A09E667F3BCD) >> 52
        m = mantissa[j]
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        series = 1.0 / 17.0 + z / 19.0
        series = 1.0 / 13.0 + z * (1.0 / 15.0 + z * series)
        series = 1.0 / 9.0 + z * (1.0 / 11.0 + z * series)
        series = 1.0 / 5.0 + z * (1.0 / 7.0 + z * series)
        series = 1.0 + z * (1.0 / 3.0 + z * series)
        mantissa[j] = exponent * 0.6931471805599453 + 2.0 * s * series


@compiled
def weighted_logarithms(A: Any, W: Any) -> float:
    """Weighted sum of logarithms, ``sum A log W``, for two arrays of one shape."""
    m, n = A.shape
    w, logs = np.empty(n), np.empty(n)
    bits = w.view(np.int64)
    total = 0.0
    for i in range(m):
        for j in range(n):
            w[j] = W[i, j]
        logarithms(w, bits, logs, n)
        part = 0.0
        for j in range(n):
            part += A[i, j] * logs[j]
        total += part
    return total
