"""Bounds for symmetric problems (docs/mathematics.md).

For X in the cone K and any W with ``Y = W + trace N`` in the dual cone of K, Fenchel's inequality
``phi(x) + phi*(w) >= x w`` gives

    loss(X) + trace <N, X>  >=  <W, X> - sum phi*(W) + trace <N, X>  =  <Y, X> - sum phi*(W)
                            >=  - sum phi*(W).

The witness is ``Z = W + f``, W measured from the edge of its domain: ``f = A`` for KL and ``f = A∘A/2`` for
squared error. The check recomputes the right-hand side from the data and Z, and proves that Y lies in the dual cone:
PSD for K = S+, and PSD with ``Y1 = 0`` for the conditionally PSD cone. Row sums that vanish only up to rounding are put
right, in thought, on the diagonal of W; what that may change is taken off the bound.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.certificates.data import square_matrix, witness_arrays
from cvxnmf.certificates.losses import KL, LOSSES, Loss, require_moderate_size
from cvxnmf.certificates.matrix_free import factor_arrays, is_large, prove_matrix_free
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, is_finite, is_mirrored, is_psd, row_slices, safe_proof
from cvxnmf.certificates.statement import LARGEST, ZERO, Array, CertificateError, Kind, Proof, Statement, Witness, is_weight


@dataclass(frozen=True, eq=False)
class SymmetricStatement(Statement):
    """Minimise ``loss(A, exp(X)) + trace <N, X>`` over X in a cone; N measures X by a metric.

    The loss is "kl", "mse", or "mse-paper" with the constraint ``X >= log(A/2)``. The cone "conditional" (conditionally positive
    semidefinite) leaves effects free, "psd" does not. The diagonal of A counts ("fit") or not ("ignore"). The metric is "degree",
    "uniform", or "own", the one in the witness, with its :func:`metric_digest` (None in certificates of earlier versions).
    """

    loss: str
    cone: str
    diagonal: str
    trace: float
    metric: str
    metric_digest: str | None = None

    form = "symmetric"
    scope = "model"

    def is_understood(self) -> bool:
        """Whether loss, cone, diagonal and metric of a symmetric problem are known, and the trace is a weight."""
        known = self.loss in tuple(LOSSES) and self.cone in ("psd", "conditional") and self.diagonal in ("fit", "ignore")
        known = known and self.metric in ("degree", "uniform", "own") and is_weight(self.trace)
        return known and (self.metric_digest is None or (isinstance(self.metric_digest, str) and self.metric == "own"))

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of bounds for symmetric problems: a dual point, or zero."""
        return ZERO | {"dual": Kind("a dual point", prove_dual)}

    @property
    def fits_diagonal(self) -> bool:
        """Whether the diagonal of A counts in a symmetric problem."""
        return self.diagonal == "fit"

    @property
    def has_free_effects(self) -> bool:
        """Whether the cone of a symmetric problem is the conditional one, which leaves effects free."""
        return self.cone == "conditional"

    def scale(self, A: Any) -> float:
        """Scale of a symmetric problem: the sum of the entries that count, or of their squares."""
        if is_large(A) and sp.issparse(A) and LOSSES[self.loss] is KL and self.fits_diagonal:
            return float(A.sum())
        return self.scale_of(square_matrix(A))

    def scale_of(self, A: Array) -> float:
        """Sum of the entries of a symmetric matrix that count, or of their squares."""
        counted = A if self.fits_diagonal or not np.diag(A).any() else A - np.diag(np.diag(A))
        return float(LOSSES[self.loss].magnitudes(counted).sum())

    def true_metric(self, degrees: Array, stated: Array) -> Array:
        """The metric that a symmetric proof is about: the one that the name stands for, recomputed, or the one in the witness."""
        if not np.all((stated >= 1 / LARGEST) & (stated <= LARGEST)):
            raise CertificateError("The metric of the witness must be positive and of moderate size.")
        if self.metric == "own":
            if self.metric_digest not in (None, metric_digest(stated)):
                raise CertificateError("The metric of the witness is not the one that the statement is about.")
            return stated
        raised = degrees + degrees.sum() / len(degrees)
        named = np.ones(len(degrees)) if self.metric == "uniform" else np.sqrt(raised / np.sqrt(raised.sum()))
        if not np.allclose(stated, named, rtol=1e-12, atol=0.0):
            raise CertificateError(f"The metric is not the {self.metric!r} metric of these data.")
        return named


