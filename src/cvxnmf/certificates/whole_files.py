"""Files that take their place when they are complete."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO


def is_plain(path: str | PathLike[str]) -> bool:
    """Whether a path is or will be a plain file, not a pipe or a device."""
    return os.path.isfile(path) or not os.path.exists(path)


def temporary_file(path: str | PathLike[str]) -> BinaryIO:
    """A new temporary file in the folder of `path`, under a name that nobody else has."""
    return open(os.path.join(_folder(path), f".cvxnmf-{os.getpid()}-{secrets.token_hex(8)}.part"), "xb")


def _folder(path: str | PathLike[str]) -> str:
    return os.path.dirname(os.path.realpath(path))


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[str]:
    """A name to write a file under, which takes its place at `path` when it is complete, with the mode of the one before.

    Pipes, devices, and files in folders where nothing new may be written, are written in place.
    """
    if not is_plain(path) or not os.access(_folder(path), os.W_OK):
        yield os.fspath(path)
        return
    name, target = None, os.path.realpath(path)
    try:
        with temporary_file(path) as file:
            name = file.name
        yield name
        if os.path.exists(target):
            shutil.copymode(target, name)
        os.replace(name, target)
    finally:
        if name is not None:
            Path(name).unlink(missing_ok=True)
