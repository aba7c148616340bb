"""Tails of the singular values of large data, from a few leading ones: not rigorous, since iterations might miss one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, eigsh, svds

from cvxnmf.certificates.data import observed_matrix, witness_arrays
from cvxnmf.certificates.losses import SQUARED_ERROR
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, is_finite, safe_proof
from cvxnmf.certificates.row_chunks import is_read_in_chunks, row_chunks, summarise
from cvxnmf.certificates.statement import Array, CertificateError, Proof, Witness

if TYPE_CHECKING:
    from cvxnmf.certificates.rank import RankStatement

#: Inner products of vectors that count as orthonormal may be off by this much.
ORTHONORMAL = 1e-10
#: Random vectors beyond the rank that join given ones, and steps that all of them take towards the leading ones.
RANDOM_EXCESS, POWER_STEPS = 5, 3
#: Up to this many nodes eigenvalues are iterated to the last bit, and beyond to this share.
LARGEST_EXACT, LOOSE = 20_000, 1e-5
#: Iterations repeat their result up to this share of the squared norm.
ITERATED = 1e-11


def prove_lanczos(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The tail of the singular values of a large matrix, from Lanczos iterations or from given vectors: not rigorous."""
    if "vectors" in witness:
        return _prove_ritz(A, statement, witness)
    data = statement.data(A)
    if not statement.has_squared_error or not sp.issparse(data) or np.isnan(data.data).any():
        raise CertificateError("A bound of this kind is known for the squared error of sparse, fully observed data only.")
    try:
        values, residuals = _lanczos_values(data, statement.n_components, statement.symmetric)
    except (ArpackError, TypeError, ValueError):
        raise CertificateError("The singular values of the data could not be computed.") from None
    reached = np.sort(values + residuals)[::-1]
    if statement.scaling is not None:  # 1 is an eigenvalue once for every component, of which iterations see a single one
        parts = connected_components(data, directed=False)[0] - int(np.count_nonzero(np.diff(data.indptr) == 0))
        reached[:parts] = np.maximum(reached[:parts], 1.0)
    norm, taken = float(data.data @ data.data), float(np.sum(reached**2))
    return _tail(norm, taken)


def _lanczos_values(data: Any, n_components: int, symmetric: bool) -> tuple[Array, Array]:
    """The largest singular values (positive eigenvalues) of a sparse matrix, and the norms of their residuals."""
    start = np.ones(min(data.shape)) / min(data.shape) ** 0.5
    if symmetric:
        tol = 0.0 if data.shape[0] <= LARGEST_EXACT else LOOSE  # what is lost is added as residuals
        values, V = eigsh(data, k=n_components, which="LA", v0=start, tol=tol)
        return np.maximum(values, 0.0), np.linalg.norm(data @ V - V * values, axis=0)
    U, values, Vt = svds(data, k=n_components, v0=start)
    return values, np.linalg.norm(data @ Vt.T - U * values, axis=0) + np.linalg.norm(data.T @ U - Vt.T * values, axis=0)


def _prove_ritz(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The tail of the singular values from vectors that span nearly all of the leading ones, in a few passes over the data."""
    (Z,) = witness_arrays(witness, "vectors")
    k = statement.n_components
    known = statement.has_squared_error and not statement.symmetric
    if not known or Z.ndim != 2 or len(Z) != A.shape[1] or Z.shape[1] < k:
        raise CertificateError("The vectors of the witness do not match the data.")
    skew = float(np.abs(Z.T @ Z - np.eye(Z.shape[1])).max())
    if not skew < ORTHONORMAL:
        raise CertificateError("The vectors of the witness are not orthonormal.")
    data = None if is_read_in_chunks(A) else observed_matrix(A, symmetric=False)

    def product(Q: Array) -> Array:
        image = np.zeros(Q.shape)
        for chunk in row_chunks(A) if data is None else [data]:
            image += chunk.T @ (chunk @ Q)
        return image

    if data is None:
        energy = summarise(A, SQUARED_ERROR).total
    else:
        energy = float(np.square(data.data if sp.issparse(data) else data).sum())
    return ritz_tail(Z, product, energy, k)


def ritz_tail(Z: Array, product: Callable[[Array], Array], energy: float, k: int) -> Proof:
    """The tail from orthonormal vectors Z that someone gives, products ``A'AX`` and ``||A||²``; not rigorous.

    Vectors that leave leading ones out would prove too much, so fixed random ones join them, and all take a few steps towards
    the leading ones. On the span of the result Q the eigenvalues of ``A'A`` are those of ``Q'A'AQ`` up to their residuals.
    """
    count = max(0, min(len(Z) - Z.shape[1], k + RANDOM_EXCESS))
    Q = np.hstack([Z, np.random.default_rng(0).standard_normal((len(Z), count))])
    for _ in range(POWER_STEPS):
        Q = _finite(product(np.linalg.qr(Q)[0]))
    Q = np.linalg.qr(Q)[0]
    image = _finite(product(Q))
    T = Q.T @ image
    values, W = np.linalg.eigh((T + T.T) / 2)
    values, W = values[::-1][:k], W[:, ::-1][:, :k]
    residual = float(np.linalg.norm(image @ W - (Q @ W) * values))  # of all, so that equal values may be rotated
    taken = float(np.sum(np.maximum(values, 0.0))) + math.sqrt(k) * residual
    if not math.isfinite(energy):
        raise CertificateError("The data have missing entries, or are too large.")
    return _tail(energy, taken)


def _tail(energy: float, taken: float) -> Proof:
    """What the leading singular values leave; iterations on another machine end elsewhere by a share that counts as rounding."""
    rounding = UNITS_PER_TERM * UNIT * (energy + taken)
    return safe_proof(energy - taken, rounding, energy, spare=ITERATED * energy, rigorous=False)


def _finite(X: Array) -> Array:
    if not is_finite(X):
        raise CertificateError("The data have missing entries, or are too large.")
    return X
