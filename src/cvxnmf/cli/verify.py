"""``cvxnmf verify``: a certificate for anybody's factors."""

from __future__ import annotations

import argparse
from typing import Any

from cvxnmf.cli import options as arguments
from cvxnmf.cli import output, terminal
from cvxnmf.cli.exit_codes import exit_code
from cvxnmf.cli.factorize import CODES
from cvxnmf.cli.progress import Progress


def add(commands: Any) -> None:
    """Register the command."""
    parser = arguments.add_command(
        commands,
        "verify",
        run,
        help="certify anybody's nonnegative factors",
        description="Compute the loss of given factors, and a bound that no factorisation of their rank can beat.",
        epilog=f"{arguments.MATRIX_FILES}\n{CODES}",
    )
    parser.add_argument("data", metavar="A", help="the matrix that was factored")
    parser.add_argument("U", help="its factor of one row for each row of A, or an .npz file written by cvxnmf with both factors")
    parser.add_argument("V", nargs="?", help="the other factor, one row for each column of A, or transposed; left out, A = UU'")
    parser.add_argument("--loss", choices=("mse", "kl"), default="mse", help="squared error or Kullback-Leibler (default: mse)")
    arguments.add_bound(parser)
    parser.add_argument("--save", metavar="FILE", help="write the certificate: .npz")
    arguments.add_showing(parser)
    arguments.add_scale(parser)
    arguments.add_reading(parser, weights=False)


def run(options: argparse.Namespace) -> int:
    """Read, certify, write and print."""
    from cvxnmf.io.writing import write_with
    from cvxnmf.nmf.verify import verify

    arguments.check_outputs({"--save": options.save}, [options.data, options.U, options.V or "-"], {"--save": (".npz",)})
    A = arguments.matrix_from(options, options.data, options.format).A
    U, V = _factors(options, A.shape)
    progress = Progress(options.quiet)
    scale = {"memory_limit": options.memory_limit, "client": options.dask}
    work = lambda: verify(A, U, V, options.loss, options.effort, **scale)  # noqa: E731
    certificate = progress.run(options.data, work, options.tol_gap or 0.0)
    if options.save:
        write_with(certificate.save, options.save)
    if options.json:
        facts = {"rows": A.shape[0], "columns": A.shape[1], "n_components": certificate.statement["n_components"]}
        output.print_json(facts | {"loss": options.loss} | output.certificate_facts(certificate))
    else:
        output.print_certificate(certificate)
    return exit_code(certificate.relative_gap, options.tol_gap)


def _factors(options: argparse.Namespace, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Return the factors U and V, V with a row for each column of A."""
    from cvxnmf.io.reading import read_factors
    from cvxnmf.io.source import FileError

    U, V = read_factors(options.U)
    if options.V is None:
        return U, V
    if V is not None:
        raise FileError(f"{options.U} holds both factors; leave out {options.V}.")
    V, other = read_factors(options.V)
    if other is not None:
        raise FileError(f"{options.V} holds both factors; give it alone, as U.")
    k = U.shape[1]
    if V.shape != (shape[1], k) and V.shape == (k, shape[1]):
        if not options.quiet:
            terminal.note(f"{options.V} is {k} by {shape[1]}, like scikit-learn's components_; it is transposed.")
        V = V.T
    return U, V
