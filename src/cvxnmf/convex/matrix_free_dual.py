"""Dual points of problems whose model is streamed.

With ``G = E - A`` at balanced effects, ``G1 = 0``, and ``Y = trace N + share G`` is in the dual cone if share times the largest
eigenvalue of ``S^-1 (A - E) S^-1`` is at most the trace. Then ``Z = (1 - share) A + share E`` is the dual point. Its witness is
the share and the factors of the model; the last rounding of the row sums is put on the diagonal.
"""

from __future__ import annotations

from cvxnmf.certificates.matrix_free import large
from cvxnmf.convex.dual import Dual, Witness, accepted
from cvxnmf.convex.matrix_free import StreamedBlock
from cvxnmf.convex.problem import Problem
from cvxnmf.results import Point

#: Smallest shift of the share beyond the computed one, and as a share of that one.
FIRST_PAD, RELATIVE_PAD = 1e-9, 0.05
#: The same for large graphs, where the check too has its eigenvalues from a few products only.
LARGE_PAD = 1e-3


def examined(problem: Problem, whole: Point) -> tuple[float, list[Dual | None], bool]:
    """Value and dual point at a point in factors."""
    (block,) = problem.blocks
    point = whole.restricted(block.nodes)
    return block.objective(point), [at_point(problem, block, point)[2]], False


def at_point(problem: Problem, block: StreamedBlock, point: Point) -> tuple[Point, float, Dual | None]:
    """The point with balanced effects, its value, and a dual point that the check accepts."""
    point = block.balanced(point)
    loss, residual, _ = block.slopes(point)
    value = loss + block.trace * block.cone.penalty(point)
    largest = block.largest_eigenvalue(point)

    def witness(shift: float) -> Witness:
        share = 1.0 - min(shift, 1.0)
        return {
            "v": point.v,
            "W": point.W,
            "metric": block.cone.s,
            "share": share + 0.0 * residual[:1],
            "diagonal": -share * residual,
        }

    least = max(0.0, 1.0 - block.trace / largest) if largest > 0 else 0.0
    pad = LARGE_PAD if large(block.A) else max(FIRST_PAD, RELATIVE_PAD * least)
    return point, value, accepted(block.A, problem.statement, least, witness, pad, largest=1.1)
