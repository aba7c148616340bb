"""What the package hands back: status, iterates, solutions, factors and partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf import views
from cvxnmf.points import AnyPoint, FactorPoint, FloatArray, MatrixPoint, PairedPoint, Point

if TYPE_CHECKING:
    from cvxnmf.checking import Certificate

__all__ = [
    "AnyPoint",
    "CPFactor",
    "FactorPoint",
    "Factorization",
    "FloatArray",
    "Interrupted",
    "Iterate",
    "MatrixPoint",
    "PairedPoint",
    "Partition",
    "Point",
    "Solution",
    "Status",
]

#: Printing a partition of up to this many nodes computes its factors and their proof.
PROVED_WHEN_PRINTED = 2000


class Status(Enum):
    """How a solve ended; the member's value is its sentence."""

    OPTIMAL = "The certified relative gap is at or below the tolerance."
    MAX_ITER = "The iteration limit was reached before the certified gap fell below the tolerance."
    STALLED = "Neither the value nor the bound moves any more; the gap that is left stands in the certificate."
    NONFINITE = "A value stopped being finite; the last finite point is returned."
    INFEASIBLE = "No point satisfies the constraints."
    CONVERGED = "The descent has come to rest; how good the result is stands in its certificate."
    INTERRUPTED = "Stopped on request; the best point so far is returned with its certificate."

    @property
    def sentence(self) -> str:
        """The status in plain words."""
        return str(self.value)

    def __str__(self) -> str:
        """Name and sentence, as a person would want to read them."""
        return f"{self.name}: {self.value}"


@dataclass(frozen=True)
class Iterate:
    """One line of a solver's history, also what a callback receives.

    Attributes
    ----------
    iteration : int
        Steps taken so far.
    seconds : float
        Wall time since the solve began, certificates included.
    value, bound : float
        Objective at this iterate, and the best proved lower bound so far; of the components reached so far when
        several are solved apart.
    rank : int
        Number of columns of W at this iterate, in the component at work.
    stage : str
        What is being done, where the work has several stages; value and bound are NaN in those before the first solve.
    share : float
        About how much of the whole work is done, from 0 to 1; 0 where nobody can tell.
    """

    iteration: int
    seconds: float
    value: float
    bound: float
    rank: int
    stage: str = ""
    share: float = 0.0

    @property
    def seconds_left(self) -> float:
        """About how long the rest takes; NaN where nobody can tell."""
        return self.seconds * (1.0 / self.share - 1.0) if self.share > 0 else float("nan")

    @property
    def gap(self) -> float:
        """Difference of value and bound."""
        return self.value - self.bound


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
        """The solution as a dense matrix, formed anew at every call."""
        X = self.point.dense()
        if self.groups is not None:
            X[self.groups[:, None] != self.groups[None, :]] = -np.inf
        return X

    @property
    def value(self) -> float:
        """Objective at the returned point."""
        return self.certificate.value

    @property
    def rank(self) -> int:
        """Number of columns of W; of a matrix, of those above 1e-4 of the heaviest."""
        if isinstance(self.point, MatrixPoint):
            weights = np.sum(self.W**2, axis=0)
            return int(np.count_nonzero(weights > 1e-4 * weights.max(initial=0.0)))
        return int(self.W.shape[1])

    def _size(self) -> str:
        """The size of the problem in words."""
        n = len(self.v)
        if isinstance(self.point, PairedPoint):
            return f"{self.point.n_rows} rows and {n - self.point.n_rows} columns"
        return f"{n} nodes"

    def __repr__(self) -> str:
        """Return one line."""
        gap = self.certificate.relative_gap
        return f"<Solution: {self._size()}, rank {self.rank}, value {self.value:.6g}, gap {gap:.1e}, {self.status.name}>"

    def __str__(self) -> str:
        """Return a summary of a few lines."""
        steps = "1 step" if self.n_iter == 1 else f"{self.n_iter} steps"
        return (
            f"Solution of {self._size()}, rank {self.rank}\n{self.certificate}\n  {steps} in {self.seconds:.2f} s; {self.status}"
        )

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        return views.solution_card(self, self._size())

    def history_frame(self) -> Any:
        """Return the history as a pandas data frame: iteration, seconds, value, bound, gap and rank of every step."""
        return views.history_frame(self.history)


