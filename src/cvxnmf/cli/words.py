"""Results in words, tables and JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cvxnmf.cli import terminal

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate
    from cvxnmf.results import Partition

#: Most clusters that a summary lists.
MOST_CLUSTERS = 24
#: Up to this relative gap nothing is worth gaining.
PROVED_BEST = 1e-6


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 node, 2 nodes."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_json(facts: Any) -> None:
    """Print facts as JSON; numbers that are not finite become null."""
    print(json.dumps(_finite(facts), indent=2, allow_nan=False))


def _finite(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {str(name): _finite(value) for name, value in facts.items()}
    if isinstance(facts, list | tuple):
        return [_finite(value) for value in facts]
    return None if isinstance(facts, float) and not math.isfinite(facts) else facts


def certificate_facts(certificate: Certificate) -> dict[str, Any]:
    """What a certificate says, for machines."""
    names = ("value", "bound", "gap", "relative_gap", "scope", "kind", "rigorous")
    return {name: getattr(certificate, name) for name in names}


def share(ratio: float) -> str:
    """A relative gap as a percentage that shows where it ends."""
    percent = 100.0 * ratio
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%" if percent >= 1e-3 else f"{percent:.0e}%"


def certificate_words(certificate: Certificate, subject: str) -> str:
    """What a certificate proves, in sentences."""
    stated = f"value {certificate.value:.8g}, proved bound {certificate.bound:.8g}, relative gap {certificate.relative_gap:.1e}"
    if is_exact(certificate):
        return f"{stated}.\n{coloured('The fit is exact.', 'green')}"
    if not certificate.bound > 0 and certificate.value > 0:
        return f"{stated}.\nNothing useful is proved: {certificate.explanation}."
    gap = certificate.relative_gap
    if gap <= PROVED_BEST:
        proved = coloured(f"No {subject} is better.", "green")
    else:
        proved = coloured(f"No {subject} can be more than {share(gap)} better.", "green" if gap <= 1e-3 else "yellow")
    rigour = "" if certificate.rigorous else " (not rigorous)"
    return f"{stated}.\n{proved} The bound rests on {_lower(certificate.explanation)}{rigour}."


def is_exact(certificate: Certificate) -> bool:
    """Whether a value is 0 but for rounding, so that nothing needs a proof."""
    return certificate.scope == "rank-k" and not certificate.bound > 0 and certificate.relative_gap <= PROVED_BEST


def _lower(text: str) -> str:
    return f"the fact that {text}" if text.startswith(("the loss", "the best")) else text


def coloured(text: str, colour: str) -> str:
    """The text in a colour, where stdout has colours."""
    return terminal.coloured(text, colour, sys.stdout)


def print_table(header: Sequence[str], lines: Sequence[Sequence[str]], left: Sequence[int]) -> None:
    """Print a table; columns stand to the right but for those in `left`."""
    widths = [max(len(line[column]) for line in (header, *lines)) for column in range(len(header))]
    rule = ["-" * width for width in widths]
    for line in (header, rule, *lines):
        cells = [c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))]
        print("  ".join(cells).rstrip())


def partition_facts(partition: Partition, factors: bool = True) -> dict[str, Any]:
    """A partition for machines."""
    import numpy as np

    from cvxnmf.io.writing import labels_as_json

    return {
        "nodes": len(partition.nodes),
        "edges": n_edges(partition.A),
        "sizes": np.bincount(partition.labels, minlength=partition.n_clusters).tolist(),
        "modularity": partition.modularity,
        "performance": partition.performance,
        "off_diagonal_performance": partition.off_diagonal_performance,
        "status": partition.status.name,
        "groups": partition.n_groups,
        "certificate": certificate_facts(partition.certificate),
        "rank_certificate": certificate_facts(partition.rank_certificate) if factors else None,
        "trace": partition.certificate.statement.get("trace"),
        "iterations": partition.solution.n_iter,
        "seconds": partition.solution.seconds,
        **labels_as_json(partition),
    }


def n_edges(A: Any) -> int:
    """Edges of an undirected graph, self-loops among them."""
    import numpy as np

    return int(A.count_nonzero() + np.count_nonzero(A.diagonal())) // 2


def print_partition(partition: Partition, title: str, factors: bool = True) -> None:
    """Print a summary of a partition."""
    print(
        coloured(f"{terminal.printable(title)}: {counted(len(partition.nodes), 'node')}, ", "bold")
        + coloured(f"{counted(n_edges(partition.A), 'edge')}, {counted(partition.n_clusters, 'cluster')}", "bold")
    )
    print(
        f"modularity {partition.modularity:.4f}, performance {partition.performance:.4f} "
        f"({partition.off_diagonal_performance:.4f} without the diagonal)\n"
    )
    _print_clusters(partition)
    if partition.n_clusters == 1 and len(partition.spectrum) and partition.spectrum[0] <= partition.noise_edge:
        found = f"largest eigenvalue {partition.spectrum[0]:.3g}, noise edge {partition.noise_edge:.3g}"
        print(f"\nNothing stands out of the noise ({found}), so that all nodes are one cluster; -k 2 asks for two.")
    k = partition.n_clusters
    groups = partition.n_groups
    form = "model of this form" if groups is None else f"model of this form on these {groups:,} groups of nodes"
    print(f"\nThe model: {certificate_words(partition.certificate, form)}")
    if factors:
        subject = f"set of {k} nonnegative factors" if k > 1 else "single nonnegative factor"
        print(f"\nIts {counted(k, 'factor')}: {certificate_words(partition.rank_certificate, subject)}")


def _print_clusters(partition: Partition) -> None:
    lines, room = [], max(20, terminal.width() - 20)
    for cluster in range(min(partition.n_clusters, MOST_CLUSTERS)):
        members = partition.order[partition.labels[partition.order] == cluster]
        names = [terminal.printable(str(partition.nodes[i])) for i in members[:50]]
        lines.append([str(cluster), f"{len(members):,}", _as_many_as_fit(names, len(members), room)])
    print_table(("cluster", "nodes", "members, the surest first"), lines, left=(2,))
    if partition.n_clusters > MOST_CLUSTERS:
        print(f"and {counted(partition.n_clusters - MOST_CLUSTERS, 'smaller cluster')}; --json or --output shows them all")


def _as_many_as_fit(names: Sequence[str], number: int, room: int) -> str:
    text = ""
    for index, name in enumerate(names):
        following = f"{text}, {name}" if text else name
        if text and len(following) + 5 * (index + 1 < number) > room:
            break
        text = following
    else:
        index = len(names)
    return text if index == number else f"{text}, ..."
