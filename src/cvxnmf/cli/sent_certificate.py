"""A certificate that somebody sent, checked against the data: the part of ``cvxnmf verify`` that computes nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import options as arguments
from cvxnmf.cli import output
from cvxnmf.cli.exit_codes import exit_code

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate


def certificate_in(path: str) -> Certificate | None:
    """Return the certificate that was received in a file, None if the file holds none."""
    from cvxnmf.certificates import Certificate, CertificateError

    if not path.lower().endswith(".npz"):
        return None
    try:
        return Certificate.load(path)
    except (CertificateError, OSError):
        return None


def check(certificate: Certificate, options: argparse.Namespace) -> int:
    """Check a received certificate: prove the bound anew from data and witness, and print; a failure is an error."""
    _require_what_was_asked(certificate, options)
    bound = certificate.check(_data(certificate, options), arguments.weights_from(options))
    if options.json:
        facts = {"holds": True, "checked_bound": bound, "statement": dict(certificate.statement)}
        output.print_json(facts | output.certificate_facts(certificate))
    else:
        print(f"The certificate holds for {options.data}: its bound was proved anew from the data and the witness.")
        output.print_certificate(certificate)
    return exit_code(certificate.relative_gap, options.tol_gap)


def _require_what_was_asked(certificate: Certificate, options: argparse.Namespace) -> None:
    """Refuse a received certificate about something else than the options say."""
    from cvxnmf.certificates.losses import WEIGHTED
    from cvxnmf.io.source import FileError
    from cvxnmf.nmf.loss_names import find_loss

    told = dict(certificate.statement)
    asked = {
        "--loss": (options.loss and find_loss(options.loss).name, told.get("loss", "").removeprefix(WEIGHTED) or None),
        "--objective": (options.objective, told.get("objective")),
        "--resolution": (options.resolution, told.get("resolution")),
        "--clusters": (options.clusters, told.get("n_clusters")),
    }
    for name, (wanted, found) in asked.items():
        if wanted is not None and wanted != found:
            but = "" if found is None else f", but about {found}"
            raise FileError(f"{options.U} is no certificate about {name} {wanted}{but}; leave the option out.")
    if "weights" in told and options.loss_weights is None:
        raise FileError(f"{options.U} is a certificate about a loss with weights; name them with --loss-weights.")


def _data(certificate: Certificate, options: argparse.Namespace) -> Any:
    """Read the data of a received certificate: of factors a matrix, of clusters and models a graph, or else the other one.

    Both may fit a file of numbers, such as an edge list, so that what the certificate is about comes first. Within a limit of
    memory a graph whose nodes share positions in groups is read in pieces.
    """
    if "groups" in certificate.statement and (options.memory_limit or options.dask):
        from cvxnmf.cli.blocked_partition import reading_of
        from cvxnmf.io import row_pieces

        return row_pieces(options.data, memory_limit=options.memory_limit, reading=reading_of(options))
    readers: list[Callable[[], Any]] = [
        lambda: arguments.graph_from(options, options.data, options.quiet).A,
        lambda: arguments.matrix_from(options, options.data, options.format).A,
    ]
    first, second = readers[::-1] if certificate.scope == "rank-k" else readers
    try:
        return first()
    except ValueError:
        return second()
