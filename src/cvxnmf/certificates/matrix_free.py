"""Bounds whose dual point is given by factors: ``Z = (1 - share) A + share E``, ``E = exp(v1' + 1v' + WW')``, for KL.

Of moderate size, Z is formed and proved like any other. Of a large graph it is not: rows of E are formed a few at a time. Then
``Y = trace N + share (E - A)`` is in the dual cone if share times the largest eigenvalue of ``S^-1 (A - E) S^-1`` is at most the
trace, S being the metric. That is bounded with a probability (see `krylov`), or proved (see `elimination`) if the witness names
pivots, nodes whose columns of E are nearly all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.data import sparse_graph, witness_arrays
from cvxnmf.certificates.elimination import Model, eliminated_nodes, is_psd_with_model
from cvxnmf.certificates.krylov import leading_eigenvalues, random_source, spaces_in_turn
from cvxnmf.certificates.losses import KL, LOSSES, log
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, row_slices, safe_proof
from cvxnmf.certificates.statement import Array, CertificateError, Proof, Witness

if TYPE_CHECKING:
    from cvxnmf.certificates.symmetric import SymmetricStatement

#: Graphs with more nodes are not proved by dense matrices.
LARGEST_DENSE = 8000
#: Entries of E that are formed at a time.
ENTRIES_AT_ONCE = 1 << 22
#: Random vectors, and products with them in turn while nothing is proved.
WIDTH, DEPTHS = 32, (14, 42)
#: Exponents of the model in a rigorous proof.
LARGEST_EXPONENT = 300.0
#: Row sums of the dual point may be off by this share of the data's before they are put right on the diagonal.
BALANCED = 1e-8


def is_large(A: Any, limit: int = LARGEST_DENSE) -> bool:
    """Whether data have too many nodes that carry entries for a proof by dense matrices."""
    shape: Any = getattr(A, "shape", ())
    if len(shape) != 2 or not shape[0] > limit:
        return False
    carrying = abs(A).sum(axis=1) if sp.issparse(A) else np.count_nonzero(np.asarray(A), axis=1)
    return bool(np.count_nonzero(carrying) > limit)


def factor_arrays(witness: Witness, n: int) -> tuple[Array, Array, Array, float, Array]:
    """Metric, v, W, share and diagonal of a matrix-free witness for n nodes."""
    metric, v, W, share, diagonal = witness_arrays(witness, "metric", "v", "W", "share", "diagonal")
    if any(part.shape != (n,) for part in (metric, v, diagonal)) or W.ndim != 2 or len(W) != n or share.shape != (1,):
        raise CertificateError(f"The factors of the witness do not match the data, where {n} nodes carry entries.")
    if not 0 <= share[0] <= 1:
        raise CertificateError("The share of the model in the dual point must lie between 0 and 1.")
    return metric, v, W, float(share[0]), diagonal


def room_for_errors(share: float, trace: float) -> float:
    """Room of a rigorous matrix-free proof for errors: part of the distance from the cone's edge that the share leaves."""
    return min(0.25 * (1.0 - share), 1e-4) * trace


def prove_matrix_free(A: Any, statement: SymmetricStatement, witness: Witness) -> Proof:
    """The matrix-free bound of a large graph: rigorous with pivots, else probable or unproved; the diagonal is found anew."""
    data = sparse_graph(A)
    metric, v, W, share, _ = factor_arrays(witness, data.shape[0])
    known = LOSSES[statement.loss] is KL and statement.has_free_effects and statement.fits_diagonal and statement.trace > 0
    if not known:
        raise CertificateError("Factors of a large graph prove bounds for KL on the conditional cone with a penalty only.")
    point = MatrixFreeDual(data, v, W, statement.true_metric(np.asarray(data.sum(axis=1)).ravel(), metric))
    if "pivots" in witness:
        if not point.is_in_cone(share, statement.trace, *witness_arrays(witness, "pivots")):
            raise CertificateError("The dual point could not be proved to be positive semidefinite.")
        return point.rigorous_proof(share)
    proved = False
    for upper, found in point.largest_eigenvalues():
        if not share * found <= statement.trace:
            raise CertificateError("The dual point is not positive semidefinite.")
        if share * upper <= statement.trace:
            proved = True
            break
    return point.proof(share, proved)


