"""Partition a graph: the convex model, its clusters, and what is proved about both."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxnmf import validation
from cvxnmf.certificates import Certificate, LabelStatement
from cvxnmf.certificates.pair_objectives import PairObjective
from cvxnmf.convex.coarsening import GROUPS, LARGEST_WHOLE, MOST_DIRECTIONS
from cvxnmf.convex.cones import CONES
from cvxnmf.convex.losses import LOSSES
from cvxnmf.convex.noise import admitting_trace
from cvxnmf.graphs.adapters import named_graph
from cvxnmf.graphs.coarsen import GroupEmbedding
from cvxnmf.graphs.embedding import Embedding, NodeEmbedding
from cvxnmf.graphs.label_bounds.uniqueness import decide_uniqueness
from cvxnmf.graphs.label_bounds.verify import label_statement, prove_labels
from cvxnmf.graphs.multilevel import Labels, best_labels
from cvxnmf.graphs.quality import modularity, performance
from cvxnmf.graphs.refinement import Refinement
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.factorize import normalised_factors
from cvxnmf.results import Factorization, Iterate, Partition, Solution
from cvxnmf.results.status import keep_best

#: Arrays of a number per node and cluster that are held at once.
MEMBERSHIP_ARRAYS = 6
#: The terms for which trace="auto" and groups of nodes are known.
OURS = {"loss": "kl", "cone": "conditional", "metric": "degree"}
#: What is proved about labels of the likelihood.
MODULARITY = LabelStatement("modularity", 1.0)


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
    n_groups: int | Literal["auto"] | None = "auto",
    objective: str = "likelihood",
    resolution: float = 1.0,
    prove: bool = False,
    effort: float = 1.0,
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callable[[Iterate], Any] | None = None,
) -> Partition:
    """Divide the nodes of a graph into clusters: the same ones every time, with a proof of how well their model fits.

    The convex problem :func:`symmetric` is solved for the adjacency matrix; its positions W are divided into clusters, which
    the likelihood of a degree-corrected model then improves (docs/mathematics.md).

    Parameters
    ----------
    graph : networkx or igraph graph, scipy.sparse matrix, array-like, list of tuples or data frame
        An undirected graph with weights of at least 0, its adjacency matrix, or its edges: tuples (u, v) or (u, v, weight), an
        array of whole numbers with two columns, or a data frame with columns "source", "target" and perhaps "weight" (without
        such headings two columns of names and perhaps one of weights). A data frame whose rows and columns have the same names
        is an adjacency matrix. What could be read in several ways is refused. A directed graph is made undirected with a
        warning: joined where either direction is, weights averaged.
    n_clusters : int, optional
        Number of clusters, each of which gets at least one node. Left out, it is one more than the number of directions in which
        the graph differs from noise (eigenvalues of the modularity matrix above the noise edge), and at least the number of
        connected components that are not trees; clusters that then stay empty are dropped. Of smooth similarities, where nothing
        looks like noise, the widest gap of the spectrum decides. Of a graph in groups at most 100 are found.
    trace : float or "auto"
        Weight of the penalty of the convex problem. "auto" is the noise edge; if direction ``n_clusters - 1`` does not stand out
        of the noise, it is 0.9 times the eigenvalue of that direction, so that as many directions enter. Of a graph in groups it
        is not below the eigenvalue of direction ``n_clusters + 1``.
    weight : str or None
        Edge attribute with the weights, where there is one; None counts every edge as 1.
    loss, cone, metric
        Terms of the convex problem, see :func:`symmetric`. The paper's are ``loss="kl"`` or "mse", ``cone="psd"``,
        ``metric="uniform"`` with ``trace=0`` (and ``method="projected-gradient"``).
    method, tol, max_iter, callback
        See :func:`solve`.
    refine : bool
        Whether clusters are improved by the likelihood; without, a node goes to the nearest centre of its position.
    n_groups : int, "auto" or None
        Number of groups of nodes that share a position in the convex model, at least as many as clusters, which makes graphs of
        millions of nodes possible; the certificate then bounds all models with these groups, and the clusters are improved on
        the graph itself. None gives every node a position of its own; "auto" does so for up to 5,000 nodes, and takes 1,000
        groups beyond.
    objective : str
        What the clusters are good at: "likelihood", of a degree-corrected model, or a quality of :func:`verify_labels`:
        "modularity", "cpm" (the constant Potts model) or "performance". For these the clusters of the convex model are the start
        of local moves with refinement and aggregation, their number is found unless `n_clusters` limits it, and memberships are
        0 or 1.
    resolution : float
        Of modularity and the constant Potts model.
    prove : bool
        Whether to prove at once how good the labels are (`label_certificate`), and to take a better partition where the proof
        meets one: on sparse graphs of up to a few hundred nodes the optimum. Without, the proof is made when it is asked for.
    effort : float
        Work for that proof, see :func:`verify_labels`.

    Returns
    -------
    Partition

    Raises
    ------
    Interrupted
        On Ctrl-C once the convex problem is being solved; a KeyboardInterrupt whose `solution` is the Partition that the best
        point so far gives.

    Notes
    -----
    Nodes without edges get memberships in proportion to the sizes of the clusters, and the label of the largest. If the graph
    has no direction that is denser than expected (complete bipartite graphs), nodes are divided in the order of their degrees
    and then moved one by one while that raises the modularity.

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
    _require_edges(A)
    aim = _LabelAim.read(objective, resolution, n_clusters, A, effort, prove, callback)
    asked = None if n_clusters is None else validation.clusters(n_clusters, len(nodes))
    _require_room(len(nodes), asked or 1)
    terms = _convex_terms(loss, cone, metric, trace)
    groups = _number_of_groups(n_groups, A, terms)
    embedding = NodeEmbedding(A, asked) if groups is None else GroupEmbedding(A, asked, max(groups, asked or 0), callback)
    k = _choose_clusters(1 + embedding.above_noise, A, groups) if asked is None else asked
    if isinstance(trace, str):
        most = None if groups is None else asked or MOST_DIRECTIONS
        trace = admitting_trace(embedding.noise.edge, embedding.spectrum, k, most)
    describe = partial(_describe, nodes, A, embedding, k, asked is not None)
    with keep_best(lambda solution: solution and describe(Refinement.QUICK, solution)):
        solution = embedding.solve(
            terms | {"trace": trace}, {"method": method, "tol": tol, "max_iter": max_iter, "callback": callback}
        )
    with keep_best(lambda _: describe(Refinement.QUICK, solution)):
        found = describe(Refinement.LIKELIHOOD if refine else Refinement.NONE, solution)
    return aim.apply(found)


