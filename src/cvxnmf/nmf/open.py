"""The one door for data that are to be factored: checked, and opened in memory, with weights, or in row chunks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cvxnmf import chunked, validation
from cvxnmf.linalg.arrays import is_single
from cvxnmf.nmf.chunked_data import ChunkedData
from cvxnmf.nmf.data_matrix import DataMatrix, MemoryMatrix
from cvxnmf.nmf.losses import NMFLoss
from cvxnmf.nmf.methods import METHODS
from cvxnmf.nmf.prepare import checked_matrix
from cvxnmf.nmf.weights import weighted_matrix


@contextmanager
def open_data(
    A: Any,
    n_components: Any,
    loss: NMFLoss,
    symmetric: bool | None = False,
    weights: Any = None,
    place: tuple[Any, Any] = (None, None),
    keep_given: bool = True,
    keep_single: bool = True,
) -> Iterator[tuple[Any, DataMatrix]]:
    """Open data to be factored: as they were given, which certificates speak of, and as descents take them.

    The place is a memory limit and a client; with either of them data are in row chunks, and memory is planned for so many
    components. Symmetric data in memory are recognised if `symmetric` is None.
    """
    if not chunked.needs_chunks(A, *place):
        yield data_in_memory(A, loss, symmetric, weights, keep_given, keep_single)
        return
    if n_components is None:
        validation.refuse("The number of components of data in blocks must be given; set n_components (-k).")
    k = validation.components(n_components, chunked.matrix_shape(A))
    with chunked.open_chunked(A, k, *place) as matrix:
        validation.magnitude(np.array([matrix.max()]), loss.name)
        if symmetric:
            matrix.require_symmetric()
        yield matrix, ChunkedData(matrix, bool(symmetric))


def data_in_memory(
    A: Any,
    loss: NMFLoss,
    symmetric: bool | None = False,
    weights: Any = None,
    keep_given: bool = True,
    keep_single: bool = True,
) -> tuple[Any, MemoryMatrix]:
    """Data in memory as they were given, and opened; factors of data in single precision are so too unless it is not kept.

    Without `keep_given` there is None in place of the data as given, masked entries are missing ones, sparse data stay so even if
    entries are missing, and initialisations see the data as they are stored.
    """
    if not keep_given and isinstance(A, np.ma.MaskedArray) and A.dtype.kind in "fiub":
        A = np.ma.filled(A if A.dtype.kind == "f" else A.astype(np.float64), np.nan)
    single = keep_single and is_single(A)
    given = validation.partial_matrix(A, keep_single=single and weights is None, share=not keep_given)
    validation.magnitude(given, loss.name)
    if weights is not None:
        data = weighted_matrix(given, weights, loss, single)
    else:
        if symmetric is None:
            symmetric = loss.kind in METHODS["hals"].symmetric_rules and _is_symmetric(given)
        data = checked_matrix(given, bool(symmetric), loss, single, keep_given)
    return given if keep_given else None, data


def _is_symmetric(A: Any) -> bool:
    """Whether data to be opened are symmetric, perhaps up to rounding, which is told where mirrored entries are averaged."""
    try:
        validation.require_symmetric(A, dtype=np.float32)
    except ValueError:
        return False
    return True
