"""Save results to one file and load them: numpy's npz format, arrays as they are and JSON for the rest; no pickle.

A file may come from anybody. What is loaded is checked like the data of a user: types, shapes, ranges, and whether parts that
belong together agree. A digest shows whether a file was changed after it was written; it is no protection against forgery.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cvxnmf import validation
from cvxnmf.certificates import Certificate, LabelStatement, RankStatement, parse_statement
from cvxnmf.certificates.whole_files import whole_file
from cvxnmf.graphs import quality
from cvxnmf.graphs.hierarchy import hierarchy_of
from cvxnmf.graphs.partition import factors_of, label_certificate_of
from cvxnmf.io.arrays import read_members
from cvxnmf.io.parts import Parts, names_as_json, require
from cvxnmf.io.source import FileError, Source
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import (
    AnyPoint,
    CPFactor,
    Factorization,
    Iterate,
    Level,
    MatrixPoint,
    PairedPoint,
    Partition,
    Point,
    Solution,
    Status,
)
from cvxnmf.results.hierarchy import Code

Result = Solution | Factorization | CPFactor | Partition
#: Number of the format, raised when old files can no longer be read.
FORMAT = 1
ITERATE_TYPES = {"iteration": int, "seconds": float, "value": float, "bound": float, "rank": int, "stage": str, "share": float}
MEASURES = ("performance", "off_diagonal_performance", "modularity")
PARTITION_NUMBERS = (*MEASURES, "noise_edge")
#: No time and no eigenvalue is above this.
FINITE = float(np.finfo(np.float64).max)
NAME_FIELDS = ("row_names", "column_names")
PARTITION_ARRAYS = ("labels", "memberships", "order", "spectrum")


def save(result: Result, path: str | PathLike[str]) -> None:
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
    if kind not in KINDS:
        validation.refuse(f"Only a Solution, a Factorization, a CPFactor or a Partition can be saved, not {kind}.")
    if not isinstance(path, str | PathLike):
        validation.refuse(f"A path is needed to save a result, not {path!r}.")
    write, _ = KINDS[kind]
    parts = write(result)
    parts.facts.update(format=FORMAT, kind=kind)
    parts.facts["digest"] = parts.digest()
    text: Any = np.frombuffer(json.dumps(parts.facts).encode(), dtype=np.uint8)
    with whole_file(path) as name, open(name, "wb") as file:
        np.savez_compressed(file, meta=text, **parts.arrays)


def load(path: str | PathLike[str]) -> Any:
    """Read a result written by :func:`save`; a file that was damaged or tampered with is refused.

    Returns
    -------
    Solution, Factorization, CPFactor or Partition

    Examples
    --------
    >>> import cvxnmf
    >>> found = cvxnmf.load("karate.npz")  # doctest: +SKIP
    """
    if not isinstance(path, str | PathLike):
        validation.refuse(f"A path is needed to load a result, not {path!r}.")
    with open(path, "rb") as stream:
        return load_source(Source(str(path), stream.read(), ".npz"))


def load_source(source: Source) -> Any:
    """Load a result from the content of a file."""
    try:
        arrays = read_members(source)
        parts = Parts(json.loads(bytes(arrays.pop("meta")).decode()), arrays)
        require(parts.facts["format"] <= FORMAT, "it is of a newer format")
        if "digest" in parts.facts:
            require(parts.facts.pop("digest") == parts.digest(), "it was changed after it was written")
        _, read = KINDS[parts.facts["kind"]]
        return read(parts)
    except Exception as error:  # a file can be damaged or forged in any way
        reason = f": {error}" if isinstance(error, ValueError) and not isinstance(error, FileError | UnicodeError) else ""
        raise ValueError(f"{source.name} is not a result file written by cvxnmf.save{reason.rstrip('.')}.") from error


def _put_certificate(parts: Parts, certificate: Certificate) -> None:
    parts.facts["certificate"] = certificate.facts() | {"digest": certificate.digest}
    parts.arrays.update({f"witness.{name}": np.asarray(array) for name, array in certificate.witness.items()})


def _certificate(parts: Parts) -> Certificate:
    """The certificate in a saved result, if its digest shows that it was not altered."""
    witness = {name.removeprefix("witness."): array for name, array in parts.arrays.items() if name.startswith("witness.")}
    facts = parts.facts["certificate"]
    certificate = Certificate.from_facts(facts | {"digest": ""}, witness)
    require(facts["digest"] == certificate.digest, "its certificate was altered")
    require(certificate.gap >= 0, "its bound is wrong")
    return certificate


def _put_outcome(parts: Parts, result: Solution | Factorization) -> None:
    parts.facts.update(status=result.status.name, history=[asdict(iterate) for iterate in result.history])
    _put_certificate(parts, result.certificate)


def _outcome(parts: Parts) -> dict[str, Any]:
    """Status, history and certificate that a saved Solution and a saved Factorization share."""
    lines = parts.facts["history"]
    require(isinstance(lines, list), "its history is malformed")
    history = tuple(Iterate(**{name: kind(line[name]) for name, kind in ITERATE_TYPES.items() if name in line}) for line in lines)
    return {"status": Status[parts.facts["status"]], "history": history, "certificate": _certificate(parts)}


def _write_solution(result: Solution) -> Parts:
    parts = Parts({"n_iter": result.n_iter, "seconds": result.seconds, "point": type(result.point).__name__}, {})
    _put_outcome(parts, result)
    for name, part in result.point._asdict().items():
        kept: dict[str, Any] = parts.arrays if isinstance(part, np.ndarray) else parts.facts
        kept[f"point.{name}"] = part
    if result.groups is not None:
        parts.arrays["groups"] = result.groups
    return parts


def _read_solution(parts: Parts) -> Solution:
    point = _point(parts)
    groups = parts.integers("groups", -1, len(point.v), len(point.v)) if "groups" in parts.arrays else None
    rest: dict[str, Any] = {
        "n_iter": int(parts.number("n_iter", 0)),
        "seconds": parts.number("seconds", 0, FINITE),
        "groups": groups,
    }
    return Solution(point=point, **_outcome(parts), **rest)


def _point(parts: Parts) -> AnyPoint:
    kind = parts.facts["point"]
    if kind == "MatrixPoint":
        X = parts.floats("point.matrix", 2)
        require(np.isfinite(X).all() and np.array_equal(X, X.T), "its matrix is not finite and symmetric")
        return MatrixPoint(X)
    v, W = parts.floats("point.v", 1), parts.floats("point.W", 2)
    require(len(v) == len(W) and np.isfinite(W).all() and (v < np.inf).all(), "its point is malformed")
    if kind == "Point":
        return Point(v, W)
    require(kind == "PairedPoint" and 0 < parts.number("point.n_rows") < len(v), "its point is malformed")
    return PairedPoint(v, W, int(parts.facts["point.n_rows"]))


def _put_factors(parts: Parts, result: Factorization | CPFactor) -> None:
    parts.arrays["U"] = result.U
    parts.facts["symmetric"] = result.V is result.U
    if result.V is not result.U:
        parts.arrays["V"] = result.V


def _factors(parts: Parts) -> tuple[FloatArray, FloatArray]:
    U = parts.floats("U", 2, single=True)
    V = U if parts.facts["symmetric"] else parts.floats("V", 2, single=True)
    for side in (U, V):
        require(np.isfinite(side).all() and (side >= 0).all() and side.size, "its factors are not finite and nonnegative")
    require(U.shape[1] == V.shape[1], "its factors do not belong together")
    return U, V


def _write_factorization(result: Factorization) -> Parts:
    names = {side: names_as_json(getattr(result, side)) for side in NAME_FIELDS if getattr(result, side) is not None}
    parts = Parts({"value": result.value, "message": result.message, "levels": []} | names, {})
    _put_outcome(parts, result)
    _put_factors(parts, result)
    for number, level in enumerate(result.levels):
        inner = Parts({"size": level.size, "words": level.words}, {})
        if level.certificate is not result.certificate:
            _put_certificate(inner, level.certificate)
        parts.facts["levels"].append(parts.include(f"level{number}", inner))
    return parts


def _read_factorization(parts: Parts) -> Factorization:
    (U, V), outcome, value = _factors(parts), _outcome(parts), parts.number("value")
    certificate = outcome["certificate"]
    require(value == certificate.value, "its value is not that of its certificate")
    require(
        certificate.statement.get("n_components", U.shape[1]) == U.shape[1],
        "its certificate is about another number of components",
    )
    require(value >= _least_loss(U, V, certificate), "its factors are too small for its value")
    inner = [parts.inside(f"level{number}", facts) for number, facts in enumerate(parts.facts.get("levels", []))]
    levels = tuple(_level(level, certificate) for level in inner)
    names: dict[str, Any] = {side: parts.names(side, len(X)) for side, X in zip(NAME_FIELDS, (U, V), strict=True)}
    return Factorization(U=U, V=V, value=value, message=str(parts.facts["message"]), levels=levels, **names, **outcome)


def _least_loss(U: FloatArray, V: FloatArray, certificate: Certificate) -> float:
    """A lower bound on the loss from the size of the data and of the model, by the Cauchy-Schwarz or the log-sum inequality.

    Factors may be larger than the data where entries are missing, so that only small ones tell anything.
    """
    statement, scale = certificate.statement, certificate.scale
    if statement.form != RankStatement.form or "scaling" in statement or statement["loss"] not in ("mse", "kl"):
        return 0.0 if U.any() and V.any() else 0.999 * scale
    least, U, V = 0.0, U.astype(np.float64), V.astype(np.float64)
    if statement["loss"] == "mse":
        least = max(0.0, math.sqrt(scale) - math.sqrt(float(np.vdot(U.T @ U, V.T @ V)))) ** 2
    elif (total := float(U.sum(axis=0) @ V.sum(axis=0))) < scale:
        least = scale * math.log(scale / total) - scale + total if total > 0 else math.inf
    return least - 1e-6 * (least + scale)


def _level(parts: Parts, certificate: Certificate) -> Level:
    """A level of a saved factorisation; its certificate is that of the whole if it has none of its own."""
    own = _certificate(parts) if "certificate" in parts.facts else certificate
    return Level(int(parts.facts["size"]), str(parts.facts["words"]), own)


def _write_cp_factor(result: CPFactor) -> Parts:
    parts = Parts({"max_relative_error": result.max_relative_error, "frobenius_error": result.frobenius_error}, {})
    _put_factors(parts, result)
    return parts


def _read_cp_factor(parts: Parts) -> CPFactor:
    U, V = _factors(parts)
    return CPFactor(U, parts.number("max_relative_error", 0), parts.number("frobenius_error", 0), V)


def _write_partition(result: Partition) -> Parts:
    """The parts of a partition to be saved; its solution, and its factors if computed, under names of their own."""
    facts = {"nodes": names_as_json(result.nodes)} | {name: getattr(result, name) for name in PARTITION_NUMBERS}
    arrays = {name: getattr(result, name) for name in PARTITION_ARRAYS}
    arrays |= {f"A.{name}": getattr(result.A, name) for name in ("data", "indices", "indptr")}
    parts = Parts(facts, arrays | {"A.shape": np.array(result.A.shape)})
    if result.alternatives:
        parts.arrays["alternatives"] = np.array(result.alternatives, dtype=np.float64)
    if result.code:
        facts["code"] = result.code._asdict()
    facts["solution"] = parts.include("solution", _write_solution(result.solution))
    if "factorization" in vars(result):
        facts["factorization"] = parts.include("factorization", _write_factorization(result.factorization))
    facts["label_proof"] = parts.include("label_proof", _write_label_proof(result))
    return parts


def _write_label_proof(result: Partition) -> Parts:
    """The parts of a partition to be saved about its labels: their objective, and what is proved so far."""
    parts = Parts({"statement": dict(result.label_statement), "several_optimal": result.several_optimal}, {})
    if result.label_certificate_at_hand is not None:
        _put_certificate(parts, result.label_certificate_at_hand)
    if result.other_optimum is not None:
        parts.arrays["other_optimum"] = result.other_optimum
    return parts


def _read_partition(parts: Parts) -> Partition:
    A = _adjacency_matrix(parts)
    n, nodes = A.shape[0], parts.names("nodes", A.shape[0]) or ()
    memberships = parts.floats("memberships", 2)
    labels, order = parts.integers("labels", 0, memberships.shape[1], n), parts.integers("order", 0, n, n)
    require(len(memberships) == n and np.array_equal(np.sort(order), np.arange(n)), "its order is not one of the nodes")
    require((memberships >= 0).all() and np.allclose(memberships.sum(axis=1), 1.0), "its memberships are not shares")
    largest = memberships[np.arange(n), labels] >= memberships.max(axis=1) - 1e-9
    require(largest.all(), "its labels are not those of its memberships")
    require(len(set(nodes)) == n, "its nodes do not have one name each")
    solution = _read_solution(parts.inside("solution", parts.facts["solution"]))
    proof = solution.certificate
    same = len(solution.v) == n and math.isclose(proof.scale, proof.statement.scale(A), rel_tol=1e-9)
    require(same, "its solution is one of another graph")
    spectrum = parts.floats("spectrum", 1)
    require(len(spectrum) <= n and np.isfinite(spectrum).all(), "its spectrum is not one of the graph")
    code = _read_code(parts.inside("code", parts.facts["code"])) if "code" in parts.facts else None
    on_demand: dict[str, Any] = {"memberships": memberships, "order": order, "spectrum": spectrum, "solution": solution}
    on_demand |= {"noise_edge": parts.number("noise_edge", 0, FINITE), "hierarchy": partial(hierarchy_of, A, labels, code)}
    found = Partition(
        nodes=nodes,
        labels=labels,
        A=A,
        factors=partial(factors_of, A, memberships),
        alternatives=_read_alternatives(parts, n),
        code=code,
        **on_demand,
        **_measures(parts, A, labels),
        **_read_label_proof(parts.inside("label_proof", parts.facts.get("label_proof", {})), A, labels),
    )
    if "factorization" in parts.facts:
        factorization = _read_factorization(parts.inside("factorization", parts.facts["factorization"]))
        require(factorization.U.shape == memberships.shape, "its factors are those of another graph")
        vars(found)["factorization"] = factorization
    return found


def _measures(parts: Parts, A: Any, labels: NDArray[np.intp]) -> dict[str, Any]:
    """The qualities that a saved partition states, if they are those of the labels."""
    true = (quality.performance(A, labels), quality.performance(A, labels, diagonal=False), quality.modularity(A, labels))
    stated = {name: parts.number(name) for name in MEASURES}
    for (name, value), found in zip(stated.items(), true, strict=True):
        require(math.isclose(value, found, rel_tol=1e-9, abs_tol=1e-9), f"its {name} is not that of its labels")
    return stated


def _read_alternatives(parts: Parts, n: int) -> tuple[tuple[int, float], ...]:
    """Numbers of clusters with description lengths in a saved partition; files of earlier versions keep none."""
    if "alternatives" not in parts.arrays:
        return ()
    pairs = parts.floats("alternatives", 2)
    known = pairs.shape[1] == 2 and np.isfinite(pairs).all() and np.isin(pairs[:, 0], np.arange(1, n + 1)).all()
    require(known, "its numbers of clusters are malformed")
    return tuple((int(k), float(length)) for k, length in pairs)


def _read_code(parts: Parts) -> Code:
    """The measurements in a saved partition that description lengths rest on."""
    even = parts.facts["even"]
    require(isinstance(even, bool), "even is malformed")
    return Code(parts.number("dispersion", 1e-12, 1e12), even)


def _read_label_proof(parts: Parts, A: Any, labels: NDArray[np.intp]) -> dict[str, Any]:
    """The objective and proof of the labels in a saved partition; files of earlier versions keep neither."""
    statement: Any = (
        parse_statement(parts.facts["statement"]) if "statement" in parts.facts else LabelStatement("modularity", 1.0)
    )
    require(statement.form == LabelStatement.form, "its objective is not known")
    allowed = len(labels) if statement.n_clusters is None else statement.n_clusters
    require(labels.max() < allowed <= len(labels), "its number of clusters is not that of its labels")
    read: dict[str, Any] = {"label_statement": statement, "label_proof": partial(label_certificate_of, A, labels, statement)}
    if "certificate" in parts.facts:
        proof = _certificate(parts)
        same = dict(proof.statement) == dict(statement) and proof.value == float(statement.objective_of(A).value(labels))
        require(same, "its certificate is about other labels")
        read["proved_labels"] = proof
    several, other = parts.facts.get("several_optimal"), None
    require(several is None or isinstance(several, bool), "several_optimal is malformed")
    require(("other_optimum" in parts.arrays) == bool(several), "several_optimal and other_optimum do not belong together")
    if several:
        other = parts.integers("other_optimum", 0, len(labels), len(labels))
        value = statement.objective_of(A).value
        require(value(other) == value(labels), "its other optimum is none")
    return read | {"several_optimal": several, "other_optimum": other}


def _adjacency_matrix(parts: Parts) -> Any:
    """The adjacency matrix in a saved partition; no entry is looked up before all indices are known to lie inside."""
    shape, largest = parts.integers("A.shape", 1, np.iinfo(np.int64).max, 2), np.iinfo(np.int64).max
    indices, indptr = parts.integers("A.indices", 0, int(shape[1])), parts.integers("A.indptr", 0, largest)
    A = csr_array((parts.floats("A.data", 1), indices, indptr), shape=tuple(shape.tolist()))
    A.check_format(full_check=True)
    validation.adjacency_matrix(A)
    require((A != A.T).nnz == 0, "its adjacency matrix is not symmetric")
    return A


#: How a result of each kind becomes parts, and comes back from them.
KINDS: dict[str, tuple[Callable[[Any], Parts], Callable[[Parts], Result]]] = {
    "Solution": (_write_solution, _read_solution),
    "Factorization": (_write_factorization, _read_factorization),
    "CPFactor": (_write_cp_factor, _read_cp_factor),
    "Partition": (_write_partition, _read_partition),
}