def _require_edges(A: sp.csr_array) -> None:
    """Refuse graphs in which there is nothing to partition."""
    if not A.nnz:
        validation.refuse("The graph has no edges, so there is nothing to partition.")
    validation.magnitude(A, "kl")
    if A.shape[0] == 1:
        validation.refuse("The graph has a single node; there is nothing to partition.")


def _convex_terms(loss: Any, cone: Any, metric: Any, trace: Any) -> dict[str, Any]:
    """The terms of the convex problem, refused before any work where they are wrong."""
    terms = {"loss": validation.choice("loss", loss, LOSSES), "cone": validation.choice("cone", cone, CONES), "metric": metric}
    if not isinstance(trace, str):
        validation.number("trace", trace, minimum=0.0)
    elif trace != "auto":
        validation.refuse(f"trace must be 'auto' or a number of at least 0, not {trace!r}.")
    elif terms != OURS:
        validation.refuse(
            "trace='auto' is known for loss='kl', cone='conditional' and metric='degree' only; give trace as a number."
        )
    return terms


def _number_of_groups(n_groups: Any, A: sp.csr_array, terms: dict[str, Any]) -> int | None:
    """How many groups of nodes share a position; None if every node has its own."""
    if isinstance(n_groups, str) and n_groups == "auto":
        return GROUPS if terms == OURS and A.shape[0] > LARGEST_WHOLE else None
    if n_groups is None:
        return None
    if terms != OURS:
        validation.refuse("n_groups is known for loss='kl', cone='conditional' and metric='degree' only; leave it out.")
    return min(validation.integer("n_groups", n_groups, minimum=2), int(np.count_nonzero(np.diff(A.indptr))))


def _choose_clusters(found: int, A: sp.csr_array, groups: int | None) -> int:
    """The number of clusters when nobody asked for one: directions above the noise and one, or as many as there are parts."""
    k = int(min(max(found, _separate_parts(A)), A.shape[0]))
    if groups is None or k <= MOST_DIRECTIONS:
        return k
    warnings.warn(
        f"More than {MOST_DIRECTIONS} directions or parts of the graph stand out; it is divided into {MOST_DIRECTIONS} clusters. "
        "Give n_clusters to have another number.",
        stacklevel=3,
    )
    return MOST_DIRECTIONS


def _require_room(n: int, k: int) -> None:
    """Refuse memberships that this machine cannot hold."""
    needed, present = MEMBERSHIP_ARRAYS * 8.0 * n * k, validation.physical_memory()
    if needed > present:
        raise validation.TooLargeError(
            f"{k:,} clusters of {n:,} nodes need about {needed / 2**30:,.1f} GiB of memory and this machine has "
            f"{present / 2**30:,.1f}; ask for fewer clusters, and divide those again."
        )


def _separate_parts(A: sp.csr_array) -> int:
    """Number of connected components with a cycle: noise leaves trees apart, but hardly ever more than that."""
    count, component = connected_components(A, directed=False)
    nodes = np.bincount(component, minlength=count)
    entries = A.tocoo()
    upper = entries.row < entries.col
    return int(np.count_nonzero(np.bincount(component[entries.row[upper]], minlength=count) >= np.maximum(nodes, 3)))


