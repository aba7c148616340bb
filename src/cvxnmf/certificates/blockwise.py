"""Certificates for data in blocks of rows: the loss by one pass, the bound from the Gram matrix of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf import blocks, checking, spectra, validation
from cvxnmf.blocks import BlockMatrix
from cvxnmf.certificates.factors import block_loss, stated
from cvxnmf.checking import Certificate
from cvxnmf.checking.rank import gram_tail, ritz_tail, walked_tail
from cvxnmf.results import FloatArray

Found = tuple[str, dict[str, FloatArray], checking.Proof]


def verified(A: Any, U: Any, V: Any, loss: str, memory_limit: Any, client: Any) -> Certificate:
    """The certificate of anybody's factors of data in blocks."""
    if V is None:
        validation.refuse("Data in blocks cannot be verified as UU'; give V as well, or data in memory.")
    U, V = validation.nonnegative_factors(U, V, blocks.dimensions(A))
    with blocks.opened(A, U.shape[1], memory_limit, client) as matrix, np.errstate(all="ignore"):
        validation.magnitude(np.array([matrix.max()]), loss)
        return block_certificate(matrix, U.shape[1], loss_in_blocks(matrix, U, V, loss), loss)


def loss_in_blocks(A: BlockMatrix, U: FloatArray, V: FloatArray, loss: str) -> float:
    """The loss of factors by one pass over the data."""
    _, (value, _, _) = A.blocks.run(block_loss, A.blocks.scatter(U), V, loss)
    return float(value)


def block_certificate(A: BlockMatrix, k: int, value: float, loss: str) -> Certificate:
    """The certificate of a value: the tail of the singular values, for Kullback-Leibler 0."""
    statement: dict[str, Any] = {"form": "rank", "loss": loss, "n_components": k, "symmetric": False}
    zero = checking.Proof(0.0, True, float(A.energy if loss == "mse" else A.total))
    found: Found = ("zero", {}, zero)
    if loss == "mse" and k < min(A.shape):
        with np.errstate(all="ignore"), spectra.single_thread(min(A.shape)):
            found = _tail(A, k, statement)
        if not found[2].bound > 0:
            found = ("zero", {}, zero)
    return stated(*found, value, statement)


def _tail(A: BlockMatrix, k: int, statement: dict[str, Any]) -> Found:
    """The bound from the Gram matrix of either side, rigorous, or else from a few leading vectors."""
    if A.gram_fits and A.shape[0] >= A.shape[1]:
        return "tail", {}, gram_tail(A.gram(), A.energy, A.max(), A.shape[0], statement)
    if A.turned_gram_fits:
        return "tail", {}, walked_tail(A.given, statement)
    Q = np.linalg.qr(A.leading_pairs(k)[1])[0]
    return "lanczos", {"vectors": Q}, ritz_tail(Q, A.gram_product, A.energy, k)
