"""Draw the picture of the first page and of the README: a graph, its clusters, and the proof closing in.

``python docs/pictures/idea.py`` writes idea-light.svg and idea-dark.svg beside itself; the numbers are those of a real solve.
It is by projected gradient, since the default method needs a single step here.
"""

from __future__ import annotations

import math
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


def main(folder: Path) -> None:
    """Solve once, draw twice."""
    graph = nx.les_miserables_graph()
    A = nx.to_numpy_array(graph)
    found = cvxnmf.partition(graph)
    problem = cvxnmf.symmetric(A, trace="auto")
    closing = cvxnmf.solve(problem, method="projected-gradient", tol=1e-6).history
    for name, look in LOOKS.items():
        (folder / f"idea-{name}.svg").write_text(picture(A, found, closing, look), encoding="utf8")


def picture(A, found, closing, look) -> str:
    """Return the whole picture."""
    ground, ink, soft, line, between, clusters = look
    width, height = LEFT + 3 * SIDE + 2 * GAP + 74, TOP + SIDE + 46
    shares = np.bincount(found.labels)
    alt = f"The co-appearances in Les Misérables, their {len(shares)} clusters, and value and proved bound meeting."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{alt}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{ground}"/>',
        _matrix(A, np.argsort(found.nodes), np.full(len(A), -1), LEFT, line, between, clusters),
        _matrix(A, found.order, found.labels, LEFT + SIDE + GAP, line, between, clusters),
        _closing(closing, LEFT + 2 * (SIDE + GAP), ink, soft, line, clusters),
    ]
    captions = (
        ("1  a graph", f"{len(A)} people, by their names"),
        ("2  its clusters", f"{len(shares)} of them: the number is found"),
        ("3  and a proof", "no model of this form is below"),
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


def _closing(history, left, ink, soft, line, clusters) -> str:
    """Return value and bound over the steps, and the number where they meet."""
    steps = [step for step in history if math.isfinite(step.value) and step.bound > 0]
    best = steps[-1].bound
    low, high = min(step.bound for step in steps), max(step.value for step in steps)
    reach = 1.15 * max(high - best, best - low)

    def at(number: int, level: float) -> str:
        x = left + SIDE * number / max(len(steps) - 1, 1)
        y = TOP + SIDE / 2 - (SIDE / 2) * math.copysign(abs((level - best) / reach) ** 0.5, level - best)
        return f"{x:.1f} {y:.1f}"

    lines = []
    for levels, colour, name, side in (
        ([step.value for step in steps], clusters[1], "value", -1),
        ([step.bound for step in steps], clusters[0], "proved bound", 1),
    ):
        path = "M" + "L".join(at(number, level) for number, level in enumerate(levels))
        lines.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-linejoin="round"/>')
        x, y = at(len(levels) // 2, levels[len(levels) // 2]).split()
        lines.append(f'<text x="{x}" y="{float(y) + (24 if side > 0 else -12):.1f}" fill="{ink}">{name}</text>')
    middle = TOP + SIDE / 2
    base = f'<path d="M{left} {TOP}V{TOP + SIDE}H{left + SIDE}" fill="none" stroke="{line}"/>'
    goal = f'<path d="M{left} {middle}H{left + SIDE}" stroke="{line}" stroke-dasharray="3 4"/>'
    number = f'<text x="{left + SIDE + 8}" y="{middle + 4:.1f}" font-weight="600" fill="{ink}">{best:.2f}</text>'
    words = f"{len(steps)} steps of projected gradient"
    corner = f'x="{left + SIDE}" y="{TOP + SIDE - 8}" text-anchor="end" font-size="11"'
    under = f'<text {corner} fill="{soft}">{words}</text>'
    return base + goal + "".join(lines) + number + under


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
