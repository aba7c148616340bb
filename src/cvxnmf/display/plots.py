"""Pictures of results as matplotlib figures; nothing touches pyplot, so nothing is shown or left open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.display.page import colours, layout, steps
from cvxnmf.display.page.packing import shares
from cvxnmf.display.page.payload import Graph, grid
from cvxnmf.results import Iterate, Partition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, LINE = "#1a1f27", "#586272", "#dfe3e9"
#: Cells of a picture of a matrix in each direction; larger matrices are counted on a grid.
CELLS = 1000
#: Names are written beside the nodes up to here.
NAMED = 60
#: Eigenvalues drawn at least.
SHOWN = 40


def figure1(A: Any, order: Any, labels: Any = None) -> Figure:
    """Draw an adjacency matrix as given and cluster by cluster, the paper's figure 1.

    Parameters
    ----------
    A : array-like or scipy.sparse matrix of shape (n, n)
        Symmetric adjacency matrix.
    order : array-like of int, shape (n,)
        The nodes cluster by cluster, as in ``Partition.order``.
    labels : array-like of int, shape (n,), or None
        The cluster of each node; lines between clusters are drawn when it is given.

    Returns
    -------
    matplotlib.figure.Figure
    """
    matrix = sp.coo_array(A)
    n = matrix.shape[0]
    place = _places(order, n)
    figure, (left, right) = _panels(8.4, 4.4, 2)
    for axes, at, caption in ((left, np.arange(n), "as given"), (right, place, "cluster by cluster")):
        present = matrix.data != 0
        _matrix(axes, at[matrix.row[present]], at[matrix.col[present]], n)
        _title(axes, caption)
    if labels is not None:
        _borders(right, np.asarray(labels)[np.argsort(place)])
    return figure


def _places(order: Any, n: int) -> NDArray[np.intp]:
    """Return where each node stands in an order of all of them."""
    given = np.asarray(order)
    if given.shape != (n,) or not np.array_equal(np.sort(given), np.arange(n)):
        validation.refuse(f"order must name each of the {n} nodes once.")
    return np.asarray(np.argsort(given), dtype=np.intp)


def _matrix(axes: Axes, rows: NDArray[np.intp], columns: NDArray[np.intp], n: int) -> None:
    """Draw the edges as dark cells on white."""
    size = min(n, CELLS)
    counts = grid(rows, columns, n, size)
    axes.imshow(np.sqrt(counts / max(int(counts.max(initial=0)), 1)), cmap="Greys", interpolation="nearest", extent=(0, n, n, 0))
    axes.set_xticks([0, n])
    axes.set_yticks([0, n])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(LINE)


def _borders(axes: Axes, labels: NDArray[Any]) -> None:
    """Draw lines where one cluster ends and the next begins."""
    for place in (np.flatnonzero(labels[1:] != labels[:-1]) + 1).tolist():
        axes.axhline(place, color=colours.colour(6), linewidth=0.8)
        axes.axvline(place, color=colours.colour(6), linewidth=0.8)


def gap_closing(history: Sequence[Iterate], bound: float | None = None) -> Figure:
    """Draw value and bound over the steps, and the relative gap between them on a logarithmic scale.

    Parameters
    ----------
    history : sequence of Iterate
        Of a solution or a factorisation; steps whose value is not finite are left out.
    bound : float or None
        What was proved at the end, for histories whose steps have no bounds of their own.

    Returns
    -------
    matplotlib.figure.Figure
    """
    drawn = steps.finite(list(history))
    own = any(math.isfinite(step.bound) and step.bound > 0 for step in drawn)
    bounds = [_finite(step.bound) if own else (math.nan if bound is None else bound) for step in drawn]
    figure, (left, right) = _panels(8.4, 3.2, 2)
    at = [step.iteration for step in drawn]
    _line(left, at, [step.value for step in drawn], 0, "value")
    _line(left, at, bounds, 1, "proved bound", "--")
    _line(right, at, [_gap(step.value, lower) for step, lower in zip(drawn, bounds, strict=True)], 4, "relative gap")
    right.set_yscale("log")
    _title(left, "value and proved bound")
    _title(right, "relative gap")
    _legend(left)
    for axes in (left, right):
        axes.set_xlabel("step")
        _steps(axes, at)
    _widened(left, [step.value for step in drawn] + [lower for lower in bounds if math.isfinite(lower)])
    return figure


def _line(axes: Axes, at: list[int], values: list[float], colour: int, name: str, line: str = "-") -> None:
    """Draw a line, with marks when the steps are few; nothing when no value is known."""
    if any(map(math.isfinite, values)):
        marker, size = "o" if len(at) <= 12 else "", 9 if name == "value" else 5
        axes.plot(
            at, values, color=colours.colour(colour), label=name, linestyle=line, marker=marker, markersize=size, mfc="white"
        )


def _steps(axes: Axes, at: list[int]) -> None:
    """Write the numbers of the steps below, each one when they are few."""
    if len(at) <= 12:
        axes.set_xticks(at)
        axes.set_xlim(min(at, default=1) - 0.6, max(at, default=1) + 0.6)
        if axes.get_yscale() == "log":
            axes.set_ylim(1e-16, 3.0)
    else:
        _whole_numbers(axes)


def _widened(axes: Axes, values: list[float]) -> None:
    """Keep an axis from zooming into differences below a thousandth, which would make a closed gap look wide open."""
    axes.ticklabel_format(axis="y", useOffset=False)
    low, high = min(values, default=0.0), max(values, default=1.0)
    if high - low < 1e-3 * abs(high):
        axes.set_ylim(low - 1e-2 * abs(high), high + 1e-2 * abs(high))


def _finite(value: float) -> float:
    """Return a number, or NaN, which matplotlib leaves out."""
    return value if math.isfinite(value) else math.nan


def _gap(value: float, lower: float) -> float:
    """Return the relative gap, what is below rounding as rounding."""
    return _finite(max(steps.relative_gap(value, lower), 1e-16))


def spectrum(partition: Partition) -> Figure:
    """Draw the eigenvalues of the modularity matrix, the edge of the noise, and which directions entered the model.

    Parameters
    ----------
    partition : Partition
        Of any graph.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rank = partition.solution.rank
    values = np.asarray(partition.spectrum, dtype=np.float64)
    values = values[np.isfinite(values)][: max(SHOWN, rank + 12)]
    figure, (axes,) = _panels(6.4, 3.6)
    place = np.arange(1, len(values) + 1)
    axes.vlines(place, 0.0, values, color=LINE, linewidth=1.5)
    axes.plot(place[:rank], values[:rank], "o", color=colours.colour(0), label="entered X")
    axes.plot(place[rank:], values[rank:], "o", color=SOFT, markerfacecolor="white", label="left out")
    if math.isfinite(partition.noise_edge):
        axes.axhline(partition.noise_edge, color=colours.colour(6), linestyle="--", label="noise edge")
    axes.set_xlabel("eigenvalue, largest first")
    _title(axes, "spectrum of the modularity matrix")
    _legend(axes)
    _whole_numbers(axes)
    return figure


