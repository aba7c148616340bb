"""Clusters of rows and columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results.factorization import OnDemand
from cvxnmf.results.partition import members
from cvxnmf.results.solution import Solution

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate


@dataclass(frozen=True, eq=False)
class CoClusters:
    """Clusters of rows and columns of a table, or of the two sides of a graph, found together.

    Attributes
    ----------
    rows, columns : tuple
        Names of rows and columns; of a directed graph both are its nodes, as sources and as targets of edges.
    row_labels, column_labels : ndarray of int
        The cluster of each row and of each column: the same number belongs together, the cluster with most of both is 0.
    A : scipy.sparse.csr_array of shape (m, n)
        The table.
    row_memberships, column_memberships : ndarray of shape (m, n_clusters) and (n, n_clusters)
        Shares in the clusters; rows sum to 1.
    solution : Solution
        The solved convex problem :func:`nonsymmetric`, solved when it, or the certificate, is first looked at.
    alternatives : tuple of (int, float)
        Numbers of clusters of the candidates and their description lengths in nats, less that of one cluster, shortest first.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> found = cvxnmf.cocluster(np.kron(np.eye(2), np.ones((2, 3))) + 0.01)
    >>> found.row_labels, found.column_labels
    (array([0, 0, 1, 1]), array([0, 0, 0, 1, 1, 1]))
    """

    rows: tuple[Any, ...]
    columns: tuple[Any, ...]
    row_labels: NDArray[np.intp]
    column_labels: NDArray[np.intp]
    A: Any
    row_memberships: OnDemand[FloatArray] = OnDemand()
    column_memberships: OnDemand[FloatArray] = OnDemand()
    solution: OnDemand[Solution] = OnDemand()
    alternatives: tuple[tuple[int, float], ...] = ()

    @property
    def n_clusters(self) -> int:
        """Number of clusters of rows and columns."""
        return int(max(self.row_labels.max(), self.column_labels.max())) + 1

    @property
    def certificate(self) -> Certificate:
        """The certificate of scope "model": no model of the form of :func:`nonsymmetric` fits the table better than the bound."""
        return self.solution.certificate

    def communities(self) -> list[tuple[set[Any], set[Any]]]:
        """The rows and the columns of each of the co-clusters, by name."""
        k = self.n_clusters
        return list(zip(members(self.rows, self.row_labels, k), members(self.columns, self.column_labels, k), strict=True))

    def __repr__(self) -> str:
        """Return the co-clusters in one line, without computing a proof."""
        from cvxnmf.display.formatting import count

        at_hand = vars(self)["solution"]
        proof = "proof when asked for" if callable(at_hand) else f"gap {at_hand.certificate.relative_gap:.1e}"
        sides = f"{count(len(self.rows), 'row')} and {count(len(self.columns), 'column')}"
        return f"<CoClusters: {sides}, {count(self.n_clusters, 'cluster')}, {proof}>"

    def _repr_html_(self) -> str:
        from cvxnmf.display import cards

        at_hand = vars(self)["solution"]
        return cards.cocluster_card(self, None if callable(at_hand) else at_hand.certificate)
