"""The few elements of SVG that the charts are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Axis:
    """A scale from data to places in the picture, linear or by powers of ten.

    Attributes
    ----------
    low, high : float
        Data at the two ends; of powers, their exponents.
    start, end : float
        Places of the two ends.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value, kept inside the two ends."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, wanted: int) -> list[float]:
        """Return about so many round numbers between the ends."""
        span = self.high - self.low
        if not span > 0:
            return [self.low]
        power = 10.0 ** math.floor(math.log10(span / wanted))
        step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= wanted)
        first = math.ceil(self.low / step - 1e-9)
        return [step * place for place in range(first, math.floor(self.high / step + 1e-9) + 1)]


def element(name: str, inside: str = "", **attributes: object) -> str:
    """Return an element; underscores in names of attributes stand for hyphens, ``class_`` for class."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"' for key, value in attributes.items())
    return f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>"


def _short(value: object) -> str:
    """Return an attribute's value, coordinates to a tenth."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Return a straight line."""
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def label(x: float, y: float, words: str, class_: str = "", anchor: str = "start") -> str:
    """Return a piece of text."""
    return element("text", escape(words), x=float(x), y=float(y), class_=class_, text_anchor=anchor)


def polyline(places: Iterable[tuple[float, float]], class_: str) -> str:
    """Return a line through places."""
    return element("polyline", points=" ".join(f"{_short(x)},{_short(y)}" for x, y in places), class_=class_)


def picture(parts: Sequence[str], width: int, height: int, name: str) -> str:
    """Return the whole picture with its name for those who cannot see it."""
    view = f"0 0 {width} {height}"
    return f'<svg class="chart" viewBox="{view}" role="img" aria-label="{escape(name)}">{"".join(parts)}</svg>'