def memberships(partition: Partition) -> Figure:
    """Draw the shares of the nodes in the clusters, nodes across in clustered order.

    Parameters
    ----------
    partition : Partition
        Of any graph.

    Returns
    -------
    matplotlib.figure.Figure
    """
    k = partition.n_clusters
    figure, (axes,) = _panels(8.4, min(1.6 + 0.26 * k, 9.0))
    values = shares(partition.memberships)[partition.order].T
    image = axes.imshow(values, aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest")
    bar = figure.colorbar(image, ax=axes, ticks=[0.0, 0.5, 1.0])
    bar.outline.set_visible(False)
    axes.set_xlabel("node, cluster by cluster")
    axes.set_ylabel("cluster")
    _title(axes, "shares of the nodes in the clusters")
    _whole_numbers(axes, "y")
    return figure


def graph(partition: Partition) -> Figure:
    """Draw the graph, nodes in the colour and shape of their cluster; meant for a few hundred nodes.

    Parameters
    ----------
    partition : Partition
        Of a small graph.

    Returns
    -------
    matplotlib.figure.Figure
    """
    spots, edges = layout.places(partition.A, partition.labels), Graph.of(partition)
    tall = float(np.ptp(spots[:, 1]) / max(np.ptp(spots[:, 0]), 1e-9))
    figure, (axes,) = _panels(7.2, float(np.clip(6.2 * tall, 3.0, 6.0)))
    from matplotlib.collections import LineCollection

    strength = float(np.clip(12.0 / math.sqrt(max(len(edges.weights), 1)), 0.08, 0.6))
    ends = spots[np.column_stack([edges.first, edges.second])]
    axes.add_collection(LineCollection(list(ends), colors=SOFT, alpha=strength, linewidths=0.8))
    for cluster in range(partition.n_clusters):
        inside = spots[partition.labels == cluster]
        look: dict[str, Any] = {"color": colours.colour(cluster), "marker": colours.marker(cluster)}
        axes.scatter(inside[:, 0], inside[:, 1], s=60, edgecolors="white", linewidths=0.8, zorder=2, label=str(cluster), **look)
    if len(spots) <= NAMED:
        _names(axes, partition, spots)
    axes.set_aspect("equal")
    axes.invert_yaxis()  # as on the page
    axes.set_axis_off()
    _legend(axes, title="cluster", loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=1 + partition.n_clusters // 16)
    return figure


def _names(axes: Axes, partition: Partition, spots: NDArray[np.float64]) -> None:
    """Write the names below the nodes; dollar signs are no formulas here."""
    for name, (x, y) in zip(partition.nodes, spots.tolist(), strict=True):
        axes.annotate(
            str(name)[:24],
            (x, y),
            (0, -6),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=7,
            color=INK,
            parse_math=False,
        )


def _whole_numbers(axes: Axes, side: str = "x") -> None:
    """Write only whole numbers on an axis."""
    from matplotlib.ticker import MaxNLocator

    getattr(axes, f"{side}axis").set_major_locator(MaxNLocator(integer=True, nbins=8))


def _title(axes: Axes, text: str) -> None:
    """Write what is drawn above its left end."""
    axes.set_title(text, loc="left", fontsize=10, color=INK)


def _legend(axes: Axes, **where: Any) -> None:
    """Name the lines and marks, if there are any."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9, labelcolor=INK, **where)


def _panels(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure of so many inches and its axes, quiet ones."""
    figure = _shown_figure()(figsize=(width, height), dpi=150, layout="constrained")
    panels = list(figure.subplots(1, columns, squeeze=False)[0])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(SOFT)
        axes.tick_params(colors=SOFT, labelsize=9)
        axes.xaxis.label.set(color=SOFT, size=9)
        axes.yaxis.label.set(color=SOFT, size=9)
    return figure, panels


def _shown_figure() -> type[Figure]:
    """Return a kind of figure that notebooks show without the help of pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib; install it with: pip install 'cvxnmf[app]'.") from None

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            """Return the picture."""
            buffer = BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return ShownFigure
