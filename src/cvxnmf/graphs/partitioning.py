"""Partition a graph: the convex model, its clusters, and what is proved about both."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from scipy.sparse.csgraph import connected_components

from cvxnmf import spectra, validation
from cvxnmf.factorization import normalised_factors
from cvxnmf.graphs.adapters import named_graph
from cvxnmf.graphs.clusters import clustered
from cvxnmf.graphs.quality import modularity, performance
from cvxnmf.problems import SymmetricProblem, symmetric
from cvxnmf.problems.square import Noise, degree_metric, noise
from cvxnmf.results import Factorization, FloatArray, Interrupted, Iterate, Partition, Solution
from cvxnmf.solvers import solve

#: Where fewer than k - 1 directions stand out of the noise, the penalty is this share of the last one's eigenvalue.
ADMITTING_SHARE = 0.9
#: Eigenvalues below this share of what the data could have are rounding.
ROUNDING = 1e-9
#: If more than this share of all directions stands out of the noise, there is none to speak of.
NOISELESS_SHARE = 0.25
#: Eigenvalues that are kept for looking at, beyond those above the noise.
SHOWN = 20


def partition(
    graph: Any,
    n_clusters: int | None = None,
    trace: float | Literal["auto"] = "auto",
    *,
    weight: str | None = "weight",
    loss: str = "kl",
    cone: str = "conditional",
    metric: str = "degree",
    method: str = "auto",
    refine: bool = True,
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callable[[Iterate], Any] | None = None,
) -> Partition:
    """Divide the nodes of a graph into clusters: the same ones every time, with a proof of how well their model fits.

    The convex problem :func:`symmetric` is solved for the adjacency matrix; its positions W are divided into clusters, which
    the likelihood of a degree-corrected model then improves (docs/mathematics.md).

    Parameters
    ----------
    graph : networkx or igraph graph, scipy.sparse matrix, array-like or data frame
        An undirected graph with weights of at least 0, or its adjacency matrix. A data frame is an adjacency matrix if rows and
        columns have the same names, else a list of edges: two columns of names and perhaps one of weights. A directed graph is
        made undirected with a warning: joined where either direction is, weights averaged.
    n_clusters : int, optional
        Number of clusters, each of which gets at least one node. Left out, it is one more than the number of directions in which
        the graph differs from noise (eigenvalues of the modularity matrix above the noise edge), and at least the number of
        connected components that are not trees. Of smooth similarities, where nothing looks like noise, the widest gap of the
        spectrum decides.
    trace : float or "auto"
        Weight of the penalty of the convex problem. "auto" is the noise edge; if direction ``n_clusters - 1`` does not stand out
        of the noise, it is 0.9 times the eigenvalue of that direction, so that as many directions enter.
    weight : str or None
        Edge attribute with the weights, where there is one; None counts every edge as 1.
    loss, cone, metric
        Terms of the convex problem, see :func:`symmetric`. The paper's are ``loss="kl"`` or "mse", ``cone="psd"``,
        ``metric="uniform"`` with ``trace=0`` (and ``method="projected-gradient"``).
    method, tol, max_iter, callback
        See :func:`solve`.
    refine : bool
        Whether clusters are improved by the likelihood; without, a node goes to the nearest centre of its position.

    Returns
    -------
    Partition

    Raises
    ------
    Interrupted
        On Ctrl-C; a KeyboardInterrupt whose `solution` is the Partition that the best point so far gives.

    Notes
    -----
    Nodes without edges get shares in proportion to the sizes of the clusters, and the label of the largest. If the graph has no
    direction that is denser than expected (complete bipartite graphs), nodes are divided in the order of their degrees and then
    moved one by one while that raises the modularity.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(40, 0.2, 0.8)
    >>> found = cvxnmf.partition(A)
    >>> found.n_clusters, found.certificate.relative_gap < 1e-4
    (2, True)
    """
    nodes, A, note = named_graph(graph, weight)
    if note:
        warnings.warn(note, UserWarning, stacklevel=2)
    n = len(nodes)
    if not A.nnz:
        validation.refuse("The graph has no edges, so there is nothing to partition.")
    k = None if n_clusters is None else validation.clusters(n_clusters, n)
    terms = {"loss": loss, "cone": cone, "metric": metric}
    problem = _stated(A, 0.0 if isinstance(trace, str) else trace, terms)
    with spectra.single_thread():
        level, spectrum, directions = _noise(A, k)
    found = 1 + int(np.count_nonzero(spectrum > level.edge))
    k = min(max(found, _separate_parts(A)), n) if k is None else k
    if isinstance(trace, str):
        problem = problem.with_trace(_admitting(trace, level.edge, spectrum, k, terms))
    asked = n_clusters is not None
    describe = partial(_described, nodes, A, spectrum, directions, level, k, asked, found - 1)
    try:
        solution = solve(problem, method, tol, max_iter, callback)
    except Interrupted as stopped:
        raise Interrupted(describe(cast(Solution, stopped.solution), refine, hasty=True)) from None
    try:
        return describe(solution, refine)
    except KeyboardInterrupt:
        raise Interrupted(describe(solution, refine, hasty=True)) from None


def _stated(A: Any, trace: float, terms: dict[str, str]) -> SymmetricProblem:
    if A.shape[0] == 1:
        validation.refuse("The graph has a single node; there is nothing to partition.")
    return symmetric(A, trace=trace, **terms)


def _noise(A: Any, k: int | None) -> tuple[Noise, FloatArray, FloatArray]:
    """The noise of the graph, never below rounding, and leading eigenpairs of its modularity matrix in the degree metric.

    Vectors are those of positions, ``S^-1`` times eigenvectors, weighted by the roots of their eigenvalues.
    """
    kept = np.flatnonzero(A.sum(axis=1))
    part = A[kept][:, kept].tocsr()
    degrees = np.asarray(part.sum(axis=1)).ravel()
    s = degree_metric(degrees)
    level, count = noise(part, s), (0 if k is None else k) + SHOWN
    level = level._replace(edge=max(level.edge, ROUNDING * float(np.max(degrees / (s * s)))))
    while True:
        spectrum, vectors = spectra.modularity_pairs(part, s, min(count, len(kept)))
        if count >= len(kept) or spectrum[-1] <= level.edge:
            directions = np.zeros((A.shape[0], len(spectrum)))
            directions[kept] = vectors / s[:, None] * np.sqrt(np.maximum(spectrum, 0.0))
            return _plausible(level, spectrum, len(kept)), spectrum, directions
        count *= 2


def _plausible(level: Noise, spectrum: FloatArray, n: int) -> Noise:
    """The noise, or where almost nothing looks like it (smooth similarities) what lies below the widest gap of the spectrum."""
    above = spectrum[spectrum > level.edge]
    if len(above) <= NOISELESS_SHARE * n or len(above) < 3:
        return level
    leading = above[: max(3, int(np.sqrt(n)))]
    gap = int(np.argmax(leading[:-1] / leading[1:]))
    edge = float(np.sqrt(leading[gap] * leading[gap + 1]))
    return level._replace(edge=edge, dispersion=(edge / level.unit_edge) ** 2)


def _separate_parts(A: Any) -> int:
    """Number of connected components with a cycle: noise leaves trees apart, but hardly ever more than that."""
    count, component = connected_components(A, directed=False)
    nodes = np.bincount(component, minlength=count)
    entries = A.tocoo()
    upper = entries.row < entries.col
    return int(np.count_nonzero(np.bincount(component[entries.row[upper]], minlength=count) >= np.maximum(nodes, 3)))


def _admitting(trace: str, edge: float, spectrum: FloatArray, k: int, terms: dict[str, str]) -> float:
    """The penalty that "auto" stands for: the noise edge, lowered to let k - 1 directions in where they are positive."""
    if trace != "auto":
        validation.refuse(f"trace must be 'auto' or a number of at least 0, not {trace!r}.")
    if terms != {"loss": "kl", "cone": "conditional", "metric": "degree"}:
        validation.refuse(
            "trace='auto' is known for loss='kl', cone='conditional' and metric='degree' only; give trace as a number."
        )
    wanted = spectrum[spectrum > ROUNDING * max(edge, float(np.abs(spectrum).max()))][: k - 1]
    return edge if not len(wanted) or wanted[-1] > edge else float(ADMITTING_SHARE * wanted[-1])


def _positions(solution: Solution, directions: FloatArray, k: int) -> FloatArray:
    """Positions around their mean, the heaviest directions only; separate components apart.

    Where the solution has none, because what they add is below its tolerance, they are those that would enter first: the
    leading directions of the modularity matrix.
    """
    if solution.rank == 0:
        return directions[:, : k - 1]
    present = np.isfinite(solution.v)
    W = np.where(present[:, None], solution.W, 0.0)
    W = W - np.where(present[:, None], W[present].mean(axis=0), 0.0)
    if solution.groups is None:
        _, weights, directions = np.linalg.svd(W, full_matrices=False)
        heavy = int(np.count_nonzero(weights > 1e-9 * max(weights.max(initial=0.0), 1e-9)))
        return np.asarray(W @ directions[: min(heavy, 2 * k)].T)
    apart = 2.0 * (1.0 + np.abs(W).max(initial=0.0))
    return np.column_stack([W, apart * (solution.groups[:, None] == np.unique(solution.groups)[None, :])])


def _described(
    nodes: tuple[Any, ...],
    A: Any,
    spectrum: FloatArray,
    directions: FloatArray,
    level: Noise,
    k: int,
    asked: bool,
    above_noise: int,
    solution: Solution,
    refine: bool,
    hasty: bool = False,
) -> Partition:
    """The partition that a solution gives, with its measures; clusters that nobody asked for and that stay empty are dropped."""
    with spectra.single_thread():
        while True:
            clusters = clustered(A, _positions(solution, directions, k), k, level.dispersion, above_noise, refine, hasty)
            if asked or not clusters.filled:
                break
            k -= clusters.filled
    labels, memberships, _ = clusters
    return Partition(
        nodes=nodes,
        labels=labels,
        memberships=memberships,
        performance=performance(A, labels),
        off_diagonal_performance=performance(A, labels, diagonal=False),
        modularity=modularity(A, labels),
        order=np.lexsort((-memberships[np.arange(len(labels)), labels], labels)).astype(np.intp),
        solution=solution,
        A=A,
        spectrum=spectrum,
        noise_edge=level.edge,
        factors=partial(factors_of, A, memberships),
    )


def factors_of(A: Any, memberships: FloatArray) -> Factorization:
    """Factors ``A ≈ UU'`` with a column per cluster, started from the memberships at the best scale of each."""
    degrees = np.asarray(A.sum(axis=1)).ravel()
    inside = np.sum((A @ memberships) * memberships, axis=0) / np.maximum((degrees @ memberships) ** 2, 1e-300)
    inside = np.maximum(inside, 1.0 / degrees.sum())  # a cluster without edges starts as if at random
    return normalised_factors(A, memberships.shape[1], degrees[:, None] * memberships * np.sqrt(inside))
