"""Codes of data in blocks of rows, and components found from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.chunked import ChunkedMatrix
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.encoding import encode

#: Numbers that coding may hold at once beside a block.
AT_ONCE = 1 << 19


def codes_in_blocks(A: ChunkedMatrix, H: Any, loss: str, l1: float, l2: float) -> Any:
    """The codes of all rows for fixed components, in the precision of the data."""
    kept, _ = A.chunks.map_reduce(block_codes, None, np.asarray(H, dtype=np.float64), loss, l1, l2)
    return A.chunks.gather(kept).astype(np.float32 if A.single else np.float64, copy=False)


def block_codes(block: Any, kept: Any, H: FloatArray, loss: str, l1: float, l2: float) -> tuple[FloatArray, tuple[Any, ...]]:
    """Keep the codes of a block, computed a few rows at a time: each row needs k² or, for Kullback-Leibler, nk numbers."""
    k, n = H.shape
    height = max(1, AT_ONCE // (k * (n if loss == "kl" else k)))
    parts = [encode(block[first : first + height], H, loss, l1, l2) for first in range(0, block.shape[0], height)]
    return np.concatenate([part.toarray() if sp.issparse(part) else part for part in parts]), ()
