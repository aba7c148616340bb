"""``cvxnmf reproduce``: the paper's figures, as tables and pictures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import options as arguments
from cvxnmf.cli import output, terminal
from cvxnmf.cli.exit_codes import ABOVE_TOLERANCE, CERTIFIED
from cvxnmf.cli.progress import Progress

if TYPE_CHECKING:
    from cvxnmf.paper import Reproduction

#: The experiments, written here too so that ``--help`` need not import them.
NAMES = ("figure1", "figure2-left", "figure2-right", "rank-two")
#: Options of the experiments that the command line passes on.
PASSED = ("size", "sizes", "repeats", "deltas", "tol", "seed")

EPILOG = """\
figures:
  figure1        a block graph before and after its clusters are put together
  figure2-left   steps to a certified gap against the size of the graph
  figure2-right  performance against spectral methods, from near-bipartite graphs (beta - alpha < 0) to clear clusters
  rank-two       how precise the paper's 2^r columns are, beside its series and the lattice
Each comes as tables (CSV) and as a picture (PNG, SVG). Graph number i = 0, 1, ... is drawn with the seed SEED + i.
Rows are written as they are finished, so Ctrl-C keeps them.
exit codes: 0 every certified gap is within --tol, 1 error, 2 usage, 3 one is not, 130 interrupted"""


def add(commands: Any) -> None:
    """Register the command ``cvxnmf reproduce``."""
    description = "Redo the experiments of the paper with the code of this package."
    texts = {"help": "redo the paper's figures", "description": description, "epilog": EPILOG}
    parser = arguments.add_command(commands, "reproduce", run, **texts)
    parser.add_argument("figure", choices=(*NAMES, "all"), help="what to redo; see below")
    where = "where files go (default: %(default)s)"
    number: dict[str, Any] = {"type": arguments.positive, "metavar": "N"}
    parser.add_argument("--output", dest="folder", metavar="FOLDER", default="cvxnmf-paper", help=where)
    parser.add_argument("--size", help="nodes of a graph (figure1, figure2-right; default 100)", **number)
    parser.add_argument("--sizes", nargs="+", help="numbers of nodes (figure2-left; default 20 to 200)", **number)
    parser.add_argument("--repeats", help="graphs per point (figure 2; default 10 and 50)", **number)
    parser.add_argument(
        "--deltas", type=float, nargs="+", metavar="D", help="values of beta - alpha in [-1, 1] (figures 1 and 2)"
    )
    parser.add_argument("--tol", type=arguments.tolerance, help="certified gap to reach (default 1e-4; figure2-left 1e-6)")
    parser.add_argument("--seed", type=arguments.not_negative, help="seed of the first graph (default 0)")
    parser.add_argument("--quick", action="store_true", help="small sizes and few graphs, where not given: under a minute")
    arguments.add_showing(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``cvxnmf reproduce``: the paper's experiments one after another, and print what was written."""
    chosen = NAMES if options.figure == "all" else (options.figure,)
    finished = [_reproduce_one(name, options) for name in chosen]
    if options.json:
        output.print_json({"figures": [_facts(result) for result in finished]})
    else:
        for path in (path for result in finished for path in result.files):
            print(path)
    return CERTIFIED if all(result.certified for result in finished) else ABOVE_TOLERANCE


def _reproduce_one(name: str, options: argparse.Namespace) -> Reproduction:
    """Reproduce one experiment of the paper with the options that it knows."""
    from cvxnmf.paper import EXPERIMENTS, reproduce

    given = {key: getattr(options, key) for key in PASSED if getattr(options, key) is not None}
    if options.figure == "all":
        given = {key: value for key, value in given.items() if key in EXPERIMENTS[name].defaults}
    progress = Progress(options.quiet)
    work = lambda: reproduce(name, options.folder, quick=options.quick, progress=progress.on_count, **given)  # noqa: E731
    try:
        return progress.run(name, work)
    except KeyboardInterrupt:
        terminal.note(f"the rows that were finished are in {Path(options.folder) / name}.csv.")
        raise


def _facts(result: Reproduction) -> dict[str, Any]:
    """Return a reproduced experiment for machines."""
    facts = {"figure": result.name, "options": dict(result.options), "certified": result.certified}
    return facts | {"files": [str(path) for path in result.files]} | (dict(result.summaries) or {"rows": result.rows})
