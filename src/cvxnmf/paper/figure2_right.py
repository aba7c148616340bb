"""Figure 2, right: performance against the spectral methods, from near-bipartite graphs to clear clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxnmf.graphs.quality import performance
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.paper import methods, style
from cvxnmf.paper.experiment import Experiment, Options, Row, repeated_tasks

#: Colour and line by method, in the order of the table.
LOOKS = {
    methods.PAPER_KL: (style.BLUE, "-"),
    methods.PAPER_MSE: (style.PURPLE, "-"),
    methods.DEFAULT: (style.GREEN, "-"),
    methods.MIN_MAX: (style.BLACK, "--"),
    methods.SPLIT: (style.GREY, ":"),
    methods.NORMALISED: (style.RED, "--"),
    methods.BOUND: (style.ORANGE, "-."),
}


def _rows(task: tuple[Any, ...], options: Options) -> list[Row]:
    """Rows of figure 2, right: the performance of every method on one graph, and a bound for two clusters."""
    _, delta, repeat = task
    seed, tol = options["seed"] + repeat, options["tol"]
    A = methods.draw_graph(options["size"], delta, seed)
    graph = {"delta": delta, "seed": seed}
    unproved: Row = {"relative_gap": None, "tol": None}
    rows: list[Row] = []
    for method in methods.CONVEX:
        found = methods.partition_in_two(A, method, tol)
        proof = {"relative_gap": found.certificate.relative_gap, "tol": tol}
        rows.append({**graph, "method": method, "performance": performance(A, found.labels), **proof})
    for method, labels in methods.SPECTRAL.items():
        rows.append({**graph, "method": method, "performance": performance(A, labels(A)), **unproved})
    bound = methods.performance_bound(A, found.labels)
    return [*rows, {**graph, "method": methods.BOUND, "performance": bound, **unproved}]


def _scores(rows: Sequence[Row]) -> dict[tuple[float, str], FloatArray]:
    """Performances by delta and method for figure 2, right, graph by graph in one order."""
    scores: dict[tuple[float, str], list[float]] = {}
    for row in rows:
        scores.setdefault((row["delta"], row["method"]), []).append(row["performance"])
    return {key: np.array(values) for key, values in scores.items()}


def _means(rows: Sequence[Row]) -> list[Row]:
    """Mean performance and standard deviation over graphs, by delta and method, for figure 2, right."""
    lines: list[Row] = []
    for (delta, method), values in _scores(rows).items():
        mean, deviation = style.mean_and_deviation(values.tolist())
        lines.append({"delta": delta, "method": method, "graphs": len(values), "mean": mean, "standard_deviation": deviation})
    return lines


def _paired_differences(rows: Sequence[Row]) -> list[Row]:
    """Performance of every convex setting less that of every spectral method on equal graphs, for figure 2, right."""
    scores = _scores(rows)
    return [
        {"delta": delta, "method": method, "against": against, **_difference(scores[delta, method] - scores[delta, against])}
        for delta in dict.fromkeys(row["delta"] for row in rows)
        for method in methods.CONVEX
        for against in methods.SPECTRAL
    ]


def _difference(differences: FloatArray) -> Row:
    """Mean difference of performances, its standard error, and the shares of graphs won, tied and lost."""
    mean, deviation = style.mean_and_deviation(differences.tolist())
    shares = {"wins": differences > 0, "ties": differences == 0, "losses": differences < 0}
    error = deviation / len(differences) ** 0.5
    return {"mean_difference": mean, "standard_error": error, **{key: float(np.mean(share)) for key, share in shares.items()}}


def _draw(rows: Sequence[Row], options: Options) -> Any:
    """Draw figure 2, right: mean performances, and differences to the min-max cut.

    Edges inside a half and across differ by ``delta`` in probability, which adds an eigenvalue ``n delta / 2`` to noise of
    variance ``(1 - delta^2) / 4`` per entry; it stands out only if ``delta`` is above about ``1 / sqrt(n)``.
    """
    figure, (axes,) = style.panels(2, width=5.6, height=4.0)
    lines, deltas = _means(rows), np.array(sorted(options["deltas"]))
    for method, (colour, line) in LOOKS.items():
        chosen = sorted((entry for entry in lines if entry["method"] == method), key=lambda entry: entry["delta"])
        mean = np.array([entry["mean"] for entry in chosen])
        style.curve(axes[0], deltas, mean, np.array([entry["standard_deviation"] for entry in chosen]), colour, line)
    style.title(axes[0], "Performance, mean ± one standard deviation")
    _draw_differences(axes[1], _scores(rows), deltas)
    for panel in axes:
        panel.axvline(options["size"] ** -0.5, color=style.GREY, linewidth=0.8, linestyle=":")
        panel.set_xlabel("β − α    (near-bipartite ← → clear clusters)")
    graphs = f"{options['repeats']} graphs of {options['size']} nodes at every β − α"
    figure.supxlabel(f"{graphs}; left of the dotted line noise hides the clusters", fontsize=8, color=style.GREY)
    return figure


def _draw_differences(axes: Any, scores: dict[tuple[float, str], FloatArray], deltas: FloatArray) -> None:
    """Draw differences of performance to the min-max cut on equal graphs, each with one standard error."""
    names = []
    for method, (colour, line) in LOOKS.items():
        entries = [_difference(scores[delta, method] - scores[delta, methods.MIN_MAX]) for delta in deltas]
        mean = np.array([entry["mean_difference"] for entry in entries])
        style.curve(axes, deltas, mean, np.array([entry["standard_error"] for entry in entries]), colour, line)
        names.append((float(np.mean(mean[: len(mean) // 2 + 1])), method, colour))
    style.title(axes, "Difference to the min-max cut on the same graphs, ± one standard error")
    style.label_ends(axes, names)


FIGURE_2_RIGHT = Experiment(
    name="figure2-right",
    defaults={"size": 100, "repeats": 50, "deltas": tuple(round(0.1 * step, 1) for step in range(-8, 9)), "tol": 1e-4, "seed": 0},
    quick={"size": 40, "repeats": 5, "deltas": (-0.8, -0.4, 0.0, 0.4, 0.8)},
    tasks=lambda options: repeated_tasks(options, options["deltas"], "beta - alpha = {:g}"),
    rows=_rows,
    draw=_draw,
    summaries={"means": _means, "paired": _paired_differences},
)
