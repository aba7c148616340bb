"""Arrays and names as compact text that is safe inside a page."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What JSON leaves alone but a page would read as markup.
_MARKUP = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def packed(array: Any, dtype: str) -> str:
    """Return the bytes of an array, little endian, in base64."""
    return base64.b64encode(np.ascontiguousarray(array).astype(np.dtype(dtype).newbyteorder("<")).tobytes()).decode("ascii")


def integers(array: Any) -> dict[str, str]:
    """Pack nonnegative integers in as few bytes as the largest needs."""
    values = np.asarray(array)
    width = "u2" if values.max(initial=0) < 1 << 16 else "u4"
    return {"type": width, "data": packed(values, width)}


def shares(array: Any) -> NDArray[np.float64]:
    """Return numbers cut to [0, 1], what is not a number as 0."""
    return np.clip(np.nan_to_num(np.asarray(array, dtype=np.float64), nan=0.0), 0.0, 1.0)


def text(name: Any) -> str:
    """Return a name as text that every encoding can carry: halves of surrogate pairs become question marks."""
    return str(name).encode("utf-8", "replace").decode("utf-8")


def block(payload: dict[str, Any]) -> str:
    """Return a payload as JSON that cannot end its own script element."""
    return json.dumps(payload, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_MARKUP)


def bins(n: int, limit: int) -> NDArray[np.intp]:
    """Return where each of at most `limit` bins of n items begins."""
    count = min(n, limit)
    return np.asarray(np.arange(count) * n // max(count, 1), dtype=np.intp)
