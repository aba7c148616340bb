"""Rows of a graph in blocks as sparse matrices of all columns, as the check of a certificate takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.chunked.graphs.blocks import RowBlock

#: Entries of a piece, more only if a row has more.
ENTRIES = 1 << 18


def pieces_of(block: RowBlock, n: int) -> Iterator[tuple[int, Any]]:
    """Row pieces of a block of a graph of n nodes, loops among them: the first row, and a csr matrix, a few rows at a time."""
    cuts = np.searchsorted(block.indptr, np.arange(ENTRIES, int(block.indptr[-1]), ENTRIES))
    ends = np.unique(np.concatenate([[0], cuts, [len(block.masses)]])).tolist()
    for first, stop in zip(ends, ends[1:], strict=False):
        span = slice(int(block.indptr[first]), int(block.indptr[stop]))
        indices = block.indices[span]
        weights = np.full(len(indices), block.weights[0]) if len(block.weights) == 1 else block.weights[span]
        rows = sp.csr_array((weights, indices, block.indptr[first : stop + 1] - span.start), shape=(stop - first, n))
        looped = np.flatnonzero(block.loops[first:stop])
        if len(looped):
            loops = block.loops[first:stop][looped], (looped, block.first + first + looped)
            rows = sp.csr_array(rows + sp.csr_array(loops, shape=rows.shape))
        yield block.first + first, rows
