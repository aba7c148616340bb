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
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from cvxnmf.certificates.rounding import (
    BLOCK_ENTRIES,
    LARGEST,
    UNIT,
    UNITS_PER_TERM,
    Array,
    CertificateError,
    Proof,
    conjugate_terms,
    data_matrix,
    domain_edge,
    is_contraction,
    log,
    of_moderate_size,
    row_sums,
    safe_bound,
    witness_arrays,
)

#: What the bounds speak of.
SCOPE = "model"


class _Terms(NamedTuple):
    """The problem that a bound is about."""

    loss: str
    trace: float
    effects: bool
    penalty: str


def _terms(statement: Mapping[str, Any]) -> _Terms:
    try:
        terms = _Terms(statement["loss"], float(statement["trace"]), statement["effects"], statement["penalty"])
        known = terms.loss in ("kl", "mse") and isinstance(terms.effects, bool) and 0 < terms.trace <= LARGEST
        known = known and (terms.penalty == "nuclear" or (terms.penalty == "paper" and terms.loss == "kl" and not terms.effects))
    except (KeyError, TypeError, ValueError, OverflowError):
        known = False
    if not known:
        raise CertificateError("The certificate's statement of the problem is not understood.")
    return terms


def scale(A: Any, statement: Mapping[str, Any]) -> float:
    """Size of the data, against which rounding is judged."""
    data = data_matrix(A)
    return float(data.sum() if _terms(statement).loss == "kl" else np.vdot(data, data))


def prove(A: Any, statement: Mapping[str, Any], witness: Mapping[str, Array]) -> Proof:
    """Return the bound that the witness proves."""
    data, terms = data_matrix(A), _terms(statement)
    of_moderate_size(data, terms.loss)
    if terms.effects:
        data = data[np.ix_(data.any(axis=1), data.any(axis=0))]
    Z = witness_arrays(witness, "Z")[0]
    if Z.shape != data.shape or not Z.size:
        raise CertificateError(f"The witness of shape {Z.shape} does not match the data, of which {data.shape} carry entries.")
    if not Z.min() >= 0:
        i, j = np.unravel_index(int(np.argmin(Z)), Z.shape)
        raise CertificateError(f"The dual point leaves its domain at row {i}, column {j}.")
    if terms.penalty == "paper":
        p, q = witness_arrays(witness, "p", "q")
        bound = _paper_bound(data, terms.trace, Z, p, q)
    else:
        bound = _nuclear_bound(data, terms, Z)
    return Proof(bound, True, scale(A, statement))


def _nuclear_bound(A: Array, terms: _Terms, Z: Array) -> float:
    """The bound of Z once its margins are put right and its spectral norm is proved."""
    floor = domain_edge(terms.loss, A)
    mended = _mended(floor, Z) if terms.effects else _Mended(0.0, 0.0)
    error = 4 * UNIT * float(np.linalg.norm(Z + floor)) + 2 * mended.share * float(np.linalg.norm(Z)) + mended.mass
    if not is_contraction(Z - floor, 2 * terms.trace, error):
        raise CertificateError("The dual point is larger than the penalty allows.")
    totals, lost, steepest = [], 0.0, 0.0
    for data, block in _row_blocks(A, Z):
        values, weight, slope = conjugate_terms(terms.loss, data, block)
        totals.append(float(values.sum()))
        lost += UNITS_PER_TERM * UNIT * float(weight.sum())
        lost += 2 * mended.share * float((block * (np.abs(slope) + 1.0)).sum())
        raised = conjugate_terms(terms.loss, data.max(keepdims=True), block.max(keepdims=True) + mended.mass)[2]
        steepest = max(steepest, float(raised[0, 0]))
    return safe_bound(math.fsum(totals), lost + mended.mass * (steepest + 1.0))


class _Mended(NamedTuple):
    """What putting the margins right may do: the share an entry may lose per scaling, and the mass that is added in all."""

    share: float
    mass: float


def _mended(floor: Array, Z: Array) -> _Mended:
    """Bound the correction that gives Z the margins of the floor exactly."""
    share, mass = 0.0, 0.0
    for edge, point in ((floor, Z), (floor.T, Z.T)):
        (wanted, error), (found, more) = row_sums(edge), row_sums(point)
        rounding, residual = error + more, np.abs(found - wanted)
        if not (wanted.min() > 0 and np.all(residual <= 16 * rounding)):
            raise CertificateError("The margins of the dual point differ from those of the data.")
        share = max(share, float(((residual + rounding) / wanted).max()))
        mass += 2 * float((residual + rounding).sum())
    return _Mended(2 * share, mass)


def _paper_bound(A: Array, trace: float, T: Array, p: Array, q: Array) -> float:
    """The bound of T, p and q under the paper's penalty."""
    if p.shape != A.shape[:1] or q.shape != A.shape[1:]:
        raise CertificateError("The witness does not match the data.")
    if not all(np.all((part >= 1 / LARGEST) & (part <= LARGEST)) for part in (p, q)):
        raise CertificateError("The diagonal of the dual point is not positive or not of moderate size.")
    root = np.sqrt(p)[:, None] * np.sqrt(q)[None, :]
    error = 8 * UNIT * float(np.linalg.norm((T + A) / root))
    if not is_contraction(0.5 * (T - A) / root, 1.0, error):
        raise CertificateError("The dual point is not positive semidefinite.")
    totals, lost = [], 0.0
    for data, block in _row_blocks(A, T):
        values, weight, _ = conjugate_terms("kl", data, block)
        totals.append(float(values.sum()))
        lost += UNITS_PER_TERM * UNIT * float(weight.sum())
    for part in (p, q):
        logs = log(part / trace)
        totals.append(float(np.sum(part - part * logs)))
        lost += UNITS_PER_TERM * UNIT * float(np.sum(part * (2.0 + np.abs(logs))))
    return safe_bound(math.fsum(totals), lost)


def _row_blocks(A: Array, Z: Array) -> Iterator[tuple[Array, Array]]:
    """Blocks of rows of both."""
    height = max(1, BLOCK_ENTRIES // A.shape[1])
    for first in range(0, len(A), height):
        yield A[first : first + height], Z[first : first + height]


#: Kinds of bounds, and who proves them.
KINDS = {"dual": prove}
