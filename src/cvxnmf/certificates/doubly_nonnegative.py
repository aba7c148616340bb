"""Bounds for the doubly nonnegative problem (docs/mathematics.md).

``min ||A - X||^2 + l1 sum |X| + trace Tr X`` over X positive semidefinite and nonnegative. With
``B = A - l1/2 11' - trace/2 I`` and any S positive semidefinite and N >= 0 (``<S, X> >= 0``, ``<N, X> >= 0``)

    ||A||^2 - 2 <B, X> + ||X||^2  >=  ||A||^2 - 2 <B + S + N, X> + ||X||^2  >=  ||A||^2 - ||B + S + N||^2.

With ``l1 = trace = 0`` no ``UU'``, ``U >= 0``, of whatever rank, is nearer to A than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxnmf.certificates.data import square_matrix, witness_arrays
from cvxnmf.certificates.losses import SQUARED_ERROR, require_moderate_size
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, is_mirrored, is_psd, row_slices, safe_proof
from cvxnmf.certificates.statement import ZERO, CertificateError, Kind, Proof, Statement, Witness, is_weight


@dataclass(frozen=True, eq=False)
class DoublyNonnegativeStatement(Statement):
    """Minimise ``||A - X||^2 + l1 sum |X| + trace Tr X`` over X positive semidefinite and nonnegative."""

    l1: float
    trace: float

    form = "doubly-nonnegative"
    scope = "model"

    def is_understood(self) -> bool:
        """Whether both penalties of the doubly nonnegative problem are weights."""
        return is_weight(self.l1) and is_weight(self.trace)

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of bounds for the doubly nonnegative problem: a dual point, or zero."""
        return ZERO | {"dual": Kind("a dual point", prove_dual)}

    def scale(self, A: Any) -> float:
        """Scale of the doubly nonnegative problem: the squared norm of the data."""
        data = square_matrix(A)
        return float(np.vdot(data, data))


def prove_dual(A: Any, statement: DoublyNonnegativeStatement, witness: Witness) -> Proof:
    """Return the bound that S and N, the dual point of the doubly nonnegative problem, prove."""
    data, l1, trace = square_matrix(A), statement.l1, statement.trace
    require_moderate_size(data, SQUARED_ERROR)
    S, N = witness_arrays(witness, "S", "N")
    if S.shape != data.shape or N.shape != data.shape:
        raise CertificateError(f"The witness of shape {S.shape} does not match data of shape {data.shape}.")
    if not (is_mirrored(S) and is_mirrored(N) and N.min() >= 0):
        raise CertificateError("The witness is not symmetric, or its second part has a negative entry.")
    absolute = np.concatenate([np.abs(S[rows]).sum(axis=1) for rows in row_slices(*S.shape)])
    if S.any() and not is_psd(S.copy(), absolute):
        raise CertificateError("The dual point is not positive semidefinite.")
    norm, weight, terms = float(np.vdot(data, data)), 0.0, []
    for rows in row_slices(*data.shape):
        A, on_diagonal = data[rows], (np.arange(len(data[rows])), np.arange(len(data))[rows])
        Z = S[rows] + N[rows]
        Z += A - 0.5 * l1
        Z[on_diagonal] -= 0.5 * trace
        size = np.abs(S[rows]) + N[rows] + A + 0.5 * l1
        size[on_diagonal] += 0.5 * trace
        weight += float(np.vdot(Z, Z)) + float(np.vdot(np.abs(Z), size)) + UNIT * float(np.vdot(size, size))
        terms.append(float(((A - Z) * (A + Z)).sum()))  # ||A||^2 - ||Z||^2, summed pairwise
    return safe_proof(math.fsum(terms), UNITS_PER_TERM * UNIT * (norm + weight), norm)
