"""Figure 2, left: steps to a certified gap against the size of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from cvxnmf.convex.certify import certify
from cvxnmf.convex.symmetric import SymmetricProblem, symmetric
from cvxnmf.paper import methods, style
from cvxnmf.paper.experiment import Experiment, Options, Row, repeated_tasks

_PAPER = {"cone": "psd", "metric": "uniform"}
#: Arguments of `symmetric`, method, colour and line by the name of the series.
SERIES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "projected gradient, KL": ({**_PAPER, "loss": "kl"}, "projected-gradient", style.BLUE, "-"),
    "projected gradient, MSE": ({**_PAPER, "loss": "mse"}, "projected-gradient", style.RED, "-"),
    "accelerated, KL": ({**_PAPER, "loss": "kl"}, "accelerated", style.BLUE, "--"),
    "accelerated, MSE": ({**_PAPER, "loss": "mse"}, "accelerated", style.RED, "--"),
    "default, descents in factors": ({"trace": "auto"}, "factored", style.GREEN, "-"),
}


def _rows(task: tuple[Any, ...], options: Options) -> list[Row]:
    """Rows of figure 2, left: steps of every method on one graph."""
    _, size, repeat = task
    rows: list[Row] = []
    for delta in options["deltas"]:
        seed = options["seed"] + repeat
        A = methods.draw_graph(size, delta, seed)
        for name, (terms, method, *_) in SERIES.items():
            graph = {"n": size, "delta": delta, "seed": seed, "series": name}
            rows.append({**graph, **_count_steps(symmetric(A, **terms), method, options["tol"])})
    return rows


def _count_steps(problem: SymmetricProblem, method: str, tol: float) -> Row:
    """Steps of a method for figure 2, left, until the gap is closed, with a certificate after every one.

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
    lines = _means(rows)
    for panel, delta in zip(axes[0], options["deltas"], strict=True):
        ends = []
        for name, (_, _, colour, line) in SERIES.items():
            chosen = [entry for entry in lines if entry["series"] == name and entry["delta"] == delta]
            sizes, means, spreads = (np.array([x[key] for x in chosen]) for key in ("n", "mean_steps", "standard_deviation"))
            style.curve(panel, sizes, means, spreads, colour, line)
            ends.append((means[-1], name, colour))
        panel.set_ylim(bottom=0)
        panel.set_xlabel("nodes n")
        style.title(panel, f"Steps to a certified gap of {options['tol']:g}, β − α = {delta:g}")
        style.label_ends(panel, ends)
    return figure


def _means(rows: Sequence[Row]) -> list[Row]:
    """Mean steps and their standard deviation by size and series, for figure 2, left."""
    lines: list[Row] = []
    deltas, sizes = (sorted({row[key] for row in rows}) for key in ("delta", "n"))
    for delta, name, n in product(deltas, SERIES, sizes):
        steps = [row["steps"] for row in rows if (row["delta"], row["series"], row["n"]) == (delta, name, n)]
        mean, deviation = style.mean_and_deviation(steps)
        lines.append({"delta": delta, "series": name, "n": n, "mean_steps": mean, "standard_deviation": deviation})
    return lines


FIGURE_2_LEFT = Experiment(
    name="figure2-left",
    defaults={"sizes": (20, 40, 60, 80, 100, 120, 140, 160, 180, 200), "repeats": 10, "deltas": (0.6,), "tol": 1e-6, "seed": 0},
    quick={"sizes": (20, 40, 60), "repeats": 3},
    tasks=lambda options: repeated_tasks(options, options["sizes"], "n = {}"),
    rows=_rows,
    draw=_draw,
    summaries={"means": _means},
)