@dataclass(frozen=True, eq=False)
class CPFactor:
    """Explicit nonnegative factors, ``E = UV'`` up to the stated errors; ``V is U`` for a completely positive E.

    Attributes
    ----------
    U : ndarray of shape (m, columns)
        Nonnegative.
    max_relative_error : float
        Largest of ``|UV' - E| / E`` over the entries, measured.
    frobenius_error : float
        ``||UV' - E|| / ||E||``, measured.
    V : ndarray of shape (n, columns)
        Nonnegative; U itself for a symmetric E.
    """

    U: FloatArray
    max_relative_error: float
    frobenius_error: float
    V: FloatArray = field(default=None)  # type: ignore[arg-type]  # U when left out

    def __post_init__(self) -> None:
        if getattr(self, "V", None) is None:
            object.__setattr__(self, "V", self.U)

    def __repr__(self) -> str:
        """Return one line."""
        n, columns = self.U.shape
        return (
            f"<CPFactor: {n} rows, {columns} columns, relative error {self.max_relative_error:.1e} at most, "
            f"{self.frobenius_error:.1e} in norm>"
        )

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        return views.factor_card(self)


class Level(NamedTuple):
    """What a certificate speaks of, where an answer was reached on several levels.

    Attributes
    ----------
    size : int
        Nodes, or groups of nodes, on this level.
    words : str
        What the certificate is about.
    certificate : Certificate
        Its numbers are those of the whole data.
    """

    size: int
    words: str
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Factorization:
    """Nonnegative factors of the data, ``A ≈ UV'``, with what is proved about them.

    Attributes
    ----------
    U : ndarray of shape (m, columns)
        Nonnegative.
    V : ndarray of shape (n, columns)
        Nonnegative; U itself for a symmetric factorisation.
    value : float
        The loss of ``UV'``.
    certificate : Certificate
        The value and a proved lower bound on the loss of every factorisation it speaks of.
    history : sequence of Iterate
        One entry per step; a step of :func:`recursive` is a stage.
    status : Status
        How the work ended.
    message : str
        The same in a sentence, with what stood in the way.
    levels : tuple of Level
        Of a large graph, what is proved on groups of its nodes and on the whole; else empty.
    """

    U: FloatArray
    V: FloatArray
    value: float
    certificate: Certificate
    history: Sequence[Iterate]
    status: Status
    message: str
    levels: tuple[Level, ...] = ()

    @property
    def n_components(self) -> int:
        """Number of columns."""
        return int(self.U.shape[1])

    def _size(self) -> str:
        """The size of the data, and the number of components, in words."""
        sides = f"{len(self.U)} nodes" if self.V is self.U else f"{len(self.U)} rows and {len(self.V)} columns"
        return f"{sides}, {self.n_components} component{'' if self.n_components == 1 else 's'}"

    def __repr__(self) -> str:
        """Return one line."""
        return f"<Factorization: {self._size()}, value {self.value:.6g}, {self.status.name}>"

    def __str__(self) -> str:
        """Return a summary of a few lines."""
        return f"Factorization of {self._size()}\n{self.certificate}\n  {self.message}"

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        return views.factorization_card(self)

    def to_frame(self, factor: Literal["U", "V"] = "U", names: Sequence[Any] | None = None) -> Any:
        """Return a factor as a pandas data frame, a column for each component.

        Parameters
        ----------
        factor : {"U", "V"}
            U has a line for each row of the data, V for each column.
        names : sequence, optional
            Names of these lines.
        """
        return views.factor_frame({"U": self.U, "V": self.V}[factor], names)

    def history_frame(self) -> Any:
        """Return the history as a pandas data frame: iteration, seconds, value, bound, gap and rank of every step."""
        return views.history_frame(self.history)


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of a graph: clusters of its nodes, how good they are, and what is proved.

    Attributes
    ----------
    nodes : tuple
        Names of the nodes, in the order of everything below.
    labels : ndarray of int, shape (n,)
        The cluster of each node, from 0, by decreasing size: where its row of the memberships is largest.
    memberships : ndarray of shape (n, n_clusters)
        Shares of each node in the clusters; rows sum to 1.
    performance, off_diagonal_performance : float
        The paper's share of pairs that the partition gets right, with and without the diagonal; see :func:`performance`.
    modularity : float
        Newman's modularity of the labels.
    order : ndarray of int, shape (n,)
        Nodes cluster by cluster, within a cluster by decreasing membership: ``A[order][:, order]`` shows the blocks.
    solution : Solution
        The solved convex problem.
    A : scipy.sparse.csr_array of shape (n, n)
        The symmetric adjacency matrix that was partitioned.
    spectrum : ndarray
        Largest eigenvalues of the modularity matrix in the metric, decreasing.
    noise_edge : float
        What noise alone can reach in that spectrum.
    factors : callable
        Computes `factorization`.
    """

    nodes: tuple[Any, ...]
    labels: NDArray[np.intp]
    memberships: FloatArray
    performance: float
    off_diagonal_performance: float
    modularity: float
    order: NDArray[np.intp]
    solution: Solution
    A: Any
    spectrum: FloatArray
    noise_edge: float
    factors: Callable[[], Factorization] = field(repr=False)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.memberships.shape[1])

    @property
    def certificate(self) -> Certificate:
        """Of scope "model"; no model of this form fits the graph better than the bound."""
        return self.solution.certificate

    @property
    def status(self) -> Status:
        """How the solve of the convex problem ended."""
        return self.solution.status

    @property
    def n_groups(self) -> int | None:
        """Number of groups of nodes that share a position in the convex model; None if every node has its own."""
        return self.certificate.statement.get("groups")

    @property
    def levels(self) -> tuple[Level, ...]:
        """What is proved on which level, of the convex model, on groups of nodes if the graph is large, and of the factors."""
        n = len(self.nodes)
        of = "models of this form" if self.n_groups is None else "models of this form whose nodes share positions in groups"
        factors = f"nonnegative factors with {self.n_clusters} columns"
        return Level(self.n_groups or n, of, self.certificate), Level(n, factors, self.rank_certificate)

    @cached_property
    def factorization(self) -> Factorization:
        """Nonnegative factors ``A ≈ UU'``, one column per cluster, and their proof; computed when first asked for.

        They are of least ``sum (A - UU')_ij^2 / (d_i d_j)`` with the degrees d, descended from the memberships.
        """
        return self.factors()

    @property
    def U(self) -> FloatArray:
        """Nonnegative factors of the adjacency matrix, shape (n, n_clusters), see `factorization`."""
        return self.factorization.U

    @property
    def rank_certificate(self) -> Certificate:
        """Of scope "rank-k"; no U with as many columns has a lower error, weighted as in `factorization`, than the bound."""
        return self.factorization.certificate

    def to_dict(self) -> dict[Any, int]:
        """The cluster of each node by its name."""
        return dict(zip(self.nodes, self.labels.tolist(), strict=True))

    def to_frame(self) -> Any:
        """Return a pandas data frame: node, cluster, the node's membership in it, and its shares in all clusters."""
        return views.partition_frame(self)

    def to_networkx(self) -> Any:
        """Return the undirected graph of networkx that was partitioned, with ``cluster`` and ``membership`` of every node."""
        return views.networkx_graph(self)

    def __repr__(self) -> str:
        """Return one line."""
        return (
            f"<Partition: {len(self.nodes)} nodes, {self.n_clusters} clusters, modularity {self.modularity:.3f}, "
            f"performance {self.performance:.3f}, gap {self.certificate.relative_gap:.1e}, {self.status.name}>"
        )

    def __str__(self) -> str:
        """Return a summary of a few lines."""
        sizes = ", ".join(map(str, np.bincount(self.labels, minlength=self.n_clusters)))
        clusters = "1 cluster" if self.n_clusters == 1 else f"{self.n_clusters} clusters"
        factors = "its single factor" if self.n_clusters == 1 else f"its {self.n_clusters} factors"
        proof = str(self.rank_certificate) if self._proves_factors() else "  proved when rank_certificate is asked for"
        return (
            f"Partition of {len(self.nodes)} nodes into {clusters} of {sizes}\n"
            f"  modularity {self.modularity:.4f}, performance {self.performance:.4f} "
            f"({self.off_diagonal_performance:.4f} without the diagonal)\n"
            f"the model\n{self.certificate}\n{factors}\n{proof}"
        )

    def _proves_factors(self) -> bool:
        """Whether the proof of the factors is at hand, or soon computed."""
        return "factorization" in vars(self) or len(self.nodes) <= PROVED_WHEN_PRINTED

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        return views.partition_card(self, self._proves_factors())


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a solve: ends loops as Ctrl-C does, and carries the best answer so far.

    Attributes
    ----------
    solution : Solution, Factorization or Partition
        The best answer so far with its certificate, status INTERRUPTED.
    finished : list of Solution
        What :func:`path` had finished before.
    """

    def __init__(self, solution: Solution | Factorization | Partition) -> None:
        super().__init__("interrupted; the best answer so far is in the exception's `solution`")
        self.solution = solution
        self.finished: list[Solution] = []
