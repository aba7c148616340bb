"""The command line: arguments, progress, tables, exit codes.

Results go to stdout, progress to stderr. Exit codes: 0 certified, 1 error, 2 usage, 3 finished above tolerance.
Heavy imports wait until a command needs them, so that ``cvxnmf --help`` answers at once.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from cvxnmf import __version__

if TYPE_CHECKING:
    from cvxnmf.results import FloatArray, Iterate, Solution

CERTIFIED, ERROR, ABOVE_TOLERANCE = 0, 1, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("cvxnmf: interrupted.", file=sys.stderr)
        return ERROR
    except BrokenPipeError:  # the reader has seen enough, as in `cvxnmf demo | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ERROR
    except (ValueError, MemoryError, OSError, ImportError) as error:
        print(f"cvxnmf: {error}", file=sys.stderr)
        return ERROR


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cvxnmf",
        description="Nonnegative matrix factorisation with a proof: deterministic, globally solved, certified.",
        epilog="exit codes: 0 certified, 1 error, 2 usage, 3 finished above tolerance",
    )
    parser.add_argument("--version", action="version", version=f"cvxnmf {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="solve the karate club and one of the paper's block graphs, with proofs")
    demo.add_argument("--size", type=_size, default=200, help="nodes of the block graph (default: %(default)s)")
    demo.add_argument("--tol", type=_tolerance, default=1e-4, help="certified relative gap to reach (default: %(default)s)")
    demo.add_argument("--json", action="store_true", help="print the table as JSON")
    demo.add_argument("--quiet", action="store_true", help="show no progress")
    demo.set_defaults(run=_demo)
    return parser


def _size(text: str) -> int:
    value = int(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"at least 2 nodes are needed, not {value}")
    return value


def _tolerance(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"a finite number of at least 0 is needed, not {text}")
    return value


class _Row(NamedTuple):
    """One line of the demo."""

    graph: str
    setting: str
    solution: Solution
    checked: bool


def _demo(options: argparse.Namespace) -> int:
    """Solve two graphs in three settings; print value, bound and gap."""
    import numpy as np

    from cvxnmf.graphs import block_graph

    try:
        import networkx as nx
    except ImportError:
        raise ImportError("the demo needs networkx and rich; install them with: pip install 'cvxnmf[app]'") from None
    karate = nx.to_numpy_array(nx.karate_club_graph(), weight=None, dtype=np.float64)
    blocks, _ = block_graph(options.size, 0.3, 0.7)
    rows: list[_Row] = []
    with _Progress(options.quiet) as progress:
        for graph, A in (("karate club", karate), (f"blocks, n = {options.size}", blocks)):
            rows += [_solved(graph, A, setting, options.tol, progress) for setting in SETTINGS]
    _print_json(rows) if options.json else _print_table(rows)
    return CERTIFIED if all(r.solution.certificate.relative_gap <= options.tol for r in rows) else ABOVE_TOLERANCE


#: What the demo compares: arguments of `symmetric`, and the method.
SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "trace='auto'": ({"trace": "auto"}, "auto"),
    "trace=0": ({}, "auto"),
    "the paper's": ({"cone": "psd", "metric": "uniform"}, "projected-gradient"),
}


def _solved(graph: str, A: FloatArray, setting: str, tol: float, progress: _Progress) -> _Row:
    from cvxnmf.problems import symmetric
    from cvxnmf.solvers import solve

    terms, method = SETTINGS[setting]
    progress.begin(f"{graph}, {setting}", tol)
    solution = solve(symmetric(A, **terms), method=method, tol=tol, callback=progress.show)
    certificate = solution.certificate
    return _Row(graph, setting, solution, certificate.check(A) == certificate.bound)


class _Progress:
    """A live line on a terminal, one plain line per task elsewhere, nothing when quiet."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.task, self.tol = quiet, "", 0.0
        self.update: Callable[[str], Any] | None = None
        self.stack = ExitStack()

    def __enter__(self) -> _Progress:
        if not self.quiet and sys.stderr.isatty():
            try:
                from rich.console import Console
            except ImportError:
                return self
            status = Console(stderr=True).status("starting")
            self.stack.enter_context(status)
            self.update = status.update
        return self

    def __exit__(self, *exception: object) -> None:
        self.stack.close()

    def begin(self, task: str, tol: float) -> None:
        """Announce a task."""
        self.task, self.tol = task, tol
        if self.update:
            self.update(task)
        elif not self.quiet:
            print(f"solving: {task}", file=sys.stderr)

    def show(self, iterate: Iterate) -> None:
        """Show how far the gap has closed."""
        if self.update:
            gap = f"gap {iterate.gap / iterate.value:.0e} (goal {self.tol:.0e})" if iterate.bound > 0 else "no bound yet"
            self.update(f"{self.task}: step {iterate.iteration}, value {iterate.value:.5g}, {gap}")


def _facts(row: _Row) -> dict[str, Any]:
    solution, certificate = row.solution, row.solution.certificate
    return {
        "graph": row.graph,
        "setting": row.setting,
        "value": certificate.value,
        "bound": certificate.bound,
        "relative_gap": certificate.relative_gap,
        "iterations": solution.n_iter,
        "seconds": solution.seconds,
        "rank": solution.rank,
        "status": solution.status.name,
        "checked": row.checked,
    }


def _print_json(rows: Sequence[_Row]) -> None:
    print(json.dumps([_facts(row) for row in rows], indent=2))


def _print_table(rows: Sequence[_Row]) -> None:
    """Print the rows as a table and say in words what they prove."""
    header = ["graph", "setting", "value", "proved bound", "gap", "steps", "seconds", "rank", "checked"]
    lines = [header]
    for facts in map(_facts, rows):
        numbers = [f"{facts['value']:.4f}", f"{facts['bound']:.4f}", f"{facts['relative_gap']:.1e}", str(facts["iterations"])]
        ending = [f"{facts['seconds']:.2f}", str(facts["rank"]), "yes" if facts["checked"] else "NO"]
        lines.append([facts["graph"], facts["setting"], *numbers, *ending])
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for number, line in enumerate(lines):
        cells = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * w for w in widths))
    first = rows[0].solution.certificate
    print(
        f"\nWhat this proves: on the {rows[0].graph}, no model of this kind can have an objective below {first.bound:.4f};"
        f"\nthe one found has {first.value:.4f}. 'checked' means that the bound was recomputed from the data and the"
        "\ncertificate's witness alone. Values of different settings are objectives of different problems."
    )


if __name__ == "__main__":
    sys.exit(main())
