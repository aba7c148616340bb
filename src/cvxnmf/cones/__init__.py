"""Where X may lie, and the geometry of the steps: cones in a diagonal metric, and the nuclear norm of rectangular matrices.

With ``S = diag(s)`` distances are measured as ``||S (X - B) S||``. Each cone knows its penalty
``<N, X>``, ``N = S P S``: P is the projector on the directions that must be nonnegative, the whole
space for the PSD cone and the complement of s for the conditionally PSD cone. Rectangular matrices are not constrained;
their penalty is twice the nuclear norm, with or without free effects of rows and columns (docs/mathematics.md).
"""

from __future__ import annotations

from cvxnmf.cones.geometry import Geometry
from cvxnmf.cones.nuclear import NuclearNorm
from cvxnmf.cones.semidefinite import CONES, PSD, ConditionallyPSD, Cone

__all__ = ["CONES", "PSD", "Cone", "ConditionallyPSD", "Geometry", "NuclearNorm"]
