"""Results as other things: cards for notebooks, data frames, networkx graphs; other packages are imported when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxnmf.display import words
from cvxnmf.display.card import card, certificate_card, sentence, table

if TYPE_CHECKING:
    from cvxnmf.results import CPFactor, Factorization, Iterate, Partition, Solution

#: Most clusters that a card lists, and names of members of each.
CLUSTERS, MEMBERS = 12, 6
#: Longest name of a node in a card.
NAME = 40


def solution_card(solution: Solution, size: str) -> str:
    """Return a solved problem: its size, how the solve ended, and its certificate."""
    steps = f"{words.count(solution.n_iter, 'step')} in {solution.seconds:.2f} s"
    return card(
        f"Solution of {size}, rank {solution.rank}",
        sentence(f"{steps}. {solution.status.sentence}"),
        certificate_card(solution.certificate),
    )


def factor_card(factor: CPFactor) -> str:
    """Return the size of nonnegative factors and their errors."""
    sides = f"{len(factor.U)} rows" if factor.V is factor.U else f"{len(factor.U)} rows and {len(factor.V)} columns"
    errors = [
        ("largest relative error of an entry", f"{factor.max_relative_error:.1e}"),
        ("relative error in norm", f"{factor.frobenius_error:.1e}"),
    ]
    form = "UU'" if factor.V is factor.U else "UV'"
    return card(f"CPFactor: {sides}, {words.count(factor.U.shape[1], 'nonnegative factor')}, E ≈ {form}", table(errors))


def factorization_card(result: Factorization) -> str:
    """Return the size of a factorisation, how it ended, and its certificate."""
    sides = f"{len(result.U)} nodes" if result.V is result.U else f"{len(result.U)} rows and {len(result.V)} columns"
    form = "UU'" if result.V is result.U else "UV'"
    heading = f"Factorization A ≈ {form}: {sides}, {words.count(result.n_components, 'component')}"
    return card(heading, sentence(result.message), certificate_card(result.certificate))


def partition_card(partition: Partition, with_factors: bool) -> str:
    """Return clusters with their surest members, measures, and the certificates, that of the factors if it is asked for."""
    k = partition.n_clusters
    quality = f"Modularity {partition.modularity:.4f}, performance {partition.performance:.4f}"
    parts = [
        sentence(f"{quality} ({partition.off_diagonal_performance:.4f} without the diagonal)."),
        table(list(_clusters(partition)), ("cluster", "nodes", "members, the surest first")),
    ]
    if k > CLUSTERS:
        parts.append(sentence(f"and {words.count(k - CLUSTERS, 'smaller cluster')}; to_frame() has them all."))
    parts += [sentence("The model behind the clusters:"), certificate_card(partition.certificate)]
    if with_factors:
        parts += [sentence(f"Its {words.count(k, 'factor')}:"), certificate_card(partition.rank_certificate)]
    else:
        parts.append(sentence("The proof of its factors is computed when rank_certificate is asked for."))
    return card(f"Partition of {words.count(len(partition.nodes), 'node')} into {words.count(k, 'cluster')}", *parts)


def _clusters(partition: Partition) -> Iterable[tuple[str, str, str]]:
    """Yield number, size and first members of the clusters."""
    for cluster in range(min(partition.n_clusters, CLUSTERS)):
        members = partition.order[partition.labels[partition.order] == cluster]
        names = [str(partition.nodes[node])[:NAME] for node in members[:MEMBERS]]
        yield str(cluster), f"{len(members):,}", ", ".join(names) + (", …" if len(members) > MEMBERS else "")


def frame(columns: Mapping[str, Any], index: Sequence[Any] | None = None) -> Any:
    """Return a data frame with these columns."""
    try:
        import pandas
    except ImportError:
        raise ImportError("data frames need pandas; install it with: pip install pandas.") from None
    return pandas.DataFrame(dict(columns), index=index)


def history_frame(history: Sequence[Iterate]) -> Any:
    """Return a line for each step."""
    names = ("iteration", "seconds", "value", "bound", "gap", "rank")
    return frame({name: [getattr(step, name) for step in history] for name in names})


def factor_frame(factor: Any, names: Sequence[Any] | None) -> Any:
    """Return a factor with a line for each row and a column for each component."""
    return frame({f"component {number}": factor[:, number] for number in range(factor.shape[1])}, names)


def partition_frame(partition: Partition) -> Any:
    """Return node, cluster, its share, and the shares in all clusters."""
    shares = partition.memberships
    largest = shares[np.arange(len(shares)), partition.labels]
    each = {f"share {cluster}": shares[:, cluster] for cluster in range(shares.shape[1])}
    return frame({"node": list(partition.nodes), "cluster": partition.labels, "membership": largest} | each)


def networkx_graph(partition: Partition) -> Any:
    """Return the graph that was partitioned, its nodes with their clusters and shares."""
    try:
        import networkx
    except ImportError:
        raise ImportError("graphs of networkx need networkx; install it with: pip install networkx.") from None
    graph = networkx.Graph()
    rows = zip(partition.nodes, partition.labels.tolist(), partition.memberships.tolist(), strict=True)
    graph.add_nodes_from((node, {"cluster": cluster, "membership": shares[cluster]}) for node, cluster, shares in rows)
    matrix = partition.A.tocoo()
    upper = matrix.row <= matrix.col
    ends = zip(matrix.row[upper].tolist(), matrix.col[upper].tolist(), matrix.data[upper].tolist(), strict=True)
    graph.add_weighted_edges_from((partition.nodes[i], partition.nodes[j], weight) for i, j, weight in ends)
    return graph
