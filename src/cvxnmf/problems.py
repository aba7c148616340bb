"""The convex problems, each written as its equation.

minimise   loss(A, exp_H(X)) + trace <N, X>     over X in the cone          (docs/mathematics.md)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from cvxnmf import spectra, validation
from cvxnmf.cones import CONES, Cone
from cvxnmf.losses import LOG_2, LOSSES, Loss
from cvxnmf.results import FloatArray, Point

Index = NDArray[np.intp]

#: Entries of X beyond this size are cut off before X is projected or certified; their exp is 0 or infinite anyway.
LOWEST_LOG = -1e6


@dataclass(frozen=True, eq=False)
class Block:
    """One connected piece of a problem without empty rows: what solvers and certificates see.

    Attributes
    ----------
    nodes : ndarray of int
        Rows of the whole matrix that this piece covers.
    lower : ndarray or None
        Entrywise lower limit of X (``log(A/2)`` for the paper's squared error).
    """

    nodes: Index
    loss: Loss
    cone: Cone
    trace: float
    lower: FloatArray | None = None

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    def objective(self, point: Point, X: FloatArray | None = None) -> float:
        """Loss plus penalty at a point of the cone."""
        return self.loss.value(point.dense() if X is None else X) + self.trace * self.cone.penalty(point)

    def start(self) -> Point:
        """The model without positions: ``E = dd'/2m`` where effects are free, ``E = 1`` elsewhere."""
        n = self.size
        if not self.cone.free_effects:
            return Point(np.zeros(n), np.zeros((n, 0)))
        degrees = self.loss.A.sum(axis=1)
        return Point(np.log(degrees) - 0.5 * np.log(degrees.sum()), np.zeros((n, 0)))

    @cached_property
    def average_curvature(self) -> float:
        """Mean curvature of the loss in the metric, at a model that is nowhere below the data."""
        with np.errstate(divide="ignore"):
            X = np.maximum(self.start().dense(), np.log(self.loss.A))
        return float(self.loss.curvature(X).sum() / np.sum(self.cone.s**2) ** 2)

    def best_start(self, given: Point | FloatArray | None = None) -> Point:
        """The best of the start above, the user's, and ``log A`` projected on the cone where A has no zero."""
        candidates = [self.start()]
        if isinstance(given, Point) and (self.cone.free_effects or not given.v.any()):
            candidates.append(given)
        elif given is not None:
            X = given.dense() if isinstance(given, Point) else given
            candidates.append(self.cone.project(np.clip(X, LOWEST_LOG, -LOWEST_LOG)))
        if self.loss.A.min() > 0:
            candidates.append(self.cone.project(np.log(self.loss.A)))
        values = [self.objective(point) for point in candidates]
        return candidates[int(np.argmin([value if np.isfinite(value) else np.inf for value in values]))]

    def restore(self, X: FloatArray) -> tuple[FloatArray, bool]:
        """Return the nearest admissible matrix and whether X lay outside beyond rounding."""
        if X.min() < LOWEST_LOG or X.max() > -LOWEST_LOG:
            return self.restore(np.clip(X, LOWEST_LOG, -LOWEST_LOG))[0], True
        tolerance = 8 * float(np.finfo(np.float64).eps) * len(X) * max(1.0, float(np.abs(X).max()))
        restored = not self.cone.contains(X, tolerance)
        if restored:
            X = self.cone.project(X).dense()
        lift = self.lift(X)
        return X + lift, restored or lift > tolerance

    def lifted(self, point: Point) -> Point:
        """Return the point raised by a constant until it respects the lower limit, if there is one."""
        t = self.lift(point.dense()) if self.lower is not None else 0.0
        if t == 0.0:
            return point
        if self.cone.free_effects:
            return Point(point.v + 0.5 * t, point.W)
        return Point(point.v, np.column_stack([point.W, np.full(self.size, np.sqrt(t))]))

    def lift(self, X: FloatArray) -> float:
        """The least t >= 0 for which ``X + t 11'`` respects the lower limit, if there is one."""
        return 0.0 if self.lower is None else max(0.0, float((self.lower - X).max()))


@dataclass(frozen=True, eq=False)
class Problem:
    """A symmetric convex problem, made by :func:`symmetric`.

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
    blocks: tuple[Block, ...] = field(repr=False)

    @property
    def size(self) -> int:
        """Number of rows of A."""
        return len(self.A)

    @property
    def kept(self) -> Index:
        """Nodes that carry data, in increasing order."""
        return np.sort(np.concatenate([block.nodes for block in self.blocks]))

    @property
    def statement(self) -> dict[str, Any]:
        """The problem in the words of a certificate."""
        names = {"loss": self.loss_name, "cone": self.cone_name, "diagonal": self.diagonal}
        return names | {"trace": self.trace, "metric": self.metric_name}

    @property
    def ignore_diagonal(self) -> bool:
        """Whether diagonal entries have weight zero."""
        return self.diagonal == "ignore"

    def value(self, X: ArrayLike) -> float:
        """Objective at X, shape (n, n): loss plus ``trace <N, X>``.

        X need not lie in the cone; ``-inf`` entries stand for ``exp(X) = 0``, and under a penalty have an infinite value.
        """
        Y = validation.log_matrix(X, self.size)
        parts = [(b, Y[np.ix_(b.nodes, b.nodes)]) for b in self._penalised()]
        if not all(np.isfinite(part).all() for _, part in parts):
            return float("inf")  # a limit that the penalty does not allow
        with np.errstate(over="ignore", invalid="ignore"):
            penalty = sum(b.cone.inner(part) for b, part in parts)
            return self._whole_loss().value(Y) + self.trace * penalty

    def gradient(self, X: ArrayLike) -> FloatArray:
        """Gradient of the objective at X, shape (n, n)."""
        _, G = self._whole_loss().value_and_gradient(validation.log_matrix(X, self.size))
        for b in self._penalised():
            square = np.ix_(b.nodes, b.nodes)
            G[square] = b.cone.add_penalty(G[square], self.trace)
        return G

    def with_trace(self, trace: float | Literal["auto"]) -> Problem:
        """Return the same problem with another trace weight."""
        metric = self.metric if self.metric_name == "own" else self.metric_name
        return _assemble(self.A, self.loss_name, self.cone_name, metric, trace, self.diagonal)

    def _penalised(self) -> tuple[Block, ...]:
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
) -> Problem:
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
    Problem

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
) -> Problem:
    """Build a problem from checked data: metric, trace and independent blocks."""
    free_effects = CONES[cone].free_effects
    kept = np.flatnonzero(A.any(axis=1)) if free_effects else np.arange(len(A))
    s = np.zeros(len(A))
    s[kept] = _metric(A, kept, metric)
    if isinstance(trace, str):
        _refuse_auto(trace, loss, cone)
        weight = _noise_trace(_part(A, kept), s[kept])
    else:
        weight = validation.penalty_weight(trace, s)
    if diagonal == "ignore":
        _refuse_unbounded(A, weight, free_effects)
    whole = [kept] if weight or not free_effects else _components(A, kept)
    blocks = tuple(_block(A, nodes, loss, cone, s, weight, diagonal) for nodes in whole)
    for array in (A, s):
        array.flags.writeable = False  # a certificate is about these very numbers
    return Problem(A, loss, cone, diagonal, weight, metric if isinstance(metric, str) else "own", s, blocks)


def _block(A: FloatArray, nodes: Index, loss: str, cone: str, s: FloatArray, trace: float, diagonal: str) -> Block:
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
    degrees = A.sum(axis=1)[kept]
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


def _noise_trace(A: FloatArray, s: FloatArray) -> float:
    """The noise edge of docs/mathematics.md, raised by the factor ``1 + n^(-2/3)``."""
    degrees = A.sum(axis=1)
    model = np.outer(degrees, degrees / degrees.sum())
    t = s * s
    top = float(A.max())
    if np.all((A == 0) | (A == top)):
        variance = top * model * np.maximum(0.0, 1.0 - model / top)
        edge = spectra.noise_edge(_scaled_rows(variance, t))
    else:
        variance = _scaled_rows(model, t)
        unit_edge = spectra.noise_edge(variance)
        residual = (A - model) / s[:, None] / s[None, :]
        edge = unit_edge * np.sqrt(spectra.dispersion(residual, float(variance.sum()), unit_edge))
    return float(edge * (1.0 + len(A) ** (-2.0 / 3.0)))


def _scaled_rows(variance: FloatArray, t: FloatArray) -> FloatArray:
    """Row sums of ``variance_ij / (t_i t_j)``."""
    return np.asarray((variance @ (1.0 / t)) / t)
