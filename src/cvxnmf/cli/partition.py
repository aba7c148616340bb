"""``cvxnmf partition``: clusters of a graph, with a proof."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import options as arguments
from cvxnmf.cli import output
from cvxnmf.cli.exit_codes import INTERRUPTED, exit_code
from cvxnmf.cli.progress import Progress

if TYPE_CHECKING:
    from cvxnmf.results import Partition

ENDINGS = {"--output": (".csv", ".tsv", ".txt", ".json", ".npz"), "--report": (".html", ".htm"), "--certificate": (".npz",)}
CODES = "exit codes: 0 the certified gap is within --tol, 1 error, 2 usage, 3 it is not, 130 interrupted"
#: The paper's own formulation and method.
PAPER = {"cone": "psd", "metric": "uniform", "method": "projected-gradient"}


def add(commands: Any) -> None:
    """Register the command."""
    parser = arguments.add_command(
        commands,
        "partition",
        run,
        help="find the clusters of a graph, with a proof",
        description="Find the clusters of a graph in a file, and prove how good the model behind them is.",
        epilog=f"{arguments.GRAPH_FILES}\n{CODES}",
    )
    parser.add_argument("file", metavar="FILE", help="a graph; - for standard input")
    parser.add_argument("-k", "--clusters", type=arguments.positive, metavar="N", help="number of clusters (default: found)")
    parser.add_argument("--trace", type=arguments.trace, metavar="auto|NUMBER", help="weight of the trace (default: auto)")
    shared = "groups of nodes that share a position (default: 1,000 beyond 5,000 nodes)"
    parser.add_argument("--groups", type=arguments.groups, default="auto", metavar="auto|none|N", help=shared)
    parser.add_argument(
        "--objective",
        choices=("likelihood", "modularity", "cpm", "performance"),
        default="likelihood",
        help="what the clusters are to be good at (default: %(default)s)",
    )
    parser.add_argument("--resolution", type=arguments.tolerance, default=1.0, help="of modularity or cpm (default: %(default)s)")
    parser.add_argument("--prove", action="store_true", help="prove how good the labels are; the optimum of small sparse graphs")
    parser.add_argument("--tol", type=arguments.tolerance, default=1e-4, help="certified gap to reach (default: %(default)s)")
    parser.add_argument("--max-iter", type=arguments.positive, default=1000, help="most steps (default: %(default)s)")
    parser.add_argument("--paper", action="store_true", help="the paper's own cone, metric, trace 0 and projected gradient")
    parser.add_argument("--no-factors", action="store_true", help="leave out the factors of the clusters and their proof")
    parser.add_argument("--output", metavar="FILE", help="write node, cluster and membership: .csv, .tsv, .txt, .json; all: .npz")
    parser.add_argument("--report", metavar="FILE", help="write a page to look at: .html")
    parser.add_argument("--certificate", metavar="FILE", help="write the model's certificate: .npz")
    arguments.add_showing(parser)
    arguments.add_reading(parser, weights=True)


def run(options: argparse.Namespace) -> int:
    """Read, partition, write and print."""
    from cvxnmf.graphs.partition import partition
    from cvxnmf.results import Interrupted, Partition

    paths = {"--output": options.output, "--report": options.report, "--certificate": options.certificate}
    arguments.check_outputs(paths, [options.file], ENDINGS)
    graph, progress = arguments.graph_from(options, options.file), Progress(options.quiet)
    terms: dict[str, Any] = {"tol": options.tol, "max_iter": options.max_iter, **(PAPER if options.paper else {})}
    terms["n_groups"] = options.groups
    terms |= {"objective": options.objective, "resolution": options.resolution, "prove": options.prove}
    terms["trace"] = options.trace if options.trace is not None else 0.0 if options.paper else "auto"
    try:
        work = lambda: partition(graph.A, options.clusters, callback=progress.on_iterate, **terms)  # noqa: E731
        found = progress.run(options.file, work, options.tol)
    except Interrupted as stopped:
        if not isinstance(stopped.solution, Partition):  # it had not come as far as clusters
            raise
        return _keep_best(stopped.solution.with_changes(nodes=graph.nodes), options)
    return _finish(found.with_changes(nodes=graph.nodes), options, progress)


def _finish(found: Partition, options: argparse.Namespace, progress: Progress) -> int:
    """Write and print; labels first, since the proof of the factors may take long and be interrupted."""
    from cvxnmf.io.writing import write_partition, write_with

    try:
        if options.output:
            write_partition(found, options.output)
        if options.certificate:
            write_with(found.certificate.save, options.certificate)
        if not options.no_factors:
            progress.run(f"{options.file}, factors", lambda: found.factorization)
    except KeyboardInterrupt:
        return _keep_best(found, options)
    if options.output and options.output.endswith(".npz") and not options.no_factors:
        write_partition(found, options.output)  # with the factors
    if options.report:
        from cvxnmf import report

        factors = not options.no_factors
        write_with(lambda name: report.write(found, name, _title(options.file), factors), options.report)
    if options.json:
        output.print_json(output.partition_facts(found, factors=not options.no_factors))
    else:
        output.print_partition(found, _title(options.file), factors=not options.no_factors)
    return exit_code(found.certificate.relative_gap, options.tol)


def _keep_best(found: Partition, options: argparse.Namespace) -> int:
    """Keep the best answer so far, if there is a place for it."""
    from cvxnmf.io.writing import write_partition

    if options.output:
        write_partition(found, options.output)
    best = f"gap {found.certificate.relative_gap:.0e}"
    output.print_lost_or_kept(best, [options.output] if options.output else [])
    return INTERRUPTED


def _title(path: str) -> str:
    """Return what the graph is called."""
    return "standard input" if path == "-" else os.path.basename(path)
