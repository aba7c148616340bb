"""Partition a graph: the convex model, its clusters, and what is proved about both."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.certificates import Certificate, LabelStatement
from cvxnmf.graphs.adapters import announced_graph
from cvxnmf.graphs.block_model import size_order
from cvxnmf.graphs.blocked.open import needs_blocks
from cvxnmf.graphs.blocked.partition import partition_in_blocks
from cvxnmf.graphs.clusters import Division, alone_where_new, divide_into, find_clusters, in_any_order
from cvxnmf.graphs.continuation import follow, start_labels
from cvxnmf.graphs.convex_model import ConvexModel, convex_model
from cvxnmf.graphs.hierarchy import hierarchy_of
from cvxnmf.graphs.label_bounds.uniqueness import decide_uniqueness
from cvxnmf.graphs.label_bounds.verify import label_statement, prove_labels
from cvxnmf.graphs.multilevel import Labels, best_labels
from cvxnmf.graphs.quality import modularity, performance
from cvxnmf.graphs.refinement import Refinement
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.factorize import normalised_factors
from cvxnmf.nmf.progress import shown
from cvxnmf.results import Factorization, Iterate, Partition, Solution
from cvxnmf.results.status import keep_best
from cvxnmf.typing import GraphLike, MemoryLimit, StartLabels

#: Arrays of a number per node and cluster that are held at once.
MEMBERSHIP_ARRAYS = 6


def partition(
    graph: GraphLike,
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
    start: StartLabels | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callable[[Iterate], Any] | None = None,
    verbose: int = 0,
    memory_limit: MemoryLimit = None,
    client: Any = None,
) -> Partition:
    """Divide the nodes of a graph into clusters: the same ones every time, with a proof of how well their model fits.

    Of the divisions that local moves, mean field and the leading directions of the graph lead to, the one that describes the
    graph shortest is taken (docs/mathematics.md). The convex problem :func:`symmetric` for the adjacency matrix is solved, and
    its certificate proved, when they are first looked at.

    Parameters
    ----------
    graph : networkx or igraph graph, scipy.sparse matrix, array-like, list of tuples or data frame
        An undirected graph with weights of at least 0, its adjacency matrix, or its edges: tuples (u, v) or (u, v, weight), an
        array of whole numbers with two columns, or a data frame with columns "source", "target" and perhaps "weight" (without
        such headings two columns of names and perhaps one of weights). A data frame whose rows and columns have the same names
        is an adjacency matrix. What could be read in several ways is refused. A directed graph is made undirected with a
        warning: joined where either direction is, weights averaged; :func:`cocluster` keeps directions.
    n_clusters : int, optional
        Number of clusters, each of which gets at least one node. Left out, it is that of the division with the shortest
        description length. Connected components are clusters of their own, but for small trees beside a giant component that its
        degrees explain. Where no division is shorter than a single cluster, there is one more than directions in which the graph
        differs from noise (eigenvalues of the modularity matrix above the noise edge); of a large graph, whose directions are
        among what is tried, there is one cluster.
    trace : float or "auto"
        Weight of the penalty of the convex problem. "auto" is the noise edge; if direction ``n_clusters - 1`` does not stand out
        of the noise, it is 0.9 times the eigenvalue of that direction, so that as many directions enter. Of a graph in groups it
        is not below the eigenvalue of direction ``n_clusters + 1``. With a number, or other terms than the defaults, clusters are
        those of the positions of the convex problem.
    weight : str or None
        Edge attribute with the weights, where there is one; None counts every edge as 1.
    loss, cone, metric
        Terms of the convex problem, see :func:`symmetric`. The paper's are ``loss="kl"`` or "mse", ``cone="psd"``,
        ``metric="uniform"`` with ``trace=0`` (and ``method="projected-gradient"``).
    method, tol, max_iter, callback
        See :func:`solve`. With a callback the convex problem is solved at once, and not when it is first looked at.
    refine : bool
        Whether clusters are improved by the likelihood; without, a node goes to the nearest centre of its position.
    n_groups : int, "auto" or None
        Number of groups of nodes that share a position in the convex model, at least as many as clusters, which makes graphs of
        millions of nodes possible; the certificate then bounds all models with these groups, and the clusters are improved on
        the graph itself. None gives every node a position of its own; "auto" does so for up to 5,000 nodes and 50,000 nodes times
        clusters, and takes 1,000 groups beyond. With a number, clusters are those of the positions of groups.
    objective : str
        What the clusters are good at: "likelihood", of a degree-corrected model, or a quality of :func:`verify_labels`:
        "modularity", "cpm" (the constant Potts model) or "performance". For these clusters come from local moves with
        refinement and aggregation, started from single nodes at several resolutions (and from the positions of the convex
        problem where its terms are given); their number is found unless `n_clusters` limits it, and memberships are 0 or 1.
    resolution : float
        Of modularity and the constant Potts model.
    prove : bool
        Whether to prove at once how good the labels are (`label_certificate`), and to take a better partition where the proof
        meets one: on sparse graphs of up to a few hundred nodes the optimum. Without, the proof is made when it is asked for.
    effort : float
        Work for that proof, see :func:`verify_labels`; whether other partitions are optimal too takes at most a quarter of it on
        top.
    start : Partition, mapping or labels, optional
        Clusters to start from, of this graph or of one that has changed since: a Partition, a mapping from nodes to clusters, or
        labels of all nodes. Nodes that are new start alone. Nothing is sought from single nodes, which takes a fraction of the
        time, and cluster numbers follow their clusters.
    verbose : int
        Whether to show progress, see :func:`factorize`.
    memory_limit : int or str, optional
        Most memory of the process, such as "4 GB": the graph is worked on in blocks of rows that are read from disk, and may be
        the name of a file of edges (text, npy, parquet), of a folder of such files, or a list of names. There are labels,
        modularity, performance and the certificate of the model in groups of nodes then, and no memberships, factors or proofs of
        the labels (docs/scale.md).
    client : distributed.Client or str, optional
        The client, or the address of the scheduler, of a Dask cluster that works on the blocks. A dask data frame of edges is
        worked on by the current client without being asked; its labels and names stay on the workers until they are looked at.

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
    with shown(verbose, "partition", None, callback) as report:
        if needs_blocks(graph, memory_limit, client):
            _refuse_in_blocks(start is not None, trace, loss, cone, metric, method, refine, n_groups, prove)
            work = partial(partition_in_blocks, tol=tol, max_iter=max_iter)
            return work(graph, n_clusters, weight, objective, resolution, memory_limit, client, report)
        nodes, A, _, origin, name = announced_graph(graph, weight, objective)
        _require_edges(A)
        aim = _LabelAim.read(objective, resolution, n_clusters, A, effort, prove, report)
        asked = None if n_clusters is None else validation.clusters(n_clusters, len(nodes))
        _require_room(len(nodes), asked or 1)
        before = None if start is None else start_labels(start, nodes)
        model = convex_model(A, loss, cone, metric, trace, n_groups)
        validation.callback(callback)
        model.options = {"method": method, "tol": tol, "max_iter": max_iter, "callback": callback}
        if model.by_its_own_terms or not refine:
            if before is not None:
                validation.refuse(
                    "start needs the default terms of the convex problem; leave out trace, loss, cone, metric and groups."
                )
            found = aim.improve(_by_positions(nodes, model, asked, aim, Refinement.LIKELIHOOD if refine else Refinement.NONE))
        else:
            division = aim.divide(A, asked) if before is None else follow(aim.divide(A, asked, start=before), before)
            model = model.with_clusters(partial(_likely_number, A, asked, division if aim.likelihood else None))
            found = _outcome(nodes, model, division, aim)
            found = found if callback is None else _solve_now(found, model)
        return aim.prove(found.with_changes(origin=origin, name=name))


