"""A hash of 64 bits for compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.compiled import compile_with


@compile_with(nogil=True)
def mixed_bits(value: Any) -> Any:
    """A hash of 64 bits: each bit depends on every one of the value."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
