"""Bounds for losses with weights, ``sum w_ij loss(A_ij, (UV')_ij)``, by the rectangles of `rectangles`.

The statement names the weights by their digest, and the witness holds them: one for every row, or for every entry. Weights that
are a product ``w_i s_j`` take one rectangle, and the loss is that of the scaled data without weights.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.data import observed_matrix, witness_arrays
from cvxnmf.certificates.losses import FACTOR_LOSSES, LOSSES, SQUARED_ERROR, WEIGHTED, Loss
from cvxnmf.certificates.rectangles import rectangles_bound
from cvxnmf.certificates.rounding import is_finite
from cvxnmf.certificates.statement import Array, CertificateError, Kind, Proof, Statement, Witness, is_count


def weights_digest(weights: Any) -> str:
    """The SHA-256 of weights, as a statement names them: one for every row, or for every entry, in double precision.

    Examples
    --------
    >>> weights_digest([1, 2, 2.5]) == weights_digest([[1.0], [2.0], [2.5]])
    True
    """
    array = np.asarray(weights.toarray() if sp.issparse(weights) else weights, dtype=np.float64)
    array = np.ascontiguousarray(array[:, None] if array.ndim == 1 else array)
    return hashlib.sha256(f"{array.shape}".encode() + array.astype("<f8").tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class WeightedRankStatement(Statement):
    """Minimise the loss of ``UV'`` with weights over the observed entries of A; U, V nonnegative with so many columns.

    The loss is "weighted mse" or "weighted kl", and `weights` the digest of the weights (`weights_digest`).
    """

    loss: str
    n_components: int
    symmetric: bool
    weights: str

    form = "rank"
    scope = "rank-k"

    def is_understood(self) -> bool:
        """Whether the loss of a weighted statement is known, and has weights."""
        known = isinstance(self.loss, str) and self.loss in {f"{WEIGHTED}{name}" for name in FACTOR_LOSSES}
        named = isinstance(self.weights, str) and re.fullmatch("[0-9a-f]{64}", self.weights) is not None
        return known and named and is_count(self.n_components) and self.symmetric is False

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of bounds for weighted losses: rectangles, or zero."""
        return {
            "zero": Kind("nothing better than 0 is known: the rank or the weights leave no part of the data", self.prove_zero),
            "rectangles": Kind("fully observed rectangles that overlap with weights", self.prove_rectangles),
        }

    @property
    def plain_loss(self) -> Loss:
        """The loss of an entry of weight 1, for a weighted statement."""
        return LOSSES[self.loss.removeprefix(WEIGHTED)]

    def scale(self, A: Any) -> float:
        """Scale of a weighted statement: the sum of observed entries, or of their squares, as if they had no weights."""
        return float(np.nansum(self.plain_loss.magnitudes(self._data(A))))

    @staticmethod
    def prove_zero(A: Any, statement: WeightedRankStatement, witness: Witness) -> Proof:
        """The bound 0 for a weighted loss, beside the size of the data with weights."""
        return Proof(0.0, True, statement._weighted_data(A, witness)[2])

    @staticmethod
    def prove_rectangles(A: Any, statement: WeightedRankStatement, witness: Witness) -> Proof:
        """The bounds of all rectangles for a weighted loss, summed."""
        data, weights, scale = statement._weighted_data(A, witness)
        squared_error = statement.plain_loss is SQUARED_ERROR
        return rectangles_bound(data, weights, statement.n_components, squared_error, witness).proof(scale)

    def _data(self, A: Any) -> Array:
        data = observed_matrix(A, symmetric=False)
        return np.asarray(data.toarray() if sp.issparse(data) else data)

    def _weighted_data(self, A: Any, witness: Witness) -> tuple[Array, Array, float]:
        """The data, the weights that the statement names, and the sum of the weighted entries, or of their squares."""
        data, (weights,) = self._data(A), witness_arrays(witness, "W")
        if weights.shape not in (data.shape, (len(data), 1)) or not weights.min() >= 0:
            raise CertificateError("The weights of the witness do not match the data, or are negative.")
        if weights_digest(weights) != self.weights:
            raise CertificateError("The weights of the witness are not those that the certificate states.")
        scale = float(np.nansum(weights * self.plain_loss.magnitudes(data)))
        if not is_finite(np.array([scale])):
            raise CertificateError("The bound is not a finite number.")
        return data, weights, scale
