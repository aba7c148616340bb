"""Bounds for the doubly nonnegative problem (docs/mathematics.md).

``min ||A - X||^2 + l1 sum |X| + trace Tr X`` over X positive semidefinite and nonnegative. With
``B = A - l1/2 11' - trace/2 I`` and any S positive semidefinite and N >= 0 (``<S, X> >= 0``, ``<N, X> >= 0``)

    ||A||^2 - 2 <B, X> + ||X||^2  >=  ||A||^2 - 2 <B + S + N, X> + ||X||^2  >=  ||A||^2 - ||B + S + N||^2.

With ``l1 = trace = 0`` no ``UU'``, ``U >= 0``, of whatever rank, is nearer to A than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxnmf.certificates.rounding import (
    LARGEST,
    UNIT,
    UNITS_PER_TERM,
    Array,
    CertificateError,
    Proof,
    is_psd,
    of_moderate_size,
    safe_bound,
    square_matrix,
    witness_arrays,
)

#: What the bounds speak of.
SCOPE = "model"


def _weights(statement: Mapping[str, Any]) -> tuple[float, float]:
    try:
        l1, trace = float(statement["l1"]), float(statement["trace"])
        known = 0 <= l1 <= LARGEST and 0 <= trace <= LARGEST
    except (KeyError, TypeError, ValueError, OverflowError):
        known = False
    if not known:
        raise CertificateError("The certificate's statement of the problem is not understood.")
    return l1, trace


def scale(A: Any, statement: Mapping[str, Any]) -> float:
    """Size of the data, against which rounding is judged."""
    _weights(statement)
    data = square_matrix(A)
    return float(np.vdot(data, data))


def prove(A: Any, statement: Mapping[str, Any], witness: Mapping[str, Array]) -> Proof:
    """Return the bound that S and N prove."""
    data, (l1, trace) = square_matrix(A), _weights(statement)
    of_moderate_size(data, "mse")
    S, N = witness_arrays(witness, "S", "N")
    if S.shape != data.shape or N.shape != data.shape:
        raise CertificateError(f"The witness of shape {S.shape} does not match data of shape {data.shape}.")
    if not (np.array_equal(S, S.T) and np.array_equal(N, N.T) and N.min() >= 0):
        raise CertificateError("The witness is not symmetric, or its second part has a negative entry.")
    if S.any() and not is_psd(S.copy(), np.abs(S).sum(axis=1)):
        raise CertificateError("The dual point is not positive semidefinite.")
    Z = S + N
    size = np.abs(S) + N + data + 0.5 * l1
    Z += data - 0.5 * l1
    Z.flat[:: len(Z) + 1] -= 0.5 * trace
    size.flat[:: len(Z) + 1] += 0.5 * trace
    norm, energy = float(np.vdot(data, data)), float(np.vdot(Z, Z))
    rounding = UNITS_PER_TERM * UNIT * (norm + energy + float(np.vdot(np.abs(Z), size)) + UNIT * float(np.vdot(size, size)))
    bound = float(np.ascontiguousarray((data - Z) * (data + Z)).sum())  # ||A||^2 - ||Z||^2, summed pairwise
    return Proof(safe_bound(bound, rounding), True, norm)


#: Kinds of bounds, and who proves them.
KINDS = {"dual": prove}
