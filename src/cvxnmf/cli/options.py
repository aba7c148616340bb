"""Arguments that several commands share, and their checks."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import terminal

if TYPE_CHECKING:
    from cvxnmf.io import GraphFile, MatrixFile

FORMATS = ("edges", "table", "gml", "graphml", "gexf", "pajek", "json", "mtx", "npy", "npz", "parquet")
SEPARATORS = ("comma", "tab", "semicolon", "blank")
LOSSES = {2.0: "mse", 1.0: "kl", 0.0: "itakura-saito"}

GRAPH_FILES = """\
files:
  edge lists   text with two node names on each line and perhaps a weight, between commas, tabs, semicolons or blanks;
               names with separators inside are quoted; lines that begin with # or % are comments. A header is
               recognised by its words (source, target, ...) or by being the only line without numbers. The weights are
               the column headed weight, else a third column if it is a number on every line. Without weights, repeated
               edges and both directions of an edge count once; with weights they add up, unless every edge stands in
               both directions with the same weight, which then counts once. Self-loops are kept.
  graphs       GML, GraphML, GEXF, Pajek (.net), node-link JSON: nodes by their labels or ids, weights from the edges'
               attribute weight, or value
  matrices     Matrix Market, npy, npz (scipy.sparse too), square tables of numbers: adjacency matrices
  parquet      a list of edges, or a square table
  Any of them may be packed with gzip; - is standard input. Text is UTF-8, or UTF-16 with a byte order mark.
"""
MATRIX_FILES = """\
files:
  tables       text with a row of numbers on each line, between commas, tabs, semicolons or blanks, with or without a
               header and a first column of names; empty cells, NA and nan are missing entries
  matrices     Matrix Market, npy, npz (scipy.sparse too), parquet
  graphs       GML, GraphML, GEXF, Pajek, node-link JSON; edge lists (.edges, .edgelist, or with --format edges): their
               adjacency matrices
  Any of them may be packed with gzip; - is standard input. Text is UTF-8, or UTF-16 with a byte order mark.
"""

#: Most SVDs for the bound of a factorisation; for that of clusters, an effort of 1.
EFFORT = 150


def positive(text: str) -> int:
    """Read an option's value as an integer of at least 1."""
    return _at_least(text, 1)


def not_negative(text: str) -> int:
    """Read an option's value as an integer of at least 0."""
    return _at_least(text, 0)


def _at_least(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"an integer of at least {least} is needed, not {text}")
    return value


def image_shape(text: str) -> tuple[int, int]:
    """Read an option's height and width of an image, as in 8x8."""
    height, cross, width = text.partition("x")
    if not cross:
        raise argparse.ArgumentTypeError(f"height and width such as 8x8 are needed, not {text}")
    return _at_least(height, 1), _at_least(width, 1)


def ranks(text: str) -> list[int]:
    """Read an option's numbers of components: from a first to a last one, as in 2:20, or a list, as in 3,5,8."""
    first, colon, last = text.partition(":")
    if not colon:
        return [_at_least(part, 1) for part in text.split(",")]
    return list(range(_at_least(first, 1), _at_least(last, _at_least(first, 1)) + 1))


def loss(text: str) -> str:
    """Read an option's loss, by its name or as the number of a beta divergence, and return its name."""
    if text in LOSSES.values():  # at once: arguments are read before the work goes to a process of its own, and that before numpy
        return text
    with suppress(ValueError):
        beta = float(text)
        if math.isfinite(beta):
            return LOSSES.get(beta, f"beta={beta:.17g}")
    from cvxnmf.nmf.loss_names import find_loss

    try:
        return find_loss(text).name
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem).removesuffix(".")) from None


def add_loss(parser: argparse.ArgumentParser) -> None:
    """Add the options about the loss of a factorisation."""
    words = (
        "mse, kl or itakura-saito, or the number of a beta divergence such as 0.5 (default: mse); bounds are known for mse and kl"
    )
    parser.add_argument("--loss", type=loss, default="mse", metavar="LOSS", help=words)
    words = "weights in the loss: a matrix of the size of A for its entries, or one column for its rows"
    parser.add_argument("--loss-weights", metavar="FILE", help=words)


def tolerance(text: str) -> float:
    """Read an option's value as a finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"a finite number of at least 0 is needed, not {text}")
    return value


def groups(text: str) -> int | str | None:
    """Read an option's value as "auto", "none" or an integer of at least 2."""
    return text if text == "auto" else None if text == "none" else _at_least(text, 2)


def trace(text: str) -> float | str:
    """Read an option's value as "auto" or a number."""
    return text if text == "auto" else tolerance(text)


def add_command(commands: Any, name: str, run: Callable[[argparse.Namespace], int], **texts: str) -> argparse.ArgumentParser:
    """Register a command with its texts, whose lines are kept, and the function that runs it."""
    parser: argparse.ArgumentParser = commands.add_parser(name, formatter_class=argparse.RawDescriptionHelpFormatter, **texts)
    parser.set_defaults(run=run, parser=parser)
    return parser


