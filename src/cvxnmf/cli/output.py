"""Results on stdout: text for people, JSON for machines."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import terminal
from cvxnmf.display.certificate_text import describe
from cvxnmf.display.formatting import cluster_rows, count

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate
    from cvxnmf.results import Partition

#: Most clusters that a summary lists, and members of each; the terminal cuts off what is too wide.
MOST_CLUSTERS, MOST_MEMBERS = 24, 50
#: Colours of what is proved, by its strength.
STYLES = {"tight": "green", "loose": "yellow", "open": ""}


def print_json(facts: Any) -> None:
    """Print facts as JSON; numbers that are not finite become null."""
    print(json.dumps(_with_nulls(facts), indent=2, allow_nan=False))


def _with_nulls(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {str(name): _with_nulls(value) for name, value in facts.items()}
    if isinstance(facts, list | tuple):
        return [_with_nulls(value) for value in facts]
    return None if isinstance(facts, float) and not math.isfinite(facts) else facts


def certificate_facts(certificate: Certificate) -> dict[str, Any]:
    """Return what a certificate says, for machines."""
    names = ("value", "bound", "gap", "relative_gap", "scope", "kind", "rigorous", "trust")
    return {name: getattr(certificate, name) for name in names}


def print_certificate(certificate: Certificate, about: str = "") -> None:
    """Print what a certificate proves; `about` says what it is about."""
    text = describe(certificate)
    terminal.show(f"{about}{text.claim}", STYLES[text.state])
    if not text.exact:
        print(text.basis)


def partition_facts(partition: Partition, factors: bool = True) -> dict[str, Any]:
    """Return a partition for machines."""
    import numpy as np

    from cvxnmf.io.writing import labels_as_json

    return {
        "nodes": len(partition.nodes),
        "edges": _n_edges(partition.A),
        "sizes": np.bincount(partition.labels, minlength=partition.n_clusters).tolist(),
        "modularity": partition.modularity,
        "performance": partition.performance,
        "off_diagonal_performance": partition.off_diagonal_performance,
        "status": partition.status.name,
        "groups": partition.n_groups,
        "certificate": certificate_facts(partition.certificate),
        "rank_certificate": certificate_facts(partition.rank_certificate) if factors else None,
        "label_certificate": certificate_facts(proof) if (proof := partition.label_certificate_at_hand) is not None else None,
        "several_optimal": partition.several_optimal,
        "alternatives": [{"clusters": k, "description_length": length} for k, length in partition.alternatives],
        "trace": partition.certificate.statement.get("trace"),
        "iterations": partition.solution.n_iter,
        "seconds": partition.solution.seconds,
        **labels_as_json(partition),
    }


def _n_edges(A: Any) -> int:
    """Return the number of edges of an undirected graph, self-loops among them."""
    import numpy as np

    return int(A.count_nonzero() + np.count_nonzero(A.diagonal())) // 2


def print_partition(partition: Partition, title: str, factors: bool = True) -> None:
    """Print a summary of a partition."""
    k, name = partition.n_clusters, terminal.printable(title)
    nodes, edges = count(len(partition.nodes), "node"), count(_n_edges(partition.A), "edge")
    terminal.show(f"{name}: {nodes}, {edges}, {count(k, 'cluster')}", "bold")
    print(
        f"modularity {partition.modularity:.4f}, performance {partition.performance:.4f} "
        f"({partition.off_diagonal_performance:.4f} without the diagonal)"
    )
    print(f"{partition.comparison}\n" if partition.comparison else "")
    _print_clusters(partition)
    if k == 1 and len(partition.spectrum) and partition.spectrum[0] <= partition.noise_edge:
        found = f"largest eigenvalue {partition.spectrum[0]:.3g}, noise edge {partition.noise_edge:.3g}"
        print(f"\nNothing stands out of the noise ({found}), so that all nodes are one cluster; -k 2 asks for two.")
    print()
    print_certificate(partition.certificate, "The model: ")
    if factors:
        print()
        print_certificate(partition.rank_certificate, f"Its {count(k, 'factor')}: ")
    if partition.label_certificate_at_hand is not None:
        print()
        print_certificate(partition.label_certificate_at_hand, "Its labels: ")
        if partition.uniqueness:
            print(partition.uniqueness)


def _print_clusters(partition: Partition) -> None:
    """Print the clusters with their sizes and surest members."""
    rows = cluster_rows(partition, MOST_CLUSTERS, MOST_MEMBERS, terminal.printable)
    terminal.show_table(("cluster", "nodes", "members, the surest first"), rows, left=(2,))
    if partition.n_clusters > MOST_CLUSTERS:
        print(f"and {count(partition.n_clusters - MOST_CLUSTERS, 'smaller cluster')}; --json or --output shows them all")


def print_lost_or_kept(best: str, files: list[str]) -> None:
    """Say on stderr where the best answer of an interrupted command is."""
    where = f"is in {' and '.join(files)}" if files else "is lost, since no --output was given"
    terminal.note(f"interrupted; the best answer so far ({best}) {where}.")
