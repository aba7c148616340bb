"""Factorisation of a given rank of data in blocks of rows: a few deterministic starts, each descended, the best certified."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cvxnmf import chunked, validation
from cvxnmf.chunked import ChunkedMatrix
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf import initialise
from cvxnmf.nmf.chunked_bounds import block_certificate, loss_in_blocks
from cvxnmf.nmf.descent import classical_nmf
from cvxnmf.nmf.evaluation import proved_message
from cvxnmf.results import Factorization, Interrupted, Status

Factors = tuple[FloatArray, FloatArray]


def factorized(
    A: Any, n_components: Any, loss: str, symmetric: Any, start: Any, memory_limit: Any, client: Any, **options: Any
) -> Factorization:
    """:func:`factorize` on data in blocks; the options are those of :func:`classical_nmf`."""
    if symmetric:
        validation.refuse("Data in blocks cannot be factored as UU'; use symmetric=False, or data in memory.")
    given = (start.U, start.V) if isinstance(start, Factorization) else start
    if n_components is None and isinstance(given, tuple | list) and len(given) == 2:
        n_components = np.shape(given[1])[-1]
    if n_components is None:
        validation.refuse("The number of components of data in blocks must be given; set n_components (-k).")
    k = validation.components(n_components, chunked.matrix_shape(A))
    with chunked.open_chunked(A, k, memory_limit, client) as matrix:
        return _searched(matrix, k, loss, given, options)


def _searched(A: ChunkedMatrix, k: int, loss: str, given: Any, options: dict[str, Any]) -> Factorization:
    """The best run with its certificate."""
    best = _best(A, k, loss, [lambda: given] if given is not None else list(_starts(A, k)), options)
    if given is not None:
        best = _no_worse(best, given, A, loss)
    certificate = block_certificate(A, k, best.value, loss)
    return dataclasses.replace(best, certificate=certificate, message=proved_message(best.message, certificate))


def _starts(A: ChunkedMatrix, k: int) -> Iterator[Callable[[], Factors]]:
    """Starts that a few passes over the data give; made one at a time, since each is as large as the factors."""
    yield lambda: initialise.nndsvd(A, k)
    if 1 < k < min(A.shape):
        yield lambda: initialise.successive_projection(A, k)
        yield lambda: initialise.standing_columns(A, k)


def _best(A: ChunkedMatrix, k: int, loss: str, inits: list[Callable[[], Any]], options: dict[str, Any]) -> Factorization:
    """Descend from each start and keep the best run."""
    best: Factorization | None = None
    for init in inits:
        try:
            with np.errstate(all="ignore"):
                run = classical_nmf(A, k, "hals", loss, init(), **options)
        except Interrupted as stopped:
            current: Any = stopped.solution
            found = current if best is None or current.value < best.value else best
            raise Interrupted(dataclasses.replace(found, status=Status.INTERRUPTED)) from None
        if best is None or run.value < best.value:
            best = run
        if run.status is Status.INTERRUPTED:
            break
    assert best is not None
    return best


def _no_worse(run: Factorization, given: Any, A: ChunkedMatrix, loss: str) -> Factorization:
    """The run, or the start itself if rounding or the lifting of zeros took the run above it."""
    U, V = validation.nonnegative_factors(given[0], given[1], A.shape)
    value = loss_in_blocks(A, U, V, loss)
    return run if run.value <= value else dataclasses.replace(run, U=U, V=V, value=value, message="The start was not improved.")