def metric_digest(metric: Array) -> str:
    """SHA-256 of a metric, on the nodes that carry data."""
    return hashlib.sha256(np.ascontiguousarray(metric, dtype=np.float64).tobytes()).hexdigest()


def prove_dual(A: Any, statement: SymmetricStatement, witness: Witness) -> Proof:
    """Return the bound that the dual point ``Z`` and the metric prove for a symmetric problem; Z may be given by factors."""
    if "W" in witness and is_large(A):
        return prove_matrix_free(A, statement, witness)
    data = square_matrix(A)
    require_moderate_size(data, LOSSES[statement.loss])
    metric, Z = _from_factors(data, witness) if "W" in witness else witness_arrays(witness, "metric", "Z")
    dual = _DualPoint(data, statement, Z, metric)
    dual.require_domain()
    dual.require_dual_cone()
    return dual.proof(statement.scale_of(data))


def _from_factors(A: Array, witness: Witness) -> tuple[Array, Array]:
    """The metric, and ``Z = (1 - share) A + share exp(v1' + 1v' + WW') + Diag(diagonal)`` on the nodes that carry data.

    Whatever rounding does to these numbers, they are the dual point that is proved.
    """
    kept = A.any(axis=1)
    metric, v, W, share, diagonal = factor_arrays(witness, int(np.count_nonzero(kept)))
    part = A if kept.all() else A[np.ix_(kept, kept)]
    Z = np.ascontiguousarray(W @ W.T)
    for rows in row_slices(*Z.shape):  # which saves a second matrix
        Z[rows] = share * np.exp(Z[rows] + np.add.outer(v[rows], v)) + (1.0 - share) * part[rows]
    Z.flat[:: len(Z) + 1] += diagonal
    return metric, Z if is_mirrored(Z) else (Z + Z.T) / 2


