"""Entries asked for early change no result, and may lie outside of their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from builders import planted_graph
from cvxnmf.linalg.compiled import compile_with
from cvxnmf.linalg.prefetching import look_ahead, look_along, prefetch


@compile_with(nogil=True)
def _row_sums(indptr: Any, indices: Any, x: Any, rows: Any, ahead: bool) -> Any:
    sums = np.zeros(len(rows))
    for place in range(len(rows)):
        if ahead:
            look_ahead(indptr, indices, x, rows, place)
        for p in range(indptr[rows[place]], indptr[rows[place] + 1]):
            if ahead:
                look_along(indices, x, p)
            sums[place] += x[indices[p]]
    return sums


@compile_with(nogil=True)
def _ask_beyond(x: Any) -> float:
    prefetch(x, np.int64(-1_000_000_000_000))
    prefetch(x, np.int64(1_000_000_000_000))
    return float(x[0])


def test_sums_are_the_same_with_and_without() -> None:
    A, x = sp.csr_array(planted_graph(300, 3, 8)[0]), np.random.default_rng(0).random(300)
    for rows in (np.arange(300), np.arange(299, -1, -1, dtype=np.int32), np.array([7])):
        found = [_row_sums(A.indptr, A.indices, x, rows, ahead) for ahead in (False, True)]
        assert np.array_equal(*found)
        assert np.allclose(found[0], (A.astype(bool) @ x)[rows])


def test_places_may_lie_outside() -> None:
    assert _ask_beyond(np.array([3.0])) == 3.0