def _solve_now(found: Partition, model: ConvexModel) -> Partition:
    """The partition with its convex problem solved at once, since a callback watches."""
    with keep_best(lambda solution: solution and found.with_changes(solution=solution)):
        return found.with_changes(solution=model.solution)


def _refuse_in_blocks(started: bool, *terms: Any) -> None:
    """Refuse options of partition that ask for more than labels of a graph that is not in memory."""
    if started or terms != ("auto", "kl", "conditional", "degree", "auto", True, "auto", False):
        validation.refuse(
            "Graphs in blocks (memory_limit, client) have labels and the certificate of their model: leave out trace, loss, "
            "cone, metric, method, refine, n_groups, prove and start."
        )


def _require_edges(A: sp.csr_array) -> None:
    """Refuse graphs in which there is nothing to partition."""
    if not A.nnz:
        validation.refuse("The graph has no edges, so there is nothing to partition.")
    validation.magnitude(A, "kl")
    if A.shape[0] == 1:
        validation.refuse("The graph has a single node; there is nothing to partition.")


def _require_room(n: int, k: int) -> None:
    """Refuse a partition whose memberships this machine cannot hold."""
    needed, present = MEMBERSHIP_ARRAYS * 8.0 * n * k, validation.physical_memory()
    if needed > present:
        raise validation.TooLargeError(
            f"{k:,} clusters of {n:,} nodes need about {needed / 2**30:,.1f} GiB of memory and this machine has "
            f"{present / 2**30:,.1f}; ask for fewer clusters, and divide those again."
        )


