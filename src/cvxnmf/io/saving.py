"""Results to one file and back: numpy's npz format, arrays as they are and JSON for the rest; no pickle inside."""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import asdict
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cvxnmf import validation
from cvxnmf.certificates import Certificate, CertificateError
from cvxnmf.certificates.certificate import UNREADABLE
from cvxnmf.graphs.partition import factors_of
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import CPFactor, Factorization, Iterate, Level, MatrixPoint, PairedPoint, Partition, Point, Solution, Status

#: Number of the format, raised when old files can no longer be read.
FORMAT = 1
#: What a partition consists of.
PARTITION_NUMBERS = ("performance", "off_diagonal_performance", "modularity", "noise_edge")
PARTITION_ARRAYS = ("labels", "memberships", "order", "spectrum")
PARTS = ("solution", "factorization")
POINTS: dict[str, type] = {"Point": Point, "PairedPoint": PairedPoint, "MatrixPoint": MatrixPoint}


def save(result: Solution | Factorization | CPFactor | Partition, path: str | PathLike[str]) -> None:
    """Write a solution, a factorisation, nonnegative factors or a partition to a file.

    Parameters
    ----------
    result : Solution, Factorization, CPFactor or Partition
        What to keep; its certificate is kept with it. Names of nodes that are neither numbers nor strings become strings.
    path : str or path
        The file to write, usually named ``*.npz``.

    Examples
    --------
    >>> import os, tempfile, cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> solution = cvxnmf.solve(cvxnmf.symmetric(A, trace="auto"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cvxnmf.save(solution, os.path.join(folder, "solution.npz"))
    ...     again = cvxnmf.load(os.path.join(folder, "solution.npz"))
    >>> bool((again.X == solution.X).all()), again.certificate.check(A) == solution.certificate.bound
    (True, True)
    """
    kind = type(result).__name__
    if kind not in READERS:
        validation.refuse(f"Only a Solution, a Factorization, a CPFactor or a Partition can be saved, not {kind}.")
    meta, arrays = _written(result)
    meta |= {"format": FORMAT, "kind": kind}
    text: Any = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    with open(path, "wb") as file:
        np.savez_compressed(file, meta=text, **arrays)


