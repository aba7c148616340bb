"""Compiled loops: one thread, no interpreter lock, the same input gives the same bits.

Error model "numpy" lets divisions run in SIMD lanes; callers keep the divisors away from zero.

The compiler is loaded at the first call of any loop, so that an import of this package does not wait for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import update_wrapper
from importlib import import_module
from threading import RLock
from types import CodeType
from typing import Any, TypeVar, cast

Loop = TypeVar("Loop", bound=Callable[..., Any])
#: Without the interpreter's lock, so that row chunks can be worked on in threads.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}
_LOCK = RLock()


class Deferred:
    """A compiled loop, or what else needs the compiler, made when it is first called, or when a loop that names it is.

    A compiled loop must find what it calls under its names: there, what is made takes the place of what stood for it.
    """

    def __init__(self, make: Callable[[], Callable[..., Any]], function: Callable[..., Any] | None = None) -> None:
        self.make, self.function = make, function
        self.made: Callable[..., Any] | None = None
        if function is not None:
            update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled loop, which is made at its first call.

        A Ctrl-C that arrives while a loop hands over its result is raised by Python as a SystemError that it caused, and one
        that the compiler's callbacks swallow by numba as a RuntimeError: nothing else keeps these from what they compiled.
        """
        try:
            return (self.made or self.resolve())(*arguments)
        except (SystemError, RuntimeError) as error:
            if _is_interrupt(error):
                raise KeyboardInterrupt from None
            raise

    def __reduce__(self) -> Any:
        """Pickle a compiled loop as its name, under which another process finds it."""
        return _loop_by_name, (self.__module__, self.__dict__["__qualname__"])

    def resolve(self) -> Callable[..., Any]:
        """Compile the deferred loop, once, with all loops that it names."""
        with _LOCK:
            if self.made is None:
                made = self.make()
                for place, name in global_names(self.function):
                    if isinstance(place[name], Deferred):
                        place[name] = made if place[name] is self else place[name].resolve()
                self.made = made  # last: other threads may call it from here on
            return self.made


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether a Ctrl-C is what an error of a loop stems from."""
    if str(error).startswith("no compiled object yet"):
        return True
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def global_names(function: Callable[..., Any] | None) -> Iterator[tuple[dict[str, Any], str]]:
    """Global names that a function to be compiled uses, and the dictionaries in which they stand."""
    codes = [] if function is None else [function.__code__]
    while codes:
        code, place = codes.pop(), cast(Any, function).__globals__
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        yield from ((place, name) for name in code.co_names if name in place)


def _loop_by_name(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def compiled(function: Loop) -> Loop:
    """Decorator of loops: compiled when first called, the result kept on disk."""
    return compile_with(**_OPTIONS)(function)


def inlined(function: Loop) -> Loop:
    """Decorator of loops: compiled as a part of the loop that calls them."""
    return compile_with(**_OPTIONS, inline="always")(function)


def compile_with(**options: Any) -> Callable[[Loop], Loop]:
    """Decorator of loops: compiled with options of numba's when first called, the result kept on disk.

    A loop has the arithmetic that its own options say: left open, numba would give it that of whichever loop calls it first.
    """
    chosen: dict[str, Any] = {"fastmath": False, "error_model": "python"} | options

    def decorate(function: Loop) -> Loop:
        return cast(Loop, Deferred(lambda: _compiler().dispatcher(function, chosen), function))

    return decorate


def _compiler() -> Any:
    return import_module("cvxnmf.linalg.compiler")


def is_interactive() -> bool:
    """Whether somebody waits for loops to be compiled: at a terminal, or at the prompt of an interpreter or a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", None)  # a program may import IPython and run nowhere near it
    prompted = hasattr(sys, "ps1") or (shell is not None and shell() is not None)
    return prompted or bool(sys.stderr is not None and sys.stderr.isatty())
