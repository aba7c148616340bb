"""Weights of entries or rows: ``sum w_ij d(A_ij, (UV')_ij)``, with missing entries of weight 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.data_matrix import MemoryMatrix
from cvxnmf.nmf.losses import NMFLoss
from cvxnmf.nmf.prepare import require_positive
from cvxnmf.nmf.storage import DenseRows


def checked_weights(weights: Any, shape: tuple[int, int]) -> FloatArray:
    """Weights of the rows, as a column, or of all entries, in a copy."""
    m, n = shape
    given = validation.real_array(weights.toarray() if sp.issparse(weights) else weights)
    if not given.size:
        validation.refuse(f"weights must be numbers, {m} for the rows of A or {m} by {n} for its entries.")
    given = given[:, None] if given.shape == (m,) else given
    if given.shape not in ((m, 1), (m, n)):
        validation.refuse(f"weights have shape {given.shape}; give {m} for the rows of A, or {m} by {n} for its entries.")
    if not np.isfinite(given).all() or (given < 0).any():
        validation.refuse("weights must be finite and not negative; give missing entries of A the weight 0, or make them NaN.")
    return given


def entry_weights(weights: Any, A: Any) -> FloatArray:
    """Weights for all entries of A, from weights of the rows or of the entries; 0 where A is missing."""
    every = np.array(np.broadcast_to(checked_weights(weights, A.shape), A.shape))
    every[np.isnan(A)] = 0.0
    if not every.any():
        validation.refuse("All weights are zero; there is nothing to fit.")
    return every


def row_scales(weights: FloatArray, beta: float) -> FloatArray:
    """Scales of rows that stand for their positive weights, ``w^(1/beta)``: ``d(ca, ce) = c^beta d(a, e)`` but for beta 0."""
    if np.isnan(beta):
        validation.refuse("This loss takes no sample_weight; only beta divergences, such as 'frobenius', do.")
    return np.asarray(weights ** (1.0 / beta))


def weighted_matrix(A: Any, weights: Any, loss: NMFLoss, single: bool = False) -> MemoryMatrix:
    """Checked data with weights: dense, since zeros have weights too; where the weight is 0, what row and column suggest."""
    if sp.issparse(A):
        validation.fits_in_memory(*A.shape)
        A = A.toarray()
    every = entry_weights(weights, A)
    known = np.where(every > 0, A, 0.0)
    total = float(np.vdot(every, known))
    if not total > 0:
        validation.refuse("A is all zeros where its weights are positive; there is nothing to fit.")
    rows, columns = ((every * known).sum(axis=axis) / np.maximum(every.sum(axis=axis), 1e-300) for axis in (1, 0))
    typical = np.outer(rows, columns) / (total / float(every.sum()))
    filled = np.where(every > 0, known, np.maximum(typical, 1e-12 * known.max()))
    if loss.needs_positive_data:
        require_positive(filled, loss.name)
    return MemoryMatrix(DenseRows(filled, every), single=single)
