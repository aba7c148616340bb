"""Bounds for nonsymmetric problems (docs/mathematics.md).

With the nuclear norm, for any W of spectral norm at most ``2 trace`` (and, where effects are free, with vanishing row and
column sums)

    loss(X) + 2 trace ||X||_*  >=  <W, X> - sum phi*(W) + 2 trace ||X||_*  >=  - sum phi*(W).

The witness is ``Z = W + f >= 0``. Margins of Z that agree with those of f only up to rounding are put right in thought: rows,
then columns, that are too heavy are scaled down, and what is missing is added as a matrix of rank one (Altschuler, Weed and
Rigollet 2017); Z stays nonnegative, and what all that may change is taken off the bound.

With the paper's penalty ``trace (sum e^{Y_ii} + sum e^{Z_jj})`` on the diagonal of a PSD block matrix the witness is
``T = A + 2R >= 0`` and positive p, q such that ``[[Diag p, R], [R', Diag q]]`` is PSD:

    bound  =  sum(A log A - A + T - T log T)  +  sum p - p log(p / trace)  +  sum q - q log(q / trace).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxnmf.certificates.data import data_matrix, witness_arrays
from cvxnmf.certificates.losses import FACTOR_LOSSES, KL, LOSSES, Loss, log, require_moderate_size
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, is_contraction, row_slices, row_sums, safe_proof
from cvxnmf.certificates.statement import LARGEST, ZERO, Array, CertificateError, Kind, Proof, Statement, Witness, is_weight


@dataclass(frozen=True, eq=False)
class NonsymmetricStatement(Statement):
    """Minimise ``loss(A, exp(X))`` and a penalty over all X of the shape of A, for KL ("kl") or squared error ("mse").

    The penalty is "nuclear", ``2 trace ||X||_*``, with `effects` of X less ``a1' + 1b'`` for the best a and b; or that of the
    "paper", for KL without effects.
    """

    loss: str
    penalty: str
    effects: bool
    trace: float

    form = "nonsymmetric"
    scope = "model"

    def is_understood(self) -> bool:
        """Whether loss and penalty of a nonsymmetric problem are known and go together, and the trace is a positive weight."""
        if not (self.loss in FACTOR_LOSSES and isinstance(self.effects, bool) and is_weight(self.trace, positive=True)):
            return False
        return self.penalty == "nuclear" or (self.penalty == "paper" and LOSSES[self.loss] is KL and not self.effects)

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of bounds for nonsymmetric problems: a dual point, or zero."""
        return ZERO | {"dual": Kind("a dual point", prove_dual)}

    def scale(self, A: Any) -> float:
        """Scale of a nonsymmetric problem: the sum of the entries, or of their squares."""
        return float(LOSSES[self.loss].magnitudes(data_matrix(A)).sum())


def prove_dual(A: Any, statement: NonsymmetricStatement, witness: Witness) -> Proof:
    """Return the bound that the dual point Z of a nonsymmetric problem, the witness, proves."""
    data = data_matrix(A)
    require_moderate_size(data, LOSSES[statement.loss])
    rows, columns = data.any(axis=1), data.any(axis=0)
    if statement.effects and not (rows.all() and columns.all()):
        data = data[np.ix_(rows, columns)]
    Z = witness_arrays(witness, "Z")[0]
    if Z.shape != data.shape or not Z.size:
        raise CertificateError(f"The witness of shape {Z.shape} does not match the data, of which {data.shape} carry entries.")
    if not Z.min() >= 0:
        i, j = np.unravel_index(int(np.argmin(Z)), Z.shape)
        raise CertificateError(f"The dual point leaves its domain at row {i}, column {j}.")
    if statement.penalty == "paper":
        p, q = witness_arrays(witness, "p", "q")
        return _prove_paper(data, statement, Z, p, q)
    return _prove_nuclear(data, statement, Z)


