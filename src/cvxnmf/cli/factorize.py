"""``cvxnmf factorize``: nonnegative factors of a matrix, with a bound on what is possible."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import options as arguments
from cvxnmf.cli import output, terminal
from cvxnmf.cli.exit_codes import INTERRUPTED, exit_code
from cvxnmf.cli.progress import Progress

if TYPE_CHECKING:
    from cvxnmf.io import MatrixFile
    from cvxnmf.results import Factorization, RankChoice

ENDINGS = {"--output": (".npz", ".csv", ".tsv", ".txt"), "--report": (".html", ".htm"), "--certificate": (".npz",)}
#: Rows and columns of each component that are shown.
ITEMS = 5
CODES = """\
exit codes: 0 finished, and the certified gap is within --tol-gap if that is given, 1 error, 2 usage, 3 it is not,
            130 interrupted"""


def add(commands: Any) -> None:
    """Register the command ``cvxnmf factorize``."""
    parser = arguments.add_command(
        commands,
        "factorize",
        run,
        help="factor a nonnegative matrix, with a bound on what is possible",
        description="Factor the nonnegative matrix in a file, A = UV' or A = UU', and bound what any factors could reach.",
        epilog=f"{arguments.MATRIX_FILES}\n{CODES}",
    )
    parser.add_argument("file", metavar="FILE", help="a matrix; - for standard input")
    number = parser.add_mutually_exclusive_group()
    number.add_argument("-k", "--components", type=arguments.positive, metavar="N", help="number of components (default: found)")
    words = "compare numbers of components, such as 2:20 or 3,5,8, by predicting hidden entries, and take the best"
    number.add_argument("--ranks", type=arguments.ranks, metavar="FROM:TO", help=words)
    arguments.add_loss(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--symmetric", dest="symmetric", action="store_const", const=True, help="ask for V = U")
    form.add_argument("--general", dest="symmetric", action="store_const", const=False, help="U and V even if A is symmetric")
    parser.add_argument("--tol", type=arguments.tolerance, default=1e-6, help="where descents end (default: %(default)s)")
    parser.add_argument("--max-iter", type=arguments.positive, default=1000, help="most steps of each (default: %(default)s)")
    arguments.add_bound(parser)
    parser.add_argument(
        "--output", metavar="FILE", help="write everything: .npz; NAME.csv or .tsv writes NAME-U and NAME-V; - prints both"
    )
    parser.add_argument("--report", metavar="FILE", help="write a page to look at: .html")
    parser.add_argument("--certificate", metavar="FILE", help="write the certificate: .npz")
    words = "show the N strongest rows and columns of each component (default: %(default)s)"
    parser.add_argument("--top", type=arguments.not_negative, metavar="N", default=ITEMS, help=words)
    parser.add_argument("--shape", type=arguments.image_shape, metavar="HxW", help="draw the components on the page as images")
    arguments.add_showing(parser)
    arguments.add_scale(parser)
    arguments.add_reading(parser, weights=False)


def run(options: argparse.Namespace) -> int:
    """Run ``cvxnmf factorize``: read, factor, write and print."""
    from cvxnmf.io.writing import factor_paths
    from cvxnmf.nmf.factorize import factorize
    from cvxnmf.results import Interrupted

    paths = {"--output": options.output, "--report": options.report, "--certificate": options.certificate}
    if options.output not in (None, "-") and not options.output.lower().endswith(".npz"):
        paths["--output"], paths["--output (V)"] = factor_paths(options.output, symmetric=False)
    arguments.check_outputs(paths, [options.file], ENDINGS)
    arguments.refuse_two_prints(options)
    data, progress = _read(options), Progress(options.quiet)
    terms = {"loss": options.loss, "symmetric": options.symmetric, "tol": options.tol, "max_iter": options.max_iter}
    terms["weights"] = arguments.weights_from(options, data)
    terms |= {"memory_limit": options.memory_limit, "client": options.dask, "effort": options.effort, "certificate": "now"}
    terms |= data.unique_names()
    try:
        choice = _choose(data, options, progress) if options.ranks else None
        k = options.components if choice is None else choice.n_components
        work = lambda: factorize(data.A, k, callback=progress.on_iterate, **terms)  # noqa: E731
        result = progress.run(options.file, work, options.tol_gap or 0.0, options.max_iter)
    except Interrupted as stopped:
        return _keep_best(stopped.solution, options)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; nothing was written.") from None
    choice = None if choice is None else choice.with_result(result)  # one loss and one bound in table, text and page
    written = _write(result, choice, options)
    if options.json:
        output.print_json(_facts(result, choice, options))
    elif options.output != "-":
        _print(result, choice, options)
    output.say_written(written, options.quiet)
    return exit_code(result.certificate.relative_gap, options.tol_gap)


def _read(options: argparse.Namespace) -> MatrixFile:
    """Read the matrix of ``cvxnmf factorize``; names where numbers should stand may be those of a list of edges."""
    from cvxnmf.io.source import FileError

    try:
        return arguments.matrix_from(options, options.file, options.format)
    except FileError as error:
        if "expected a number in column 2" not in str(error):
            raise
        hint = "if these are the edges of a graph, ask cvxnmf partition, or add --format edges"
        raise FileError(f"{str(error).removesuffix('.')}; {hint}.") from None


def _choose(data: MatrixFile, options: argparse.Namespace, progress: Progress) -> RankChoice:
    """Compare the numbers of components that ``cvxnmf factorize`` was asked to choose from."""
    from cvxnmf.nmf.rank_choice import choose_rank

    names = data.unique_names()
    work = lambda: choose_rank(data.A, options.ranks, options.loss, callback=progress.on_iterate, **names)  # noqa: E731
    return progress.run(options.file, work)


def _write(result: Factorization, choice: RankChoice | None, options: argparse.Namespace) -> list[str]:
    """Write the files that ``cvxnmf factorize`` was asked for, and return their names."""
    from cvxnmf.io.writing import write_factors, write_with

    written = write_factors(result, options.output) if options.output else []
    if options.certificate:
        write_with(result.certificate.save, options.certificate)
    if options.report:
        from cvxnmf import report

        shown = result if choice is None else choice
        title = "standard input" if options.file == "-" else os.path.basename(options.file)
        write_with(lambda name: report.write(shown, name, title, shape=options.shape), options.report)
    return [*written, *filter(None, (options.certificate, options.report))]


def _keep_best(result: Any, options: argparse.Namespace) -> int:
    """Keep the best factors so far when ``cvxnmf factorize`` is interrupted, if there is a place for them."""
    from cvxnmf.io.writing import write_factors

    files = write_factors(result, options.output) if options.output else []
    output.print_lost_or_kept(f"value {result.value:.6g}", list(files))
    return INTERRUPTED


def _facts(result: Factorization, choice: RankChoice | None, options: argparse.Namespace) -> dict[str, Any]:
    """Return a factorisation, and how its rank was chosen if that was asked, for machines."""
    return {
        "rows": len(result.U),
        "columns": len(result.V),
        "n_components": result.n_components,
        "symmetric": result.V is result.U,
        "loss": options.loss,
        "value": result.value,
        "certificate": output.certificate_facts(result.certificate),
        "status": result.status.name,
        "message": result.message,
        **({"top": _top_facts(result, options.top)} if options.top else {}),
        **({} if choice is None else {"ranks": [row._asdict() for row in choice.table], "reason": choice.reason}),
    }


def _top_facts(result: Factorization, n: int) -> list[dict[str, Any]]:
    """Return the strongest rows and columns of every component for machines."""
    from cvxnmf.io.parts import names_as_json

    def items(side: Any) -> list[dict[str, Any]]:
        names = names_as_json(item.name for item in side)
        return [{"name": name, "weight": item.weight} for name, item in zip(names, side, strict=True)]

    return [
        {"component": part.component, "share": part.share, "rows": items(part.rows), "columns": items(part.columns)}
        for part in result.top(n)
    ]


def _print(result: Factorization, choice: RankChoice | None, options: argparse.Namespace) -> None:
    """Print a factorisation: choice of rank; size, form, loss; the proof; how it ended; the strongest rows and columns."""
    from cvxnmf.display.certificate_text import describe, loss_name
    from cvxnmf.display.formatting import RANK_HEADING, count, rank_rows

    if choice is not None:
        terminal.show_table(RANK_HEADING, rank_rows(choice), left=())
        print(f"{choice.reason}\n")
    rows, columns = len(result.U), len(result.V)
    form = "A = UU'" if result.V is result.U else "A = UV'"
    size = f"{rows:,} by {columns:,} matrix, {count(result.n_components, 'component')}"
    terminal.show(f"{size}, {form}, {loss_name(result.certificate)}", "bold")
    output.print_certificate(result.certificate)
    if not describe(result.certificate).exact:
        print(result.message)
    if options.top:
        top = result.top(options.top)
        lines = [tuple(terminal.printable(text) for text in line) for line in top.lines()]
        print()
        terminal.show_table(top.heading, lines, left=range(2, len(top.heading)))
