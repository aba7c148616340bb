"""A partition of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results.factorization import Factorization, Level, OnDemand
from cvxnmf.results.hierarchy import Code, Hierarchy
from cvxnmf.results.solution import Solution
from cvxnmf.results.status import Status

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate, LabelStatement


#: What there is of a graph that was worked on in blocks.
IN_BLOCKS = "The graph was worked on in blocks; memberships, factors and proofs of the labels need it in memory."
REFUSED = (
    "Of a graph in blocks there are labels, modularity, performance and the certificate of its model, and to_frame() and "
    "to_dask() to keep them; for memberships, factors, proofs of the labels, pictures and saved results the graph must fit in "
    "memory, so leave out memory_limit and client."
)
#: Printing a partition of up to this many nodes proves its model and its factors.
PROVED_WHEN_PRINTED = 2000

#: What is known of other optimal partitions.
UNIQUENESS = {
    True: "Several partitions are optimal.",
    False: "No other partition is optimal.",
    None: "Whether other partitions are optimal too is not decided.",
}


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of a graph: clusters of its nodes, how good they are, and what is proved.

    Attributes
    ----------
    nodes : tuple
        Names of the nodes, in the order of everything below.
    labels : ndarray of int, shape (n,)
        The cluster of each node, from 0, by decreasing size: where its row of the memberships is largest.
    A : scipy.sparse.csr_array of shape (n, n)
        The symmetric adjacency matrix that was partitioned.
    memberships : ndarray of shape (n, n_clusters)
        Shares of each node in the clusters; rows sum to 1.
    performance, off_diagonal_performance : float
        The paper's share of pairs that the partition gets right, with and without the diagonal; see :func:`performance`.
    modularity : float
        Newman's modularity of the labels.
    order : ndarray of int, shape (n,)
        Nodes cluster by cluster, within a cluster by decreasing membership: ``A[order][:, order]`` shows the blocks.
    solution : Solution
        The solved convex problem; without a callback it is solved when it, or the certificate, is first looked at. Of a graph in
        blocks it is on groups of nodes, and the witness of the certificate has the group of each node.
    spectrum : ndarray
        Largest eigenvalues of the modularity matrix in the metric, decreasing; of a graph in blocks, of its sums over groups.
    noise_edge : float
        What noise alone can reach in that spectrum.
    hierarchy : Hierarchy
        The nested divisions that merging clusters gives, with description lengths, and what each cluster saves.
    factors : callable
        Computes `factorization`.
    label_proof : callable
        Computes `label_certificate`.
    label_statement : LabelStatement
        What `label_certificate` is about: the objective that was asked for, and modularity otherwise.
    alternatives : tuple of (int, float)
        Numbers of clusters of the candidates that were compared and the description length of the best of each, in nats less
        that of a single cluster, shortest first; empty if there was nothing to compare.
    code : Code, optional
        What was measured on the graph to tell description lengths, if they were compared.
    proved_labels : Certificate, optional
        The label certificate, if it was asked for with the partition.
    several_optimal : bool or None
        Of a partition that is proved to be optimal: whether there is another one as good; False if this is proved to be the only
        one, None if that is not decided.
    other_optimum : ndarray of int, shape (n,), optional
        The labels of another optimal partition, where `several_optimal` is True.

    origin : str
        What the graph was read from, such as "a list of edges"; empty for a partition that was loaded.
    name : str
        What the graph calls itself, as networkx's graphs may; it heads the page.
    in_blocks : bool
        Whether the graph was worked on in blocks: there are labels, measures and the certificate of the model, but no
        memberships, factors and proofs of the labels.
    known_sizes : ndarray of int, optional
        Numbers of nodes in the clusters, where the labels are somewhere else; see `sizes`.
    series : callable, optional
        Computes `to_dask` where the names of the nodes are on the workers of a cluster.

    Notes
    -----
    All from the memberships to the hierarchy is computed when it is first looked at. Nodes and labels of a dask data frame
    of edges stay on the workers of its client until they are looked at.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.1, 0.9)
    >>> found = cvxnmf.partition(A)
    >>> found.n_clusters, found.performance > 0.8, found.certificate.rigorous
    (2, True, True)
    """

    nodes: tuple[Any, ...]
    labels: OnDemand[NDArray[np.intp]] = OnDemand()
    A: Any  # type: ignore[misc]  # labels have no default
    memberships: OnDemand[FloatArray] = OnDemand()
    performance: OnDemand[float] = OnDemand()
    off_diagonal_performance: OnDemand[float] = OnDemand()
    modularity: OnDemand[float] = OnDemand()
    order: OnDemand[NDArray[np.intp]] = OnDemand()
    solution: OnDemand[Solution] = OnDemand()
    spectrum: OnDemand[FloatArray] = OnDemand()
    noise_edge: OnDemand[float] = OnDemand()
    hierarchy: OnDemand[Hierarchy] = OnDemand()
    factors: Callable[[], Factorization] = field(repr=False)  # type: ignore[misc]  # the fields before have no defaults
    label_proof: Callable[[], Certificate] = field(repr=False)  # type: ignore[misc]
    label_statement: LabelStatement = field(repr=False)  # type: ignore[misc]
    alternatives: tuple[tuple[int, float], ...] = ()
    code: Code | None = field(default=None, repr=False)
    proved_labels: Certificate | None = field(default=None, repr=False)
    several_optimal: bool | None = None
    other_optimum: NDArray[np.int64] | None = field(default=None, repr=False)
    origin: str = ""
    name: str = ""
    in_blocks: bool = False
    known_sizes: NDArray[np.intp] | None = field(default=None, repr=False)
    series: Callable[[], Any] | None = field(default=None, repr=False)

    def with_changes(self, **changes: Any) -> Partition:
        """The partition with some fields replaced; fields that are computed on demand stay uncomputed."""
        return Partition(**{name: vars(self)[name] for name in self.__dataclass_fields__} | changes)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of nodes in each cluster of the partition."""
        return np.bincount(self.labels) if self.known_sizes is None else self.known_sizes

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the partition."""
        return int(self.labels.max()) + 1 if self.known_sizes is None else len(self.known_sizes)

    @property
    def certificate(self) -> Certificate:
        """The certificate of scope "model": no model of this form fits the partitioned graph better than the bound."""
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
        """Levels of a partition's proofs: of the convex model, on groups of nodes if the graph is large, and of the factors.

        Of a graph in blocks there are no factors.
        """
        n = len(self.nodes)
        of = "models of this form" if self.n_groups is None else "models of this form whose nodes share positions in groups"
        model = Level(self.n_groups or n, of, self.certificate)
        factors = f"nonnegative factors with {self.n_clusters} column{'' if self.n_clusters == 1 else 's'}"
        return (model,) if self.in_blocks else (model, Level(n, factors, self.rank_certificate))

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
        """Certificate of scope "rank-k": no U of this size has an error, weighted as in `factorization`, below its bound."""
        return self.factorization.certificate

    @cached_property
    def label_certificate(self) -> Certificate:
        """The certificate of scope "labels": no partition has a higher quality than the bound; computed when first asked for.

        The quality is the objective that was asked for, and modularity if that was the likelihood. See :func:`verify_labels`.
        """
        return self.proved_labels or self.label_proof()

    @property
    def certificate_at_hand(self) -> Certificate | None:
        """The certificate of a partition's model if that has been solved."""
        return None if callable(vars(self)["solution"]) else self.certificate

    @property
    def rank_certificate_at_hand(self) -> Certificate | None:
        """The certificate of a partition's factors if they have been computed."""
        return self.rank_certificate if "factorization" in vars(self) else None

    @property
    def label_certificate_at_hand(self) -> Certificate | None:
        """The certificate of a partition's labels if it has been computed."""
        return vars(self).get("label_certificate", self.proved_labels)

    @property
    def proofs_at_hand(self) -> list[Certificate]:
        """The certificates of a partition's model, factors and labels that have been computed."""
        at_hand = (self.certificate_at_hand, self.rank_certificate_at_hand, self.label_certificate_at_hand)
        return [certificate for certificate in at_hand if certificate is not None]

    def at(self, n_clusters: int) -> NDArray[np.intp]:
        """Labels of the nested division into fewer clusters, see `hierarchy`."""
        return self.hierarchy.at(n_clusters)

    def communities(self) -> list[set[Any]]:
        """The clusters as sets of nodes, by decreasing size: networkx's convention."""
        return members(self.nodes, self.labels, self.n_clusters)

    def to_igraph(self) -> Any:
        """Return a ``VertexClustering`` of igraph; its graph has ``name``, ``cluster`` and ``membership`` of every node."""
        from cvxnmf.display import frames

        return frames.igraph_clustering(self)

    def to_dict(self) -> dict[Any, int]:
        """The cluster of each node by its name."""
        return dict(zip(self.nodes, self.labels.tolist(), strict=True))

    def to_frame(self) -> Any:
        """Return a pandas data frame: node, cluster, the node's membership in it, and its shares in all clusters."""
        from cvxnmf.display import frames

        return frames.partition_frame(self)

    def to_dask(self) -> Any:
        """Return the labels as a dask series, ``cluster`` by ``node``.

        Of a dask data frame of edges that was partitioned by a client, its parts are made on the workers, where labels and names
        stay, as long as this result is kept and the client is open; of all other graphs they are made of the labels here.
        """
        from cvxnmf.display import frames

        return frames.label_series(self) if self.series is None else self.series()

    def to_networkx(self) -> Any:
        """Return the undirected graph of networkx that was partitioned, with ``cluster`` and ``membership`` of every node."""
        from cvxnmf.display import frames

        return frames.networkx_graph(self)

    def __repr__(self) -> str:
        """Return the partition in one line, without computing a proof."""
        at_hand = vars(self)["solution"]
        later = "in blocks, proof when asked for" if self.in_blocks else "proof when asked for"
        proof = later if callable(at_hand) else f"gap {at_hand.certificate.relative_gap:.1e}, {at_hand.status.name}"
        quality = f"modularity {self.modularity:.3f}, performance {self.performance:.3f}"
        lengths = f"{self._length_and_next()}, " if self.alternatives else ""
        return f"<Partition: {', '.join(self._sizes())}, {lengths}{quality}, {proof}>"

    def _sizes(self) -> tuple[str, str]:
        """The numbers of a partition's nodes, those without neighbours told, and of clusters in words."""
        from cvxnmf.display.formatting import count

        alone = 0 if self.in_blocks else int((self.A.count_nonzero(axis=1) == 0).sum())
        nodes = count(len(self.nodes), "node") + (f" ({alone:,} without neighbours)" if alone else "")
        return nodes, count(self.n_clusters, "cluster")

    def _length_and_next(self) -> str:
        """The partition's description length, and that of the best candidate with another number of clusters."""
        others = [f"{length:.1f} with {k}" for k, length in self.alternatives if k != self.n_clusters][:1]
        own = [f"{length:.1f} nats" for k, length in self.alternatives if k == self.n_clusters]
        return " against ".join([*own, *others])

    def __str__(self) -> str:
        """Return a summary of the partition in a few lines."""
        sizes = ", ".join(map(str, self.sizes))
        nodes, clusters = self._sizes()
        lengths = f"  {self.comparison}\n" if self.comparison else ""
        return (
            f"Partition of {nodes}{f' of {self.origin}' if self.origin else ''} into {clusters} of {sizes}\n"
            f"  modularity {self.modularity:.4f}, performance {self.performance:.4f} "
            f"({self.off_diagonal_performance:.4f} without the diagonal)\n"
            f"{lengths}{self._model_lines()}{self._label_lines()}"
        )

    def _model_lines(self) -> str:
        """Lines on what is proved about a partition's model and its factors, or how to ask for it."""
        factors = "its single factor" if self.n_clusters == 1 else f"its {self.n_clusters} factors"
        model = str(self.certificate) if self._proves("solution") else "  proved when certificate is asked for"
        if self.in_blocks:
            return f"the model\n{model}\n{IN_BLOCKS}"
        proof = str(self.rank_certificate) if self._proves("factorization") else "  proved when rank_certificate is asked for"
        return f"the model\n{model}\n{factors}\n{proof}"

    @property
    def comparison(self) -> str:
        """Description lengths of the best numbers of clusters, in a line; empty if there was nothing to compare."""
        if len(self.alternatives) < 2:
            return ""
        some = ", ".join(f"{length:.1f} with {k}" for k, length in self.alternatives[:4])
        return f"description length in nats, less that of one cluster: {some}"

    def _label_lines(self) -> str:
        """Lines on what is proved about a partition's labels, if that is at hand."""
        proof = self.label_certificate_at_hand
        if proof is None:
            return ""
        lines = f"\nits labels, {proof.statement['objective']}\n{proof}"
        return lines + (f"\n  {self.uniqueness}" if self.uniqueness else "")

    @property
    def uniqueness(self) -> str:
        """A sentence on whether other partitions are as good, if this one is proved to be optimal."""
        proof = self.label_certificate_at_hand
        if proof is None or proof.gap or self.proved_labels is None:
            return ""
        return UNIQUENESS[self.several_optimal]

    def require_memory(self) -> None:
        """Refuse what needs the edges, if the partition's graph was worked on in blocks."""
        if self.in_blocks:
            raise ValueError(REFUSED)

    def _proves(self, name: str) -> bool:
        """Whether a field that a partition's proof is about is at hand, or soon computed."""
        soon = len(self.nodes) <= PROVED_WHEN_PRINTED and not self.in_blocks
        return not callable(vars(self).get(name, self.factors)) or soon

    def _repr_html_(self) -> str:
        """Return the card of a partition for notebooks."""
        from cvxnmf.display import cards

        return cards.partition_card(self, self._proves("solution"), self._proves("factorization"))


def members(names: tuple[Any, ...], labels: NDArray[np.intp], count: int) -> list[set[Any]]:
    """The names of the nodes of each of so many clusters of a partition."""
    found: list[set[Any]] = [set() for _ in range(count)]
    for name, label in zip(names, labels.tolist(), strict=True):
        found[label].add(name)
    return found
