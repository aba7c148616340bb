"""Methods for the convex problems, each a step from one point to the next.

projected-gradient   the paper's: a gradient step in the metric, projected; backtracking
accelerated          the same step from an extrapolated point, momentum halved when it points uphill
factored             quasi-Newton descent over the factors (v, W), then a projected step; by products for large sparse data
adaptive             accelerated at first, then factored
splitting            alternating directions, for a lower limit on X (the paper's squared error) and for two sets at once

Which of them can solve a component, the component knows.
"""

from __future__ import annotations

from cvxnmf.convex.methods.base import Method
from cvxnmf.convex.methods.factored import Adaptive, Factored, MatrixFreeDescent
from cvxnmf.convex.methods.gradient import Accelerated, ProjectedGradient
from cvxnmf.convex.methods.splitting import LimitSplitting, ProjectionSplitting

__all__ = [
    "METHODS",
    "Accelerated",
    "Adaptive",
    "Factored",
    "LimitSplitting",
    "MatrixFreeDescent",
    "Method",
    "ProjectedGradient",
    "ProjectionSplitting",
]

#: Names that a user may give.
METHODS = ("projected-gradient", "accelerated", "factored", "adaptive", "splitting")