class MatrixFreeDual:
    """Matrix-free dual points of a large graph for all shares; rows of the model are formed when they are needed."""

    def __init__(self, A: Any, v: Array, W: Array, metric: Array, entries: int = ENTRIES_AT_ONCE) -> None:
        self.A, self.v, self.W, self.s, self.entries = A, v, W, metric, entries
        self.degrees = np.asarray(A.sum(axis=1)).ravel()
        self.excess = self._times_model(np.ones((len(v), 1)))[:, 0] - self.degrees  # what the diagonal takes, times the share
        if not np.all(np.abs(self.excess) <= BALANCED * self.degrees):
            raise CertificateError("The rows of the dual point do not sum to zero.")

    def _model_rows(self) -> Iterator[tuple[slice, Array]]:
        """Row chunks of the matrix-free model, from the diagonal on: the rest mirrors earlier ones."""
        n = len(self.v)
        for rows in row_slices(n, n, self.entries):
            E = self.W[rows] @ self.W[rows.start :].T
            E += self.v[rows, None]
            E += self.v[None, rows.start :]
            yield rows, np.exp(E, out=E)

    def _times_model(self, X: Array) -> Array:
        product = np.zeros(X.shape)
        for rows, E in self._model_rows():
            product[rows] += E @ X[rows.start :]
            product[rows.stop :] += E[:, len(E) :].T @ X[rows]
        return product

    def largest_eigenvalues(self) -> Iterator[tuple[float, float]]:
        """Largest eigenvalue of ``S^-1 (A - E) S^-1``, rows put right, matrix-free: probable bounds and what was found."""
        s, n = self.s[:, None], len(self.v)

        def product(X: Array) -> Array:
            B = X / s
            return np.asarray((self.A @ B - self._times_model(B) + self.excess[:, None] * B) / s)

        Q = np.linalg.qr(np.column_stack([s, s * self.W]))[0]  # of s the image is 0
        source = random_source(self.A.indices.astype(np.int64), self.A.data, self.v, self.W)
        spaces = spaces_in_turn(n, WIDTH, DEPTHS, semidefinite=False)
        for upper, found in leading_eigenvalues(product, Q, source, spaces, 1, lambda values: values[0]):
            yield float(upper[0]), float(found[0])

    @cached_property
    def nodes_to_eliminate(self) -> list[int]:
        """Nodes that are eliminated when the matrix-free dual point is proved to be in the cone, in order."""
        return eliminated_nodes(self.A)

    @cached_property
    def model(self) -> Model:
        """The matrix-free model in the metric, and a bound on the relative error of its computed entries."""
        largest = float((2 * np.abs(self.v) + np.sum(self.W * self.W, axis=1)).max())  # exponent
        if not largest <= LARGEST_EXPONENT:
            raise CertificateError("The factors of the witness are too large.")
        return Model(self.v, self.W, self.s, 2 * UNIT * ((self.W.shape[1] + 8) * largest + 16))

    @property
    def excess_error(self) -> Array:
        """Bounds the error of the computed excess of the matrix-free model's row sums over the degrees."""
        return 2 * (self.model.accuracy + 2 * (len(self.v) + 16) * UNIT) * self.degrees

    def is_in_cone(self, share: float, trace: float, pivots: Array) -> bool:
        """Whether the matrix-free dual matrix Y is proved to be positive semidefinite.

        Beside its kernel, Y is ``trace I - share S^-1 (A + Diag excess) S^-1 + share S^-1 E S^-1`` in the metric.
        """
        known = pivots.ndim == 1 and np.isin(pivots, np.arange(len(self.v))).all()
        if not (known and 0 < len(np.unique(pivots)) == len(pivots)):
            raise CertificateError("The pivots of the witness are not different nodes of the data.")
        B, error = self.cone_matrix(share, trace)
        room, chosen = room_for_errors(share, trace), pivots.astype(np.intp)
        return is_psd_with_model(B, error, room, self.nodes_to_eliminate, self.model, share, chosen)

    def cone_matrix(self, share: float, trace: float) -> tuple[Any, float]:
        """Sparse part of the matrix-free dual: ``trace I - share S^-1 (A + Diag excess) S^-1``, and its error in norm."""
        scaling = sp.diags_array(1.0 / self.s)
        scaled, diagonal = share * (scaling @ self.A @ scaling), share * self.excess / self.s**2
        size = trace + np.asarray(scaled.sum(axis=1)) + np.abs(diagonal)
        error = float((8 * UNIT * size + share * self.excess_error / self.s**2).max())
        return sp.csr_array(sp.diags_array(trace - diagonal) - scaled), error

    def rigorous_proof(self, share: float) -> Proof:
        """The bound of a matrix-free dual point that is proved to be in the cone, less all rounding."""
        total, size, diagonal = self._total(share)
        error = share * self.excess_error  # of the diagonal
        if not np.all(diagonal > 2 * error):
            raise CertificateError("The dual point leaves its domain on the diagonal.")
        shifted = 2 * float(error @ (np.abs(log(diagonal)) + 1.0))
        rounding = (UNITS_PER_TERM * UNIT + 2 * self.model.accuracy) * size
        return safe_proof(total, rounding, float(self.degrees.sum()), shifted=shifted)

    def proof(self, share: float, probable: bool) -> Proof:
        """The matrix-free bound less what rounding of sums may have added: not rigorous, since the eigenvalue is not."""
        total, size, _ = self._total(share)
        proof = safe_proof(total, UNITS_PER_TERM * UNIT * size, float(self.degrees.sum()), rigorous=False)
        return proof._replace(probable=probable, estimate=proof.bound)

    def _total(self, share: float) -> tuple[float, float, Array]:
        """Matrix-free dual objective ``sum A log A - A + Z - Z log Z``, the sum of its absolute terms, and the diagonal of Z."""
        constants = self.A.data * np.log(self.A.data)
        totals = [float(np.sum(constants - self.A.data))]
        size, diagonals = float(np.sum(np.abs(constants) + self.A.data)), []
        for rows, E in self._model_rows():
            Z = share * E + (1.0 - share) * self.A[rows].toarray()[:, rows.start :]
            Z[np.arange(len(Z)), np.arange(len(Z))] -= share * self.excess[rows]
            diagonals.append(Z.diagonal().copy())
            if not Z.min() >= 0:
                raise CertificateError(f"The dual point leaves its domain in the rows from {rows.start} on.")
            logs = Z * log(Z)
            Z[:, len(Z) :] *= 2  # with their mirror images
            logs[:, len(logs) :] *= 2
            totals.append(float((Z - logs).sum()))
            size += float((Z + np.abs(logs)).sum())
        return math.fsum(totals), size, np.concatenate(diagonals)