def add_bound(parser: argparse.ArgumentParser) -> None:
    """Add the options about the bound of a factorisation."""
    words = f"most SVDs for the bound (default: as many as pay, at most {EFFORT})"
    parser.add_argument("--effort", type=not_negative, metavar="N", help=words)
    parser.add_argument("--tol-gap", type=tolerance, metavar="GAP", help="exit with 3 if the relative gap is larger")


def add_reading(parser: argparse.ArgumentParser, *, weights: bool) -> None:
    """Add the options that say how files are to be read."""
    group = parser.add_argument_group("reading")
    group.add_argument("--format", choices=FORMATS, help="format of the data, where content and name do not tell")
    group.add_argument("--separator", choices=SEPARATORS, help="what stands between the cells of text")
    group.add_argument("--header", action=argparse.BooleanOptionalAction, help="whether text begins with a header")
    if weights:
        group.add_argument("--weights", choices=("auto", "ignore"), default="auto", help="ignore: every edge counts 1")


def add_showing(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what a command shows."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="show no progress and no notes on reading")


def add_scale(
    parser: argparse.ArgumentParser, words: str = "A .npy file is then read in blocks of rows, never as a whole."
) -> None:
    """Add the options for data that are worked on in blocks of rows."""
    group = parser.add_argument_group("large data", words)
    group.add_argument("--memory-limit", metavar="SIZE", help="most memory of the whole program, such as 2GB or 500MiB")
    group.add_argument("--dask", metavar="ADDRESS", help="let the workers of this Dask scheduler do it, such as tcp://host:8786")


def graph_from(options: argparse.Namespace, path: str, quiet: bool) -> GraphFile:
    """Read the graph that a command's options name, saying what was decided."""
    from cvxnmf.io import read_graph

    ways = {"separator": options.separator, "header": options.header, "weights": options.weights == "auto"}
    graph = read_graph(path, options.format, **ways)
    say((f"{len(graph.nodes):,} nodes read from {graph.origin}.", *graph.notes), path, quiet)
    return graph


def matrix_from(options: argparse.Namespace, path: str, format: str | None = None) -> MatrixFile:
    """Read the matrix that a command's options name, saying what was decided; for work in blocks it stays in its file."""
    from cvxnmf.io import map_matrix, read_matrix

    if options.memory_limit or options.dask:
        return map_matrix(path, format)
    matrix = read_matrix(path, format, separator=options.separator, header=options.header)
    say(matrix.notes, path, options.quiet)
    return matrix


def weights_from(options: argparse.Namespace, data: MatrixFile | None = None) -> Any:
    """Read the weights of the loss, if the options name a file: of entries, or of rows from a single column; by name."""
    if options.loss_weights is None:
        return None
    found = matrix_from(options, options.loss_weights)
    given = found.A if data is None else in_order(found.A, found.rows, data.rows, options.loss_weights)
    if given.shape[1] == 1:
        return given[:, 0]
    return given if data is None else in_order(given.T, found.columns, data.columns, options.loss_weights).T


def in_order(matrix: Any, own: Any, names: Any, path: str) -> Any:
    """Return a matrix from a file with its rows in the order of the names of the data; plain numbers are no names."""
    from cvxnmf.nmf.row_names import order_of

    numbers = tuple(map(str, range(matrix.shape[0])))
    order = None if numbers in (own, names) else order_of(own, names, path)
    return matrix if order is None else matrix[order]


def say(notes: Any, path: str, quiet: bool) -> None:
    """Print what was decided in reading a file, unless the options ask for quiet."""
    for sentence in () if quiet else notes:
        terminal.note(f"{'standard input' if path == '-' else path}: {sentence}")


def refuse_two_prints(options: argparse.Namespace) -> None:
    """Refuse options that send both JSON and a table to standard output."""
    from cvxnmf.io.source import FileError

    if options.json and options.output == "-":
        raise FileError("--json and --output - both print to standard output; leave one out.")


def check_outputs(paths: dict[str, str | None], inputs: list[str], endings: dict[str, tuple[str, ...]]) -> None:
    """Refuse options whose files cannot be written, would overwrite the data, or are named twice."""
    from cvxnmf.display.page.document import require_packages
    from cvxnmf.io.source import FileError
    from cvxnmf.io.writing import check_writable

    taken = {os.path.realpath(path): "the data" for path in inputs if path != "-"}
    for option, path in paths.items():
        if path is None or (path == "-" and option == "--output"):
            continue
        if option == "--report":
            require_packages()
        check_writable(path, endings.get(option, ()))
        place = os.path.realpath(path)
        if place in taken:
            raise FileError(f"{option} {path} would overwrite {taken[place]}; choose another name.")
        if os.path.isfile(place) or not os.path.exists(place):  # pipes and devices can be written twice
            taken[place] = f"the file of {option}"