def _written(result: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What JSON keeps of a result, and its arrays."""
    meta: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    if isinstance(result, Partition):
        _put_partition(result, meta, arrays)
        return meta, arrays
    if isinstance(result, CPFactor):
        meta |= {"max_relative_error": result.max_relative_error, "frobenius_error": result.frobenius_error}
        _put_factors(result, meta, arrays)
        return meta, arrays
    meta |= {"status": result.status.name, "history": [asdict(line) for line in result.history]}
    _put_certificate(result.certificate, meta, arrays)
    if isinstance(result, Solution):
        _put_solution(result, meta, arrays)
    else:
        meta |= {"value": result.value, "message": result.message}
        _put_factors(result, meta, arrays)
        _put_levels(result, meta, arrays)
    return meta, arrays


def load(path: str | PathLike[str]) -> Any:
    """Read a result written by :func:`save`.

    Returns
    -------
    Solution, Factorization, CPFactor or Partition
    """
    if not isinstance(path, str | PathLike):
        validation.refuse(f"A path is needed to load a result, not {path!r}.")
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(bytes(arrays.pop("meta")).decode())
        if meta["format"] > FORMAT:
            raise ValueError("a newer format")
        return READERS[meta["kind"]](meta, arrays)
    except FileNotFoundError:
        raise
    except (*UNREADABLE, zipfile.BadZipFile, zlib.error, CertificateError) as error:
        raise ValueError(f"{path} is not a result file written by cvxnmf.save.") from error


def _put_factors(result: Factorization | CPFactor, meta: dict[str, Any], arrays: dict[str, FloatArray]) -> None:
    arrays["U"] = result.U
    meta["symmetric"] = result.V is result.U
    if result.V is not result.U:
        arrays["V"] = result.V


def _put_levels(result: Factorization, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Levels with their certificates under names of their own; the last one's is that of the result."""
    meta["levels"] = []
    for number, level in enumerate(result.levels[:-1]):
        inner: dict[str, Any] = {"size": level.size, "words": level.words}
        kept: dict[str, Any] = {}
        _put_certificate(level.certificate, inner, kept)
        meta["levels"].append(inner)
        arrays |= {f"level{number}/{name}": array for name, array in kept.items()}
    if result.levels:
        meta["levels"].append({"size": result.levels[-1].size, "words": result.levels[-1].words})


def _levels(meta: dict[str, Any], arrays: dict[str, Any], last: Certificate) -> tuple[Level, ...]:
    """The levels that :func:`_put_levels` wrote."""
    found = []
    for number, inner in enumerate(meta.get("levels", [])):
        kept = {n.removeprefix(f"level{number}/"): a for n, a in arrays.items() if n.startswith(f"level{number}/")}
        found.append(Level(inner["size"], inner["words"], _certificate(inner, kept) if "certificate" in inner else last))
    return tuple(found)


def _put_certificate(certificate: Certificate, meta: dict[str, Any], arrays: dict[str, FloatArray]) -> None:
    names = ("value", "bound", "scope", "kind", "rigorous", "restored", "scale", "digest")
    meta["certificate"] = {name: getattr(certificate, name) for name in names} | {"statement": dict(certificate.statement)}
    arrays |= {f"witness.{name}": np.asarray(array) for name, array in certificate.witness.items()}


def _put_solution(result: Solution, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    meta |= {"n_iter": result.n_iter, "seconds": result.seconds, "point": type(result.point).__name__}
    for name, part in result.point._asdict().items():
        if isinstance(part, np.ndarray):
            arrays[f"point.{name}"] = part
        else:
            meta[f"point.{name}"] = part
    if result.groups is not None:
        arrays["groups"] = result.groups


def _put_partition(result: Partition, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The parts of a partition; its solution and its factors, if they were computed, under names of their own."""
    meta["nodes"] = [name if isinstance(name, str | int | float) else _plain(name) for name in result.nodes]
    meta |= {name: getattr(result, name) for name in PARTITION_NUMBERS}
    arrays |= {name: getattr(result, name) for name in PARTITION_ARRAYS}
    arrays |= {f"A.{name}": getattr(result.A, name) for name in ("data", "indices", "indptr")}
    arrays["A.shape"] = np.array(result.A.shape)
    parts = {"solution": result.solution} | ({"factorization": result.factorization} if "factorization" in vars(result) else {})
    for part, value in parts.items():
        meta[part], inner = _written(value)
        arrays |= {f"{part}/{name}": array for name, array in inner.items()}


def _plain(name: Any) -> Any:
    """A node's name as JSON can keep it."""
    return name.item() if isinstance(name, np.generic) else str(name)


def _certificate(meta: dict[str, Any], arrays: dict[str, FloatArray]) -> Certificate:
    witness = {name.removeprefix("witness."): array for name, array in arrays.items() if name.startswith("witness.")}
    return Certificate(**meta["certificate"], witness=witness)


def _outcome(meta: dict[str, Any], arrays: dict[str, FloatArray]) -> dict[str, Any]:
    """What a Solution and a Factorization have in common."""
    history = tuple(Iterate(**line) for line in meta["history"])
    return {"status": Status[meta["status"]], "history": history, "certificate": _certificate(meta, arrays)}


def _read_solution(meta: dict[str, Any], arrays: dict[str, Any]) -> Solution:
    kind = POINTS[meta["point"]]
    parts = {name: arrays[f"point.{name}"] if f"point.{name}" in arrays else meta[f"point.{name}"] for name in kind._fields}  # type: ignore[attr-defined]
    rest = {"n_iter": meta["n_iter"], "seconds": meta["seconds"], "groups": arrays.get("groups")}
    return Solution(point=kind(**parts), **_outcome(meta, arrays), **rest)


def _read_factorization(meta: dict[str, Any], arrays: dict[str, FloatArray]) -> Factorization:
    U = arrays["U"]
    V = U if meta["symmetric"] else arrays["V"]
    if not all(side.dtype.kind == "f" and side.ndim == 2 and np.isfinite(side).all() and (side >= 0).all() for side in (U, V)):
        raise ValueError("factors that are not finite and nonnegative")
    if U.shape[1] != V.shape[1] or meta["value"] != meta["certificate"]["value"]:
        raise ValueError("parts that do not belong together")
    outcome = _outcome(meta, arrays)
    levels = _levels(meta, arrays, outcome["certificate"])
    return Factorization(U=U, V=V, value=meta["value"], message=meta["message"], levels=levels, **outcome)


def _read_factor(meta: dict[str, Any], arrays: dict[str, FloatArray]) -> CPFactor:
    U = arrays["U"]
    return CPFactor(U, meta["max_relative_error"], meta["frobenius_error"], U if meta["symmetric"] else arrays["V"])


def _read_partition(meta: dict[str, Any], arrays: dict[str, Any]) -> Partition:
    A = csr_array((arrays["A.data"], arrays["A.indices"], arrays["A.indptr"]), shape=tuple(arrays["A.shape"]))
    inner = {part: {n.removeprefix(f"{part}/"): a for n, a in arrays.items() if n.startswith(f"{part}/")} for part in PARTS}
    numbers: dict[str, Any] = {name: float(meta[name]) for name in PARTITION_NUMBERS}
    kept = {name: arrays[name] for name in PARTITION_ARRAYS}
    n, k = kept["memberships"].shape
    if not (len(meta["nodes"]) == len(kept["labels"]) == len(kept["order"]) == A.shape[0] == n and kept["labels"].max() < k):
        raise ValueError("parts that do not belong together")
    solution = _read_solution(meta["solution"], inner["solution"])
    found = Partition(
        nodes=tuple(meta["nodes"]), **kept, **numbers, solution=solution, A=A, factors=partial(factors_of, A, kept["memberships"])
    )
    if "factorization" in meta:
        vars(found)["factorization"] = _read_factorization(meta["factorization"], inner["factorization"])
    return found


READERS = {
    "Solution": _read_solution,
    "Factorization": _read_factorization,
    "CPFactor": _read_factor,
    "Partition": _read_partition,
}
