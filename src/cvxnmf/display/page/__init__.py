"""Results in, one self-contained page out."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from cvxnmf import validation
from cvxnmf.display.page import factorization_page, partition_page, payload
from cvxnmf.display.page.document import document
from cvxnmf.results import Factorization, Partition

__all__ = ["html", "write"]


def write(result: Partition | Factorization, path: str | PathLike[str], title: str | None = None, factors: bool = True) -> None:
    """Write a result as one HTML file that needs no network and no other file.

    The same result gives the same bytes.

    Parameters
    ----------
    result : Partition or Factorization
        What to show.
    path : str or path
        The file to write, usually named ``*.html``.
    title : str or None
        The heading of the page; the size of the result when left out.
    factors : bool
        Whether the page of a partition tells what is proved about its factors, which are computed for that if need be.

    Examples
    --------
    >>> import os, tempfile, cvxnmf
    >>> from cvxnmf import report
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.write(cvxnmf.partition(A, 2), os.path.join(folder, "graph.html"))
    ...     os.listdir(folder)
    ['graph.html']
    """
    text = html(result, title, factors)
    Path(path).write_bytes(text.encode("utf-8"))


def html(result: Partition | Factorization, title: str | None = None, factors: bool = True) -> str:
    """Return the page that :func:`cvxnmf.report.write` writes.

    Parameters
    ----------
    result : Partition or Factorization
        What to show.
    title : str or None
        The heading of the page; the size of the result when left out.
    factors : bool
        Whether the page of a partition tells what is proved about its factors.
    """
    own_title, body, data = _parts(result, factors)
    return document(own_title, "", body, data) if title is None else document(title, own_title, body, data)


def _parts(result: object, factors: bool) -> tuple[str, str, dict[str, Any]]:
    """Return title, body and data of the page."""
    if isinstance(result, Partition):
        graph = payload.Graph.of(result)
        return partition_page.title(result), partition_page.body(result, graph, factors), payload.of_partition(result, graph)
    if isinstance(result, Factorization):
        return factorization_page.title(result), factorization_page.body(result), payload.of_factorization(result)
    return validation.refuse(f"A page can be written of a Partition or a Factorization, not of {type(result).__name__}.")
