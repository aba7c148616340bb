"""A solved convex problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results.points import AnyPoint, MatrixPoint, PairedPoint
from cvxnmf.results.status import Iterate, Status

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved convex problem: the point and its proof.

    For :func:`symmetric` problems ``X = v1' + 1v' + WW'`` and the fitted matrix is ``np.exp(solution.X)``. For
    :func:`nonsymmetric` ones v and W hold the m rows first and then the n columns of the data: X is ``a1' + 1b' + W_1 W_2'``
    with ``a = v[:m]``, ``b = v[m:]``, ``W_1 = W[:m]``, ``W_2 = W[m:]``, and again the fitted matrix is ``np.exp(solution.X)``.
    For :func:`sparse` problems X itself is the fitted matrix, ``X = WW'`` up to rounding.

    Attributes
    ----------
    point : Point, PairedPoint or MatrixPoint
        The point in the form the problem has it.
    status : Status
        How the solve ended.
    certificate : Certificate
        Value at this very point, the proved lower bound and its witness.
    history : sequence of Iterate
        One entry per step.
    n_iter : int
        Steps taken, summed over the components when the problem fell apart.
    seconds : float
        Wall time of the solve.
    groups : ndarray of shape (n,) or None
        With trace 0 on the conditional cone, the component of each node if there are several (-1: no data);
        X is ``-inf`` across groups.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.1, 0.9)
    >>> solution = cvxnmf.solve(cvxnmf.symmetric(A))
    >>> solution.status.name, solution.certificate.bound <= solution.value, solution.history[-1].iteration == solution.n_iter
    ('OPTIMAL', True, True)
    """

    point: AnyPoint
    status: Status
    certificate: Certificate
    history: Sequence[Iterate]
    n_iter: int
    seconds: float
    groups: NDArray[np.intp] | None = None

    @property
    def v(self) -> FloatArray:
        """Effects of nodes, or of rows and columns; zero where the problem has none, ``-inf`` where there are no data."""
        return self.point.v

    @cached_property
    def W(self) -> FloatArray:
        """Positions, one row per node, or per row and then per column; columns by decreasing weight."""
        return self.point.W

    @property
    def X(self) -> FloatArray:
        """The solution of the convex problem as a dense matrix, formed anew at every call."""
        X = self.point.dense()
        if self.groups is not None:
            X[self.groups[:, None] != self.groups[None, :]] = -np.inf
        return X

    @property
    def value(self) -> float:
        """Objective of the convex problem at the returned point."""
        return self.certificate.value

    @property
    def rank(self) -> int:
        """Number of columns of W; of a matrix, of those above 1e-4 of the heaviest."""
        if isinstance(self.point, MatrixPoint):
            weights = np.sum(self.W**2, axis=0)
            return int(np.count_nonzero(weights > 1e-4 * weights.max(initial=0.0)))
        return int(self.W.shape[1])

    def _size(self) -> str:
        """The size of a solved convex problem in words."""
        from cvxnmf.display.formatting import count

        n = len(self.v)
        if isinstance(self.point, PairedPoint):
            return f"{count(self.point.n_rows, 'row')} and {count(n - self.point.n_rows, 'column')}"
        return count(n, "node")

    def __repr__(self) -> str:
        gap = self.certificate.relative_gap
        return f"<Solution: {self._size()}, rank {self.rank}, value {self.value:.6g}, gap {gap:.1e}, {self.status.name}>"

    def __str__(self) -> str:
        from cvxnmf.display.formatting import count

        steps = count(self.n_iter, "step")
        return (
            f"Solution of {self._size()}, rank {self.rank}\n{self.certificate}\n  {steps} in {self.seconds:.2f} s; {self.status}"
        )

    def _repr_html_(self) -> str:
        from cvxnmf.display import cards

        return cards.solution_card(self, self._size())

    def history_frame(self) -> Any:
        """Return the history as a pandas data frame: iteration, seconds, value, bound, gap and rank of every step."""
        from cvxnmf.display import frames

        return frames.history_frame(self.history)
