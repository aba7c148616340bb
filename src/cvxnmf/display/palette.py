"""Colours and shapes, of clusters first of all, that stay apart for colour-blind eyes on light and on dark ground."""

from __future__ import annotations

import math

#: Farthest first: the smallest distance in OKLab, under simulated protanopia, deuteranopia and tritanopia too, falls slowly.
LIGHT = "#2f6db5 #e08a1e #791b0c #ab8af9 #2a9d8f #293295 #b3385a #7a2e6b #96792d #546316 #7e5f85 #df5f6d".split()
#: The same hues on dark ground.
DARK = "#669de1 #feb975 #ae5747 #cfbeff #6bc8ba #586cc8 #e37089 #ad649c #c1a765 #849353 #ac8eb3 #ff989f".split()
#: Text, quieter text, and lines on light ground.
INK, SOFT, LINE = "#1a1f27", "#586272", "#dfe3e9"
#: Corners and first angle (in turns) of the marks; no corners is a circle. Five shapes and twelve colours repeat after sixty.
SHAPES = ((0, 0.0), (4, 0.125), (3, -0.25), (4, 0.0), (6, 0.0))
#: The same marks in matplotlib's names.
MARKERS = ("o", "s", "^", "D", "h")
#: Radii that give every shape about the area of the circle.
_RADII = (1.0, 1.22, 1.45, 1.22, 1.1)


def colour(cluster: int) -> str:
    """Return the colour of a cluster on light ground; colours repeat after twelve."""
    return LIGHT[cluster % len(LIGHT)]


def css_colour(cluster: int) -> str:
    """Return the colour of a cluster as a variable of the page, which knows the theme."""
    return f"var(--c{cluster % len(LIGHT)})"


def css_variables() -> str:
    """Return the page's CSS variables of the palette, ``--c0`` to ``--c11``."""
    pairs = zip(LIGHT, DARK, strict=True)
    return ":root{" + "".join(f"--c{place}:light-dark({light},{dark});" for place, (light, dark) in enumerate(pairs)) + "}"


def marker(cluster: int) -> str:
    """Return matplotlib's name of the mark that the palette has for a cluster."""
    return MARKERS[cluster % len(MARKERS)]


def mark_path(cluster: int, radius: float) -> str:
    """Return the mark of a cluster as the data of an SVG path around the origin."""
    corners, turn = SHAPES[cluster % len(SHAPES)]
    reach = radius * _RADII[cluster % len(SHAPES)]
    if not corners:
        half = f"a{reach:.1f} {reach:.1f} 0 1 0"
        return f"M{-reach:.1f} 0{half} {2 * reach:.1f} 0{half} {-2 * reach:.1f} 0z"
    angles = [2 * math.pi * (turn + corner / corners) for corner in range(corners)]
    return "M" + "L".join(f"{reach * math.cos(angle):.1f} {reach * math.sin(angle):.1f}" for angle in angles) + "z"
