"""Charts on matplotlib axes, in one style; `plots` puts them into figures, and the page embeds them as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cvxnmf.display.formatting import number, power_of_ten
from cvxnmf.display.palette import INK, LINE, SOFT, colour
from cvxnmf.results import Iterate, Partition, RankChoice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Up to so many steps each has a bar of its own.
FEW = 8
#: More steps than this are thinned out; the first and the last are always drawn.
MOST = 400
#: Held-out errors are drawn up to this multiple of the least.
HIGHEST = 2.5
#: Gaps below this are rounding.
ROUNDING = 1e-16
#: Eigenvalues drawn at least; more when more directions entered.
EIGENVALUES = 40


def new_figure(width: float, height: float, columns: int = 1, heights: Sequence[float] = (1,)) -> tuple[Figure, list[Axes]]:
    """Return a figure for charts of so many inches that notebooks show without pyplot, and its axes in the common style.

    `columns` axes stand beside one another; rows of axes have these shares of the height and their horizontal axis in common.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib; install it with: pip install matplotlib.") from None

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            """Return the figure as a PNG picture for notebooks."""
            buffer = BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    figure = NotebookFigure(figsize=(width, height), dpi=150, layout="constrained")
    panels = list(figure.subplots(len(heights), columns, sharex="col", squeeze=False, height_ratios=heights).ravel())
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(SOFT)
        axes.tick_params(colors=SOFT, labelsize=9)
        axes.xaxis.label.set(color=SOFT, size=9)
        axes.yaxis.label.set(color=SOFT, size=9)
    return figure, panels


def add_legend(axes: Axes, **options: Any) -> None:
    """Name lines and marks of a chart in a row above the axes, or as the options say; nothing where nothing is named."""
    handles, names = axes.get_legend_handles_labels()
    above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": len(names), "borderpad": 0.1, "columnspacing": 1.2}
    if handles:
        axes.legend(frameon=False, fontsize=9, labelcolor=INK, handletextpad=0.5, borderaxespad=0.2, **(options or above))


def whole_numbers(axes: Axes, side: str = "x") -> None:
    """Write only whole numbers on an axis of a chart."""
    from matplotlib.ticker import MaxNLocator

    getattr(axes, f"{side}axis").set_major_locator(MaxNLocator(integer=True, nbins=8, steps=[1, 2, 5, 10]))


def drawable_steps(history: Sequence[Iterate], final_bound: float) -> tuple[list[Iterate], list[float]]:
    """Return the steps for a chart whose value is finite, thinned out where they are many, and the bound known at each.

    Where no step has a bound of its own, the final one stands for all. Unknown bounds are NaN.
    """
    steps = [step for step in history if math.isfinite(step.value)]
    if len(steps) > MOST:
        steps = [steps[place] for place in np.linspace(0, len(steps) - 1, MOST).astype(int)]
    known = [step.bound for step in steps] if has_bounds(steps) else [final_bound] * len(steps)
    return steps, [bound if math.isfinite(bound) else math.nan for bound in known]


def has_bounds(steps: Sequence[Iterate]) -> bool:
    """Whether any step of a chart proved a bound of its own."""
    return any(math.isfinite(step.bound) and step.bound > 0 for step in steps)


def relative_gap(value: float, bound: float) -> float:
    """Return the gap over the value, at least 0, for a chart; NaN where no bound is known."""
    return max(value - bound, 0.0) / abs(value) if value and math.isfinite(bound) else bound * 0.0


