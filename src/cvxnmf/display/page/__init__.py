"""Results in, one self-contained page out."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from cvxnmf import validation
from cvxnmf.certificates.whole_files import whole_file
from cvxnmf.display.edges import EdgeList
from cvxnmf.display.page import factorization_page, partition_page, payload
from cvxnmf.display.page.document import render, require_packages
from cvxnmf.results import Factorization, Partition, RankChoice

__all__ = ["html", "write"]


def write(
    result: Partition | Factorization | RankChoice,
    path: str | PathLike[str],
    title: str | None = None,
    factors: bool = True,
    shape: tuple[int, int] | None = None,
) -> None:
    """Write a result as one HTML file that needs no network and no other file.

    The same result gives the same bytes.

    Parameters
    ----------
    result : Partition, Factorization or RankChoice
        What to show; of a choice of rank the factors that it recommends, and the curves.
    path : str or path
        The file to write, usually named ``*.html``.
    title : str or None
        The heading of the page; when left out, the name of the graph if it has one (as networkx's graphs may), or the size.
    factors : bool
        Whether the page of a partition tells what is proved about its factors, which are computed for that if need be.
    shape : pair of int or None
        Height and width of an image, where the components of a factorisation are images to be drawn.

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
    text = html(result, title, factors, shape)
    with whole_file(path) as name:
        Path(name).write_bytes(text.encode("utf-8"))


def html(
    result: Partition | Factorization | RankChoice,
    title: str | None = None,
    factors: bool = True,
    shape: tuple[int, int] | None = None,
) -> str:
    """Return the page of a result as HTML, which :func:`cvxnmf.report.write` writes.

    Parameters
    ----------
    result, title, factors, shape
        As in :func:`cvxnmf.report.write`.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> page = cvxnmf.report.html(cvxnmf.partition(A, 2), title="Two blocks")
    >>> "<h1>Two blocks</h1>" in page
    True
    """
    require_packages()
    if isinstance(result, Partition):
        edges = EdgeList.of(result)
        template, data = "partition.html", payload.partition_data(result, edges)
        own_title, shown = partition_page.title(result), partition_page.context(result, edges, factors)
        title = result.name or None if title is None else title
    elif isinstance(result, Factorization | RankChoice):
        choice, found = (result, result.result) if isinstance(result, RankChoice) else (None, result)
        template, data = "factorization.html", payload.factorization_data(found, shape)
        own_title, shown = factorization_page.title(found), factorization_page.context(found, choice)
    else:
        validation.refuse(f"A page shows a Partition, a Factorization or a RankChoice, not a {type(result).__name__}.")
    heading = payload.encodable(own_title if title is None else title)
    return render(template, data, title=heading, subtitle="" if title is None else own_title, **shown)
