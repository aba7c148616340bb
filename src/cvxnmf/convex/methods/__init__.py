"""Methods for the convex problems, each a step from one point to the next.

projected-gradient   the paper's: a gradient step in the metric, projected; backtracking
accelerated          the same step from an extrapolated point, momentum halved when it points uphill
factored             quasi-Newton descent over the factors (v, W), then a projected step; by products for large sparse data
adaptive             what the first steps show to fit: accelerated, factored, in the metric of the model's Laplacian, splitting
splitting            alternating directions: wide ranges, a lower limit on X (the paper's squared error), rectangles, two sets

Which of them can solve a component, the component knows.
"""

from __future__ import annotations

from cvxnmf.convex.methods.augmented import AugmentedDescent
from cvxnmf.convex.methods.base import Method, Methods
from cvxnmf.convex.methods.dual_ascent import DualAscent
from cvxnmf.convex.methods.factored import Factored, MatrixFreeDescent
from cvxnmf.convex.methods.gradient import Accelerated, ProjectedGradient
from cvxnmf.convex.methods.splitting import LossSplitting, ProjectionSplitting

__all__ = [
    "METHODS",
    "Accelerated",
    "AugmentedDescent",
    "DualAscent",
    "Factored",
    "LossSplitting",
    "MatrixFreeDescent",
    "Method",
    "Methods",
    "ProjectedGradient",
    "ProjectionSplitting",
]

#: Names that a user may give.
METHODS = ("projected-gradient", "accelerated", "factored", "adaptive", "splitting")