def draw_values(axes: Axes, steps: Sequence[Iterate], bounds: Sequence[float]) -> None:
    """Draw a chart of value and bound over the steps."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    at, values = [step.iteration for step in steps], [step.value for step in steps]
    low, high = _value_limits(values, bounds)
    mark = "o" if len(steps) <= FEW else ""
    axes.plot(at, values, color=colour(0), label="value", marker=mark, markersize=8, markerfacecolor="white")
    if any(map(math.isfinite, bounds)):
        name, line = ("proved bound", "-") if has_bounds(steps) else ("bound proved at the end", "--")
        inside = np.maximum(bounds, low)  # nothing is clipped on the page
        axes.plot(at, inside, color=colour(1), label=name, linestyle=line, marker=mark, markersize=4)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 6)))
    if len(steps) <= FEW:
        axes.set_xticks(at)
        axes.set_xlim(min(at, default=1) - 0.6, max(at, default=1) + 0.6)
    else:
        whole_numbers(axes)
    _add_grid(axes, "y")
    add_legend(axes)


def _value_limits(values: Sequence[float], bounds: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a chart's value axis: early bounds may be lower; differences below a thousandth are not zoomed into."""
    late = [bound for bound in bounds[len(bounds) // 2 :] if math.isfinite(bound)]
    low, high = min([*values, *late], default=0.0), max([*values, *late], default=1.0)
    room = 0.06 * (high - low) if high - low >= 1e-3 * abs(high) else 1e-2 * abs(high)
    return low - (room or 0.5), high + (room or 0.5)


def draw_gaps(axes: Axes, steps: Sequence[Iterate], bounds: Sequence[float]) -> None:
    """Draw a chart of the relative gap on a logarithmic scale: bars for a few steps, a line for many."""
    if not steps:
        return
    gaps = [max(relative_gap(step.value, bound), ROUNDING) for step, bound in zip(steps, bounds, strict=True)]
    if len(steps) <= FEW:
        _draw_gap_bars(axes, steps, gaps)
        return
    axes.plot([step.iteration for step in steps], gaps, color=colour(4), label="relative gap, logarithmic")
    axes.set_yscale("log")
    known = [gap for gap in gaps if math.isfinite(gap)]
    low, high = math.floor(math.log10(min(known, default=1.0))), math.ceil(math.log10(max(known, default=1.0)))
    axes.set_ylim(10.0**low, 10.0 ** max(high, low + 1))
    axes.set_xlabel("step")
    whole_numbers(axes)
    _write_powers(axes.yaxis)
    _add_grid(axes, "y")
    add_legend(axes)


def _add_grid(axes: Axes, side: Literal["x", "y"]) -> None:
    """Draw light grid lines behind everything in a chart."""
    axes.grid(axis=side, color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)


def _draw_gap_bars(axes: Axes, steps: Sequence[Iterate], gaps: Sequence[float]) -> None:
    """Draw a chart of gaps as bars that shorten towards rounding, the first step on top."""
    places = list(range(len(steps)))
    axes.set_xscale("log")
    axes.set_xlim(ROUNDING, 1.0)
    axes.set_ylim(len(steps) - 0.4, -0.8)
    axes.hlines(places, ROUNDING, gaps, color=colour(4), linewidth=3)
    axes.plot(gaps, places, "o", color=colour(4), markersize=7, clip_on=False)
    for place, gap in enumerate(gaps):
        if math.isfinite(gap):
            side = "right" if gap > 1e-4 else "center" if gap > 1e-13 else "left"
            axes.annotate(number(gap, 2), (gap, place), (0, 6), textcoords="offset points", ha=side, color=INK, fontsize=9)
    axes.set_yticks(places, [f"step {step.iteration}" for step in steps])
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)
    _add_grid(axes, "x")
    axes.set_xlabel("relative gap, from rounding to nothing known")
    _write_powers(axes.xaxis)


def _write_powers(axis: Any) -> None:
    """Write about five powers of ten along a logarithmic axis of a chart, in plain text."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(numticks=5))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(round(math.log10(value)))))


def draw_spectrum(axes: Axes, partition: Partition, penalty: float = math.nan) -> None:
    """Draw the eigenvalues of the modularity matrix, what noise can reach, and which directions entered the model.

    `penalty` is the weight of the trace, where it lies on the same scale and apart from the noise edge.
    """
    values, rank = shown_eigenvalues(partition), partition.solution.rank
    place = np.arange(1, len(values) + 1)
    size = float(np.clip(130 / max(len(values), 1), 3.0, 7.0))
    axes.vlines(place[:rank], 0.0, values[:rank], color=colour(0), linewidth=1.2, alpha=0.6)
    axes.vlines(place[rank:], 0.0, values[rank:], color=LINE, linewidth=1.2)
    axes.plot(place[:rank], values[:rank], "o", color=colour(0), markersize=size, label="entered X")
    axes.plot(place[rank:], values[rank:], "o", color=SOFT, markerfacecolor="white", markersize=size, label="left out")
    if math.isfinite(partition.noise_edge):
        axes.axhline(partition.noise_edge, color=colour(6), linestyle="--", label="noise edge")
    if math.isfinite(penalty):
        axes.axhline(penalty, color=SOFT, linestyle=":", label="penalty")
    axes.set_xlabel("eigenvalue, largest first")
    whole_numbers(axes)
    _add_grid(axes, "y")
    add_legend(axes)


def draw_ranks(panels: Sequence[Axes], choice: RankChoice) -> None:
    """Draw held-out error, stability, and loss with proved bound over the number of components."""
    from matplotlib.ticker import FuncFormatter

    rows, at = choice.table, list(choice.ranks)
    left, middle, right = panels
    least, most = float(choice.held_out.min()), float(choice.held_out.max())
    top = min(most, HIGHEST * least) + 0.05 * (min(most, HIGHEST * least) - least)
    for number_of_mask, mask in enumerate(choice.held_out):
        left.plot(at, mask, color=LINE, linewidth=1.0, label="one mask" if number_of_mask == 0 else None)
    left.plot(at, [row.held_out for row in rows], "o-", color=colour(0), markersize=4, label="held-out error")
    middle.plot(at, choice.stability, "o-", color=colour(2), markersize=4, label="likeness between masks")
    middle.set_ylim(0.0, 1.05)
    right.plot(at, [row.value for row in rows], "o-", color=colour(0), markersize=4, label="loss")
    right.plot(at, [row.bound for row in rows], "s--", color=colour(6), markersize=3, label="proved bound")
    right.fill_between(at, [row.bound for row in rows], [row.value for row in rows], color=LINE, alpha=0.4, linewidth=0)
    right.set_ylim(bottom=0.0)
    left.set_ylim(top=top)  # what overfits is off the top
    for axes in (left, right):
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 3)))
    for axes in panels:
        axes.axvline(choice.n_components, color=SOFT, linestyle=":", linewidth=1.2)
        axes.set_xlabel("components")
        whole_numbers(axes)
        _add_grid(axes, "y")
        add_legend(axes)


def shown_eigenvalues(partition: Partition) -> np.ndarray:
    """Return the largest eigenvalues, which a chart of the spectrum draws: the positive ones and those that entered."""
    values = np.asarray(partition.spectrum, dtype=np.float64).ravel()
    values, rank = values[np.isfinite(values)], partition.solution.rank
    positive = max(int(np.count_nonzero(values > 0)), rank, 1)
    return values[: min(positive, max(EIGENVALUES, rank + 12))]
