"""Dual points, and the search for one that the check accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from cvxnmf.certificates import CertificateError, Statement
from cvxnmf.linalg.arrays import FloatArray

#: Smallest shift beyond the computed one, per row; it grows tenfold until the check accepts.
FIRST_PAD = 1e-12
#: Beyond this shift a dual point is worth nothing.
LARGEST_SHIFT = 1e6
#: Gradients as large as this tell nothing.
ABSURD = 1e150

Witness = Mapping[str, FloatArray]
Family = Callable[[float], Witness]


class Dual(NamedTuple):
    """A dual point that the check has accepted, and what it proves."""

    witness: Witness
    bound: float
    rigorous: bool
    probable: bool = False


def prove_least_shift(
    A: FloatArray, statement: Statement, least: float, family: Family, pad: float, largest: float = LARGEST_SHIFT
) -> Dual | None:
    """Raise the shift from `least` until the check accepts the family's dual point; None beyond the largest shift."""
    while least + pad <= largest:
        witness = family(least + pad)
        try:
            proof = statement.prove(A, "dual", witness)
        except CertificateError:
            pad *= 10.0
            continue
        return Dual(witness, proof.bound, proof.rigorous)
    return None
