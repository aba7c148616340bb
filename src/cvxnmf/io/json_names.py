"""Names of nodes, rows and columns as JSON keeps them: numbers and strings; all else becomes a string."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def names_as_json(names: Iterable[Any]) -> list[str | int | float]:
    """Names that JSON can keep."""
    plain = [name.item() if isinstance(name, np.generic) else name for name in names]
    return [name if isinstance(name, str | int | float) else str(name) for name in plain]


def names_from_json(names: Any, size: int) -> tuple[Any, ...] | None:
    """The names that a file holds, one for each of so many; None where it holds none."""
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != size or not all(isinstance(name, str | int | float) for name in names):
        raise ValueError("it does not hold one name each")
    return tuple(names)
