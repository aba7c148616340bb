"""The loss of given factors over the observed entries, and what is stated about it."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf import certificates
from cvxnmf.certificates import Certificate
from cvxnmf.linalg.arrays import FloatArray

#: Up to this relative gap a result is called globally optimal.
GLOBAL = 1e-6


def factor_loss(A: Any, U: FloatArray, V: FloatArray, loss: str) -> float:
    """The loss of ``UV'`` over the observed entries, in blocks; of a sparse A without filling it."""
    if sp.issparse(A):
        return _sparse_loss(A.tocsr(), U, V, loss)
    total, height = 0.0, max(1, (1 << 20 if loss == "mse" else 1 << 17) // A.shape[1])  # a divergence takes many copies
    for first in range(0, len(A), height):
        rows = A[first : first + height]
        E = U[first : first + height] @ V.T
        parts = _squares(rows, E) if loss == "mse" else _divergence(rows, E)
        part = float(parts.sum())
        total += float(np.nansum(parts)) if np.isnan(part) else part
    return total


def _squares(a: FloatArray, e: FloatArray) -> FloatArray:
    """``(a - e)²``; e is overwritten."""
    np.subtract(a, e, out=e)
    return np.multiply(e, e, out=e)


def block_loss(block: Any, kept: Any, V: FloatArray, loss: str) -> tuple[None, tuple[float, float, float]]:
    """The loss of a block of rows, and sum and squared norm of its rows of U."""
    U = kept[0] if isinstance(kept, tuple) else kept
    return None, (factor_loss(block, U, V, loss), float(U.sum()), float(np.vdot(U, U)))


def _divergence(a: FloatArray, e: FloatArray) -> FloatArray:
    """``a log(a/e) - a + e``, with ``0 log 0 = 0``; NaN stays NaN."""
    positive = a > 0
    x, y = np.where(positive, a, 1.0), np.where(positive, e, 1.0)
    excess = (y - x) / x
    logs = np.where(np.abs(excess) < 0.5, np.log1p(excess), np.log(y) - np.log(x))  # near 1 the terms cancel
    return np.asarray(np.where(positive, a * (excess - logs), e) + 0.0 * a)  # NaN stays NaN


def _sparse_loss(A: Any, U: FloatArray, V: FloatArray, loss: str) -> float:
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    e = np.einsum("ij,ij->i", U[rows], V[A.indices])
    if loss == "kl":
        elsewhere = float(U.sum(axis=0) @ V.sum(axis=0)) - float(e.sum())
        return float(np.sum(_divergence(A.data, e))) + max(0.0, elsewhere)
    elsewhere = float(np.sum((U.T @ U) * (V.T @ V))) - float(e @ e)
    return float(np.sum((A.data - e) ** 2)) + max(0.0, elsewhere)


def stated(
    kind: str, witness: dict[str, FloatArray], proof: certificates.Proof, value: float, statement: certificates.Statement
) -> Certificate:
    """The certificate of a value and a proof; a bound above the value beyond rounding would be a bug."""
    if proof.bound > value + 1e-7 * max(value, proof.scale):
        raise certificates.CertificateError(
            f"The bound {proof.bound:.12g} exceeds the value {value:.12g}: please report this as a bug."
        )
    if proof.bound > value + 1e-12 * proof.scale:  # the value is mostly rounding: claim nothing from it
        kind, witness, proof = "zero", {}, certificates.Proof(0.0, True, proof.scale)
    return Certificate.of_proof(value, kind, proof, statement, witness)


def proved_message(message: str, certificate: Certificate) -> str:
    """How a descent ended, and what the certificate leaves open of it."""
    if certificate.relative_gap <= GLOBAL:
        return "No nonnegative factorisation of this rank is better, up to the certified gap."
    if not certificate.bound > 0:
        return message
    ending = message.partition(";")[0]
    percent = Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(100 * certificate.relative_gap)
    return f"{ending}; no nonnegative factorisation of this rank can save more than {percent:f}% of the loss."
