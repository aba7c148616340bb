"""Draw the picture of the first page and of the README: a graph, its clusters, and the proof that none are better.

``python docs/pictures/idea.py`` writes idea-light.svg and idea-dark.svg beside itself; the numbers are those of real runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import networkx as nx
import numpy as np

import cvxnmf
from cvxnmf.display import palette as colours

#: Ground, writing, faint writing, lines, cells between clusters, and the colours of clusters.
LOOKS = {
    "light": ("#ffffff", "#1a1f27", "#586272", "#c9d0d9", "#9aa4b1", colours.LIGHT),
    "dark": ("#0f141b", "#e8ecf1", "#a3adba", "#3a4450", "#6b7684", colours.DARK),
}
SIDE, TOP, LEFT, GAP = 220, 46, 16, 34
RUNS = 16


def main(folder: Path) -> None:
    """Solve once, draw twice."""
    graph = nx.les_miserables_graph()
    A = nx.to_numpy_array(graph)
    found = cvxnmf.partition(graph, objective="modularity", prove=True)
    runs = [nx.community.louvain_communities(graph, seed=seed) for seed in range(RUNS)]
    values = [nx.community.modularity(graph, communities) for communities in runs]
    for name, look in LOOKS.items():
        (folder / f"idea-{name}.svg").write_text(picture(A, found, values, look), encoding="utf8")


def picture(A, found, values, look) -> str:
    """Return the whole picture."""
    ground, ink, soft, line, between, clusters = look
    width, height = LEFT + 3 * SIDE + 2 * GAP + 74, TOP + SIDE + 46
    shares = np.bincount(found.labels)
    alt = f"The co-appearances in Les Misérables, their {len(shares)} clusters, and the proof that no partition is better."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{alt}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{ground}"/>',
        _matrix(A, np.argsort(found.nodes), np.full(len(A), -1), LEFT, line, between, clusters),
        _matrix(A, found.order, found.labels, LEFT + SIDE + GAP, line, between, clusters),
        _runs(values, found.label_certificate.bound, LEFT + 2 * (SIDE + GAP), ink, soft, line, clusters),
    ]
    captions = (
        ("1  a graph", f"{len(A)} people, by their names"),
        ("2  its clusters", f"{len(shares)} of them: the number is found"),
        ("3  and a proof", "nobody's clusters have more modularity"),
    )
    for place, (title, words) in enumerate(captions):
        x = LEFT + place * (SIDE + GAP)
        parts.append(f'<text x="{x}" y="28" font-weight="600" font-size="15" fill="{ink}">{title}</text>')
        parts.append(f'<text x="{x}" y="{TOP + SIDE + 26}" fill="{soft}">{words}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _matrix(A, order, labels, left, line, between, clusters) -> str:
    """Return the edges as cells; those inside a cluster in its colour."""
    cell = SIDE / len(A)
    place = np.argsort(order)
    drawn: dict[str, list[str]] = {}
    for i, j in np.argwhere(A > 0).tolist():
        inside = labels[i] == labels[j] and labels[i] >= 0
        colour = clusters[labels[i]] if inside else between
        corner = f"M{left + place[j] * cell:.1f} {TOP + place[i] * cell:.1f}"
        drawn.setdefault(colour, []).append(f"{corner}h{cell:.1f}v{cell:.1f}h-{cell:.1f}z")
    frame = f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="{line}"/>'
    return frame + "".join(f'<path fill="{colour}" d="{"".join(cells)}"/>' for colour, cells in drawn.items())


def _runs(values, best, left, ink, soft, line, clusters) -> str:
    """Return a dot for each run of Louvain, the line that no partition is above, and the partition that is on it."""
    low = min(values)

    def at(level: float) -> float:
        return TOP + 34 + (SIDE - 64) * (best - level) / (best - low)

    base = f'<path d="M{left} {TOP}V{TOP + SIDE}H{left + SIDE}" fill="none" stroke="{line}"/>'
    shade = f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="34" fill="{line}" opacity="0.35"/>'
    limit = f'<path d="M{left} {at(best)}H{left + SIDE}" stroke="{clusters[0]}" stroke-width="2.5"/>'
    words = f'<text x="{left + 8}" y="{TOP + 21}" fill="{ink}">proved: no partition is up here</text>'
    number = f'<text x="{left + SIDE + 8}" y="{at(best) + 4:.1f}" font-weight="600" fill="{ink}">{best:.4f}</text>'
    step = (SIDE - 60) / max(len(values) - 1, 1)
    dots = "".join(
        f'<circle cx="{left + 14 + step * run:.1f}" cy="{at(level):.1f}" r="4" fill="{clusters[1]}"/>'
        for run, level in enumerate(values)
    )
    ours = f'<circle cx="{left + SIDE - 20}" cy="{at(best):.1f}" r="7" fill="{clusters[0]}"/>'
    name = f'<text x="{left + SIDE - 8}" y="{at(best) + 24:.1f}" text-anchor="end" fill="{ink}">cvxnmf</text>'
    under = f'x="{left + SIDE}" y="{TOP + SIDE - 8}" text-anchor="end" font-size="11" fill="{soft}"'
    return (
        base
        + shade
        + limit
        + words
        + number
        + dots
        + ours
        + name
        + f"<text {under}>{len(values)} runs of Louvain, by their seeds</text>"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
