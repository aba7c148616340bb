"""Dual matrices brought nearer to the dual cone by clipping their spectrum.

A slope g of the loss that leaves the dual cone by a few eigenvalues, or singular values, can be shrunk as a whole until all
are within it; where the data span a wide range, or the trace is small, that is ruinous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.convex.geometry import Geometry
from cvxnmf.convex.losses import Loss
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.row_chunks import cached_rows

#: Rounds of clipping.
CLIPPING_ROUNDS = 3
#: A clipped matrix keeps at least this share of its distance to the edge of the domain.
INSIDE = 0.02


def clip_spectrum(loss: Loss, geometry: Geometry[Any], g: FloatArray, trace: float) -> None:
    """The best of some rounds of clipping, in place of g: it stays in the domain of the dual, its margins stay zero.

    The best is that which proves the most when what is left beyond the dual cone is taken off by shrinking.
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


def return_to_domain(loss: Loss, geometry: Geometry[Any], g: FloatArray, inside: FloatArray) -> FloatArray:
    """Put g, which is overwritten, no nearer to the edge of the domain than a share of the distance of a matrix inside.

    Its margins become zero, but for rounding; under a lower limit on X, where most entries have no such edge, that is left.
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
