"""Bounds whose dual point is given by factors: ``Z = (1 - share) A + share E``, ``E = exp(v1' + 1v' + WW')``, for KL.

Of moderate size, Z is formed and proved like any other. Of a large graph it is not: rows of E are formed a few at a time, and
the least eigenvalue of ``Y = trace N + share (E - A)`` in the metric comes from Krylov spaces, which might miss it, so that the
bound is not rigorous.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from cvxnmf.certificates.data import sparse_graph, witness_arrays
from cvxnmf.certificates.losses import KL, LOSSES, log
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, is_finite, row_slices, safe_proof
from cvxnmf.certificates.statement import Array, CertificateError, Proof, Witness

if TYPE_CHECKING:
    from cvxnmf.certificates.symmetric import SymmetricStatement

#: Graphs with more nodes are not proved by dense matrices.
LARGEST_DENSE = 8000
#: Entries of E that are formed at a time.
ENTRIES_AT_ONCE = 1 << 22
#: Vectors of a Krylov space's first block, and how many blocks there are.
KRYLOV_BLOCK, KRYLOV_DEPTH = 12, 10
#: Row sums of the dual point may be off by this share of the data's before they are put right on the diagonal.
BALANCED = 1e-8


def is_large(A: Any) -> bool:
    """Whether data have too many nodes that carry entries for a proof by dense matrices."""
    shape: Any = getattr(A, "shape", ())
    if len(shape) != 2 or not shape[0] > LARGEST_DENSE:
        return False
    carrying = abs(A).sum(axis=1) if sp.issparse(A) else np.count_nonzero(np.asarray(A), axis=1)
    return bool(np.count_nonzero(carrying) > LARGEST_DENSE)


def factor_arrays(witness: Witness, n: int) -> tuple[Array, Array, Array, float, Array]:
    """Metric, v, W, share and diagonal of a witness for n nodes."""
    metric, v, W, share, diagonal = witness_arrays(witness, "metric", "v", "W", "share", "diagonal")
    if any(part.shape != (n,) for part in (metric, v, diagonal)) or W.ndim != 2 or len(W) != n or share.shape != (1,):
        raise CertificateError(f"The factors of the witness do not match the data, where {n} nodes carry entries.")
    if not 0 <= share[0] <= 1:
        raise CertificateError("The share of the model in the dual point must lie between 0 and 1.")
    return metric, v, W, float(share[0]), diagonal


def prove_matrix_free(A: Any, statement: SymmetricStatement, witness: Witness) -> Proof:
    """The bound of a large graph, not rigorous; the diagonal of the witness is found anew."""
    data = sparse_graph(A)
    degrees = np.asarray(data.sum(axis=1)).ravel()
    metric, v, W, share, _ = factor_arrays(witness, data.shape[0])
    known = LOSSES[statement.loss] is KL and statement.has_free_effects and statement.fits_diagonal and statement.trace > 0
    if not known:
        raise CertificateError("Factors of a large graph prove bounds for KL on the conditional cone with a penalty only.")
    metric = statement.true_metric(degrees, metric)
    point = _MatrixFreeDual(data, degrees, v, W, share)
    if not np.all(np.abs(point.residual) <= BALANCED * degrees):
        raise CertificateError("The rows of the dual point do not sum to zero.")
    if not point.least_eigenvalue(metric, statement.trace) >= 0:
        raise CertificateError("The dual point is not positive semidefinite.")
    return point.proof()


class _MatrixFreeDual:
    """The dual point of a large graph, its rows formed when they are needed."""

    def __init__(self, A: Any, degrees: Array, v: Array, W: Array, share: float) -> None:
        self.A, self.degrees, self.v, self.W, self.share = A, degrees, v, W, share
        sums = np.empty(len(v))
        for rows, E in self._row_chunks():
            sums[rows] = E.sum(axis=1)
        self.residual = share * (sums - degrees)  # what the diagonal takes

    def _row_chunks(self) -> Iterator[tuple[slice, Array]]:
        """Row chunks of the model."""
        n = len(self.v)
        for rows in row_slices(n, n, ENTRIES_AT_ONCE):
            E = self.W[rows] @ self.W.T
            E += self.v[rows, None]
            E += self.v[None, :]
            yield rows, np.exp(E, out=E)

    def least_eigenvalue(self, s: Array, trace: float) -> float:
        """Lower end of the spectrum of Y in the metric, less the residual of its vector."""

        def minus_dual(X: Array) -> Array:  # minus Y, with the direction s, where Y vanishes, out of the way
            B = X / s[:, None]
            product = self.A @ B
            for rows, E in self._row_chunks():
                product[rows] -= E @ B
            product *= self.share
            product += self.residual[:, None] * B
            return np.asarray(product / s[:, None] - trace * X)

        value, residual = largest_ritz(minus_dual, np.column_stack([s[:, None] * self.W, self._seeds()]))
        return -(value + residual)

    def _seeds(self) -> Array:
        return np.random.default_rng(0).standard_normal((len(self.v), KRYLOV_BLOCK))

    def proof(self) -> Proof:
        """``sum A log A - A + Z - Z log Z``, less what rounding may have added: not rigorous, since the eigenvalue is not."""
        totals = [float(np.sum(self.A.data * np.log(self.A.data) - self.A.data))]
        size = float(np.sum(np.abs(self.A.data * np.log(self.A.data)) + self.A.data))
        for rows, E in self._row_chunks():
            Z = self.share * E + (1.0 - self.share) * self.A[rows].toarray()
            on_diagonal = (np.arange(len(Z)), np.arange(len(self.v))[rows])
            Z[on_diagonal] -= self.residual[rows]
            if not Z.min() >= 0:
                raise CertificateError(f"The dual point leaves its domain in the rows from {rows.start} on.")
            logs = Z * log(Z)
            totals.append(float((Z - logs).sum()))
            size += float((Z + np.abs(logs)).sum())
        return safe_proof(math.fsum(totals), UNITS_PER_TERM * UNIT * size, float(self.degrees.sum()), rigorous=False)


def largest_ritz(product: Callable[[Array], Array], block: Array) -> tuple[float, float]:
    """Largest Ritz value of an operator in the Krylov space of a block, and the norm of its residual."""
    basis, images = np.linalg.qr(block)[0], np.empty((len(block), 0))
    newest = basis
    for depth in range(KRYLOV_DEPTH):
        image = product(newest)
        images = np.column_stack([images, image])
        if depth == KRYLOV_DEPTH - 1:
            break
        fresh = image
        for _ in range(2):  # twice is enough
            fresh = fresh - basis @ (basis.T @ fresh)
        newest, weights, _ = sl.qr(fresh, mode="economic", pivoting=True)
        newest = newest[:, np.abs(np.diag(weights)) > 1e-10 * max(float(np.abs(image).max()), 1e-300)][:, :KRYLOV_BLOCK]
        if not newest.shape[1]:
            break
        basis = np.column_stack([basis, newest])
    if not is_finite(images):
        raise CertificateError("The dual point is not finite.")
    small = basis.T @ images
    values, vectors = np.linalg.eigh((small + small.T) / 2)
    top = vectors[:, -1]
    return float(values[-1]), float(np.linalg.norm(images @ top - values[-1] * (basis @ top)))
