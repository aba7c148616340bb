"""Matrices that stay in their file and are read in blocks of rows."""

from __future__ import annotations

import os

import numpy as np

from cvxnmf.io.formats import BEGINNINGS
from cvxnmf.io.source import MATLAB, OBJECTS, FileError
from cvxnmf.io.tables import MatrixFile


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
    advice = "only .npy files are read in blocks of rows, so convert it with numpy.save"
    if shown == "-":
        raise FileError("Standard input cannot be read in blocks of rows; give a .npy file.")
    try:
        if os.path.isdir(shown):
            raise FileError(f"{shown} is a folder; give a .npy file.")
        with open(shown, "rb") as stream:
            beginning = stream.read(len(BEGINNINGS["npy"]))
        if beginning == b"MATLAB" or shown.lower().endswith(".mat"):
            raise FileError(f"{shown} {MATLAB}")
        if beginning != BEGINNINGS["npy"] or format not in (None, "npy"):
            raise FileError(f"{shown} is not a numpy .npy file; {advice}.")
        A = np.load(shown, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FileError(f"{shown} does not exist; check the name and the folder.") from None
    except OSError as error:
        raise FileError(f"{shown} cannot be read: {error.strerror or error}.") from None
    except (ValueError, EOFError) as error:
        if isinstance(error, FileError):
            raise
        if "Python objects" in str(error):
            raise FileError(f"{shown} {OBJECTS}") from None
        raise FileError(
            f"{shown} is incomplete or damaged ({' '.join(str(error).split()).rstrip('.')}); write it again."
        ) from None
    if A.ndim != 2 or 0 in A.shape:
        raise FileError(f"{shown} holds an array of shape {A.shape}; a matrix of at least one row and one column is needed.")
    return MatrixFile(A)
