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
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxnmf.certificates import whole_files
from cvxnmf.io import results
from cvxnmf.io.source import FileError

if TYPE_CHECKING:
    from cvxnmf.results import Factorization, Partition

#: What stands between the columns of a text file, by its ending.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def check_writable(path: str, endings: Sequence[str] = ()) -> None:
    """Refuse a path to which nothing can be written, before any long work."""
    target = Path(path)
    if endings and target.suffix.lower() not in endings:
        raise FileError(f"{path} must end in {' or '.join(endings)}, so that its format is known.")
    if target.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file to write.")
    folder = target.parent
    if not folder.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {folder}; make it first.")
    try:
        plain = whole_files.is_plain(path)
        with whole_files.temporary_file(path) if plain else open(path, "ab") as file:  # only writing tells
            pass
        if plain:
            os.unlink(file.name)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}; choose another place.") from None


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """Do as :func:`cvxnmf.certificates.whole_files.whole_file`, but say in a sentence why a file cannot be written."""
    try:
        with whole_files.whole_file(path) as name:
            yield name
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from None


def write_partition(partition: Partition, path: str) -> None:
    """Write a partition to a file: the cluster of every node and, unless the graph is in blocks, its membership there.

    The ending of the path tells the form: a table (.csv, .tsv, .txt; - for standard output), JSON, or what `save` writes (.npz).
    """
    ending = Path(path).suffix.lower()
    if ending == ".npz":
        write_with(lambda name: results.save(partition, name), path)
    elif ending == ".json":
        indent = None if partition.in_blocks else 1  # labels of many nodes on one line, which is faster
        text = json.dumps(labels_as_json(partition), indent=indent) + "\n"
        write_with(lambda name: Path(name).write_text(text, encoding="utf8"), path)
    else:
        _write_rows(path, _partition_rows(partition))


def _partition_rows(partition: Partition) -> Iterator[tuple[Any, ...]]:
    """Rows of a partition's file: a heading, then each node's name, cluster and, unless in blocks, membership."""
    nodes, labels = map(str, partition.nodes), partition.labels
    if partition.in_blocks:
        return itertools.chain([("node", "cluster")], zip(nodes, map(int, labels), strict=True))  # one by one: they may be many
    shares = (f"{share:.6g}" for share in partition.memberships[np.arange(len(labels)), labels].tolist())
    return itertools.chain([("node", "cluster", "membership")], zip(nodes, labels.tolist(), shares, strict=True))


def labels_as_json(partition: Partition) -> dict[str, Any]:
    """Labels and, unless the graph is in blocks, memberships by the names of the nodes, to be written as JSON."""
    nodes = list(map(str, partition.nodes))
    facts = {"n_clusters": partition.n_clusters, "labels": dict(zip(nodes, partition.labels.tolist(), strict=True))}
    if partition.in_blocks:
        return facts
    shares = [[float(f"{share:.6g}") for share in row] for row in partition.memberships.tolist()]
    return facts | {"memberships": dict(zip(nodes, shares, strict=True))}


def factor_paths(path: str, symmetric: bool) -> list[str]:
    """The files that hold U and V as text: ``factors.csv`` stands for ``factors-U.csv`` and ``factors-V.csv``."""
    target = Path(path)
    return [str(target.with_name(f"{target.stem}-{side}{target.suffix}")) for side in ("U" if symmetric else "UV")]


def write_factors(result: Factorization, path: str) -> list[str]:
    """Write a factorisation to an npz file, or its factors with names to text files, a line for each row; return their paths.

    To standard output, ``-``, go both factors, each line begun with U or V.
    """
    if path.lower().endswith(".npz"):
        write_with(lambda name: results.save(result, name), path)
        return [path]
    heading = [f"component {index}" for index in range(result.n_components)]
    sides = [("U", result.U, result.row_names), ("V", result.V, result.column_names)][: 1 if result.V is result.U else 2]
    if path == "-":
        lines = [[side, *line] for side, factor, names in sides for line in _factor_lines(factor, names or range(len(factor)))]
        _write_rows(path, [["factor", "name", *heading], *lines])
        return []
    paths = factor_paths(path, result.V is result.U)
    for target, (_, factor, names) in zip(paths, sides, strict=True):
        _write_rows(target, [heading if names is None else ["", *heading], *_factor_lines(factor, names)])
    return paths


def _factor_lines(factor: Any, names: Sequence[Any] | None) -> list[list[str]]:
    """The lines of a factor as text to be written, with their names in front if there are any."""
    lines = [list(map(repr, row)) for row in factor.tolist()]
    return lines if names is None else [[str(name), *line] for name, line in zip(names, lines, strict=True)]


def write_with(write: Callable[[str], Any], path: str) -> None:
    """Let a function write a file, which takes its place only when it is complete."""
    with whole_file(path) as name:
        write(name)


def _write_rows(path: str, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows as a table whose separator the ending of the path tells; to standard output with commas."""
    if path == "-":
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
        return
    with whole_file(path) as name, open(name, "w", encoding="utf8", newline="") as file:
        csv.writer(file, delimiter=SEPARATORS[Path(path).suffix.lower()], lineterminator="\n").writerows(rows)
