"""The rank-two study: how precise the paper's 2^r columns are, beside its series and the lattice."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxnmf.cp.exp_factor import exp_factor
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.leading import leading_eigenpairs
from cvxnmf.paper import style
from cvxnmf.paper.experiment import Experiment, Options, Row

RANK_TWO = "rank-two"
#: Tolerances of the methods whose error can be chosen.
TOLERANCES = (1e-1, 1e-2, 1e-4)
#: Standard deviation of the positions where the rank grows.
DEVIATION = 0.5


def _tasks(options: Options) -> list[tuple[Any, ...]]:
    by_spread = [(f"one column in [-{spread:g}, {spread:g}]", "spread", spread) for spread in options["spreads"]]
    return by_spread + [(f"{rank} random columns", "rank", rank) for rank in options["ranks"]]


def _positions(kind: str, value: float, options: Options) -> FloatArray:
    """Positions for the rank-two study: evenly spaced points in [-spread, spread], or normal ones in `rank` dimensions."""
    if kind == "spread":
        return np.linspace(-value, value, options["size"])[:, None]
    return DEVIATION * np.random.default_rng(options["seed"]).standard_normal((options["size"], int(value)))


def _rows(task: tuple[Any, ...], options: Options) -> list[Row]:
    """Rows of the rank-two study: errors and columns of every method for one set of positions."""
    _, kind, value = task
    W = _positions(kind, value, options)
    W = W - W.mean(axis=0)
    start = {"varied": kind, "spread": float(np.abs(W).max()), "rank": W.shape[1]}
    rows = [{**start, "method": RANK_TWO, "tol": None, **_rank_two_errors(W)}]
    for method in ("lattice", "series"):
        rows += [{**start, "method": method, "tol": tol, **_factor_errors(W, method, tol)} for tol in TOLERANCES]
    return rows


def _rank_two_errors(W: FloatArray) -> Row:
    """The paper's replacement itself: of every ``exp(ww')`` the best approximation of rank two, and their entrywise product."""
    E, approximation = np.exp(W @ W.T), np.ones((len(W), len(W)))
    for column in W.T:
        values, vectors = leading_eigenpairs(np.exp(np.outer(column, column)), 2)
        approximation *= (vectors * values) @ vectors.T
    difference = approximation - E
    return {
        "columns": 2 ** W.shape[1],
        "max_relative_error": float(np.max(np.abs(difference) / E)),
        "frobenius_error": float(np.linalg.norm(difference) / np.linalg.norm(E)),
        "least_entry": float(min(approximation.min(), 0.0)),
    }


def _factor_errors(W: FloatArray, method: str, tol: float) -> Row:
    """Errors of nonnegative factors at a tolerance, for the rank-two study; nothing where too many columns are needed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the errors stand in the table
            factor = exp_factor(W @ W.T, method=method, tol=tol)
    except ValueError:
        return dict.fromkeys(("columns", "max_relative_error", "frobenius_error", "least_entry"))
    errors = {"max_relative_error": factor.max_relative_error, "frobenius_error": factor.frobenius_error}
    return {"columns": factor.U.shape[1], **errors, "least_entry": 0.0}


def _draw(rows: Sequence[Row], options: Options) -> Any:
    figure, (axes,) = style.panels(3, width=4.6, height=3.8)
    by_spread = [row for row in rows if row["varied"] == "spread"]
    _draw_errors(axes[0], by_spread, "max_relative_error", "spread")
    style.title(axes[0], "Largest relative error (columns at the widest spread)")
    paper = [row for row in by_spread if row["method"] == RANK_TWO]
    style.dots(axes[1], [row["spread"] for row in paper], [row["least_entry"] for row in paper], style.RED)
    axes[1].axhline(0.0, color=style.BLACK, linewidth=0.8)
    style.title(axes[1], "Most negative entry of rank-two")
    for panel in axes[:2]:
        panel.set_xlabel("spread: one column v in [−spread, spread]")
    axes[2].set_xscale("log")
    _draw_errors(axes[2], [row for row in rows if row["varied"] == "rank"], "frobenius_error", "columns")
    axes[2].set_xlabel("columns (the numbers are ranks)")
    style.title(axes[2], "Relative error in norm, by rank")
    return figure


#: Colour and line by method and tolerance.
LOOKS = {
    (RANK_TWO, None): (style.RED, "-"),
    ("lattice", 1e-1): (style.SKY, ":"),
    ("lattice", 1e-2): (style.BLUE, "-"),
    ("lattice", 1e-4): (style.BLUE, "--"),
    ("series", 1e-2): (style.ORANGE, "-"),
    ("series", 1e-4): (style.ORANGE, "--"),
}


def _draw_errors(axes: Any, rows: Sequence[Row], error: str, against: str) -> None:
    """Draw an error of the rank-two study against the spread, or against columns with the rank at each dot; names at the ends."""
    names = []
    for (method, tol), (colour, line) in LOOKS.items():
        chosen = [row for row in rows if (row["method"], row["tol"]) == (method, tol) and row["columns"] is not None]
        places, errors = [row[against] for row in chosen], [max(row[error], 1e-12) for row in chosen]
        style.dots(axes, places, errors, colour, line)
        name = method if tol is None else f"{method}, tol {tol:g}"
        if against == "columns":
            for row, x, y in zip(chosen, places, errors, strict=True):
                axes.annotate(str(row["rank"]), (x, y), textcoords="offset points", xytext=(3, 3), fontsize=7, color=colour)
        elif chosen:
            name += f": {chosen[-1]['columns']} columns"
        if chosen:
            names.append((errors[-1], name, colour))
    axes.set_yscale("log")
    style.label_ends(axes, names)


RANK_TWO_STUDY = Experiment(
    name="rank-two",
    defaults={
        "size": 60,
        "spreads": (0.25, 0.5, 0.75, 1.0, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0),
        "ranks": (1, 2, 3, 4, 5),
        "seed": 0,
    },
    quick={"size": 30, "spreads": (0.5, 1.0, 2.0), "ranks": (1, 2)},
    tasks=_tasks,
    rows=_rows,
    draw=_draw,
)
