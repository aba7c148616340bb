"""The gap closing: a table of the steps when they are few, lines when they are many."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cvxnmf.display import formatting as words
from cvxnmf.display.page import svg
from cvxnmf.results import Iterate

#: Up to so many steps are listed; more are drawn as lines.
LISTED = 8
#: Gaps below this are rounding.
FLOOR = 1e-16
#: More steps than this are thinned out; the first and the last are always drawn.
DRAWN = 400
WIDTH, HEIGHT = 460, 320
_LEFT, _RIGHT = 58.0, 446.0


def closing(history: Sequence[Iterate], final_bound: float) -> str:
    """Return the history of a solve as a part of the page.

    Parameters
    ----------
    history : sequence of Iterate
        One entry per step; steps whose value is not finite are left out.
    final_bound : float
        The proved bound; it stands in for the steps' own bounds where they have none.
    """
    steps = finite(list(history))
    if not steps:
        return '<p class="note">No steps were recorded.</p>'
    bounds, own = _bounds(steps, final_bound)
    return _bars(steps, bounds) + _table(steps, bounds) if len(steps) <= LISTED else _drawn(steps, bounds, own)


def listed(history: Sequence[Iterate], final_bound: float) -> str:
    """Return a table of a few of many steps; nothing when :func:`closing` lists them all."""
    steps = finite(list(history))
    if len(steps) <= LISTED:
        return ""
    chosen = np.unique(np.geomspace(1, len(steps), LISTED).astype(int)) - 1
    few = [steps[place] for place in chosen]
    return _table(few, _bounds(few, final_bound)[0])


def _bounds(steps: list[Iterate], final_bound: float) -> tuple[list[float], bool]:
    """Return the bounds of the steps, and whether they are the steps' own rather than the last one throughout."""
    own = any(math.isfinite(step.bound) and step.bound > 0 for step in steps)
    return [step.bound if own else final_bound for step in steps], own


def _table(steps: list[Iterate], bounds: list[float]) -> str:
    """Return the numbers of some steps."""
    rows = "".join(_row(step, lower) for step, lower in zip(steps, bounds, strict=True))
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Step", "Value", "Proved bound", "Relative gap", "Seconds"))
    return (
        '<div class="scroll" role="region" aria-label="Steps of the solve" tabindex="0">'
        f'<table class="steps"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _row(step: Iterate, lower: float) -> str:
    """Return one step."""
    gap = relative_gap(step.value, lower)
    cells = [str(step.iteration), words.number(step.value, 8), words.lower_bound(lower, 8), words.number(gap, 2)]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in [*cells, words.number(step.seconds, 2)]) + "</tr>"


def _bars(steps: list[Iterate], bounds: list[float]) -> str:
    """Return the gaps as bars that shorten towards rounding."""
    height = 84 + 30 * len(steps)
    across = svg.Axis(-16.0, 0.0, _LEFT, _RIGHT - 18)
    base = height - 48.0
    parts = [svg.line(across(power), 24.0, across(power), base, "grid") for power in range(-16, 1, 4)]
    parts += [svg.label(across(power), base + 17, _power(power), "tick", "middle") for power in range(-16, 1, 4)]
    parts.append(svg.label(_LEFT, 12, "relative gap that is left, logarithmic", "gap-text"))
    parts.append(svg.label(across(-16.0), height - 12, "rounding", "axis", "middle"))
    parts.append(svg.label(_RIGHT, height - 12, "nothing known", "axis", "end"))
    for place, (step, lower) in enumerate(zip(steps, bounds, strict=True)):
        gap = relative_gap(step.value, lower)
        end, y = across(math.log10(min(max(gap, FLOOR), 1.0))), 39.0 + 30 * place
        parts.append(svg.label(_LEFT - 12, y + 4, f"step {step.iteration}", "tick", "end"))
        parts.append(svg.line(_LEFT, y, end, y, "gap thick"))
        parts.append(svg.element("circle", cx=end, cy=y, r=6.0, class_="gap-dot"))
        left = end > WIDTH / 2
        parts.append(
            svg.label(
                end + (-12 if left else 12),
                y - 8 if left else y + 4,
                words.number(gap, 2),
                "gap-text",
                "end" if left else "start",
            )
        )
    return svg.picture(
        parts, WIDTH, height, f"The relative gap after {words.count(len(steps), 'step')}; the table below holds the numbers."
    )


