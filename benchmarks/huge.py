"""Graphs of up to a million nodes: growth with the edges, memory, and agreement with planted groups beside leidenalg."""

from __future__ import annotations

import cvxnmf
from benchmarks import child, datasets, objective, solvers
from benchmarks.report import Table, missing_row
from benchmarks.scale import Scale

#: Clusters of the planted graphs, and the share of edges across them.
K, MIXING = 20, 0.2


def growth(scale: Scale) -> list[Table]:
    """Planted graphs of growing size, each in a process of its own: partition with its certificate, then factors with theirs."""
    sizes = scale.pick([600], [30_000], [100_000, 200_000, 500_000, 1_000_000])
    header = [
        "nodes",
        "edges",
        "partition, s",
        "peak, MB",
        "NMI",
        "gap proved, in groups",
        "factors and their bound, s",
        "tail gap",
    ]
    told = {n: child.ask("huge", n=n, k=K if n > 5000 else 4, degree=10, mixing=MIXING) for n in sizes}
    rows, found = [], {}
    for n, facts in told.items():
        if facts is None:
            rows.append(missing_row(f"{n:,}", "not told by this system", len(header)))
            continue
        found[n] = facts
        gaps = [
            f"{facts['gap']:.1e} in {facts['groups']:,}" if facts["groups"] else f"{facts['gap']:.1e}",
            f"{facts['tail']:.1e}",
        ]
        measured = [f"{facts['seconds']:.1f}", f"{facts['peak'] / 1e6:,.0f}", f"{facts['nmi']:.4f}", gaps[0]]
        rows.append([f"{n:,}", f"{facts['edges']:,}", *measured, f"{facts['factors']:.1f}", gaps[1]])
    note = (
        f"k = {K} planted groups, mean degree 10, a fifth of the edges across. The gap is that of the convex model with "
        "positions of groups, computed by the certificate's own check; the tail gap that of the factors against the singular "
        "values. The peak is that of the whole process, the making of the graph included."
    )
    if len(found) > 1:
        slope = objective.exponent([f["edges"] for f in found.values()], [f["seconds"] for f in found.values()])
        note += f" Fitted exponent of the seconds over edges: {slope:.2f} (goal from 100,000 to 1,000,000 nodes: at most 1.15)."
    return [Table("Partition of huge planted graphs", header, rows, note)]


def against_leiden(scale: Scale) -> list[Table]:
    """Planted degree-corrected graphs: agreement and seconds beside leidenalg."""
    n = scale.pick(600, 20_000, 100_000)
    header = ["graph", "method", "seconds", "clusters", "NMI"]
    rows = []
    kinds = (("heavy-tailed degrees", 2.5), ("even degrees", None))
    for words, tail in kinds[: scale.pick(1, 1, 2)]:
        A, truth = datasets.sparse_degree_corrected(n, 4 if scale.tiny else K, 15, MIXING, tail, seed=0)
        k = len(set(truth.tolist()))
        works, missing = solvers.present(
            {
                "cvxnmf.partition, k given": lambda A=A, k=k: cvxnmf.partition(A, k).labels,
                "cvxnmf.partition, k found": lambda A=A: cvxnmf.partition(A).labels,
                "leidenalg": lambda A=A: solvers.leiden_labels(A),
            }
        )
        for method, work in works.items():
            spent, labels = objective.seconds(work)
            nmi = objective.agreement(truth, labels)[1]
            rows.append([f"{n:,} nodes, {words}", method, f"{spent:.1f}", str(int(labels.max()) + 1), f"{nmi:.4f}"])
        rows += [[f"{n:,} nodes, {words}", *missing_row(peer, why, len(header) - 1)] for peer, why in missing.items()]
    note = (
        f"Mean degree 15, {K} groups, a fifth of the edges across. One run each; leidenalg raises the modularity and chooses k."
    )
    return [Table("Large planted graphs against leidenalg", header, rows, note)]
