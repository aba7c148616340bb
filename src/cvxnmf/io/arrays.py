"""Matrices in binary formats: numpy's npy and npz, and scipy's sparse npz."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.io.source import Source, reading

#: Names under which an npz file of several arrays may hold its matrix.
NAMES = ("A", "adjacency", "matrix", "data", "X", "arr_0")


def read_npy(source: Source) -> Any:
    """Read an array; pickled objects are refused, since reading them could run code."""
    with reading(source, "a numpy .npy file"):
        return np.load(io.BytesIO(source.data), allow_pickle=False)


def read_npz(source: Source, names: tuple[str, ...] = NAMES) -> Any:
    """Read the matrix in an npz file: scipy's sparse one, the only one there is, or the one with a telling name."""
    with reading(source, "a numpy .npz file"), np.load(io.BytesIO(source.data), allow_pickle=False) as file:
        if not isinstance(file, np.lib.npyio.NpzFile):
            source.refuse("is not a numpy .npz file, although its name says so; rename it.")
        if {"format", "shape", "data"} <= set(file.files):
            return _sparse(sp.load_npz(io.BytesIO(source.data)))
        matrices = {name: file[name] for name in file.files if file[name].ndim == 2}
    if len(matrices) == 1:
        return next(iter(matrices.values()))
    for name in names:
        if name in matrices:
            return matrices[name]
    listed = ", ".join(sorted(matrices)) or "none"
    return source.refuse(f"must hold one matrix or call it {names[0]!r}; the matrices in it are: {listed}.")


def _sparse(matrix: Any) -> Any:
    if hasattr(matrix, "check_format"):  # wrong indices would be read outside of the arrays
        matrix.check_format(full_check=True)
    return sp.csr_array(matrix)


def saved_kind(source: Source) -> str | None:
    """What kind of result cvxnmf wrote into an npz file, "Certificate" for a certificate; None if it is none of ours."""
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
            if "meta.npy" not in archive.namelist():
                return None
        with np.load(io.BytesIO(source.data), allow_pickle=False) as file:
            meta = json.loads(bytes(file["meta"]).decode())
        return str(meta.get("kind", "")) if "format" in meta else "Certificate" if "digest" in meta else None
    except Exception:  # damaged files of all sorts: reading them as matrices will say what is wrong
        return None