class _DualPoint:
    """The witness of a model bound, seen against its data: ``W = Z - f``, its diagonal kept apart.

    Only one further matrix, Y, is formed; everything else is done in row chunks.
    """

    def __init__(self, A: Array, statement: SymmetricStatement, Z: Array, metric: Array) -> None:
        self.loss: Loss = LOSSES[statement.loss]
        self.trace, self.fits_diagonal, self.free_effects = statement.trace, statement.fits_diagonal, statement.has_free_effects
        if not self.fits_diagonal and np.diag(A).any():
            A = A - np.diag(np.diag(A))
        kept = A.any(axis=1) if self.free_effects else np.ones(len(A), dtype=bool)
        self.A = A if kept.all() else A[np.ix_(kept, kept)]
        self.Z = Z
        n = len(self.A)
        if Z.shape != (n, n) or metric.shape != (n,) or n == 0:
            raise CertificateError(f"The witness of shape {Z.shape} does not match the data, where {n} nodes carry entries.")
        if not (is_finite(Z) and is_mirrored(Z)):
            raise CertificateError("The witness is not a finite symmetric matrix.")
        self.s = statement.true_metric(self.A.sum(axis=1), metric)
        self.diagonal = np.diag(Z).copy()  # of Z, once its row sums are put right
        self.slack = np.zeros(n)  # bounds the error that putting the row sums right leaves in an entry of W
        self.rigorous = True
        self._sum_rows()
        if not self.fits_diagonal and (self.diagonal != self.loss.domain_edge(np.diag(self.A))).any():
            raise CertificateError("The diagonal is ignored, so the dual point must vanish there.")
        if self.free_effects:
            self._absorb_row_sums()

    def _row_chunks(self) -> Iterator[tuple[slice, Array, Array, tuple[Any, Any]]]:
        """Row chunks of a symmetric dual point: rows, their data, Z with its row sums put right, and where the diagonal is."""
        n = len(self.A)
        for rows in row_slices(n, n):
            Z = self.Z[rows].copy()
            on_diagonal = (np.arange(len(Z)), np.arange(n)[rows])
            Z[on_diagonal] = self.diagonal[rows]
            yield rows, self.A[rows], Z, on_diagonal

    def _sum_rows(self) -> None:
        """Row sums of the symmetric dual point W, and of the absolute values behind them."""
        self.row_sums, self.rows = np.zeros(len(self.A)), np.zeros(len(self.A))
        for rows, A, Z, _ in self._row_chunks():
            floor = self.loss.domain_edge(A)
            W = Z - floor
            self.row_sums[rows] = W.sum(axis=1)
            self.rows[rows] = np.abs(W).sum(axis=1) + 2 * floor.sum(axis=1)

    def _absorb_row_sums(self) -> None:
        """Make the rows of a symmetric dual point W sum to zero; ``N1 = 0`` already."""
        n, residual = len(self.A), self.row_sums
        rounding = (n + 16) * UNIT * self.rows
        excess = np.abs(residual) - 16 * rounding
        if not np.all(excess <= 0):
            raise CertificateError(f"The rows of the dual point do not sum to zero (row {np.argmax(excess)}).")
        if self.fits_diagonal:
            self.slack = rounding
            self.diagonal -= residual
        else:  # no weight on the diagonal: a tiny x_i + x_j off the diagonal would put the rows right
            self.slack = np.full(n, 2.0 * (np.abs(residual) + rounding).max() / max(n - 2, 1))

    def require_domain(self) -> None:
        """Refuse a symmetric dual point W at which the conjugate of the loss is not finite, within the slack."""
        smallest = np.inf
        for rows, A, Z, on_diagonal in self._row_chunks():
            Z = self.loss.inside_domain(A, Z)
            Z[on_diagonal] = Z[on_diagonal] - 2 * self.slack[rows] if self.fits_diagonal else np.inf
            smallest = min(smallest, float(Z.min()))
            if not smallest >= 0:
                i, j = np.unravel_index(int(np.argmin(Z)), Z.shape)
                raise CertificateError(f"The dual point leaves its domain at row {rows.start + i}, column {j}.")
        if not self.fits_diagonal and self.free_effects:
            self.rigorous = bool(smallest > 4 * self.slack[0])

    def require_dual_cone(self) -> None:
        """Refuse a symmetric dual point unless ``Y = W + trace N`` is PSD; ``Y1 = 0`` holds on the conditional cone by now."""
        Y, size = self._dual_matrix()
        components = self._components(Y)
        slack = 0.0 if self.fits_diagonal else float(self.slack.max())
        for nodes in components:
            if not is_psd(Y[np.ix_(nodes, nodes)] if len(components) > 1 else Y, size[nodes], slack, self.free_effects):
                raise CertificateError("The dual point is not positive semidefinite.")

    def _dual_matrix(self) -> tuple[Array, Array]:
        """Dual matrix Y of a symmetric problem, and for each row a bound on the absolute sum that rounding acted on."""
        t = self.s**2
        size = self.rows + 2 * self.trace * t
        Y = np.empty_like(self.Z)
        for rows, A, Z, _ in self._row_chunks():
            Y[rows] = Z - self.loss.domain_edge(A)
            if self.free_effects and self.trace:
                Y[rows] -= np.outer(self.trace * t[rows], t / t.sum())
        Y.flat[:: len(Y) + 1] += self.trace * t
        return Y, size

    def _components(self, Y: Array) -> list[NDArray[np.intp]]:
        """Diagonal blocks of the dual matrix Y: without a penalty, separate components of the data stay separate."""
        if not self.free_effects or self.trace:
            return [np.arange(len(Y))]
        labels, count = np.full(len(Y), -1), 0
        for first in range(len(Y)):
            reached = np.array([first] if labels[first] < 0 else [], dtype=np.intp)
            labels[reached] = count
            count += len(reached)
            while len(reached):
                met = np.zeros(len(Y), dtype=bool)
                for some in row_slices(len(reached), len(Y)):
                    met |= (Y[reached[some]] != 0).any(axis=0)
                reached = np.flatnonzero(met & (labels < 0))
                labels[reached] = labels[first]
        return [np.flatnonzero(labels == c) for c in range(count)]

    def proof(self, scale: float) -> Proof:
        """Bound of a symmetric dual point, ``-sum phi*(W)``, less all that rounding and the slack may have added."""
        totals, rounding, shifted = [], 0.0, 0.0
        for rows, A, Z, on_diagonal in self._row_chunks():
            terms, weight, slope = self.loss.conjugate(A, Z)
            if self.fits_diagonal:
                raised = self.loss.conjugate(A[on_diagonal], Z[on_diagonal] + self.slack[rows]).slope
                steepest = np.maximum(np.abs(slope[on_diagonal]), np.abs(raised)) + 1.0
                shifted += float(np.sum(self.slack[rows] * steepest))
            else:
                terms[on_diagonal] = weight[on_diagonal] = 0.0
                if self.free_effects:
                    shifted += float(2 * self.slack[0] * (np.abs(slope) + 1.0).sum())
            totals.append(float(terms.sum()))
            rounding += UNITS_PER_TERM * UNIT * float(weight.sum())
        return safe_proof(math.fsum(totals), rounding, scale, shifted=shifted, rigorous=self.rigorous)