def _drawn(steps: list[Iterate], bounds: list[float], own: bool) -> str:
    """Return two panels: value and bound, and the gap on a logarithmic scale."""
    chosen = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), DRAWN)).astype(int))
    steps, bounds = [steps[place] for place in chosen], [bounds[place] for place in chosen]
    across = svg.Axis(steps[0].iteration, steps[-1].iteration, _LEFT, _RIGHT)
    parts = [*_values(steps, bounds, across, own), *_gaps(steps, bounds, across)]
    parts += [svg.label(across(tick), HEIGHT - 22, f"{tick:,.0f}", "tick", "middle") for tick in across.ticks(5)]
    parts.append(svg.label((_LEFT + _RIGHT) / 2, HEIGHT - 4, "step", "axis", "middle"))
    last, lower = steps[-1], bounds[-1]
    name = f"Value and proved bound over the steps; at the last step {words.number(last.value)} and {words.lower_bound(lower)}."
    return svg.picture(parts, WIDTH, HEIGHT, name)


def _values(steps: list[Iterate], bounds: list[float], across: svg.Axis, own: bool) -> list[str]:
    """Return the upper panel."""
    high = max(step.value for step in steps)
    finite = [lower for lower in bounds[len(bounds) // 2 :] if math.isfinite(lower)]
    low = min([*finite, steps[-1].value])
    up = svg.Axis(low - 0.06 * (high - low), high, 148.0, 26.0)
    value = [(across(step.iteration), up(step.value)) for step in steps]
    lower = [(across(step.iteration), up(bound)) for step, bound in zip(steps, bounds, strict=True) if math.isfinite(bound)]
    parts = [svg.line(_LEFT, up(tick), _RIGHT, up(tick), "grid") for tick in up.ticks(4)]
    parts += [svg.label(_LEFT - 6, up(tick) + 4, words.number(tick, 5), "tick", "end") for tick in up.ticks(4)]
    if lower:
        parts.append(svg.polyline(lower, "bound" if own else "bound dashed"))
    parts.append(svg.polyline(value, "value"))
    parts.append(svg.label(_LEFT, 13, "value", "value-text"))
    if lower:
        parts.append(svg.label(_LEFT + 52, 13, "and proved bound" if own else "and the bound proved at the end", "bound-text"))
    return parts


def _gaps(steps: list[Iterate], bounds: list[float], across: svg.Axis) -> list[str]:
    """Return the lower panel."""
    gaps = [relative_gap(step.value, lower) for step, lower in zip(steps, bounds, strict=True)]
    logs = [math.log10(max(gap, FLOOR)) if math.isfinite(gap) else math.nan for gap in gaps]
    known = [log for log in logs if not math.isnan(log)]
    if not known:
        return [svg.label(_LEFT, 184, "No bound is known, so no gap.", "axis")]
    up = svg.Axis(math.floor(min(known)), max(math.ceil(max(known)), math.floor(min(known)) + 1), HEIGHT - 44.0, 196.0)
    ticks = [tick for tick in up.ticks(4) if tick == int(tick)]
    parts = [svg.line(_LEFT, up(tick), _RIGHT, up(tick), "grid") for tick in ticks]
    parts += [svg.label(_LEFT - 6, up(tick) + 4, _power(tick), "tick", "end") for tick in ticks]
    places = [(across(step.iteration), up(log)) for step, log in zip(steps, logs, strict=True) if not math.isnan(log)]
    return [*parts, svg.polyline(places, "gap"), svg.label(_LEFT, 184, "relative gap, logarithmic", "gap-text")]


def finite(history: list[Iterate]) -> list[Iterate]:
    """Return the steps whose value can be drawn."""
    return [step for step in history if math.isfinite(step.value)]


def relative_gap(value: float, lower: float) -> float:
    """Return the gap over the value, at least 0, for a picture; infinite where no bound is known."""
    if not (math.isfinite(value) and math.isfinite(lower)):
        return math.inf
    return max(value - lower, 0.0) / abs(value) if value else 0.0


def _power(exponent: float) -> str:
    """Return a power of ten for an axis: 1, 0.1 and 0.01 in full."""
    return words.number(10.0**exponent, 1) if -2 <= exponent <= 3 else words.number(10.0**exponent, 1).removeprefix("1·")
