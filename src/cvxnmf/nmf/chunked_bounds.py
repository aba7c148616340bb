"""Certificates for data in blocks of rows: the loss by one pass, the bound from the Gram matrix of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf import certificates, chunked, validation
from cvxnmf.certificates import Certificate
from cvxnmf.certificates.leading import ritz_tail
from cvxnmf.certificates.rank import RankStatement, chunked_tail, gram_tail
from cvxnmf.chunked import ChunkedMatrix
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.evaluation import block_loss, stated
from cvxnmf.nmf.initialise import leading_gram_pairs

Found = tuple[str, dict[str, FloatArray], certificates.Proof]


def verified(A: Any, U: Any, V: Any, loss: str, memory_limit: Any, client: Any) -> Certificate:
    """The certificate of anybody's factors of data in chunked."""
    if V is None:
        validation.refuse("Data in blocks cannot be verified as UU'; give V as well, or data in memory.")
    U, V = validation.nonnegative_factors(U, V, chunked.matrix_shape(A))
    with chunked.open_chunked(A, U.shape[1], memory_limit, client) as matrix, np.errstate(all="ignore"):
        validation.magnitude(np.array([matrix.max()]), loss)
        return block_certificate(matrix, U.shape[1], loss_in_blocks(matrix, U, V, loss), loss)


def loss_in_blocks(A: ChunkedMatrix, U: FloatArray, V: FloatArray, loss: str) -> float:
    """The loss of factors by one pass over the data."""
    _, (value, _, _) = A.chunks.map_reduce(block_loss, A.chunks.scatter(U), V, loss)
    return float(value)


def block_certificate(A: ChunkedMatrix, k: int, value: float, loss: str) -> Certificate:
    """The certificate of a value: the tail of the singular values, for Kullback-Leibler 0."""
    statement = RankStatement(loss, k, symmetric=False)
    zero = certificates.Proof(0.0, True, float(A.energy if loss == "mse" else A.total))
    found: Found = ("zero", {}, zero)
    if loss == "mse" and k < min(A.shape):
        with np.errstate(all="ignore"), single_thread(min(A.shape)):
            found = _tail(A, k, statement)
        if not found[2].bound > 0:
            found = ("zero", {}, zero)
    return stated(*found, value, statement)


def _tail(A: ChunkedMatrix, k: int, statement: RankStatement) -> Found:
    """The bound from the Gram matrix of either side, rigorous, or else from a few leading vectors."""
    if A.gram_fits and A.shape[0] >= A.shape[1]:
        return "tail", {}, gram_tail(A.gram(), A.energy, A.max(), A.shape[0], statement)
    if A.transposed_gram_fits:
        return "tail", {}, chunked_tail(A.given, statement)
    Q = np.linalg.qr(leading_gram_pairs(A, k)[1])[0]
    return "lanczos", {"vectors": Q}, ritz_tail(Q, A.gram_product, A.energy, k)
