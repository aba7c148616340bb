"""Figure 1: a block graph before and after its clusters are put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.paper import methods, style
from cvxnmf.paper.experiment import Experiment, Options, Row


def _tasks(options: Options) -> list[tuple[Any, ...]]:
    return [(f"beta - alpha = {delta:g}, {name}", delta, name) for delta in options["deltas"] for name in SHOWN]


def _rows(task: tuple[Any, ...], options: Options) -> list[Row]:
    """Rows of figure 1, one per node, in the order that puts clusters together."""
    _, delta, name = task
    found = methods.partition_in_two(methods.draw_graph(options["size"], delta, options["seed"]), name, options["tol"])
    facts = {"performance": found.performance, "relative_gap": found.certificate.relative_gap, "tol": options["tol"]}
    return [
        {"delta": delta, "setting": name, "position": place, "node": int(node), "cluster": int(found.labels[node]), **facts}
        for place, node in enumerate(found.order)
    ]


def _draw(rows: Sequence[Row], options: Options) -> Any:
    deltas = options["deltas"]
    figure, axes = style.panels(1 + len(SHOWN), len(deltas), width=3.0, height=3.3)
    for line, delta in zip(axes, deltas, strict=True):
        A = methods.draw_graph(options["size"], delta, options["seed"])
        _picture(line[0], A, f"as drawn, β − α = {delta:g}")
        for panel, name in zip(line[1:], SHOWN, strict=True):
            chosen = [row for row in rows if row["delta"] == delta and row["setting"] == name]
            order = np.array([row["node"] for row in chosen])
            _picture(panel, A[np.ix_(order, order)], f"{name}\nperformance {chosen[0]['performance']:.3f}")
            clusters = np.array([row["cluster"] for row in chosen])
            for place in np.flatnonzero(np.diff(clusters)) + 0.5:
                panel.axhline(place, color=style.RED, linewidth=1.2)
                panel.axvline(place, color=style.RED, linewidth=1.2)
    return figure


def _picture(axes: Any, A: FloatArray, title: str) -> None:
    """A picture of an adjacency matrix for figure 1, edges dark."""
    axes.imshow(A, cmap="Blues", vmin=0.0, vmax=1.3, interpolation="nearest")
    style.title(axes, title)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


#: The settings that figure 1 shows.
SHOWN = (methods.PAPER_KL, methods.DEFAULT)

FIGURE_1 = Experiment(
    name="figure1",
    defaults={"size": 100, "deltas": (0.6, 0.2), "tol": 1e-4, "seed": 0},
    quick={"size": 40},
    tasks=_tasks,
    rows=_rows,
    draw=_draw,
)
