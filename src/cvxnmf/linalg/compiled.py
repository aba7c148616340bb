"""Options of compiled loops: one thread, no interpreter lock, the same input gives the same bits.

Error model "numpy" lets divisions run in SIMD lanes; callers keep the divisors away from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Loop = TypeVar("Loop", bound=Callable[..., Any])
#: Without the interpreter's lock, so that row chunks can be worked on in threads.
_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}


def compiled(function: Loop) -> Loop:
    """Compile when first called, and keep the result on disk."""
    return cast(Loop, njit(**_OPTIONS)(function))


def inlined(function: Loop) -> Loop:
    """Compile as a part of the caller."""
    return cast(Loop, njit(**_OPTIONS, inline="always")(function))
