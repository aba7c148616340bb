"""Write labels, memberships and factors to files; look first whether they can be written."""

from __future__ import annotations

import csv
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from cvxnmf.certificates import files
from cvxnmf.io import results
from cvxnmf.io.source import FileError

if TYPE_CHECKING:
    from cvxnmf.results import Factorization, Partition

#: What stands between the columns of a text file, by its ending.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def check_writable(path: str, endings: Sequence[str] = ()) -> None:
    """Refuse a path that cannot be written, before any long work."""
    target = Path(path)
    if endings and target.suffix.lower() not in endings:
        raise FileError(f"{path} must end in {' or '.join(endings)}, so that its format is known.")
    if target.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file to write.")
    folder = target.parent
    if not folder.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {folder}; make it first.")
    try:
        with open(path, "ab") if not files.is_plain(path) else files.temporary_file(path) as file:  # only writing tells
            pass
        if files.is_plain(path):
            os.unlink(file.name)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}; choose another place.") from None


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """A name to write under, as :func:`cvxnmf.certificates.files.whole_file` gives it; what goes wrong is said in a sentence."""
    try:
        with files.whole_file(path) as name:
            yield name
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from None


def write_partition(partition: Partition, path: str) -> None:
    """Write node, cluster and membership (.csv, .tsv, .txt, - for standard output), as JSON, or all as `save` does (.npz)."""
    ending = Path(path).suffix.lower()
    if path == "-":
        _rows_to(sys.stdout, ",", _partition_rows(partition))
        return
    with whole_file(path) as name:
        if ending == ".npz":
            results.save(partition, name)
        elif ending == ".json":
            Path(name).write_text(json.dumps(labels_as_json(partition), indent=1) + "\n", encoding="utf8")
        else:
            _write_rows(name, SEPARATORS[ending], _partition_rows(partition))


def write_labels(partition: Partition, path: str) -> None:
    """Write node and cluster line by line (.csv, .tsv, .txt, - for standard output), or as JSON."""
    pairs = zip(map(str, partition.nodes), _numbers(partition.labels), strict=True)
    if path == "-":
        _rows_to(sys.stdout, ",", itertools.chain([("node", "cluster")], pairs))
        return
    ending = Path(path).suffix.lower()
    with whole_file(path) as name:
        if ending == ".json":
            Path(name).write_text(json.dumps({"n_clusters": partition.n_clusters, "labels": dict(pairs)}) + "\n", encoding="utf8")
        else:
            _write_rows(name, SEPARATORS[ending], itertools.chain([("node", "cluster")], pairs))


def _numbers(labels: Any, at_once: int = 1 << 16) -> Iterator[int]:
    """Labels as numbers of Python, some at a time."""
    for first in range(0, len(labels), at_once):
        yield from labels[first : first + at_once].tolist()


def _partition_rows(partition: Partition) -> list[tuple[Any, ...]]:
    """Node, cluster and membership, with a heading."""
    shares = partition.memberships[np.arange(len(partition.labels)), partition.labels]
    known = zip(partition.nodes, partition.labels.tolist(), shares.tolist(), strict=True)
    return [("node", "cluster", "membership"), *((str(node), label, f"{share:.6g}") for node, label, share in known)]


def labels_as_json(partition: Partition) -> dict[str, Any]:
    """Labels and memberships by the names of the nodes."""
    nodes = list(map(str, partition.nodes))
    shares = [[float(f"{share:.6g}") for share in row] for row in partition.memberships.tolist()]
    return {
        "n_clusters": partition.n_clusters,
        "labels": dict(zip(nodes, partition.labels.tolist(), strict=True)),
        "memberships": dict(zip(nodes, shares, strict=True)),
    }


def factor_paths(path: str, symmetric: bool) -> list[str]:
    """The files that hold U and V as text: ``factors.csv`` stands for ``factors-U.csv`` and ``factors-V.csv``."""
    target = Path(path)
    return [str(target.with_name(f"{target.stem}-{side}{target.suffix}")) for side in ("U" if symmetric else "UV")]


def write_factors(result: Factorization, path: str) -> list[str]:
    """Write a factorisation to an npz file, or its factors with names to text files, a line for each row; return their paths.

    To standard output, ``-``, go both factors, each line begun with U or V.
    """
    ending = Path(path).suffix.lower()
    if ending == ".npz":
        with whole_file(path) as name:
            results.save(result, name)
        return [path]
    heading = ["", *(f"component {index}" for index in range(result.n_components))]
    sides = [("U", result.U, result.row_names), ("V", result.V, result.column_names)][: 1 if result.V is result.U else 2]
    if path == "-":
        lines = [[side, *line] for side, factor, names in sides for line in _factor_lines(factor, names or range(len(factor)))]
        _rows_to(sys.stdout, ",", [["factor", "name", *heading[1:]], *lines])
        return []
    paths = factor_paths(path, result.V is result.U)
    for target, (_, factor, names) in zip(paths, sides, strict=True):
        with whole_file(target) as name:
            rows = [heading if names is not None else heading[1:], *_factor_lines(factor, names)]
            _write_rows(name, SEPARATORS[ending], rows)
    return paths


def _factor_lines(factor: Any, names: Sequence[Any] | None) -> list[list[str]]:
    """The lines of a factor as text, with their names in front if there are any."""
    lines = [list(map(repr, row)) for row in factor.tolist()]
    return lines if names is None else [[str(name), *line] for name, line in zip(names, lines, strict=True)]


def write_with(write: Callable[[str], Any], path: str) -> None:
    """Let a function write a file that takes its place when it is complete."""
    with whole_file(path) as name:
        write(name)


def _write_rows(name: str, separator: str, rows: Iterable[Sequence[Any]]) -> None:
    with open(name, "w", encoding="utf8", newline="") as file:
        _rows_to(file, separator, rows)


def _rows_to(file: TextIO, separator: str, rows: Iterable[Sequence[Any]]) -> None:
    csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)