def _divide(A: sp.csr_array, asked: int | None, start: Labels | None = None) -> Division:
    """The clusters of a graph to partition, whatever the order of its nodes."""
    return in_any_order(A, find_clusters if asked is None else partial(divide_into, k=asked), start)


def _likely_number(A: sp.csr_array, asked: int | None, division: Division | None = None) -> int:
    """The number of clusters asked for, or that of the partition by the likelihood, made here if need be."""
    return asked or int((division or _divide(A, None)).labels.max()) + 1


def _by_positions(
    nodes: tuple[Any, ...], model: ConvexModel, asked: int | None, aim: _LabelAim, refinement: Refinement
) -> Partition:
    """The partition by positions of the convex model; clusters that nobody asked for and that stay empty are dropped."""
    model = model.with_clusters(partial(_likely_number, model.A, asked))

    def describe(refinement: Refinement, solution: Solution) -> Partition:
        k = model.k
        clusters = model.embedding.clusters(solution, k, refinement)
        while clusters.n_filled and not asked:
            k -= clusters.n_filled
            clusters = model.embedding.clusters(solution, k, refinement)
        division = Division(clusters.labels, lambda: clusters.memberships)
        return _outcome(nodes, model, division, aim).with_changes(memberships=clusters.memberships, solution=solution)

    with keep_best(lambda solution: solution and describe(Refinement.QUICK, solution)):
        solution = model.solution
    with keep_best(lambda _: describe(Refinement.QUICK, solution)):
        return describe(refinement, solution)


def _outcome(nodes: tuple[Any, ...], model: ConvexModel, division: Division, aim: _LabelAim) -> Partition:
    """The partition of a division; measures and proofs are computed when they are looked at."""
    return Partition(
        nodes=nodes,
        A=model.A,
        **_measures(model.A, division, aim),
        solution=model.solve,
        spectrum=model.spectrum,
        noise_edge=model.noise_edge,
    )


def _measures(A: sp.csr_array, division: Division, aim: _LabelAim) -> dict[str, Any]:
    """The fields of a partition that follow from its labels and memberships."""
    labels = division.labels
    held = Memberships(A.shape[0], int(labels.max()) + 1, division.memberships)
    return {
        "labels": labels,
        "memberships": held,
        "performance": partial(performance, A, labels),
        "off_diagonal_performance": partial(performance, A, labels, diagonal=False),
        "modularity": partial(modularity, A, labels),
        "order": partial(_order, labels, held),
        "hierarchy": partial(hierarchy_of, A, labels, division.code),
        "factors": partial(_factors, A, held),
        "label_proof": partial(label_certificate_of, A, labels, aim.statement, aim.effort),
        "label_statement": aim.statement,
        "alternatives": division.alternatives,
        "code": division.code,
    }


class Memberships:
    """Memberships of n nodes in k clusters that are computed once, if this machine can hold them."""

    def __init__(self, n: int, k: int, compute: Callable[[], FloatArray]) -> None:
        self.n, self.k, self.compute = n, k, compute

    @cached_property
    def shares(self) -> FloatArray:
        """Shares of each node in the clusters of a partition."""
        _require_room(self.n, self.k)
        return self.compute()

    def __call__(self) -> FloatArray:
        """Memberships of a partition, as a function to call."""
        return self.shares


def _order(labels: Labels, memberships: Callable[[], FloatArray]) -> NDArray[np.intp]:
    """Order of a partition's nodes: cluster by cluster, within a cluster by decreasing membership."""
    return np.lexsort((-memberships()[np.arange(len(labels)), labels], labels)).astype(np.intp)


def _factors(A: sp.csr_array, memberships: Callable[[], FloatArray]) -> Factorization:
    return factors_of(A, memberships())


