"""Matrices in binary formats: numpy's npy, read or memory-mapped, numpy's npz, and scipy's sparse npz.

Headers are looked at first, so that no memory is taken for more than a file holds.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from cvxnmf.io.formats import BEGINNINGS, WORDS
from cvxnmf.io.source import MATLAB, FileError, Source, open_file
from cvxnmf.io.tables import MatrixFile

#: Names under which an npz file of several arrays may hold its matrix.
NAMES = ("A", "adjacency", "matrix", "data", "X", "arr_0")
NPY, NPZ = WORDS["npy"], WORDS["npz"]
#: What is wrong with numpy's arrays of objects.
OBJECTS = "holds Python objects, not numbers; save it as float, with numpy.save(name, A.astype(float))."
HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _check_header(source: Source, stream: BinaryIO, available: int) -> None:
    """Refuse an npy array of objects, and one whose header announces more than the bytes that there are."""
    shape, _, dtype = HEADERS[np.lib.format.read_magic(stream)](stream)
    if dtype.hasobject:
        source.refuse(OBJECTS)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > available:
        source.refuse(f"announces an array of shape {shape} and holds {available:,} bytes; it is incomplete or damaged.")


def read_npy(source: Source) -> Any:
    """Read an array from an npy file; pickled objects are refused, since reading them could run code."""
    with source.parsed_as(NPY):
        _check_header(source, io.BytesIO(source.data), len(source.data))
        return np.load(io.BytesIO(source.data), allow_pickle=False)


def map_matrix(path: str | os.PathLike[str], format: str | None = None) -> MatrixFile:
    """The matrix in a .npy file, memory-mapped: nothing but its header is read.

    Parameters
    ----------
    path : str or path
        The file.
    format : str, optional
        "npy", or left out.

    Returns
    -------
    MatrixFile
        The matrix, without names.
    """
    shown = os.fspath(path)
    if shown == "-":
        raise FileError("Standard input cannot be read in blocks of rows; give a .npy file.")
    with open_file(shown) as stream:
        source = Source(shown, stream.read(len(BEGINNINGS["npy"])), os.path.splitext(shown)[1].lower())
        if source.data == b"MATLAB" or source.ending == ".mat":
            source.refuse(MATLAB)
        if source.data != BEGINNINGS["npy"] or format not in (None, "npy"):
            source.refuse(f"is not {NPY}; only .npy files are read in blocks of rows, so convert it with numpy.save.")
        stream.seek(0)
        with source.parsed_as(NPY):
            _check_header(source, stream, os.fstat(stream.fileno()).st_size)
            A = np.load(shown, mmap_mode="r", allow_pickle=False)
    return MatrixFile(require_matrix(source, A))


def require_matrix(source: Source, A: Any) -> Any:
    """Return an array from a file, or refuse it unless it is a matrix with at least one entry."""
    if A.ndim != 2 or 0 in A.shape:
        source.refuse(f"holds an array of shape {A.shape}; a matrix of at least one row and one column is needed.")
    return A


def read_members(source: Source) -> dict[str, Any]:
    """Read all arrays of an npz file by name."""
    with source.parsed_as(NPZ), np.load(io.BytesIO(source.data), allow_pickle=False) as file:
        if not isinstance(file, np.lib.npyio.NpzFile):
            source.refuse(f"is not {NPZ}, although its name says so; rename it.")
        assert file.zip is not None
        members = file.zip.infolist()
        source.check_announced_size(sum(member.file_size for member in members), f"{len(members)} arrays")
        for member in members:
            with file.zip.open(member) as stream:
                _check_header(source, stream, member.file_size)  # type: ignore[arg-type]
        return {name: file[name] for name in file.files}


def read_npz(source: Source, names: tuple[str, ...] = NAMES) -> Any:
    """Read the matrix in an npz file: scipy's sparse one, the only one there is, or the one with a telling name."""
    arrays = read_members(source)
    if {"format", "shape", "data"} <= set(arrays):
        with source.parsed_as(NPZ):
            check_sparse_shape(source, arrays["shape"].tolist())
            matrix = sp.load_npz(io.BytesIO(source.data))
            if hasattr(matrix, "check_format"):  # wrong indices would be read outside of the arrays
                matrix.check_format(full_check=True)
            return sp.csr_array(matrix)
    matrices = {name: array for name, array in arrays.items() if array.ndim == 2}
    name = next((name for name in (matrices if len(matrices) == 1 else names) if name in matrices), None)
    if name is None:
        listed = ", ".join(sorted(matrices)) or "none"
        source.refuse(f"must hold one matrix or call it {names[0]!r}; the matrices in it are: {listed}.")
    return matrices[name]


def check_sparse_shape(source: Source, shape: tuple[int, ...] | list[int]) -> None:
    """Refuse a sparse matrix of far more rows and columns than the file can have entries for."""
    source.check_announced_size(8 * sum(shape), " by ".join(f"{side:,}" for side in shape) + " sparse rows and columns")


def saved_kind(source: Source) -> str | None:
    """The class of the result or certificate that an npz file holds; None if cvxnmf did not write the file."""
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
            if "meta.npy" not in archive.namelist():
                return None
        meta = json.loads(bytes(read_members(source)["meta"]).decode())
        return str(meta.get("kind", "")) if "format" in meta else "Certificate" if "digest" in meta else None
    except Exception:  # damaged files of all sorts: reading them as matrices will say what is wrong
        return None
