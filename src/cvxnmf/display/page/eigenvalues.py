"""The spectrum of the modularity matrix, what noise can reach in it, and which directions entered the model."""

from __future__ import annotations

import math

import numpy as np

from cvxnmf.display import formatting as words
from cvxnmf.display.page import svg
from cvxnmf.results import Partition

#: Eigenvalues drawn at least; more when more directions entered.
SHOWN = 40
WIDTH, HEIGHT = 460, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 446.0, 26.0, 282.0
#: How far the name of a level reaches.
_NAME = 90.0


def spectrum(partition: Partition) -> str:
    """Return the picture of the spectrum and its sentence."""
    values = np.asarray(partition.spectrum, dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    if not len(values):
        return '<p class="note">No spectrum was computed.</p>'
    rank = min(partition.solution.rank, len(values))
    positive = max(int(np.count_nonzero(values > 0)), rank, 1)
    shown = values[: min(positive, max(SHOWN, rank + 12))]
    lines = [(partition.noise_edge, "noise edge", "edge"), (penalty(partition), "penalty", "penalty")]
    return svg.picture(
        _parts(shown, rank, [line for line in lines if math.isfinite(line[0])]), WIDTH, HEIGHT, _sentence(partition, values)
    ) + (f'<p class="note">{_sentence(partition, values)}{_left_out(len(shown), len(values))}</p>')


def penalty(partition: Partition) -> float:
    """Return the weight of the penalty where it lies in the scale of the spectrum and apart from the noise edge, else NaN."""
    terms = partition.certificate.statement
    trace = float(terms.get("trace", math.nan))
    if (terms.get("loss"), terms.get("cone"), terms.get("metric")) != ("kl", "conditional", "degree"):
        return math.nan
    return math.nan if abs(trace - partition.noise_edge) <= 0.02 * partition.noise_edge else trace


def _sentence(partition: Partition, values: np.ndarray) -> str:
    """Return what the picture shows."""
    rank = partition.solution.rank
    entered = f"{words.count(rank, 'direction')} entered the model X" if rank else "No direction entered the model X"
    if not math.isfinite(partition.noise_edge):
        return f"{entered}. No noise edge is known."
    above = int(np.count_nonzero(values > partition.noise_edge))
    stand = "1 eigenvalue stands" if above == 1 else f"{above:,} eigenvalues stand"
    lowered = penalty(partition)
    why = f", past a penalty of {words.number(lowered, 4)}" if math.isfinite(lowered) else ""
    return f"{stand} out of the noise, whose edge is at {words.number(partition.noise_edge, 4)}. {entered}{why}."


def _left_out(shown: int, known: int) -> str:
    """Return how many eigenvalues are not drawn."""
    return f" The {shown:,} largest of {known:,} are drawn." if shown < known else ""


def _parts(values: np.ndarray, rank: int, lines: list[tuple[float, str, str]]) -> list[str]:
    """Return a dot on a stem for each eigenvalue, and level lines with their names and classes."""
    top = max(float(values.max()), *(height for height, _, _ in lines), 1e-300)
    up = svg.Axis(min(0.0, float(values.min())), 1.06 * top, _BOTTOM, _TOP)
    across = svg.Axis(0.5, len(values) + 0.5, _LEFT, _RIGHT)
    radius = min(5.0, max(2.2, 100.0 / len(values)))
    parts = [svg.line(_LEFT, up(tick), _RIGHT, up(tick), "grid") for tick in up.ticks(5)]
    parts += [svg.label(_LEFT - 6, up(tick) + 4, words.number(tick, 3), "tick", "end") for tick in up.ticks(5)]
    for place, value in enumerate(values.tolist(), start=1):
        kind = "entered" if place <= rank else "noise"
        parts.append(svg.line(across(place), up(0.0), across(place), up(value), f"stem {kind}"))
        parts.append(svg.element("circle", cx=across(place), cy=up(value), r=radius, class_=f"dot {kind}"))
    for height, name, kind in lines:
        parts.append(svg.line(_LEFT, up(height), _RIGHT, up(height), kind))
        lowest = height == min(level for level, _, _ in lines)
        below = lowest and (len(lines) > 1 or _crowded(values, across, up, up(height)))
        parts.append(svg.label(_RIGHT, up(height) + (15 if below else -6), name, f"{kind}-text", "end"))
    parts += [svg.label(across(tick), _BOTTOM + 16, f"{tick:.0f}", "tick", "middle") for tick in _places(across)]
    parts.append(svg.label((_LEFT + _RIGHT) / 2, HEIGHT - 4, "eigenvalue, largest first", "axis", "middle"))
    return [*parts, *_legend(rank, len(values))]


def _crowded(values: np.ndarray, across: svg.Axis, up: svg.Axis, level: float) -> bool:
    """Return whether dots lie where the name of a level would stand above its line, at the right end."""
    places = ((across(place), up(value)) for place, value in enumerate(values.tolist(), start=1))
    return any(x > _RIGHT - _NAME and level - 26 < y < level for x, y in places)


def _places(across: svg.Axis) -> list[float]:
    """Return whole numbers to write below the axis."""
    return [tick for tick in across.ticks(6) if tick == int(tick) and tick >= 1]


def _legend(rank: int, shown: int) -> list[str]:
    """Return the names of the two kinds of dots."""
    first = [
        svg.element("circle", cx=_LEFT + 6, cy=10.0, r=5.0, class_="dot entered"),
        svg.label(_LEFT + 16, 14, "entered X", "axis"),
    ]
    second = [
        svg.element("circle", cx=_LEFT + 106, cy=10.0, r=4.0, class_="dot noise"),
        svg.label(_LEFT + 116, 14, "left out", "axis"),
    ]
    return (first if rank else []) + (second if rank < shown else [])
