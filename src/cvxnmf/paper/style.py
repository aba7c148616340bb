"""How the figures look: the charts of `display` with bands around curves and names at the ends; saved files have no dates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cvxnmf.display.charts import new_figure
from cvxnmf.display.palette import INK, SOFT, colour
from cvxnmf.linalg.arrays import FloatArray

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK, GREY = *(colour(place) for place in (0, 1, 4, 6, 3, 10)), INK, SOFT
#: Height of a label at the end of a line, as a share of the axes' height.
LABEL_HEIGHT = 0.055
SETTINGS: Any = {"svg.hashsalt": "cvxnmf", "svg.fonttype": "none", "font.size": 9.0}


def require_matplotlib() -> None:
    """Refuse to draw the paper's figures without matplotlib, in a sentence."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("the figures need matplotlib; install it with: pip install matplotlib") from None


def panels(columns: int, rows: int = 1, width: float = 4.6, height: float = 3.6) -> tuple[Any, Any]:
    """A figure of the paper and its axes, an array of shape (rows, columns)."""
    from matplotlib import rc_context

    with rc_context(SETTINGS):
        figure, axes = new_figure(width * columns, height * rows, columns, heights=(1,) * rows)
    return figure, np.array(axes).reshape(rows, columns)


def curve(axes: Any, x: FloatArray, mean: FloatArray, spread: FloatArray, colour: str, line: str = "-") -> None:
    """A line of a figure with a band of `spread` on either side."""
    axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    dots(axes, x, mean, colour, line)


def dots(axes: Any, x: Sequence[float] | FloatArray, y: Sequence[float] | FloatArray, colour: str, line: str = "-") -> None:
    """A line of a figure with dots where it was measured."""
    axes.plot(x, y, color=colour, linestyle=line, marker="o", markersize=2.5, linewidth=1.4)


def title(axes: Any, text: str) -> None:
    """A title of a figure's panel that says what is on the vertical axis."""
    axes.set_title(text, loc="left", fontsize=9.5)


def label_ends(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write names right of a figure's axes at the heights of lines, ``(y, name, colour)``, pushed apart where they overlap."""
    axes.get_ylim()  # limits are set when first asked for, and heights depend on them
    to_axes = axes.transData + axes.transAxes.inverted()
    places = sorted((float(to_axes.transform((1.0, y))[1]), name, colour) for y, name, colour in ends)
    heights = [place[0] for place in places]
    for _ in range(200):  # rounds of pushing neighbours apart
        for below in range(len(heights) - 1):
            overlap = LABEL_HEIGHT - (heights[below + 1] - heights[below])
            if overlap > 0:
                heights[below] -= overlap / 2
                heights[below + 1] += overlap / 2
    for height, (_, name, ink) in zip(heights, places, strict=True):
        axes.text(1.02, height, name, color=ink, transform=axes.transAxes, va="center", ha="left", fontsize=8.5)


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (with n - 1) of a sample, for the figures."""
    sample = np.asarray(values, dtype=np.float64)
    return float(sample.mean()), float(sample.std(ddof=1)) if len(sample) > 1 else 0.0


def save(figure: Any, stem: Path) -> list[Path]:
    """Save a figure of the paper as PNG and SVG, without dates."""
    from matplotlib import rc_context

    files = [stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")]
    with rc_context(SETTINGS):
        figure.savefig(files[0], dpi=160)
        figure.savefig(files[1], metadata={"Date": None})
    return files
