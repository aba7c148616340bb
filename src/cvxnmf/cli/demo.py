"""``cvxnmf demo``: the karate club and one of the paper's block graphs, solved and certified."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import options as arguments
from cvxnmf.cli import output, terminal
from cvxnmf.cli.exit_codes import exit_code
from cvxnmf.cli.progress import Progress

if TYPE_CHECKING:
    from cvxnmf.linalg.arrays import FloatArray
    from cvxnmf.results import Partition

#: Where the page goes unless a person names another place.
PAGE = "cvxnmf-demo.html"
#: Friends of the members of the karate club, each pair once, as W. W. Zachary saw them (1977).
KARATE = (
    "0 1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31; 1 2 3 7 13 17 19 21 30; 2 3 7 8 9 13 27 28 32; 3 7 12 13; 4 6 10; 5 6 10 16; "
    "6 16; 8 30 32 33; 9 33; 13 33; 14 32 33; 15 32 33; 18 32 33; 19 33; 20 32 33; 22 32 33; 23 25 27 29 32 33; "
    "24 25 27 31; 25 31; 26 29 33; 27 33; 28 31 33; 29 32 33; 30 32 33; 31 32 33; 32 33"
)
#: What the demo compares: arguments of `symmetric`, and the method.
SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "trace='auto'": ({"trace": "auto"}, "auto"),
    "trace=0": ({}, "auto"),
    "the paper's": ({"cone": "psd", "metric": "uniform"}, "projected-gradient"),
}


def add(commands: Any) -> None:
    """Register the command ``cvxnmf demo``."""
    codes = "exit codes: 0 every certified gap is within --tol, 1 error, 2 usage, 3 one is not"
    shown = "solve the karate club and one of the paper's block graphs, with proofs"
    parser = arguments.add_command(commands, "demo", run, help=shown, epilog=codes)
    parser.add_argument("--size", type=_size, default=200, help="nodes of the block graph (default: %(default)s)")
    parser.add_argument("--tol", type=arguments.tolerance, default=1e-4, help="certified gap to reach (default: %(default)s)")
    parser.add_argument("--report", metavar="FILE", help=f"where to write the page on the karate club (default: {PAGE})")
    parser.add_argument("--no-report", action="store_true", help="write no page")
    arguments.add_showing(parser)


def _size(text: str) -> int:
    value = arguments.positive(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"at least 2 nodes are needed, not {value}")
    return value


def run(options: argparse.Namespace) -> int:
    """Run the demo: partition the karate club, then solve two graphs in three settings."""
    from cvxnmf.graphs.block_graph import block_graph

    arguments.check_outputs({"--report": options.report}, [], {"--report": (".html", ".htm")})
    progress, A = Progress(options.quiet), karate_club()
    club = _partition_club(A, options.tol, progress)
    progress.run("karate club, factors", lambda: club.rank_certificate)
    page = None if options.no_report else _write_page(club, options)
    if not options.json:
        output.print_partition(club, "Zachary's karate club")
        print()
    blocks, _ = block_graph(options.size, 0.3, 0.7)
    solves: list[dict[str, Any]] = []
    for graph, matrix in (("karate club", A), (f"blocks, n = {options.size}", blocks)):
        solves += [_solve(graph, matrix, setting, options.tol, progress) for setting in SETTINGS]
    if options.json:
        output.print_json({"partition": output.partition_facts(club), "solves": solves, "report": page})
    else:
        _print_solves(solves)
        if page:
            print(f"\nThe page about the karate club is {page}")
    return exit_code(max(club.certificate.relative_gap, *(facts["relative_gap"] for facts in solves)), options.tol)


def karate_club() -> FloatArray:
    """Return the friendships of the karate club as an adjacency matrix."""
    import numpy as np

    A = np.zeros((34, 34))
    for line in KARATE.split(";"):
        member, *friends = map(int, line.split())
        A[member, friends] = A[friends, member] = 1.0
    return A


def _partition_club(A: FloatArray, tol: float, progress: Progress) -> Partition:
    """Return the partition of the demo's karate club by its members."""
    from dataclasses import replace

    from cvxnmf.graphs.partition import partition

    found = progress.run("karate club", lambda: partition(A, tol=tol, callback=progress.on_iterate), tol)
    return replace(found, nodes=tuple(map(str, range(len(A)))))


def _write_page(club: Partition, options: argparse.Namespace) -> str | None:
    """Write the demo's page; where nobody asked for one, an unwritable folder and missing packages are no error."""
    from cvxnmf import report
    from cvxnmf.io.source import FileError
    from cvxnmf.io.writing import check_writable, write_with

    place = os.path.abspath(options.report or PAGE)
    try:
        check_writable(place)
        write_with(lambda name: report.write(club, name, title="Zachary's karate club"), place)
    except (FileError, ImportError) as error:
        if options.report:
            raise
        terminal.note(f"no page was written: {error}")
        return None
    return place


def _solve(graph: str, A: FloatArray, setting: str, tol: float, progress: Progress) -> dict[str, Any]:
    """Solve the problem of a graph of the demo in one setting, check the certificate, and return the facts."""
    from cvxnmf.convex.solve import solve
    from cvxnmf.convex.symmetric import symmetric

    terms, method = SETTINGS[setting]
    problem = symmetric(A, **terms)
    work = lambda: solve(problem, method=method, tol=tol, callback=progress.on_iterate)  # noqa: E731
    solution = progress.run(f"{graph}, {setting}", work, tol)
    certificate = solution.certificate
    return {
        "graph": graph,
        "setting": setting,
        "value": certificate.value,
        "bound": certificate.bound,
        "relative_gap": certificate.relative_gap,
        "iterations": solution.n_iter,
        "seconds": solution.seconds,
        "rank": solution.rank,
        "status": solution.status.name,
        "checked": certificate.check(A) == certificate.bound,
    }


def _print_solves(solves: Sequence[dict[str, Any]]) -> None:
    """Print the demo's table with a row for each solve, and say in words what they prove."""
    header = ("graph", "setting", "value", "proved bound", "gap", "steps", "seconds", "rank", "checked")
    lines = []
    for facts in solves:
        numbers = [f"{facts['value']:.4f}", f"{facts['bound']:.4f}", f"{facts['relative_gap']:.1e}", str(facts["iterations"])]
        ending = [f"{facts['seconds']:.2f}", str(facts["rank"]), "yes" if facts["checked"] else "NO"]
        lines.append([facts["graph"], facts["setting"], *numbers, *ending])
    terminal.show_table(header, lines, left=(0, 1))
    first = solves[0]
    print(
        f"\nWhat this proves: on the {first['graph']}, no model of this kind can have an objective below {first['bound']:.4f};"
        f"\nthe one found has {first['value']:.4f}. 'checked' means that the bound was recomputed from the data and the"
        "\ncertificate's witness alone. Values of different settings are objectives of different problems."
    )
