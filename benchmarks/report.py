"""Tables and pictures: measured numbers in, Markdown and SVG out."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "cvxpy", "clarabel", "scs", "igraph", "leidenalg", "infomap", "networkx")


@dataclass(frozen=True)
class Table:
    """One table of the report."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    pictures: dict[str, str] = field(default_factory=dict)

    def markdown(self, folder: str | None = None) -> str:
        """Title, rows, note; with a folder of pictures, links to them."""
        lines = [f"### {self.title}", "", _line(self.header), "|" + "---|" * len(self.header), *map(_line, self.rows)]
        if self.note:
            lines += ["", self.note]
        if folder is not None:
            lines += [line for name in self.pictures for line in ("", f"![{self.title}]({folder}/{name}.svg)")]
        return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def missing_row(name: str, reason: str, width: int) -> list[str]:
    """The line of a peer that could not take part."""
    return [name, f"not run: {reason}", *[""] * (width - 2)]


def machine() -> str:
    """What the numbers were measured on, without its name and paths."""
    installed = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    return f"{_cores()} cores{_memory()}, {platform.system()}, Python {platform.python_version()}; {_threads()}; {installed}."


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return ""
    return f", {size / 1e9:.0f} GB of memory"


def _threads() -> str:
    from threadpoolctl import threadpool_info

    found = {(info["internal_api"], info["num_threads"]) for info in threadpool_info() if info["user_api"] == "blas"}
    return ", ".join(f"{name} with {count} threads" for name, count in sorted(found)) or "BLAS threads not told"


def document(tables: Sequence[Table], scale: str, facts: str, folder: str, absent: Sequence[str] = ()) -> str:
    """The whole report."""
    command = "make bench-full" if scale == "full" else "make bench"
    head = [
        "# Benchmark results",
        "",
        f"Written by `{command}`. {facts}",
        "",
        "Seconds are wall time in one run, pieces of work in turns; where repeated, the median with the least and the greatest",
        "in brackets. Data are made or read before the clock starts. Gaps, losses and agreement are computed by",
        "`benchmarks/objective.py` from what a solver returns, never taken from its own report. Threads are the same on both",
        "sides: all cores, except where a table says one. The unit *eigh* is one full `scipy.linalg.eigh` of the data with its",
        "defaults, vectors included, on one thread or on all, whichever is faster, unless a table says otherwise.",
        "",
        *([f"Not in the folder `CVXNMF_DATA`, and left out: {', '.join(absent)}.", ""] if absent else []),
    ]
    return "\n".join(head) + "\n" + "\n".join(table.markdown(folder) for table in tables)


def save_pictures(tables: Sequence[Table], folder: Path) -> None:
    """Write the pictures of all tables."""
    for table in tables:
        for name, svg in table.pictures.items():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.svg").write_text(svg, encoding="utf8")


def _svg(draw: Any) -> str:
    """A picture as small SVG, the same bytes for the same numbers."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "cvxnmf", "svg.fonttype": "none", "font.size": 9}):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.2, 3.4), layout="constrained")
        draw(figure.add_subplot())
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def growth_picture(sizes: Sequence[int], curves: Mapping[str, Sequence[float]], exponents: dict[str, float]) -> dict[str, str]:
    """Seconds against n on logarithmic axes, one curve per piece of work; nothing without matplotlib."""

    def draw(axes: Any) -> None:
        for marker, (name, seconds) in zip("os^v", curves.items(), strict=False):
            axes.loglog(sizes, seconds, marker=marker, label=f"{name}: $n^{{{exponents[name]:.2f}}}$")
        axes.set(xlabel="n", ylabel="seconds", title="Growth at mean degree 20, k = 10")
        axes.set_xticks(list(sizes), [f"{n:,}" for n in sizes], rotation=30)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend()

    return _drawn("growth", draw)


def quality_picture(scores: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """Agreement on planted graphs, one dot per graph; nothing without matplotlib."""

    def draw(axes: Any) -> None:
        for place, values in enumerate(scores.values()):
            axes.plot([place + 0.02 * (i - len(values) / 2) for i in range(len(values))], values, "o", markersize=3)
        axes.set_xticks(range(len(scores)), list(scores))
        axes.set(ylabel="adjusted Rand index", title="Planted graphs")
        axes.grid(axis="y", alpha=0.3)

    return _drawn("quality", draw)


def _drawn(name: str, draw: Any) -> dict[str, str]:
    try:
        return {name: _svg(draw)}
    except ImportError:
        return {}
