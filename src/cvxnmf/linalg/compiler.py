"""How loops are compiled, and where compiled code is kept. Loaded with numba, which takes half a second, at the first call.

The first compilation is announced once through the logger "cvxnmf": as a warning, which is shown, to whoever sits at a terminal
or a notebook, and elsewhere as information, which a log has that asks for it, and pipes have not.

Compiled code is kept beside the sources or in the user's cache folder, as numba does. Where neither can be written (a read-only
installation, a container without a home) it is kept in a folder of the user's own among the temporary files, or not at all.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numba
from numba import njit
from numba.core import event

from cvxnmf.linalg.compiled import is_interactive

#: Nothing is compiled for callers in C.
_FOR_PYTHON: dict[str, Any] = {"no_cfunc_wrapper": True}


class _Announcement(event.Listener):
    """Listener of numba's compiler: tells once, when a loop of this package is not in the cache, why nothing seems to happen."""

    def on_start(self, event: Any) -> None:
        """The compiler begins: announce it if the loop is one of this package."""
        if event.data["dispatcher"].py_func.__module__.startswith("cvxnmf."):
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
    return cast(Callable[..., Any], njit(cache=_has_cache(), **options, **_FOR_PYTHON)(function))


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
