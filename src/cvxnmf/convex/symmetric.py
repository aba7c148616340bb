"""The symmetric problem: minimise ``loss(A, exp(X)) + trace <N, X>`` over X in a cone (docs/mathematics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from cvxnmf import validation
from cvxnmf.convex.component import Block
from cvxnmf.convex.cones import CONES, Cone
from cvxnmf.convex.losses import LOG_2, LOSSES, Loss
from cvxnmf.convex.matrix_free import StreamedBlock
from cvxnmf.convex.noise import degree_metric, noise_level
from cvxnmf.convex.problem import Index, Problem
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Point

#: From this many nodes on, sparse data stay sparse and the model is streamed.
STREAMED_FROM = 400
#: Data with a larger share of entries that are not zero are faster dense.
STREAMED_DENSITY = 0.6
#: From this many nodes on the check of a streamed model, a dense one, gains by several threads.
STREAMED_THREADS_FROM = 2500
#: Methods that work without dense matrices.
STREAMING = ("factored",)


@dataclass(frozen=True, eq=False)
class SymmetricProblem(Problem):
    """The problem made by :func:`symmetric`.

    Attributes
    ----------
    A : ndarray or csr_array of shape (n, n)
        The checked data (its diagonal is zero when the diagonal is ignored); large sparse data stay sparse.
    trace : float
        Weight of the penalty, resolved to its number.
    metric : ndarray of shape (n,)
        The vector s; 0 for nodes that carry no data and were set aside.
    blocks : tuple of Block, or of one StreamedBlock
        The independent pieces to solve.
    """

    A: Any = field(repr=False)
    loss_name: str
    cone_name: str
    diagonal: str
    trace: float
    metric_name: str
    metric: FloatArray = field(repr=False)
    blocks: tuple[Any, ...] = field(repr=False)

    @property
    def size(self) -> int:
        """Number of rows of A."""
        return int(self.A.shape[0])

    @property
    def threads_from(self) -> int:
        """Size from which on BLAS gains by several threads; a streamed model has threads of its own."""
        return STREAMED_THREADS_FROM if isinstance(self.blocks[0], StreamedBlock) else super().threads_from

    def arranged(self, method: str, single: bool = False) -> Problem:
        """The same problem in the form that a method works on: dense, unless it streams the model and this is possible."""
        streamed = isinstance(self.blocks[0], StreamedBlock)
        if streamed and method in STREAMING:
            return replace(self, blocks=tuple(replace(block, coarse_start=True) for block in self.blocks)) if single else self
        return super().arranged(method, single) if single or not streamed else self.dense()

    def dense(self) -> SymmetricProblem:
        """The same problem on dense matrices."""
        A = validation.filled(self.A)
        metric = self.metric if self.metric_name == "own" else self.metric_name
        return _assemble(A, self.loss_name, self.cone_name, metric, self.trace, self.diagonal, streamed=False)

    @property
    def methods(self) -> tuple[str, ...]:  # type: ignore[override]
        """Methods that can solve the problem, the best first."""
        if self.blocks[0].lower is not None:
            return ("splitting",)
        if not self.blocks[0].cone.free_effects:  # solutions of high rank: the factors do not pay
            return ("accelerated", "factored", "projected-gradient", "adaptive")
        return ("factored", "accelerated", "projected-gradient", "adaptive")

    def matrix(self, X: Any, name: str = "X") -> FloatArray:
        """Check a symmetric matrix of logarithms."""
        return validation.log_matrix(X, self.size, name)

    def starting_point(self, start: Any) -> Point | FloatArray:
        """Check a warm start: a solution, a pair (v, W) or a matrix X."""
        factors = validation.factors(start, self.size)
        return self.matrix(start, "start") if factors is None else Point(*factors)

    def restricted(self, given: Point | FloatArray | None, block: Block[Cone]) -> Point | FloatArray | None:
        """A warm start on the nodes of one component."""
        if isinstance(given, np.ndarray):
            return given[np.ix_(block.nodes, block.nodes)]
        return None if given is None else given.restricted(block.nodes)

    def joined(self, points: Sequence[Point]) -> tuple[Point, Index | None]:
        """Effects and positions of all components; ``-inf`` effects where there are no data."""
        v, groups = np.full(self.size, -np.inf), np.full(self.size, -1)
        W = np.zeros((self.size, sum(point.W.shape[1] for point in points)))
        column = 0
        for number, (block, point) in enumerate(zip(self.blocks, points, strict=True)):
            rank = point.W.shape[1]
            v[block.nodes], groups[block.nodes] = point.v, number
            W[block.nodes, column : column + rank] = point.W
            column += rank
        return Point(v, W), groups if len(points) > 1 else None

    @property
    def kept(self) -> Index:
        """Nodes that carry data, in increasing order."""
        return np.sort(np.concatenate([block.nodes for block in self.blocks]))

    @property
    def statement(self) -> dict[str, Any]:
        """The problem in the words of a certificate."""
        names = {"form": "symmetric", "loss": self.loss_name, "cone": self.cone_name, "diagonal": self.diagonal}
        return names | {"trace": self.trace, "metric": self.metric_name}

    @property
    def ignore_diagonal(self) -> bool:
        """Whether diagonal entries have weight zero."""
        return self.diagonal == "ignore"

    def value(self, X: ArrayLike) -> float:
        """Objective at X, shape (n, n): loss plus ``trace <N, X>``.

        X need not lie in the cone; ``-inf`` entries stand for ``exp(X) = 0``, and under a penalty have an infinite value.
        """
        if isinstance(self.blocks[0], StreamedBlock):
            return self.dense().value(X)
        Y = self.matrix(X)
        parts = [(b, Y[np.ix_(b.nodes, b.nodes)]) for b in self._penalised()]
        if not all(np.isfinite(part).all() for _, part in parts):
            return float("inf")  # a limit that the penalty does not allow
        with np.errstate(over="ignore", invalid="ignore"):
            penalty = sum(b.cone.inner(part) for b, part in parts)
            return self._whole_loss().value(Y) + self.trace * penalty

    def gradient(self, X: ArrayLike) -> FloatArray:
        """Gradient of the objective at X, shape (n, n)."""
        if isinstance(self.blocks[0], StreamedBlock):
            return self.dense().gradient(X)
        _, G = self._whole_loss().value_and_gradient(self.matrix(X))
        for b in self._penalised():
            square = np.ix_(b.nodes, b.nodes)
            G[square] = b.cone.add_penalty(G[square], self.trace)
        return G

    def with_trace(self, trace: float | Literal["auto"]) -> SymmetricProblem:
        """Return the same problem with another trace weight."""
        metric = self.metric if self.metric_name == "own" else self.metric_name
        return _assemble(self.A, self.loss_name, self.cone_name, metric, trace, self.diagonal)

    def _penalised(self) -> tuple[Block[Cone], ...]:
        return self.blocks if self.trace else ()

    def _whole_loss(self) -> Loss:
        first = self.blocks[0]
        if first.size == self.size:
            loss: Loss = first.loss
            return loss
        return LOSSES[self.loss_name](self.A, self.ignore_diagonal)


def symmetric(
    A: Any,
    loss: str = "kl",
    cone: str = "conditional",
    metric: str | ArrayLike = "degree",
    trace: float | Literal["auto"] = 0.0,
    diagonal: str = "fit",
) -> SymmetricProblem:
    """State the convex restriction of symmetric NMF.

    ``min loss(A, exp(X)) + trace <N, X>`` over X in the cone: every such ``exp(X)`` (entrywise) is completely
    positive, so it factors as ``UU'`` with ``U >= 0``. ``N = S P S`` with ``S = diag(metric)`` and P the projector
    on the directions that the cone constrains; for the psd cone in the uniform metric ``<N, X>`` is the trace
    of X (docs/mathematics.md).

    Parameters
    ----------
    A : array-like or scipy.sparse matrix of shape (n, n)
        Nonnegative and symmetric: an adjacency matrix, a kernel, a table of counts. A networkx graph is given as
        ``networkx.to_scipy_sparse_array(graph)``. All work is done in dense float64.
    loss : {"kl", "mse", "mse-paper"}
        ``"kl"``: ``sum A log(A/E) - A + E`` over all entries, with ``E = exp(X)``. ``"mse"``: ``sum (E - A)^2`` (no
        half), continued by its tangent where ``E < A/2``, which makes it convex. ``"mse-paper"``: the same under the
        paper's constraint ``E >= A/2``.
    cone : {"conditional", "psd"}
        ``X = v1' + 1v' + WW'`` (free node effects; right for real data), or the paper's ``X = WW'``.
    metric : {"degree", "uniform"} or array-like of shape (n,)
        Weights s of the steps and of the penalty: ``s_i^2 = (d_i + mean d) / sqrt(sum(d_j + mean d))`` with the row
        sums d, or ones (the paper's).
    trace : float or "auto"
        Weight of the penalty. "auto" takes the edge of the noise spectrum, so that only structure that noise cannot
        explain enters X; it assumes independent entries whose variance is proportional to their mean, is known
        for KL on the conditional cone only, and is 0 for data without noise.
    diagonal : {"fit", "ignore"}
        Whether the diagonal of A counts. Ignoring it needs ``trace > 0``, and on the conditional cone a graph
        that is not a star.

    Returns
    -------
    SymmetricProblem

    Examples
    --------
    >>> import cvxnmf
    >>> A, labels = cvxnmf.block_graph(40, 0.2, 0.8)
    >>> problem = cvxnmf.symmetric(A, trace="auto")
    >>> solution = cvxnmf.solve(problem)
    >>> solution.status.name, solution.rank
    ('OPTIMAL', 1)
    """
    validation.choice("loss", loss, LOSSES)
    validation.choice("cone", cone, CONES)
    validation.choice("diagonal", diagonal, ("fit", "ignore"))
    if isinstance(metric, str):
        validation.choice("metric", metric, ("degree", "uniform"))
    keep_sparse = sp.issparse(A) and A.ndim == 2 and A.shape[0] >= STREAMED_FROM
    checked = validation.sparse_symmetric_matrix(A) if keep_sparse else validation.symmetric_matrix(A)
    validation.magnitude(checked, loss)
    if diagonal == "ignore":
        checked = validation.filled(checked)
        np.fill_diagonal(checked, 0.0)
        if not checked.any():
            validation.refuse("A has no entries off the diagonal, so nothing is left to fit; use diagonal='fit'.")
    weights = metric if isinstance(metric, str) else validation.metric_vector(metric, checked.shape[0])
    return _assemble(checked, loss, cone, weights, trace, diagonal)


def _assemble(
    A: Any, loss: str, cone: str, metric: str | FloatArray, trace: float | Literal["auto"], diagonal: str, streamed: bool = True
) -> SymmetricProblem:
    """Build a problem from checked data: metric, trace and independent blocks."""
    free_effects = CONES[cone].free_effects
    degrees = np.asarray(A.sum(axis=1)).ravel()
    kept = np.flatnonzero(degrees) if free_effects else np.arange(len(degrees))
    s = np.zeros(len(degrees))
    s[kept] = _metric(degrees, kept, metric)
    if isinstance(trace, str):
        _refuse_auto(trace, loss, cone)
        weight = noise_level(_part(A, kept), s[kept]).edge
    else:
        weight = validation.penalty_weight(trace, s)
    if diagonal == "ignore":
        _refuse_unbounded(A, weight, free_effects)
    blocks: tuple[Any, ...]
    if streamed and loss == "kl" and free_effects and diagonal == "fit" and weight and _worth_streaming(A, kept):
        blocks = (StreamedBlock(kept, sp.csr_array(_part(A, kept)), CONES[cone](s[kept]), weight),)
    else:
        A = validation.filled(A)
        whole = [kept] if weight or not free_effects else _components(A, kept)
        blocks = tuple(_block(A, nodes, loss, cone, s, weight, diagonal) for nodes in whole)
    for array in (A.data if sp.issparse(A) else A, s):
        array.flags.writeable = False  # a certificate is about these very numbers
    return SymmetricProblem(A, loss, cone, diagonal, weight, metric if isinstance(metric, str) else "own", s, blocks)


def _worth_streaming(A: Any, kept: Index) -> bool:
    """Whether products with the model beat dense matrices: many nodes, and not too many entries."""
    entries = int(A.nnz if sp.issparse(A) else np.count_nonzero(A))
    return len(kept) >= STREAMED_FROM and entries <= STREAMED_DENSITY * len(kept) ** 2


def _block(A: FloatArray, nodes: Index, loss: str, cone: str, s: FloatArray, trace: float, diagonal: str) -> Block[Cone]:
    data = _part(A, nodes)
    lower = None
    if loss == "mse-paper":
        with np.errstate(divide="ignore"):
            lower = np.log(data) - LOG_2
        if diagonal == "ignore":
            np.fill_diagonal(lower, -np.inf)
    return Block(nodes, LOSSES[loss](data, diagonal == "ignore"), CONES[cone](s[nodes]), trace, lower)


def _part(A: Any, nodes: Index) -> Any:
    """Rows and columns `nodes` of A, A itself when that is all of it."""
    return A if len(nodes) == A.shape[0] else A[nodes][:, nodes]


def _metric(degrees: FloatArray, kept: Index, metric: str | FloatArray) -> FloatArray:
    """The vector s on the nodes that carry data."""
    if not isinstance(metric, str):
        return metric[kept]
    if metric == "uniform":
        return np.ones(len(kept))
    return degree_metric(degrees[kept])


def _components(A: FloatArray, kept: Index) -> list[Index]:
    """Connected components: without a penalty X is -inf between them, so they are solved apart."""
    count, labels = connected_components(sp.csr_array(_part(A, kept)), directed=False)
    return [kept[labels == c] for c in range(count)]


def _refuse_auto(trace: str, loss: str, cone: str) -> None:
    if trace != "auto":
        validation.refuse(f"trace must be 'auto' or a number of at least 0, not {trace!r}.")
    if loss != "kl" or cone != "conditional":
        validation.refuse(
            "trace='auto' is known for loss='kl' on cone='conditional' only; give trace as a number for this problem."
        )


def _refuse_unbounded(A: FloatArray, trace: float, free_effects: bool) -> None:
    """Refuse problems without a minimiser when the diagonal is free."""
    if trace == 0:
        validation.refuse(
            "diagonal='ignore' needs trace > 0, else the free diagonal makes any fit possible; set trace or diagonal='fit'."
        )
    if free_effects:
        hub = int(np.argmax(np.count_nonzero(A, axis=1)))
        rest = np.delete(np.arange(len(A)), hub)
        if not A[np.ix_(rest, rest)].any():
            validation.refuse(
                f"diagonal='ignore' on the conditional cone has no minimiser for a star (every edge touches node {hub}); "
                "use diagonal='fit' or cone='psd'."
            )
