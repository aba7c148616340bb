"""The symmetric problem: minimise ``loss(A, exp(X)) + trace <N, X>`` over X in a cone (docs/mathematics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from cvxnmf import spectra, validation
from cvxnmf.cones import CONES, Cone
from cvxnmf.losses import LOG_2, LOSSES, Loss
from cvxnmf.problems.base import Index, Problem
from cvxnmf.problems.block import Block
from cvxnmf.results import FloatArray, Point


@dataclass(frozen=True, eq=False)
class SymmetricProblem(Problem):
    """The problem made by :func:`symmetric`.

    Attributes
    ----------
    A : ndarray of shape (n, n)
        The checked data (its diagonal is zero when the diagonal is ignored).
    trace : float
        Weight of the penalty, resolved to its number.
    metric : ndarray of shape (n,)
        The vector s; 0 for nodes that carry no data and were set aside.
    blocks : tuple of Block
        The independent pieces to solve.
    """

    A: FloatArray = field(repr=False)
    loss_name: str
    cone_name: str
    diagonal: str
    trace: float
    metric_name: str
    metric: FloatArray = field(repr=False)
    blocks: tuple[Block[Cone], ...] = field(repr=False)

    @property
    def size(self) -> int:
        """Number of rows of A."""
        return len(self.A)

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
        Y = self.matrix(X)
        parts = [(b, Y[np.ix_(b.nodes, b.nodes)]) for b in self._penalised()]
        if not all(np.isfinite(part).all() for _, part in parts):
            return float("inf")  # a limit that the penalty does not allow
        with np.errstate(over="ignore", invalid="ignore"):
            penalty = sum(b.cone.inner(part) for b, part in parts)
            return self._whole_loss().value(Y) + self.trace * penalty

    def gradient(self, X: ArrayLike) -> FloatArray:
        """Gradient of the objective at X, shape (n, n)."""
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
            return first.loss
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
    checked = validation.symmetric_matrix(A)
    validation.magnitude(checked, loss)
    if diagonal == "ignore":
        np.fill_diagonal(checked, 0.0)
        if not checked.any():
            validation.refuse("A has no entries off the diagonal, so nothing is left to fit; use diagonal='fit'.")
    weights = metric if isinstance(metric, str) else validation.metric_vector(metric, len(checked))
    return _assemble(checked, loss, cone, weights, trace, diagonal)


def _assemble(
    A: FloatArray, loss: str, cone: str, metric: str | FloatArray, trace: float | Literal["auto"], diagonal: str
) -> SymmetricProblem:
    """Build a problem from checked data: metric, trace and independent blocks."""
    free_effects = CONES[cone].free_effects
    kept = np.flatnonzero(A.any(axis=1)) if free_effects else np.arange(len(A))
    s = np.zeros(len(A))
    s[kept] = _metric(A, kept, metric)
    if isinstance(trace, str):
        _refuse_auto(trace, loss, cone)
        weight = noise(_part(A, kept), s[kept]).edge
    else:
        weight = validation.penalty_weight(trace, s)
    if diagonal == "ignore":
        _refuse_unbounded(A, weight, free_effects)
    whole = [kept] if weight or not free_effects else _components(A, kept)
    blocks = tuple(_block(A, nodes, loss, cone, s, weight, diagonal) for nodes in whole)
    for array in (A, s):
        array.flags.writeable = False  # a certificate is about these very numbers
    return SymmetricProblem(A, loss, cone, diagonal, weight, metric if isinstance(metric, str) else "own", s, blocks)


def _block(A: FloatArray, nodes: Index, loss: str, cone: str, s: FloatArray, trace: float, diagonal: str) -> Block[Cone]:
    data = _part(A, nodes)
    lower = None
    if loss == "mse-paper":
        with np.errstate(divide="ignore"):
            lower = np.log(data) - LOG_2
        if diagonal == "ignore":
            np.fill_diagonal(lower, -np.inf)
    return Block(nodes, LOSSES[loss](data, diagonal == "ignore"), CONES[cone](s[nodes]), trace, lower)


def _part(A: FloatArray, nodes: Index) -> FloatArray:
    """Rows and columns `nodes` of A, A itself when that is all of it."""
    return A if len(nodes) == len(A) else A[np.ix_(nodes, nodes)]


def _metric(A: FloatArray, kept: Index, metric: str | FloatArray) -> FloatArray:
    """The vector s on the nodes that carry data."""
    if not isinstance(metric, str):
        return metric[kept]
    if metric == "uniform":
        return np.ones(len(kept))
    return degree_metric(A.sum(axis=1)[kept])


def degree_metric(degrees: FloatArray) -> FloatArray:
    """``s_i^2 = (d_i + mean d) / sqrt(sum(d_j + mean d))``."""
    raised = degrees + degrees.mean()
    return np.asarray(np.sqrt(raised / np.sqrt(raised.sum())))


def _components(A: FloatArray, kept: Index) -> list[Index]:
    """Connected components: without a penalty X is -inf between them, so they are solved apart."""
    count, labels = connected_components(csr_array(_part(A, kept)), directed=False)
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


class Noise(NamedTuple):
    """What noise alone does to the spectrum of the modularity matrix in the metric."""

    edge: float
    dispersion: float


def noise(A: FloatArray, s: FloatArray) -> Noise:
    """The noise edge of docs/mathematics.md, raised by the factor ``1 + n^(-2/3)``, and the variance per unit of mean."""
    degrees = A.sum(axis=1)
    model = np.outer(degrees, degrees / degrees.sum())
    t = s * s
    top = float(A.max())
    if np.all((A == 0) | (A == top)):
        variance = top * model * np.maximum(0.0, 1.0 - model / top)
        edge, dispersion = spectra.noise_edge(_scaled_rows(variance, t)), float(variance.sum() / model.sum())
    else:
        variance = _scaled_rows(model, t)
        unit_edge = spectra.noise_edge(variance)
        residual = (A - model) / s[:, None] / s[None, :]
        dispersion = spectra.dispersion(residual, float(variance.sum()), unit_edge)
        edge = unit_edge * np.sqrt(dispersion)
    return Noise(float(edge * (1.0 + len(A) ** (-2.0 / 3.0))), dispersion)


def _scaled_rows(variance: FloatArray, t: FloatArray) -> FloatArray:
    """Row sums of ``variance_ij / (t_i t_j)``."""
    return np.asarray((variance @ (1.0 / t)) / t)
