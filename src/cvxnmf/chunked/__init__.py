"""Data in row chunks: map a function over the chunks and reduce, in this process, from files, or on a Dask cluster."""

from cvxnmf.chunked.map_reduce import Maximum, SentLater, add_part, sent, state_rows
from cvxnmf.chunked.matrix import ChunkedMatrix, Transposed, transposed_product
from cvxnmf.chunked.open import matrix_shape, needs_chunks, open_chunked

__all__ = [
    "ChunkedMatrix",
    "Maximum",
    "SentLater",
    "Transposed",
    "add_part",
    "matrix_shape",
    "needs_chunks",
    "open_chunked",
    "sent",
    "state_rows",
    "transposed_product",
]
