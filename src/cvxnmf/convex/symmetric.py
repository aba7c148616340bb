"""The symmetric problem: minimise ``loss(A, exp(X)) + trace <N, X>`` over X in a cone (docs/mathematics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from cvxnmf import validation
from cvxnmf.certificates import CertificateError, SymmetricStatement, metric_digest
from cvxnmf.convex.component import Index
from cvxnmf.convex.cones import CONES
from cvxnmf.convex.dual import Dual
from cvxnmf.convex.losses import LOSSES, Loss
from cvxnmf.convex.matrix_free import MatrixFreeComponent
from cvxnmf.convex.noise import degree_metric, noise_level
from cvxnmf.convex.problem import Problem, refuse_auto
from cvxnmf.convex.symmetric_component import LimitedComponent, SymmetricComponent
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Point, Solution
from cvxnmf.typing import MatrixLike

#: From this many nodes on, sparse data stay sparse and the model is not formed.
MATRIX_FREE_FROM = 400
#: Data with a larger share of entries that are not zero are faster dense than by products with the model.
MATRIX_FREE_DENSITY = 0.6


@dataclass(frozen=True, eq=False)
class SymmetricProblem(Problem):
    """The problem made by :func:`symmetric`: one component for every connected component of A, or one for all of it.

    The diagonal of A is zero where it is ignored; the metric is 0 for nodes that carry no data and were set aside.
    """

    statement: SymmetricStatement

    @property
    def size(self) -> int:
        """Number of rows of A in the symmetric problem."""
        return int(self.A.shape[0])

    def dense(self) -> SymmetricProblem:
        """The symmetric problem stated on dense matrices."""
        if not self.matrix_free:
            return self
        return self._restate(_as_dense(self.A), self.trace, matrix_free_from=None)

    def matrix(self, X: Any, name: str = "X") -> FloatArray:
        """Check a symmetric matrix of logarithms as a point of the symmetric problem."""
        return validation.log_matrix(X, self.size, name)

    def starting_point(self, start: Any) -> Point | FloatArray:
        """Check a warm start of the symmetric problem: a solution, a pair (v, W) or a matrix X."""
        factors = validation.factors(start, self.size)
        return self.matrix(start, "start") if factors is None else Point(*factors)

    def restrict_solution(self, solution: Solution) -> list[Point] | None:
        """A solution's factors on every component; None if they are not admissible, or separate nodes of one component."""
        whole, groups = solution.point, solution.groups
        if not isinstance(whole, Point) or len(whole.v) != self.size:
            validation.refuse(f"X is a Solution of another problem; give one of a symmetric problem of {self.size} nodes.")
        points = [whole.restrict_to(component.nodes) for component in self.components]
        apart = groups is not None and any(np.ptp(groups[component.nodes]) for component in self.components)
        admitted = all(component.admits(point) for component, point in zip(self.components, points, strict=True))
        return points if admitted and not apart else None

    def join_points(self, points: Sequence[Point]) -> tuple[Point, Index | None]:
        """Effects and positions of all components of a symmetric problem; ``-inf`` effects where there are no data."""
        v, W, numbers = self._join_factors(self.size, points)
        return Point(v, W), numbers

    def join_duals(self, duals: Sequence[Dual | None]) -> Dual | None:
        """The dual points of all components of a symmetric problem as one; None if the check does not accept it."""
        if len(duals) == 1:
            return duals[0]
        kept = self.kept
        Z = np.zeros((len(kept), len(kept)))
        for component, dual in zip(self.components, duals, strict=True):
            here = np.searchsorted(kept, component.nodes)
            always = np.diag(component.loss.floor().sum(axis=1))  # Y is a Laplacian plus the penalty
            Z[np.ix_(here, here)] = always if dual is None else dual.witness["Z"]
        witness = {"Z": Z, "metric": self.metric[kept]}
        try:
            proof = self.statement.prove(self.A, "dual", witness)
        except CertificateError:  # a component without a dual point may fail within rounding
            return None
        return Dual(witness, proof.bound, proof.rigorous)

    @property
    def kept(self) -> Index:
        """Nodes of the symmetric problem that carry data, in increasing order."""
        return np.sort(np.concatenate([component.nodes for component in self.components]))

    def value(self, X: ArrayLike) -> float:
        """Objective at X, shape (n, n): loss plus ``trace <N, X>``.

        X need not lie in the cone; ``-inf`` entries stand for ``exp(X) = 0``, and under a penalty have an infinite value.
        """
        return self._objective(self._loss, self.matrix(X))

    def gradient(self, X: ArrayLike) -> FloatArray:
        """Gradient of the symmetric problem's objective at X, shape (n, n)."""
        _, G = self._loss.value_and_gradient(self.matrix(X))
        for component in self.components if self.trace else ():
            G[component.entries] = component.cone.add_penalty(G[component.entries], self.trace)
        return G

    def with_trace(self, trace: float | Literal["auto"]) -> SymmetricProblem:
        """Return the symmetric problem with another trace weight."""
        return self._restate(self.A, trace, MATRIX_FREE_FROM)

    def _restate(self, A: Any, trace: float | Literal["auto"], matrix_free_from: int | None) -> SymmetricProblem:
        terms = self.statement
        metric = self.metric if terms.metric == "own" else terms.metric
        return state_problem(A, terms.loss, terms.cone, metric, trace, terms.diagonal, matrix_free_from)

    @cached_property
    def _loss(self) -> Loss:
        """The loss of the whole X of a symmetric problem, dense."""
        return LOSSES[self.statement.loss](_as_dense(self.A), not self.statement.fits_diagonal)