class _LabelAim(NamedTuple):
    """Aim of a partition's labels: what they are to be good at, and whether that is to be proved at once."""

    statement: LabelStatement
    likelihood: bool
    prove_now: bool
    effort: float
    callback: Callable[[Iterate], Any] | None

    @classmethod
    def read(cls, objective: Any, resolution: Any, n_clusters: Any, A: Any, effort: Any, prove: bool, callback: Any) -> _LabelAim:
        """Check the objective of a partition; with the likelihood, modularity is what a proof is about."""
        name = validation.choice("objective", objective, ("likelihood", "modularity", "cpm", "performance"))
        validation.number("effort", effort, minimum=0.0)
        if not isinstance(prove, int | np.bool_):
            validation.refuse(f"prove must be True or False, not {prove!r}.")
        likelihood = name == "likelihood"
        if likelihood and validation.number("resolution", resolution, minimum=0.0) != 1.0:
            validation.refuse("The objective 'likelihood' has no resolution; leave it out, or ask for 'modularity' or 'cpm'.")
        statement = label_statement(
            "modularity" if likelihood else name, resolution, None if likelihood else n_clusters, A.shape[0]
        )
        return cls(statement, likelihood, bool(prove), effort, callback)

    def divide(
        self, A: sp.csr_array, asked: int | None, starts: tuple[Labels, ...] = (), start: Labels | None = None
    ) -> Division:
        """The division that the objective asks for, sought from several starts too, or from one alone."""
        if self.likelihood:
            return _divide(A, asked, start)
        if start is not None:
            starts = (alone_where_new(start),)
        labels = best_labels(self.statement.objective_of(A), starts, self.statement.n_clusters, from_nodes=start is None)
        return _certain_division(labels)

    def improve(self, found: Partition) -> Partition:
        """The partition that the objective asks for, started from another one."""
        if self.likelihood:
            return found
        return found.with_changes(**_measures(found.A, self.divide(found.A, None, (found.labels,)), self))

    def prove(self, found: Partition) -> Partition:
        """The partition with its label proof if that was asked for, or a better one that the proof met."""
        if not self.prove_now:
            return found
        labels = found.labels.astype(np.int64)
        with keep_best(lambda certificate: certificate and found.with_changes(proved_labels=certificate)):
            proved = prove_labels(found.A, labels, self.statement, self.effort, self.callback, improve=not self.likelihood)
        if not self.likelihood and not np.array_equal(proved.better, labels):
            found = found.with_changes(**_measures(found.A, _certain_division(proved.better), self))
        found = found.with_changes(proved_labels=proved.certificate)
        if proved.certificate.gap:
            return found
        objective = self.statement.objective_of(found.A)
        labels = found.labels.astype(np.int64)
        unique = decide_uniqueness(objective, labels, self.statement.n_clusters, proved.search, self.effort)
        return found.with_changes(several_optimal=unique.several, other_optimum=unique.other)


def label_certificate_of(A: sp.csr_array, labels: Any, statement: LabelStatement, effort: float = 1.0) -> Certificate:
    """The certificate of a partition's labels for a quality."""
    return prove_labels(A, np.asarray(labels, dtype=np.int64), statement, effort).certificate


def _certain_division(labels: Labels) -> Division:
    """Division of a graph into clusters by decreasing size, to which nodes belong with certainty."""
    numbers = np.unique(labels, return_inverse=True)[1]
    order = size_order(numbers)
    by_size = np.argsort(order)[numbers]
    return Division(by_size, partial(_certain, by_size, len(order)))


def _certain(labels: Labels, k: int) -> FloatArray:
    """Memberships of 0 and 1 of a partition whose nodes belong to clusters with certainty."""
    return np.eye(k)[labels]


def factors_of(A: sp.csr_array, memberships: FloatArray) -> Factorization:
    """Factors ``A ≈ UU'`` with a column per cluster, started from the memberships at the best scale of each."""
    degrees = np.asarray(A.sum(axis=1)).ravel()
    inside = np.sum((A @ memberships) * memberships, axis=0) / np.maximum((degrees @ memberships) ** 2, 1e-300)
    inside = np.maximum(inside, 1.0 / degrees.sum())  # a cluster without edges starts as if at random
    return normalised_factors(A, memberships.shape[1], degrees[:, None] * memberships * np.sqrt(inside))
