"""Whether data are still what they were: a fingerprint as fast as the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.linalg.compiled import compiled


def fingerprint(A: Any) -> int:
    """Fingerprint: a number that changes when an entry of an array or a compressed matrix does, but for one chance in 2^64."""
    total = 0
    for part in [A.data, A.indices, A.indptr] if sp.issparse(A) else [A]:
        stored = part if part.flags.c_contiguous else part.T if part.flags.f_contiguous else np.ascontiguousarray(part)
        flat = stored.reshape(-1).view(np.uint8)
        whole = len(flat) - len(flat) % 8
        total = hash((total, int(_mixed_sum(flat[:whole].view(np.uint64))), int.from_bytes(flat[whole:].tobytes(), "little")))
    return total


@compiled
def _mixed_sum(words: Any) -> Any:
    """Sum for a fingerprint: words of the data, mixed with their places, modulo 2^64."""
    total, place, step = np.uint64(len(words)), np.uint64(0), np.uint64(0x9E3779B97F4A7C15)
    for i in range(len(words)):
        place += step
        word = words[i] ^ place
        word ^= word >> np.uint64(29)
        total += word * (place | np.uint64(1))
    return total
