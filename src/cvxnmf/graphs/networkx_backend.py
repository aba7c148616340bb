"""A backend of networkx: ``nx.community.leiden_communities(G, backend="cvxnmf")``, and Louvain's function alike.

Both raise the modularity; here it is raised by deterministic moves, refinement, aggregation and recombination, so that the same
graph has the same communities for every seed. networkx reads this module at its own import, so it imports nothing heavy.
"""

from __future__ import annotations

from typing import Any

import cvxnmf

#: The functions that the backend knows.
FUNCTIONS = ("leiden_communities", "louvain_communities")


class Backend:
    """Backend of networkx: conversions, which leave graphs as they are, and functions under networkx's own names."""

    @staticmethod
    def convert_from_nx(graph: Any, *args: Any, **options: Any) -> Any:
        """Take graphs of networkx as they are, for its backend."""
        return graph

    @staticmethod
    def convert_to_nx(result: Any, *args: Any, **options: Any) -> Any:
        """Give networkx the results of its backend as they are: sets of nodes."""
        return result

    @staticmethod
    def leiden_communities(
        G: Any, weight: str | None = "weight", resolution: float = 1, max_level: int | None = None, seed: Any = None
    ) -> list[set[Any]]:
        """Communities of high modularity, by decreasing size; levels and seeds mean nothing here."""
        if not G.number_of_edges():
            return [{node} for node in G]
        terms: dict[str, Any] = {"objective": "modularity", "resolution": float(resolution)}
        if not any(G.has_edge(node, node) for node in G):
            return cvxnmf.partition(G, weight=weight, **terms).communities()
        nodes, found = list(G), cvxnmf.partition(_with_loops_twice(G, weight), **terms)
        return [{nodes[node] for node in members} for members in found.communities()]

    @staticmethod
    def louvain_communities(
        G: Any,
        weight: str | None = "weight",
        resolution: float = 1,
        threshold: float = 1e-7,
        max_level: int | None = None,
        seed: Any = None,
    ) -> list[set[Any]]:
        """Communities by networkx's backend under Louvain's name, those of :meth:`leiden_communities`."""
        return Backend.leiden_communities(G, weight, resolution)


def _with_loops_twice(G: Any, weight: str | None) -> Any:
    """The adjacency matrix of a graph of networkx's backend with loops twice, as networkx counts them in degrees."""
    import networkx as nx
    import scipy.sparse as sp

    A = nx.to_scipy_sparse_array(G, weight=weight, dtype=float)
    return A + sp.diags_array(A.diagonal())


def backend_info() -> dict[str, Any]:
    """Information that networkx asks of its backend."""
    functions = {name: {"additional_docs": "Deterministic; the seed means nothing."} for name in FUNCTIONS}
    return {"backend_name": "cvxnmf", "project": "cvxnmf", "package": "cvxnmf", "functions": functions}
