"""``cvxnmf partition`` with ``--memory-limit`` or ``--dask``: clusters of a graph that is never whole in memory."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import output, terminal
from cvxnmf.cli.exit_codes import CERTIFIED, exit_code
from cvxnmf.cli.options import say
from cvxnmf.cli.progress import Progress
from cvxnmf.display.formatting import count

if TYPE_CHECKING:
    from cvxnmf.results import Partition

#: The certified gap that is aimed at unless a person names one.
TOL = 1e-4
#: Clusters that are listed.
LISTED = 20


def run_in_blocks(options: argparse.Namespace, title: str) -> int:
    """Partition the edges of a file in blocks, write labels and print."""
    from cvxnmf.graphs.blocked.partition import partition_in_blocks
    from cvxnmf.io.source import FileError
    from cvxnmf.io.writing import write_partition, write_with

    wanted = {"--report": options.report, "--start": options.start}
    wanted |= {"--prove": options.prove, "--paper": options.paper, "--trace": options.trace}
    wanted |= {"--format": options.format not in (None, "edges", "npy", "npz", "parquet")}
    refused = [name for name, value in wanted.items() if value] + ["--groups"] * (options.groups != "auto")
    if refused or options.file == "-" or (options.output or "").lower().endswith(".npz"):
        what = ", ".join(refused) if refused else "Standard input" if options.file == "-" else "An .npz file"
        need, it = ("need", "them") if len(refused) > 1 else ("needs", "it")
        raise FileError(f"{what} {need} the graph in memory; leave {it} out, or leave out --memory-limit and --dask.")
    progress = Progress(options.quiet)
    reading = reading_of(options)
    weight = "weight" if reading.weighted else None
    asked = (options.file, options.clusters, weight, options.objective, options.resolution, options.memory_limit, options.dask)
    terms: dict[str, Any] = {"tol": TOL if options.tol is None else options.tol, "max_iter": options.max_iter}
    found = progress.run(options.file, lambda: partition_in_blocks(*asked, progress.on_iterate, reading, **terms))
    say((f"{len(found.nodes):,} nodes read from {found.origin}.", *reading.notes), options.file, options.quiet)
    if options.output:
        write_partition(found, options.output)
    if options.certificate or options.tol is not None:
        progress.run(f"{options.file}, model", lambda: found.certificate, terms["tol"])
    if options.certificate:
        write_with(found.certificate.save, options.certificate)
    if options.json:
        output.print_json(_facts(found))
    elif options.output != "-":
        _print(found, title)
    output.say_written((options.output, options.certificate), options.quiet)
    proof = found.certificate_at_hand
    return CERTIFIED if proof is None else exit_code(proof.relative_gap, terms["tol"])


def reading_of(options: argparse.Namespace) -> Any:
    """How ``cvxnmf partition`` in blocks is to read a file of text, from its options."""
    from cvxnmf.chunked.graphs.lines import SEPARATORS
    from cvxnmf.chunked.graphs.text import Reading

    separator = None if options.separator is None else SEPARATORS[options.separator]
    return Reading(options.weights != "ignore", separator, options.header)


def _facts(found: Partition) -> dict[str, Any]:
    """Return the clusters of a graph in blocks for machines; labels of single nodes are in the --output."""
    names = ("modularity", "performance", "off_diagonal_performance")
    facts = {"nodes": len(found.nodes), "edges": _n_edges(found), "n_clusters": found.n_clusters, "sizes": found.sizes.tolist()}
    lengths = [{"clusters": k, "description_length": length} for k, length in found.alternatives]
    proof = found.certificate_at_hand
    proved = {"certificate": None if proof is None else output.certificate_facts(proof) | {"groups": found.n_groups}}
    return facts | {name: getattr(found, name) for name in names} | {"alternatives": lengths} | proved


def _n_edges(found: Partition) -> int:
    return int(found.A.nnz + 1) // 2


def _print(found: Partition, title: str) -> None:
    """Print the size of a graph in blocks, how good its clusters are, and how large."""
    nodes, edges = count(len(found.nodes), "node"), count(_n_edges(found), "edge")
    terminal.show(f"{terminal.printable(title)}: {nodes}, {edges}, {count(found.n_clusters, 'cluster')}", "bold")
    print(
        f"modularity {found.modularity:.4f}, performance {found.performance:.4f} "
        f"({found.off_diagonal_performance:.4f} without the diagonal)"
    )
    sizes = found.sizes.tolist()
    terminal.show_table(("cluster", "nodes"), [(str(number), f"{size:,}") for number, size in enumerate(sizes[:LISTED])], left=())
    if len(sizes) > LISTED:
        print(f"and {count(len(sizes) - LISTED, 'smaller cluster')}; --output writes the cluster of every node")
    if found.certificate_at_hand is not None:
        output.print_certificate(found.certificate, "The model: ")
