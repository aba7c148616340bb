"""Charts of matplotlib as SVG inside the page, in the colours of its theme, and the table beside the chart of the gap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.display import charts, palette, plots
from cvxnmf.display.formatting import count, lower_bound, number
from cvxnmf.results import Iterate, Partition, RankChoice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is left out of matplotlib's SVG: its style sheet, fonts, clipping, and names of groups.
UNWANTED = (
    r"<metadata>.*?</metadata>",
    r"<style.*?</style>",
    r"<clipPath.*?</clipPath>",
    r' clip-path="[^"]*"',
    r"(?<=<g) id=\"[^\"]*\"",
    r"font(-\w+)?: [^;\"]*;? ?",
)
#: What the page's variables stand for in a chart.
VARIABLES = {shade: f"var(--c{place})" for place, shade in enumerate(palette.LIGHT)} | {
    palette.INK: "var(--ink)",
    palette.SOFT: "var(--soft)",
    palette.LINE: "var(--line)",
    "#ffffff": "var(--card)",
}


def gap_figure(history: Sequence[Iterate], final_bound: float) -> str:
    """Return the page's figure of how the gap closed: bars for a few steps; value, bound and gap for many; none for one."""
    steps, bounds = charts.drawable_steps(history, final_bound)
    if len(steps) < 2:
        return ""
    if len(steps) <= charts.FEW:
        figure, (axes,) = charts.new_figure(4.6, 0.9 + 0.3 * len(steps))
        charts.draw_gaps(axes, steps, bounds)
        return inline_svg(figure, "gaps", f"The relative gap after {count(len(steps), 'step')}; the table holds the numbers.")
    figure, (upper, lower) = charts.new_figure(4.6, 3.2, heights=(1.5, 1))
    charts.draw_values(upper, steps, bounds)
    charts.draw_gaps(lower, steps, bounds)
    return inline_svg(figure, "gaps", "Value, proved bound and relative gap over the steps.")


def step_rows(history: Sequence[Iterate], final_bound: float) -> list[list[str]]:
    """Return step, value, bound, relative gap and seconds as text, of a few steps where they are many, for the page's table."""
    steps, bounds = charts.drawable_steps(history, final_bound)
    chosen: Iterable[int] = range(len(steps))
    if len(steps) > charts.FEW:
        chosen = np.unique(np.geomspace(1, len(steps), charts.FEW).astype(int)) - 1
    rows = []
    for step, bound in ((steps[place], bounds[place]) for place in chosen):
        gap = number(charts.relative_gap(step.value, bound), 2)
        rows.append([str(step.iteration), number(step.value, 8), lower_bound(bound, 8), gap, number(step.seconds, 2)])
    return rows


def spectrum_figure(partition: Partition, penalty: float, label: str) -> str:
    """Return the page's figure of the spectrum of the modularity matrix, or nothing where that is not known."""
    if not len(charts.shown_eigenvalues(partition)):
        return ""
    figure, (axes,) = charts.new_figure(4.6, 3.2)
    charts.draw_spectrum(axes, partition, penalty)
    return inline_svg(figure, "spectrum", label)


def rank_figure(choice: RankChoice) -> str:
    """Return the page's figure of held-out error, stability, loss and bound over the number of components."""
    return inline_svg(plots.ranks(choice), "ranks", choice.reason)


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """Return a figure as an SVG element for the page.

    Colours become the page's variables and the page's fonts are used. Identifiers are left out but for those of parts
    that are drawn many times; they depend on `name` and the parts alone. The page may refer to nothing by ``url``, so
    nothing is clipped.
    """
    from matplotlib import rc_context

    stream = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(stream, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = re.sub(r"\s*\n\s*", " ", stream.getvalue())
    box = re.search(r'viewBox="([^"]*)"', text)
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    for unwanted in UNWANTED:
        body = re.sub(unwanted, "", body)
    body = re.sub("#[0-9a-f]{6}", lambda found: VARIABLES.get(found[0], found[0]), body)
    return f'<svg class="chart" viewBox="{box[1] if box else ""}" role="img" aria-label="{escape(label)}">{body}</svg>'
