"""Results on stdout: text for people, JSON for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
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
    """Return a certificate's numbers as output for machines."""
    names = ("value", "bound", "gap", "relative_gap", "scope", "kind", "rigorous", "trust")
    return {name: getattr(certificate, name) for name in names}


def print_certificate(certificate: Certificate, about: str = "") -> None:
    """Print what a certificate proves on stdout; `about` says what it is about."""
    text = describe(certificate)
    terminal.show(f"{about}{text.claim}", STYLES[text.state])
    if not text.exact:
        print(text.basis)


def partition_facts(partition: Partition) -> dict[str, Any]:
    """Return a partition as output for machines; what was not proved is null."""
    import numpy as np

    from cvxnmf.io.writing import labels_as_json

    rank, label = partition.rank_certificate_at_hand, partition.label_certificate_at_hand
    return {
        "nodes": len(partition.nodes),
        "edges": _n_edges(partition.A),
        "sizes": np.bincount(partition.labels, minlength=partition.n_clusters).tolist(),
        "modularity": partition.modularity,
        "performance": partition.performance,
        "off_diagonal_performance": partition.off_diagonal_performance,
        **_model_facts(partition),
        "rank_certificate": rank and certificate_facts(rank),
        "label_certificate": label and certificate_facts(label),
        "several_optimal": partition.several_optimal,
        "alternatives": [{"clusters": k, "description_length": length} for k, length in partition.alternatives],
        **labels_as_json(partition),
    }


def _model_facts(partition: Partition) -> dict[str, Any]:
    """Return a partition's convex model as output for machines; null where it was not solved."""
    if partition.certificate_at_hand is None:
        return dict.fromkeys(("status", "groups", "certificate", "trace", "iterations", "seconds"))
    return {
        "status": partition.status.name,
        "groups": partition.n_groups,
        "certificate": certificate_facts(partition.certificate),
        "trace": partition.certificate.statement.get("trace"),
        "iterations": partition.solution.n_iter,
        "seconds": partition.solution.seconds,
    }


def _n_edges(A: Any) -> int:
    """Return the number of edges of an undirected graph for output, self-loops among them."""
    import numpy as np

    return int(A.count_nonzero() + np.count_nonzero(A.diagonal())) // 2


def print_partition(partition: Partition, title: str, ask: str = "", members: int = MOST_MEMBERS) -> None:
    """Print a summary of a partition and its proofs on stdout; `ask` is the option that asks for missing ones."""
    k, name = partition.n_clusters, terminal.printable(title)
    nodes, clusters = partition._sizes()
    terminal.show(f"{name}: {nodes}, {count(_n_edges(partition.A), 'edge')}, {clusters}", "bold")
    print(
        f"modularity {partition.modularity:.4f}, performance {partition.performance:.4f} "
        f"({partition.off_diagonal_performance:.4f} without the diagonal)"
    )
    print(f"{partition.comparison}\n" if partition.comparison else "")
    _print_clusters(partition, members)
    if k == 1 and len(partition.spectrum) and partition.spectrum[0] <= partition.noise_edge:
        found = f"largest eigenvalue {partition.spectrum[0]:.3g}, noise edge {partition.noise_edge:.3g}"
        print(f"\nNothing stands out of the noise ({found}), so that all nodes are one cluster; -k 2 asks for two.")
    _print_proofs(partition)
    if ask and not partition.proofs_at_hand:
        print(f"\nNothing is proved yet; {ask} proves how good the model, its {count(k, 'factor')} and the labels are.")


def _print_proofs(partition: Partition) -> None:
    """Print on stdout what is proved of a partition's model, of its factors and of the labels."""
    headings = {"model": "The model: ", "rank-k": f"Its {count(partition.n_clusters, 'factor')}: ", "labels": "Its labels: "}
    for certificate in partition.proofs_at_hand:
        print()
        print_certificate(certificate, headings[certificate.scope])
    if partition.uniqueness:
        print(partition.uniqueness)


def _print_clusters(partition: Partition, members: int) -> None:
    """Print a partition's clusters with their sizes and surest members on stdout."""
    rows = cluster_rows(partition, MOST_CLUSTERS, members, terminal.printable)
    terminal.show_table(("cluster", "nodes", "members, the surest first"), rows, left=(2,))
    if partition.n_clusters > MOST_CLUSTERS:
        print(f"and {count(partition.n_clusters - MOST_CLUSTERS, 'smaller cluster')}; --json or --output shows them all")


def say_written(paths: Iterable[str | None], quiet: bool) -> None:
    """Say on stderr which files a command has written."""
    files = [path for path in paths if path not in (None, "-")]
    if files and not quiet:
        listed = f"{', '.join(files[:-1])} and {files[-1]}" if len(files) > 1 else files[0]
        terminal.note(f"wrote {listed}.")


def print_lost_or_kept(best: str, files: list[str]) -> None:
    """Say on stderr where the best answer of an interrupted command is."""
    where = f"is in {' and '.join(files)}" if files else "is lost, since no --output was given"
    terminal.note(f"interrupted; the best answer so far ({best}) {where}.")
