"""Methods for the convex problems, each a step from one point to the next.

projected-gradient   the paper's: a gradient step in the metric, projected; backtracking
accelerated          the same step from an extrapolated point, momentum halved when it points uphill
factored             quasi-Newton descent over the factors (v, W), then a projected step; streamed for large sparse data
adaptive             accelerated at first, then factored
splitting            alternating directions, for a lower limit on X (the paper's squared error) and for two sets at once
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cvxnmf.convex.doubly_nonnegative import Projection
from cvxnmf.convex.matrix_free import StreamedBlock
from cvxnmf.convex.methods.base import Method
from cvxnmf.convex.methods.factored import Adaptive, Factored, Streamed
from cvxnmf.convex.methods.gradient import Accelerated, ProjectedGradient
from cvxnmf.convex.methods.splitting import LimitSplitting, ProjectionSplitting

__all__ = ["METHODS", "Accelerated", "Adaptive", "Factored", "Method", "ProjectedGradient", "Streamed"]


def splitting(block: Any, point: Any) -> Method:
    """The splitting method for this kind of block."""
    return ProjectionSplitting(block, point) if isinstance(block, Projection) else LimitSplitting(block, point)


def factored(block: Any, point: Any) -> Method:
    """The descent over factors for this kind of block."""
    return Streamed(block, point) if isinstance(block, StreamedBlock) else Factored(block, point)


METHODS: dict[str, Callable[[Any, Any], Method]] = {
    "projected-gradient": ProjectedGradient,
    "accelerated": Accelerated,
    "factored": factored,
    "adaptive": Adaptive,
    "splitting": splitting,
}
