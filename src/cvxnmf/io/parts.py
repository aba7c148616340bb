"""The content of a file of a result: facts and arrays, and the checks that they pass before they are believed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray


class Parts(NamedTuple):
    """The parts of a result's file: facts for JSON, and arrays by name."""

    facts: dict[str, Any]
    arrays: dict[str, Any]

    def include(self, name: str, inner: Parts) -> dict[str, Any]:
        """Keep the arrays of another result in the file's parts under ``name/``, and return its facts."""
        self.arrays.update({f"{name}/{key}": array for key, array in inner.arrays.items()})
        return inner.facts

    def inside(self, name: str, facts: dict[str, Any]) -> Parts:
        """The parts of a result that was included in the file: the given facts, and the arrays under ``name/``."""
        arrays = {key.removeprefix(f"{name}/"): array for key, array in self.arrays.items() if key.startswith(f"{name}/")}
        return Parts(facts, arrays)

    def floats(self, name: str, ndim: int, single: bool = False) -> FloatArray:
        """An array of a result's file with real numbers and no NaN, in doubles, or in single precision where that is allowed."""
        array = self.arrays[name]
        known = array.dtype == np.float64 or (single and array.dtype == np.float32)
        require(known and array.ndim == ndim and not np.isnan(array).any(), f"{name} is malformed")
        return np.asarray(array)

    def integers(self, name: str, low: int, high: int, size: int | None = None) -> NDArray[np.intp]:
        """A vector of a result's file with integers from `low` to below `high`."""
        array = self.arrays[name]
        require(array.dtype.kind == "i" and array.shape == (len(array) if size is None else size,), f"{name} is malformed")
        require(array.size == 0 or (low <= array.min() and array.max() < high), f"{name} is out of range")
        return np.asarray(array)

    def number(self, name: str, minimum: float = -math.inf, maximum: float = math.inf) -> float:
        """A number among the facts of a result's file that is not NaN."""
        value = self.facts[name]
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        require(plain and minimum <= value <= maximum, f"{name} is malformed")
        return float(value)

    def names(self, name: str, size: int) -> tuple[Any, ...] | None:
        """As many names from a result's file as `size`, numbers or strings; None where the file has none."""
        names = self.facts.get(name)
        if names is None:
            return None
        plain = isinstance(names, list) and len(names) == size and all(isinstance(entry, str | int | float) for entry in names)
        require(plain, "it does not hold one name each")
        return tuple(names)

    def digest(self) -> str:
        """SHA-256 over all facts and arrays of a result's file."""
        seal = hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode())
        for name in sorted(self.arrays):
            array = np.ascontiguousarray(self.arrays[name])
            seal.update(f"{name} {array.dtype.str} {array.shape}".encode())
            seal.update(array.tobytes())
        return seal.hexdigest()


def require(condition: Any, otherwise: str) -> None:
    """Refuse a file with content that a result written by `save` cannot have."""
    if not condition:
        raise ValueError(otherwise)


def names_as_json(names: Iterable[Any]) -> list[str | int | float]:
    """Names of nodes, rows or columns that JSON can keep: numbers and strings; others become strings."""
    plain = [name.item() if isinstance(name, np.generic) else name for name in names]
    return [name if isinstance(name, str | int | float) else str(name) for name in plain]
