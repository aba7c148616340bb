"""Figure 2, left: steps to a certified gap against the size of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxnmf.convex.certify import certify
from cvxnmf.convex.symmetric import SymmetricProblem, symmetric
from cvxnmf.graphs.block_graph import block_graph
from cvxnmf.paper import methods, style
from cvxnmf.paper.experiment import Experiment, Options, Row

_PAPER = {"cone": "psd", "metric": "uniform"}
#: Arguments of `symmetric`, method, colour and line by the name of the series.
SERIES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "projected gradient, KL": ({**_PAPER, "loss": "kl"}, "projected-gradient", style.BLUE, "-"),
    "projected gradient, MSE": ({**_PAPER, "loss": "mse"}, "projected-gradient", style.RED, "-"),
    "accelerated, KL": ({**_PAPER, "loss": "kl"}, "accelerated", style.BLUE, "--"),
    "accelerated, MSE": ({**_PAPER, "loss": "mse"}, "accelerated", style.RED, "--"),
    "default, descents in factors": ({"trace": "auto"}, "factored", style.GREEN, "-"),
}


def _tasks(options: Options) -> list[tuple[Any, ...]]:
    return [
        (f"n = {size}, graph {repeat + 1} of {options['repeats']}", size, repeat)
        for size in options["sizes"]
        for repeat in range(options["repeats"])
    ]


def _rows(task: tuple[Any, ...], options: Options) -> list[Row]:
    """Steps of every method on one graph."""
    _, size, repeat = task
    rows: list[Row] = []
    for delta in options["deltas"]:
        seed = options["seed"] + repeat
        A, _ = block_graph(size, *methods.thresholds(delta), rng=seed)
        for name, (terms, method, *_) in SERIES.items():
            graph = {"n": size, "delta": delta, "seed": seed, "series": name}
            rows.append({**graph, **_count_steps(symmetric(A, **terms), method, options["tol"])})
    return rows


def _count_steps(problem: SymmetricProblem, method: str, tol: float) -> Row:
    """Steps until the gap is closed, with a certificate after every one.

    `solve` certifies every few steps only, which saves time and would round the numbers up.
    """
    (component,) = problem.components
    solver, steps = component.methods[method](component, component.start()), 0
    certificate = certify(problem, solver.point.dense())
    value, bound = certificate.value, certificate.bound
    while value - bound > tol * value and steps < methods.MOST_STEPS:
        solver.step()
        steps += 1
        certificate = certify(problem, solver.point.dense())
        value, bound = min(value, certificate.value), max(bound, certificate.bound)
    return {"steps": steps, "value": value, "bound": bound, "relative_gap": (value - bound) / value, "tol": tol}


def _draw(rows: Sequence[Row], options: Options) -> Any:
    figure, axes = style.panels(len(options["deltas"]), width=5.6, height=3.8)
    for panel, delta in zip(axes[0], options["deltas"], strict=True):
        ends = []
        for name, (_, _, colour, line) in SERIES.items():
            sizes, means, spreads = _summary([row for row in rows if row["series"] == name and row["delta"] == delta])
            style.curve(panel, sizes, means, spreads, colour, line)
            ends.append((means[-1], name, colour))
        panel.set_ylim(bottom=0)
        panel.set_xlabel("nodes n")
        style.title(panel, f"Steps to a certified gap of {options['tol']:g}, β − α = {delta:g}")
        style.label_ends(panel, ends)
    return figure


def _summary(rows: Sequence[Row]) -> tuple[Any, Any, Any]:
    """Sizes, mean steps and their standard deviation."""
    sizes = sorted({row["n"] for row in rows})
    pairs = [style.mean_and_deviation([row["steps"] for row in rows if row["n"] == size]) for size in sizes]
    return np.array(sizes), np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def _table(rows: Sequence[Row]) -> list[Row]:
    """Mean steps and their standard deviation by size and series."""
    lines: list[Row] = []
    for delta in sorted({row["delta"] for row in rows}):
        for name in SERIES:
            chosen = [row for row in rows if row["series"] == name and row["delta"] == delta]
            for size, mean, deviation in zip(*_summary(chosen), strict=True):
                numbers = {"mean_steps": float(mean), "standard_deviation": float(deviation)}
                lines.append({"delta": delta, "series": name, "n": int(size), **numbers})
    return lines


FIGURE_2_LEFT = Experiment(
    name="figure2-left",
    title="Steps to a certified gap against the size of the graph",
    defaults={"sizes": (20, 40, 60, 80, 100, 120, 140, 160, 180, 200), "repeats": 10, "deltas": (0.6,), "tol": 1e-6, "seed": 0},
    quick={"sizes": (20, 40, 60), "repeats": 3},
    tasks=_tasks,
    rows=_rows,
    draw=_draw,
    summaries={"means": _table},
)
