"""``cvxnmf verify``: a certificate for anybody's factors, or for anybody's clusters of a graph; or the check of one."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import options as arguments
from cvxnmf.cli import output, terminal
from cvxnmf.cli.exit_codes import exit_code
from cvxnmf.cli.factorize import CODES
from cvxnmf.cli.progress import Progress
from cvxnmf.cli.sent_certificate import certificate_in, check

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate
    from cvxnmf.io import GraphFile
    from cvxnmf.io.tables import MatrixFile


def add(commands: Any) -> None:
    """Register the command ``cvxnmf verify``."""
    parser = arguments.add_command(
        commands,
        "verify",
        run,
        help="certify anybody's nonnegative factors or clusters, or check a certificate",
        description="Compute the loss of given factors, and a bound that no factorisation of their rank can beat, "
        "and say whether no others have their product; "
        "with --objective the quality of given clusters of a graph, and a bound that no partition can beat. "
        "A certificate that somebody sent is checked: cvxnmf verify A certificate.npz.",
        epilog=f"{arguments.MATRIX_FILES}\n{CODES}",
    )
    parser.add_argument("data", metavar="A", help="the matrix that was factored, or the graph")
    parser.add_argument(
        "U",
        help="its factor of one row for each row of A, or an .npz file of cvxnmf with both factors or a certificate; "
        "with --objective a text file of nodes and their clusters",
    )
    parser.add_argument("V", nargs="?", help="the other factor, one row for each column of A, or transposed; left out, A = UU'")
    arguments.add_loss(parser)
    arguments.add_bound(parser)
    group = parser.add_argument_group(
        "clusters",
        "With --objective an --effort of 18 takes about ten seconds, of 150 (the default) a minute or two.",
    )
    group.add_argument("--objective", choices=("modularity", "cpm", "performance"), help="the quality of clusters")
    group.add_argument("--resolution", type=arguments.tolerance, help="of modularity or cpm (default: 1.0)")
    group.add_argument("-k", "--clusters", type=arguments.positive, metavar="N", help="bound partitions into at most N clusters")
    parser.add_argument("--save", metavar="FILE", help="write the certificate: .npz")
    arguments.add_showing(parser)
    arguments.add_scale(parser)
    arguments.add_reading(parser, weights=True)
    parser.set_defaults(loss=None)  # a certificate that was sent says itself what it is about


def run(options: argparse.Namespace) -> int:
    """Run ``cvxnmf verify``: read, certify or check, write and print."""
    from cvxnmf.linalg.uniqueness import factor_uniqueness
    from cvxnmf.nmf.verify import verify

    arguments.check_outputs({"--save": options.save}, [options.data, options.U, options.V or "-"], {"--save": (".npz",)})
    received = None if options.V or options.save else certificate_in(options.U)
    if received is not None:
        return check(received, options)
    options.loss, options.resolution = options.loss or "mse", 1.0 if options.resolution is None else options.resolution
    read = None if options.objective else _read(options)
    if read is None:
        return _run_labels(options)
    data, U, V = read
    A, weights = data.A, arguments.weights_from(options, data)
    progress = Progress(options.quiet)
    terms = {"memory_limit": options.memory_limit, "client": options.dask, "weights": weights}
    work = lambda: verify(A, U, V, options.loss, options.effort, **terms)  # noqa: E731
    certificate = progress.run(options.data, work, options.tol_gap or 0.0)
    _save(certificate, options)
    unique = factor_uniqueness(U, U if V is None else V)
    if options.json:
        facts = {"rows": A.shape[0], "columns": A.shape[1], "n_components": certificate.statement["n_components"]}
        facts |= {"loss": options.loss, "uniqueness": {"status": unique.status, "reason": unique.reason}}
        output.print_json(facts | output.certificate_facts(certificate))
    else:
        output.print_certificate(certificate)
        print(f"Are these the only factors of their product? {unique.status.capitalize()}: {unique.reason}")
    return exit_code(certificate.relative_gap, options.tol_gap)


def _read(options: argparse.Namespace) -> tuple[MatrixFile, Any, Any] | None:
    """Read the matrix and factors to verify; None where the files are a graph and its clusters, then judged by modularity."""
    from cvxnmf.io.source import FileError

    try:
        if options.V is None and _is_about_clusters(options):
            _judge_modularity(options)
            return None
        data = arguments.matrix_from(options, options.data, options.format)
        U, V = _factors(options, data)
        if options.V is not None or V is not None or data.A.shape == (len(U), len(U)):
            return data, U, V
        sizes = "{} by {}".format(*data.A.shape), "{} by {}".format(*U.shape)
        problem = f"{options.data} is {sizes[0]} and {options.U} {sizes[1]}, and there is no V."
    except FileError as error:
        if options.V is not None or not all(map(os.path.exists, (options.data, options.U))):
            raise
        problem = str(error)
    try:
        _graph_and_labels(options, quiet=True)
    except ValueError:
        ask = "give the other factor, or, for a graph with clusters, add --objective modularity"
        raise FileError(f"{problem.removesuffix('.')}; {ask}.") from None
    _judge_modularity(options)
    return None


def _is_about_clusters(options: argparse.Namespace) -> bool:
    """Whether the second file of ``cvxnmf verify`` has clusters of the nodes of the first."""
    from cvxnmf.io.reading import holds_labels

    try:
        return holds_labels(options.U, lambda: arguments.graph_from(options, options.data, quiet=True).nodes)
    except (ValueError, OSError):  # no graph, or no such file: reading factors will say what is wrong
        return False


def _judge_modularity(options: argparse.Namespace) -> None:
    """Choose modularity for clusters that ``cvxnmf verify`` was given without an objective, and say so."""
    options.objective = "modularity"
    say = f"read as a graph, and {options.U} as its clusters, whose modularity is judged; --objective names another quality."
    arguments.say([say], options.data, options.quiet)


def _run_labels(options: argparse.Namespace) -> int:
    """Verify clusters: read a graph and labels, certify, write and print."""
    from cvxnmf.graphs.label_bounds.verify import verify_labels

    (graph, labels), progress = _graph_and_labels(options, options.quiet), Progress(options.quiet)
    effort = 1.0 if options.effort is None else options.effort / arguments.EFFORT
    terms = {"objective": options.objective, "resolution": options.resolution, "n_clusters": options.clusters, "effort": effort}
    work = lambda: verify_labels(graph.A, labels, callback=progress.on_iterate, **terms)  # noqa: E731
    certificate = progress.run(options.data, work, options.tol_gap or 0.0)
    _save(certificate, options)
    if options.json:
        facts = {"nodes": len(graph.nodes), "clusters": len(set(labels))} | dict(certificate.statement)
        output.print_json(facts | output.certificate_facts(certificate))
    else:
        output.print_certificate(certificate)
    return exit_code(certificate.relative_gap, options.tol_gap)


def _graph_and_labels(options: argparse.Namespace, quiet: bool) -> tuple[GraphFile, list[str]]:
    """Read the graph and the clusters of its nodes that ``cvxnmf verify`` is about."""
    from cvxnmf.io.reading import read_labels

    graph = arguments.graph_from(options, options.data, quiet)
    labels, notes = read_labels(options.U, graph.nodes)
    arguments.say(notes, options.U, quiet)
    return graph, labels


def _save(certificate: Certificate, options: argparse.Namespace) -> None:
    """Write the certificate of ``cvxnmf verify`` if a file was asked for."""
    from cvxnmf.io.writing import write_with

    if options.save:
        write_with(certificate.save, options.save)
    output.say_written([options.save], options.quiet)


def _factors(options: argparse.Namespace, data: MatrixFile) -> tuple[Any, Any]:
    """Return the factors U and V that ``cvxnmf verify`` is about: rows for the rows and columns of A, by name where there are."""
    from cvxnmf.io.reading import read_factors
    from cvxnmf.io.source import FileError

    first, V = read_factors(options.U)
    U = arguments.in_order(first.A, first.rows, data.rows, options.U)
    if options.V is None:
        return U, V
    if V is not None:
        raise FileError(f"{options.U} holds both factors; leave out {options.V}.")
    second, other = read_factors(options.V)
    if other is not None:
        raise FileError(f"{options.V} holds both factors; give it alone, as U.")
    n, k = data.A.shape[1], U.shape[1]
    if second.A.shape != (n, k) and second.A.shape == (k, n):
        if not options.quiet:
            terminal.note(f"{options.V} is {k} by {n}, like scikit-learn's components_; it is transposed.")
        second = second._replace(A=second.A.T, rows=second.columns)
    return U, arguments.in_order(second.A, second.rows, data.columns, options.V)
