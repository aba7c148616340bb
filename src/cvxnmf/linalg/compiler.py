"""How loops are compiled, and where compiled code is kept. Loaded with numba, which takes half a second, at the first call.

The first compilation is announced once through the logger "cvxnmf": as a warning, which is shown, to whoever sits at a terminal
or a notebook, and elsewhere as information, which a log has that asks for it, and pipes have not.

Compiled code is kept beside the sources or in the user's cache folder, as numba does. Where neither can be written (a read-only
installation, a container without a home) it is kept in a folder of the user's own among the temporary files, or not at all.
An installation brings the code of everyday loops along, beside the sources (``build_hooks``): that is found wherever new code is
kept. Code is taken up only where the sources of a loop, and of all loops that it calls, are those that it was compiled from.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from inspect import getfile
from types import FunctionType
from typing import Any, cast

import numba
import numpy as np
from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

from cvxnmf.linalg.compiled import global_names, is_interactive

#: Nothing is compiled for callers in C.
_FOR_PYTHON: dict[str, Any] = {"no_cfunc_wrapper": True}
#: What a loop may name beside other loops and tuples with names.
_CONSTANTS = (int, float, str, tuple, np.generic, np.dtype, np.ndarray)
#: Files of this folder that write instructions of the processor, which loops name without being able to tell from where.
_INSTRUCTIONS = ("lanes.py", "prefetching.py", "vectors.py", "vector_loops.py", "divergence_loops.py")


class _Announcement(event.Listener):
    """Listener of numba's compiler: tells once, when a loop of this package is not in the cache, why nothing seems to happen."""

    def on_start(self, event: Any) -> None:
        """The compiler begins: announce it if the loop is one of this package."""
        if (event.data["dispatcher"].py_func.__module__ or "").startswith("cvxnmf."):
            announce()

    def on_end(self, event: Any) -> None:
        """The compiler has ended: nothing to announce."""


@cache
def announce() -> None:
    """Log that the compiler has begun, once."""
    sentence = "Compiling once, up to half a minute; later calls and processes find the result."
    logging.getLogger("cvxnmf").log(logging.WARNING if is_interactive() else logging.INFO, sentence)


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]


def dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """The function as numba's dispatcher, which compiles for the types of its arguments, or finds what it compiled before."""
    made = njit(**options, **_FOR_PYTHON)(function)
    if _has_cache():
        with suppress(OSError):  # sources inside of an archive: nothing is kept
            made._cache = CodeCache(cast(FunctionType, function))
    return cast(Callable[..., Any], made)


class CodeCache(FunctionCache):
    """The compiled code of one loop: kept where numba keeps it, and found beside the sources too, if it is of these sources."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamp, beside = source_stamp(function), os.path.join(os.path.dirname(getfile(function)), "__pycache__")
        self._files = [self._file(folder, stamp) for folder in dict.fromkeys([self._cache_path, beside])]
        self._cache_file = self._files[0]

    def _file(self, folder: str, stamp: str) -> Any:
        return IndexDataCacheFile(folder, self._impl.filename_base, stamp)  # type: ignore[no-untyped-call]

    def _load_overload(self, signature: Any, target_context: Any) -> Any:
        """The code for some types of arguments, or None; called by numba."""
        key = self._index_key(signature, target_context.codegen())  # type: ignore[no-untyped-call]
        found = (data for data in (file.load(key) for file in self._files) if data is not None)
        return next((self._impl.rebuild(target_context, data) for data in found), None)


def source_stamp(function: FunctionType) -> str:
    """Hash of the sources of a loop and of all loops that it calls, and of the constants that these name."""
    parts, called = set[str](), [function]
    for current in called:
        parts.add(_file_hash(getfile(current)))
        for place, name in global_names(current):
            value = place[name]
            callee = getattr(value, "function", None) or getattr(value, "py_func", None)  # before and after it is compiled
            if isinstance(callee, FunctionType) and callee not in called:
                called.append(callee)
            if isinstance(value, _CONSTANTS):
                parts.add(f"{name} {value!r}")
            elif hasattr(value, "_fields"):  # a tuple with names
                parts.add(f"{name} {value._fields!r}")
    parts |= {_file_hash(os.path.join(os.path.dirname(__file__), name)) for name in _INSTRUCTIONS}
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


@cache
def _file_hash(path: str) -> str:
    with open(path, "rb") as source:
        return hashlib.sha256(source.read()).hexdigest()


@cache
def _has_cache() -> bool:
    """Whether the compiler has a folder to cache its code in; where numba finds none, one is made."""
    try:
        njit(cache=True)(_has_cache.__wrapped__)  # which looks for a folder, and compiles nothing yet
    except RuntimeError:
        folder = _private_folder(os.path.join(tempfile.gettempdir(), f"cvxnmf-{_user()}"))
        if folder is None:
            return False
        numba.config.CACHE_DIR = folder  # type: ignore[attr-defined]
    return True


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _private_folder(path: str) -> str | None:
    """The folder for the compiler's cache, made if need be; None if others can write to it, as code is loaded from there."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
        private = stat.S_ISDIR(found.st_mode) and found.st_uid == _user() and not found.st_mode & 0o077
        with tempfile.TemporaryFile(dir=path):
            return path if private else None
    except OSError:
        return None