def symmetric(
    A: MatrixLike,
    loss: str = "kl",
    cone: str = "conditional",
    metric: str | ArrayLike = "degree",
    trace: float | Literal["auto"] = 0.0,
    diagonal: str = "fit",
) -> SymmetricProblem:
    """State the convex restriction of symmetric NMF.

    ``min loss(A, exp(X)) + trace <N, X>`` over X in the cone: every such ``exp(X)`` (entrywise) is completely positive, so it
    factors as ``UU'`` with ``U >= 0``. ``N = S P S`` with ``S = diag(metric)`` and P the projector on the directions that the
    cone constrains; for the psd cone in the uniform metric ``<N, X>`` is the trace of X (docs/mathematics.md).

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
        Whether the diagonal of A counts. Ignoring it needs ``trace > 0``, and on the conditional cone a graph that is not a star.

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
    checked = validation.sparse_symmetric_matrix(A) if _stays_sparse(A) else validation.symmetric_matrix(A)
    validation.magnitude(checked, loss)
    if diagonal == "ignore":
        checked = _as_dense(checked)
        np.fill_diagonal(checked, 0.0)
        if not checked.any():
            validation.refuse("A has no entries off the diagonal, so nothing is left to fit; use diagonal='fit'.")
    weights = metric if isinstance(metric, str) else validation.metric_vector(metric, checked.shape[0])
    return state_problem(checked, loss, cone, weights, trace, diagonal)


def _stays_sparse(A: Any) -> bool:
    """Whether the data of a symmetric problem stay sparse, so that it is solved by matrix-free products."""
    return bool(sp.issparse(A) and A.ndim == 2 and A.shape[0] >= MATRIX_FREE_FROM)


def state_problem(
    A: Any,
    loss: str,
    cone: str,
    metric: str | FloatArray,
    trace: float | Literal["auto"],
    diagonal: str,
    matrix_free_from: int | None = MATRIX_FREE_FROM,
) -> SymmetricProblem:
    """Build a symmetric problem from checked data: metric, trace and independent components.

    Sparse data of at least `matrix_free_from` nodes are one matrix-free component where the problem allows it; None: never.
    """
    free_effects = CONES[cone].free_effects
    degrees = np.asarray(A.sum(axis=1)).ravel()
    kept = np.flatnonzero(degrees) if free_effects else np.arange(len(degrees))
    s = np.zeros(len(degrees))
    s[kept] = _metric(degrees, kept, metric)
    if isinstance(trace, str):
        refuse_auto(trace, LOSSES[loss].noise_known and free_effects, "loss='kl' on cone='conditional'", "of at least 0")
        weight = noise_level(_part(A, kept), s[kept]).edge
    else:
        weight = validation.penalty_weight(trace, s)
    if diagonal == "ignore":
        _refuse_unbounded(A, weight, free_effects)
    name, digest = (metric, None) if isinstance(metric, str) else ("own", metric_digest(s[kept]))
    statement = SymmetricStatement(loss, cone, diagonal, weight, name, digest)
    possible = LOSSES[loss].by_products and free_effects and diagonal == "fit" and weight > 0
    possible = possible and matrix_free_from is not None and len(kept) >= matrix_free_from
    components: tuple[Any, ...]
    if possible and (A.nnz if sp.issparse(A) else np.count_nonzero(A)) <= MATRIX_FREE_DENSITY * len(kept) ** 2:
        components = (MatrixFreeComponent(kept, sp.csr_array(_part(A, kept)), CONES[cone](s[kept]), weight, statement),)
    else:
        A = _as_dense(A)
        parts = [kept] if weight or not free_effects else _connected_components(A, kept)
        components = tuple(_component(A, nodes, s, statement) for nodes in parts)
    for array in (A.data if sp.issparse(A) else A, s):
        array.flags.writeable = False  # a certificate is about these very numbers
    return SymmetricProblem(A, statement, s, components)


def _component(A: FloatArray, nodes: Index, s: FloatArray, statement: SymmetricStatement) -> SymmetricComponent:
    """The dense component of some nodes of a symmetric problem; its metric is cut out of the whole one."""
    loss = LOSSES[statement.loss](_part(A, nodes), not statement.fits_diagonal)
    cone, trace, own = CONES[statement.cone](s[nodes]), statement.trace, replace(statement, metric="own", metric_digest=None)
    kind: type[SymmetricComponent] = LimitedComponent if loss.limited else SymmetricComponent
    return kind(nodes, loss, cone, trace, own)


def _part(A: Any, nodes: Index) -> Any:
    """Rows and columns `nodes` of a symmetric A, A itself when those are all."""
    return A if len(nodes) == A.shape[0] else A[nodes][:, nodes] if sp.issparse(A) else A[np.ix_(nodes, nodes)]


def _metric(degrees: FloatArray, kept: Index, metric: str | FloatArray) -> FloatArray:
    """The metric s of a symmetric problem on the nodes that carry data."""
    if not isinstance(metric, str):
        return metric[kept]
    if metric == "uniform":
        return np.ones(len(kept))
    return degree_metric(degrees[kept])


def _connected_components(A: FloatArray, kept: Index) -> list[Index]:
    """Nodes of the connected components of a symmetric A: without a penalty X is -inf between them, so they are solved apart."""
    count, labels = connected_components(sp.csr_array(_part(A, kept)), directed=False)
    return [kept[labels == c] for c in range(count)]


def _refuse_unbounded(A: FloatArray, trace: float, free_effects: bool) -> None:
    """Refuse symmetric problems without a minimiser when the diagonal is free."""
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


def _as_dense(A: Any) -> FloatArray:
    """Square data of the symmetric problem as a dense matrix, if this machine can hold the work on it."""
    if not sp.issparse(A):
        return np.asarray(A)
    validation.fits_in_memory(A.shape[0])
    return np.asarray(A.toarray())