def _prove_nuclear(A: Array, statement: NonsymmetricStatement, Z: Array) -> Proof:
    """The bound of Z for a nonsymmetric problem, once its margins are put right and its spectral norm is proved."""
    loss = LOSSES[statement.loss]
    floor = loss.domain_edge(A)
    share, mass = _margin_correction(floor, Z) if statement.effects else (0.0, 0.0)
    error = 4 * UNIT * float(np.linalg.norm(Z) + np.linalg.norm(floor)) + 2 * share * float(np.linalg.norm(Z)) + mass
    W = Z - floor
    del floor
    if not is_contraction(W, 2 * statement.trace, error):
        raise CertificateError("The dual point is larger than the penalty allows.")
    del W
    totals, rounding, shifted = _conjugate_sums(loss, A, Z, share, mass)
    return safe_proof(math.fsum(totals), rounding, float(loss.magnitudes(A).sum()), shifted=shifted)


def _conjugate_sums(loss: Loss, A: Array, Z: Array, share: float = 0.0, mass: float = 0.0) -> tuple[list[float], float, float]:
    """``-phi*(Z - f)`` of a nonsymmetric dual point over row chunks, its rounding, and what it may change by if Z is put right.

    Every entry of Z then loses at most the share, and the entries gain at most the mass in all.
    """
    totals, rounding, shifted, steepest = [], 0.0, 0.0, 0.0
    for rows in row_slices(*A.shape):
        values, weight, slope = loss.conjugate(A[rows], Z[rows])
        totals.append(float(values.sum()))
        rounding += UNITS_PER_TERM * UNIT * float(weight.sum())
        shifted += 2 * share * float((Z[rows] * (np.abs(slope) + 1.0)).sum())
        raised = loss.conjugate(A[rows].max(keepdims=True), Z[rows].max(keepdims=True) + mass).slope
        steepest = max(steepest, float(raised[0, 0]))
    return totals, rounding, shifted + mass * (steepest + 1.0)


def _margin_correction(floor: Array, Z: Array) -> tuple[float, float]:
    """Margins of a nonsymmetric dual point Z put right: the share that an entry may lose, and the mass added in all."""
    share, mass = 0.0, 0.0
    for edge, point in ((floor, Z), (floor.T, Z.T)):
        (wanted, error), (found, more) = row_sums(edge), row_sums(point)
        rounding, residual = error + more, np.abs(found - wanted)
        if not (wanted.min() > 0 and np.all(residual <= 16 * rounding)):
            raise CertificateError("The margins of the dual point differ from those of the data.")
        share = max(share, float(((residual + rounding) / wanted).max()))
        mass += 2 * float((residual + rounding).sum())
    return 2 * share, mass


def _prove_paper(A: Array, statement: NonsymmetricStatement, T: Array, p: Array, q: Array) -> Proof:
    """The bound of T, p and q for a nonsymmetric problem under the paper's penalty."""
    if p.shape != A.shape[:1] or q.shape != A.shape[1:]:
        raise CertificateError("The witness does not match the data.")
    if not all(np.all((part >= 1 / LARGEST) & (part <= LARGEST)) for part in (p, q)):
        raise CertificateError("The diagonal of the dual point is not positive or not of moderate size.")
    root = np.sqrt(p)[:, None] * np.sqrt(q)[None, :]
    error = 8 * UNIT * float(np.linalg.norm((T + A) / root))
    if not is_contraction(0.5 * (T - A) / root, 1.0, error):
        raise CertificateError("The dual point is not positive semidefinite.")
    totals, rounding, shifted = _conjugate_sums(KL, A, T)  # which is put right nowhere
    for part in (p, q):
        logs = log(part / statement.trace)
        totals.append(float(np.sum(part - part * logs)))
        rounding += UNITS_PER_TERM * UNIT * float(np.sum(part * (2.0 + np.abs(logs))))
    return safe_proof(math.fsum(totals), rounding, float(A.sum()), shifted=shifted)