def _describe(
    nodes: tuple[Any, ...],
    A: sp.csr_array,
    embedding: Embedding,
    k: int,
    asked: bool,
    refinement: Refinement,
    solution: Solution,
) -> Partition:
    """The partition that a solution gives, with its measures; clusters that nobody asked for and that stay empty are dropped."""
    clusters = embedding.clusters(solution, k, refinement)
    while clusters.n_filled and not asked:
        k -= clusters.n_filled
        clusters = embedding.clusters(solution, k, refinement)
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
        spectrum=embedding.spectrum,
        noise_edge=embedding.noise.edge,
        factors=partial(factors_of, A, memberships),
        label_proof=partial(label_certificate_of, A, labels, MODULARITY),
        label_statement=MODULARITY,
    )


class _LabelAim(NamedTuple):
    """What the labels are to be good at, and whether that is to be proved at once."""

    statement: LabelStatement
    likelihood: bool
    prove: bool
    effort: float
    callback: Callable[[Iterate], Any] | None

    @classmethod
    def read(cls, objective: Any, resolution: Any, n_clusters: Any, A: Any, effort: Any, prove: bool, callback: Any) -> _LabelAim:
        """Check the arguments; with the likelihood, modularity is what a proof is about."""
        name = validation.choice("objective", objective, ("likelihood", "modularity", "cpm", "performance"))
        validation.number("effort", effort, minimum=0.0)
        likelihood = name == "likelihood"
        if likelihood and validation.number("resolution", resolution, minimum=0.0) != 1.0:
            validation.refuse("The objective 'likelihood' has no resolution; leave it out, or ask for 'modularity' or 'cpm'.")
        statement = label_statement(
            "modularity" if likelihood else name, resolution, None if likelihood else n_clusters, A.shape[0]
        )
        return cls(statement, likelihood, bool(prove), effort, callback)

    def apply(self, found: Partition) -> Partition:
        """The partition that the objective asks for, started from that of the likelihood."""
        if self.likelihood and not self.prove:
            return found
        objective = self.statement.objective_of(found.A)
        if not self.likelihood:
            labels = best_labels(objective, (found.labels,), self.statement.n_clusters)
            found = _relabel(found, labels, self.statement, self.effort)
        return self._prove(found, objective) if self.prove else found

    def _prove(self, found: Partition, objective: PairObjective) -> Partition:
        """The same partition with its proof, or a better one that the proof met."""
        labels = found.labels.astype(np.int64)
        with keep_best(lambda certificate: certificate and replace(found, proved_labels=certificate)):
            proved = prove_labels(found.A, labels, self.statement, self.effort, self.callback, improve=not self.likelihood)
        if not self.likelihood and not np.array_equal(proved.better, labels):
            found = _relabel(found, proved.better, self.statement, self.effort)
        found = replace(found, proved_labels=proved.certificate)
        if proved.certificate.gap:
            return found
        unique = decide_uniqueness(objective, found.labels.astype(np.int64), self.statement.n_clusters, proved.search)
        return replace(found, several_optimal=unique.several, other_optimum=unique.other)


def label_certificate_of(A: sp.csr_array, labels: Any, statement: LabelStatement, effort: float = 1.0) -> Certificate:
    """The certificate of labels for a quality."""
    return prove_labels(A, np.asarray(labels, dtype=np.int64), statement, effort).certificate


def _relabel(found: Partition, labels: Labels, statement: LabelStatement, effort: float) -> Partition:
    """The same convex model with other clusters, by decreasing size."""
    _, numbers = np.unique(labels, return_inverse=True)
    sizes = np.bincount(numbers)
    rank = np.empty(len(sizes), dtype=np.intp)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    ordered = rank[numbers]
    memberships, A = np.eye(len(sizes))[ordered], found.A
    return replace(
        found,
        labels=ordered,
        memberships=memberships,
        performance=performance(A, ordered),
        off_diagonal_performance=performance(A, ordered, diagonal=False),
        modularity=modularity(A, ordered),
        order=np.argsort(ordered, kind="stable").astype(np.intp),
        factors=partial(factors_of, A, memberships),
        label_proof=partial(label_certificate_of, A, ordered, statement, effort),
        label_statement=statement,
    )


def factors_of(A: sp.csr_array, memberships: FloatArray) -> Factorization:
    """Factors ``A ≈ UU'`` with a column per cluster, started from the memberships at the best scale of each."""
    degrees = np.asarray(A.sum(axis=1)).ravel()
    inside = np.sum((A @ memberships) * memberships, axis=0) / np.maximum((degrees @ memberships) ** 2, 1e-300)
    inside = np.maximum(inside, 1.0 / degrees.sum())  # a cluster without edges starts as if at random
    return normalised_factors(A, memberships.shape[1], degrees[:, None] * memberships * np.sqrt(inside))
