"""Where data come from: the bytes of a file or of standard input, unpacked, and their lines."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, BinaryIO, NoReturn

from cvxnmf import validation

#: Lines are taken in pieces of this many: small enough for the caches, large enough to spend little on the loop.
PIECE = 2000
#: Bytes are read this many at a time.
CHUNK = 1 << 24
#: What a file announces or unpacks to may take this many bytes of memory, or this many times its own size.
MODEST, EXPANSION = 1 << 28, 100
GZIP = b"\x1f\x8b"
#: What to do about MATLAB's files.
MATLAB = "is a MATLAB file; read it with scipy.io.loadmat (version 7.3 with h5py) and save its matrix with numpy.save."


class FileError(ValueError):
    """An error about a file that cannot be read or written, in one sentence."""


@dataclass(frozen=True)
class Source:
    """The unpacked content of a source file, its name and ending.

    Attributes
    ----------
    name : str
        What sentences call it.
    data : bytes
        Its content, unpacked.
    ending : str
        The ending of its name in small letters, such as ".csv"; of a packed file, the one before ".gz".
    """

    name: str
    data: bytes
    ending: str

    def refuse(self, what: str, line: int | None = None) -> NoReturn:
        """Raise a FileError that names the source file and the line."""
        raise FileError(f"{self.name}, line {line}: {what}" if line else f"{self.name} {what}")

    def pieces(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the lines of a source file, some thousands at a time, and the number of the first; without a byte order mark."""
        self.must_be_text()
        stream, first = io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8-sig", newline=None), 1
        while lines := list(itertools.islice(stream, PIECE)):
            yield first, lines
            first += len(lines)

    def text(self) -> str:
        """The whole content of a source file as text."""
        self.must_be_text()
        return self.data.decode("utf-8-sig")

    def must_be_text(self) -> None:
        """Refuse a source file that is empty, binary or not UTF-8."""
        if not self.data.strip():
            self.refuse("is empty; give a file with data in it.")
        if b"\0" in self.data and (self.ending == ".mat" or self.data.startswith(b"MATLAB")):
            self.refuse(MATLAB)
        if b"\0" in self.data:
            self.refuse("is neither text nor in a format known here; convert it to text, npy, npz or Matrix Market.")
        try:
            self.data.decode()
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            byte = self.data[error.start]
            self.refuse(f"the byte 0x{byte:02x} is not UTF-8; convert the file, for example with iconv -t utf-8.", line)

    def check_announced_size(self, needed: int, what: str) -> None:
        """Refuse content that announces arrays of `needed` bytes, far more than its own size, before memory is taken for them."""
        if needed > expansion_limit(len(self.data)):
            self.refuse(
                f"announces {what}, which take {needed / 2**30:,.1f} GiB, in {len(self.data):,} bytes; check it, or convert it "
                "to an unpacked .npy file."
            )

    @contextmanager
    def parsed_as(self, kind: str) -> Iterator[None]:
        """Turn any exception of a parser on a broken source file into one sentence."""
        try:
            yield
        except (FileError, MemoryError, ImportError):
            raise
        except Exception as error:  # parsers of others raise all sorts of exceptions on broken files
            words = " ".join(str(error).split()).rstrip(".")
            reason = f": {words[:200]}" if words else ""
            raise FileError(f"{self.name} cannot be read as {kind}{reason}.") from None


def expansion_limit(size: int, modest: int = MODEST) -> int:
    """Bytes of memory that the content of a source file of a given size may take."""
    return max(modest, EXPANSION * size)


def read_source(path: str | os.PathLike[str]) -> Source:
    """Read a source file, or standard input for ``-``, and unpack it."""
    shown = os.fspath(path)
    if shown == "-":
        return unpack("standard input", _standard_input(), "")
    with open_file(shown) as stream:
        data = _read_all(stream, shown, _largest())
    return unpack(shown, data, "".join(PurePath(shown).suffixes[-2:]).lower())


@contextmanager
def open_file(shown: str) -> Iterator[BinaryIO]:
    """Open a source file to read its bytes, or say in one sentence why that fails."""
    try:
        if os.path.isdir(shown):
            raise FileError(f"{shown} is a folder; give a file.")
        with open(shown, "rb") as stream:
            yield stream
    except FileNotFoundError:
        raise FileError(f"{shown} does not exist; check the name and the folder.") from None
    except OSError as error:
        raise FileError(f"{shown} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:  # a name with a NUL in it
        raise error if isinstance(error, FileError) else FileError(f"{shown!r} is not the name of a file.") from None


def unpack(name: str, data: bytes, endings: str, modest: int = MODEST) -> Source:
    """A source from the bytes of a file, unpacked if they are packed with gzip."""
    ending = PurePath(f"x{endings.removesuffix('.gz')}").suffix
    if ending in (".xlsx", ".xls", ".ods"):
        raise FileError(f"{name} is a spreadsheet; save the sheet as CSV, and give that file.")
    if not data.startswith(GZIP):
        if endings.endswith(".gz") and data:
            raise FileError(f"{name} is not packed with gzip, although its name says so; rename or pack it.")
        return Source(name, _as_utf8(data), ending)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            return Source(name, _as_utf8(_read_all(stream, name, min(_largest(), expansion_limit(len(data), modest)))), ending)
    except (OSError, EOFError, zlib.error):
        raise FileError(f"{name} is a damaged or incomplete gzip file; pack or fetch it again.") from None


def _as_utf8(data: bytes) -> bytes:
    """Text as UTF-8 if a byte order mark says that it is UTF-16, as spreadsheets save it; other bytes are returned unchanged."""
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data
    try:
        return data.decode("utf-16").encode()
    except UnicodeError:
        return data


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise FileError("standard input is closed; give a file.")
    binary: Any = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read().encode() if binary is None else _read_all(binary, "standard input", _largest())


def _largest() -> float:
    """Bytes of a source file that may be read at once on this machine."""
    return validation.physical_memory() / 4


def _read_all(stream: BinaryIO | gzip.GzipFile, name: str, limit: float) -> bytes:
    """Read the whole stream of a source file, or refuse one that could fill the memory."""
    parts, size = [], 0
    while part := stream.read(CHUNK):
        parts.append(part)
        size += len(part)
        if size > limit:
            advice = "take a part of it" if limit == _largest() else "unpack it first if that is right"
            raise FileError(f"{name} holds more than {limit / 2**30:,.1f} GiB, too much to be read at once; {advice}.")
    return b"".join(parts)
