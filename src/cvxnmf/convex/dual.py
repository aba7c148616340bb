"""Dual points: slopes of the loss brought into the dual cone and the domain of the dual, until the check accepts them.

A slope g that leaves the dual cone by a few eigenvalues, or singular values, can be shrunk as a whole until all are within it;
where the data span a wide range, or the trace is small, that is ruinous, and clipping those few loses less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from cvxnmf.certificates import CertificateError, Statement
from cvxnmf.convex.geometry import AnyGeometry
from cvxnmf.convex.losses import Loss
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.row_chunks import cached_rows

#: Smallest shift beyond the computed one, per row; it grows tenfold until the check accepts.
FIRST_PAD = 1e-12
#: Beyond this shift a dual point is worth nothing.
LARGEST_SHIFT = 1e6
#: Gradients as large as this tell nothing.
ABSURD = 1e150
#: Rounds of clipping.
CLIPPING_ROUNDS = 3
#: A clipped matrix keeps at least this share of its distance to the edge of the domain.
INSIDE = 0.02

Witness = Mapping[str, FloatArray]
Family = Callable[[float], Witness]


class Dual(NamedTuple):
    """A dual point that the check has accepted: its witness, the bound it proves, and whether that is rigorous."""

    witness: Witness
    bound: float
    rigorous: bool
    probable: bool = False


def prove_least_shift(
    A: FloatArray, statement: Statement, least: float, family: Family, pad: float, largest: float = LARGEST_SHIFT
) -> Dual | None:
    """Raise the shift from `least` until the check accepts the dual point of the family; None beyond the largest shift."""
    while least + pad <= largest:
        witness = family(least + pad)
        try:
            proof = statement.prove(A, "dual", witness)
        except CertificateError:
            pad *= 10.0
            continue
        return Dual(witness, proof.bound, proof.rigorous)
    return None


def clip_spectrum(loss: Loss, geometry: AnyGeometry, g: FloatArray, trace: float) -> None:
    """Clip the spectrum of a slope g towards the dual cone, in place; g stays in the domain and its margins stay zero.

    Of a few rounds the matrix is kept that proves the most once it is shrunk into the dual cone.
    """
    best, here = -np.inf, g
    for remaining in reversed(range(CLIPPING_ROUNDS + 1)):
        share, lack = geometry.spectral_lack(here, trace)
        bound = loss.dual_value(here, share)
        if bound > best:
            best, g[:] = bound, here
        if lack is None or not remaining:
            break
        lack += here
        here = return_to_domain(loss, geometry, lack, here)


def return_to_domain(loss: Loss, geometry: AnyGeometry, g: FloatArray, inside: FloatArray) -> FloatArray:
    """Raise a slope g, in place, into the domain of the dual: no nearer to its edge than a share of the distance of `inside`.

    The margins of g become zero up to rounding, except under a lower limit on X, where most entries have no edge.
    """
    floor = loss.floor()
    g += floor
    for rows in cached_rows(g):
        least = INSIDE * (inside[rows] + floor[rows])
        np.maximum(g[rows], least, out=g[rows], where=loss.A[rows] == 0 if loss.limited else True)
    if loss.ignore_diagonal:
        np.fill_diagonal(g, 0.0)
    if geometry.free_effects and not loss.limited:
        geometry.scale_to_margins(g, geometry.margins(floor))
    g -= floor
    return g
