"""Weights of samples: rows of the data scaled so that their plain loss is the weighted one.

A beta divergence is homogeneous, ``d(ca, ce) = c^beta d(a, e)``, so that a row of weight w counts as the row times
``w^(1/beta)``, and bounds hold as for plain data. Itakura-Saito does not see scales, and takes the weights as they are.
A weight of 2 is the same as the row given twice, its penalty on W included, by which codes of a row do not depend on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.estimators.plan import Plan
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.loss_names import WEIGHTED, find_loss
from cvxnmf.nmf.storage import DenseRows
from cvxnmf.nmf.verify import factor_loss
from cvxnmf.nmf.weights import row_scales


class FittedRows(NamedTuple):
    """Rows of samples that components are fitted to: kept rows, their scales, and weights where scaling cannot replace them."""

    data: Any
    loss: str
    kept: Any = slice(None)
    scales: Any = 1.0
    weights: FloatArray | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples of an estimator's rows, those of weight 0 included."""
        return int(self.data.shape[0]) if self.plain else len(self.kept)

    def fitted_codes(self, W: Any) -> Any:
        """Codes of the fitted rows from codes of all rows: rows of weight 0 are left out, the others scaled."""
        return np.asarray(W) if self.plain else np.asarray(W)[self.kept] * self.scales

    @property
    def plain(self) -> bool:
        """Whether all rows of the samples are kept, unscaled."""
        return isinstance(self.kept, slice)

    def value(self, codes: Any, components: Any) -> float:
        """The loss of codes of all rows, by weights of samples if there are any."""
        U, V = (side.astype(np.float64, copy=False) for side in (self.fitted_codes(codes), components.T))
        if self.weights is None:
            return factor_loss(self.data, U, V, self.loss)
        A = np.asarray(self.data, dtype=np.float64)
        return find_loss(self.loss).value(DenseRows(A, np.broadcast_to(self.weights[:, None], A.shape)), U, V)


def sample_weights(given: Any, n_samples: int) -> FloatArray | None:
    """Weights of samples as an estimator is given them: a number for each row, or one for all."""
    if given is None:
        return None
    try:
        weights = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        validation.refuse(f"sample_weight must be numbers, one for each of the {n_samples} samples.")
    weights = np.full(n_samples, float(weights)) if weights.ndim == 0 else weights
    if weights.ndim != 1:
        validation.refuse("Sample weights must be 1D array or scalar; give one number for each sample.")
    if len(weights) != n_samples:
        validation.refuse(f"sample_weight.shape == {weights.shape}, expected ({n_samples},); give one number for each sample.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        validation.refuse("Negative values in data passed to sample_weight, or infinite ones; weights are finite and 0 at least.")
    if not weights.any():
        validation.refuse("All of sample_weight are zero; there is nothing to fit.")
    return weights


def fitted_rows(data: Any, plan: Plan, weights: FloatArray | None) -> FittedRows:
    """The rows of samples of positive weight, scaled so that their plain loss is the weighted loss of the data."""
    if weights is None:
        return FittedRows(data, plan.loss)
    if not plan.in_memory:
        validation.refuse("sample_weight is for data in memory; multiply the rows of data in blocks with w ** (1 / beta).")
    loss, kept = find_loss(plan.loss), weights > 0
    known = (plan.l1[0] > 0) <= (loss.beta == 1.0) and (plan.l2[0] > 0) <= (loss.beta == 2.0)
    if not known and np.ptp(weights[kept]) > 0:
        validation.refuse(
            "sample_weight with a penalty on W is known for squares of W with beta_loss='frobenius' (l1_ratio=0) and for sums of "
            "W with 'kullback-leibler' (l1_ratio=1); set alpha_W=0 and alpha_H to what H shall pay."
        )
    rows = data[np.flatnonzero(kept)]
    if loss.beta == 0.0:
        return FittedRows(rows, f"{WEIGHTED}{plan.loss}", kept, weights=weights[kept])
    scales = row_scales(weights[kept], loss.beta)[:, None].astype(data.dtype)
    scaled = sp.csr_array(rows.multiply(scales)) if sp.issparse(rows) else rows * scales
    return FittedRows(scaled, plan.loss, kept, scales)
