"""``cvxnmf partition``: clusters of a graph, with a proof."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import options as arguments
from cvxnmf.cli import output
from cvxnmf.cli.exit_codes import CERTIFIED, INTERRUPTED, exit_code
from cvxnmf.cli.progress import Progress

if TYPE_CHECKING:
    from cvxnmf.results import Partition

ENDINGS = {"--output": (".csv", ".tsv", ".txt", ".json", ".npz"), "--report": (".html", ".htm"), "--certificate": (".npz",)}
PROOFS = """\
proofs:
  Labels come first and at once; nothing is proved unless it is asked for. --prove proves the model behind the clusters, their
  factors and the labels. --certificate, --tol, --trace, --groups and --paper ask for the model alone, --report and an --output
  that ends in .npz for the model and the factors.
"""
CODES = "exit codes: 0 done, any gap that was asked for within --tol, 1 error, 2 usage, 3 it is not, 130 interrupted"
#: The certified gap that is aimed at unless a person names one.
TOL = 1e-4
#: The paper's own formulation and method.
PAPER = {"cone": "psd", "metric": "uniform", "method": "projected-gradient"}


def add(commands: Any) -> None:
    """Register the command ``cvxnmf partition``."""
    parser = arguments.add_command(
        commands,
        "partition",
        run,
        help="find the clusters of a graph, with a proof",
        description="Find the clusters of a graph in a file and, where it is asked for, prove how good they are.",
        epilog=f"{arguments.GRAPH_FILES}\n{PROOFS}\n{CODES}",
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
    parser.add_argument("--prove", action="store_true", help="prove how good model, factors and labels are")
    parser.add_argument("--tol", type=arguments.tolerance, help=f"certified gap of the model to reach (default: {TOL})")
    parser.add_argument("--max-iter", type=arguments.positive, default=1000, help="most steps (default: %(default)s)")
    parser.add_argument("--paper", action="store_true", help="the paper's own cone, metric, trace 0 and projected gradient")
    parser.add_argument("--no-factors", action="store_true", help="leave out the factors of the clusters and their proof")
    parser.add_argument(
        "--output", metavar="FILE", help="write node, cluster and membership: .csv, .tsv, .txt, .json; - prints them; all: .npz"
    )
    parser.add_argument(
        "--top", type=arguments.positive, metavar="N", default=50, help="members of each cluster to show (default: as fit)"
    )
    parser.add_argument("--start", metavar="FILE", help="clusters to start from, of this graph before it changed: .npz")
    parser.add_argument("--report", metavar="FILE", help="write a page to look at: .html")
    parser.add_argument("--certificate", metavar="FILE", help="write the model's certificate: .npz")
    arguments.add_showing(parser)
    arguments.add_reading(parser, weights=True)
    arguments.add_scale(
        parser,
        "Edges in text, .npy and .parquet files, or a folder of them, then stay on disk; labels and --certificate only.",
    )


def run(options: argparse.Namespace) -> int:
    """Run ``cvxnmf partition``: read, partition, write and print."""
    from cvxnmf.graphs.partition import partition
    from cvxnmf.results import Interrupted, Partition

    paths = {"--output": options.output, "--report": options.report, "--certificate": options.certificate}
    arguments.check_outputs(paths, [options.file, *([options.start] if options.start else [])], ENDINGS)
    arguments.refuse_two_prints(options)
    if options.memory_limit or options.dask:
        from cvxnmf.cli.blocked_partition import run_in_blocks

        return run_in_blocks(options, _title(options.file))
    graph, progress = arguments.graph_from(options, options.file, options.quiet), Progress(options.quiet)
    tol, watch = TOL if options.tol is None else options.tol, progress.on_iterate if _asks_for_model(options) else None
    terms: dict[str, Any] = {"tol": tol, "max_iter": options.max_iter, **(PAPER if options.paper else {})}
    terms["n_groups"] = options.groups
    terms |= {"objective": options.objective, "resolution": options.resolution, "prove": options.prove}
    terms["trace"] = options.trace if options.trace is not None else 0.0 if options.paper else "auto"
    terms["start"] = None if options.start is None else _clusters_before(options.start, graph.nodes)
    try:
        work = lambda: partition(graph.A, options.clusters, callback=watch, **terms)  # noqa: E731
        found = progress.run(options.file, work, tol)
    except Interrupted as stopped:
        if not isinstance(stopped.solution, Partition):  # it had not come as far as clusters
            raise
        return _keep_best(stopped.solution.with_changes(nodes=graph.nodes), options)
    return _finish(found.with_changes(nodes=graph.nodes), options, progress)


def _clusters_before(path: str, nodes: Sequence[Any]) -> dict[int, int]:
    """The clusters of a saved partition by the numbers that its nodes have in the graph at hand."""
    from cvxnmf.io.results import load
    from cvxnmf.io.source import FileError
    from cvxnmf.results import Partition

    saved = load(path)
    if not isinstance(saved, Partition):
        raise FileError(f"{path} holds no clusters to start from; give an .npz file that cvxnmf partition wrote with --output.")
    before = dict(zip(map(str, saved.nodes), saved.labels.tolist(), strict=True))
    return {number: before[str(name)] for number, name in enumerate(nodes) if str(name) in before}


def _asks_for_model(options: argparse.Namespace) -> bool:
    """Whether ``cvxnmf partition`` is asked to prove the model, which may take many times as long as the labels."""
    terms = options.paper or options.groups != "auto" or not (options.tol is None and options.trace is None)
    return terms or options.certificate is not None or _asks_for_all(options)


def _asks_for_all(options: argparse.Namespace) -> bool:
    """Whether ``cvxnmf partition`` is asked for something that holds or shows the proof of the factors as well."""
    return options.prove or options.report is not None or _saves_all(options)


def _saves_all(options: argparse.Namespace) -> bool:
    return options.output is not None and options.output.lower().endswith(".npz")


def _finish(found: Partition, options: argparse.Namespace, progress: Progress) -> int:
    """Write and print a partition; labels first, since the proof of the factors may take long and be interrupted."""
    from cvxnmf.io.writing import write_partition, write_with

    factors = _asks_for_all(options) and not options.no_factors
    try:
        if options.output:
            write_partition(found, options.output)
        if options.certificate:
            write_with(found.certificate.save, options.certificate)
        if factors:
            progress.run(f"{options.file}, factors", lambda: found.rank_certificate)
    except KeyboardInterrupt:
        return _keep_best(found, options)
    if factors and _saves_all(options):
        write_partition(found, options.output)  # with the factors
    if options.report:
        from cvxnmf import report

        write_with(lambda name: report.write(found, name, _title(options.file), factors), options.report)
    if options.json:
        output.print_json(output.partition_facts(found))
    elif options.output != "-":
        output.print_partition(found, _title(options.file), "--prove", options.top)
    output.say_written((options.output, options.certificate, options.report), options.quiet)
    proof = found.certificate_at_hand
    return CERTIFIED if proof is None else exit_code(proof.relative_gap, TOL if options.tol is None else options.tol)


def _keep_best(found: Partition, options: argparse.Namespace) -> int:
    """Keep the best clusters so far when ``cvxnmf partition`` is interrupted, if there is a place for them."""
    from cvxnmf.io.writing import write_partition

    if options.output:
        write_partition(found, options.output)
    proof = found.certificate_at_hand
    best = "nothing proved" if proof is None else f"gap {proof.relative_gap:.0e}"
    output.print_lost_or_kept(best, [options.output] if options.output else [])
    return INTERRUPTED


def _title(path: str) -> str:
    """Return the name of the graph of ``cvxnmf partition``."""
    return "standard input" if path == "-" else os.path.basename(path)
