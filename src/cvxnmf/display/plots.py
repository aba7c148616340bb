"""Pictures of results as matplotlib figures; nothing touches pyplot, so nothing is shown or left open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from cvxnmf import validation
from cvxnmf.display import charts, palette
from cvxnmf.display.edges import EdgeList, grid_counts
from cvxnmf.display.layout import spring_positions
from cvxnmf.results import Factorization, Iterate, Partition, RankChoice
from cvxnmf.typing import MatrixLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Cells of a picture of a matrix in each direction; larger matrices are counted on a grid.
CELLS = 1000
#: Names are written beside the nodes up to here.
NAMED = 60


def figure1(A: MatrixLike, order: ArrayLike, labels: ArrayLike | None = None) -> Figure:
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

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> found = cvxnmf.partition(A, 2)
    >>> figure = cvxnmf.plots.figure1(A, found.order, found.labels)
    """
    matrix = sp.coo_array(A)
    n = matrix.shape[0]
    place = _positions(order, n)
    figure, (left, right) = charts.new_figure(8.4, 4.4, columns=2)
    for axes, at, caption in ((left, np.arange(n), "as given"), (right, place, "cluster by cluster")):
        present = matrix.data != 0
        _draw_matrix(axes, at[matrix.row[present]], at[matrix.col[present]], n)
        _title(axes, caption)
    if labels is not None:
        _draw_borders(right, np.asarray(labels)[np.argsort(place)])
    return figure


def _positions(order: Any, n: int) -> NDArray[np.intp]:
    """Return where each node of a plotted matrix stands in an order of all of them."""
    given = np.asarray(order)
    if given.shape != (n,) or not np.array_equal(np.sort(given), np.arange(n)):
        validation.refuse(f"order must name each of the {n} nodes once.")
    return np.asarray(np.argsort(given), dtype=np.intp)


def _draw_matrix(axes: Axes, rows: NDArray[np.intp], columns: NDArray[np.intp], n: int) -> None:
    """Plot the edges of an adjacency matrix as dark cells on white."""
    size = min(n, CELLS)
    counts = grid_counts(rows, columns, n, size)
    axes.imshow(np.sqrt(counts / max(int(counts.max(initial=0)), 1)), cmap="Greys", interpolation="nearest", extent=(0, n, n, 0))
    axes.set_xticks([0, n])
    axes.set_yticks([0, n])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(palette.LINE)


def _draw_borders(axes: Axes, labels: NDArray[Any]) -> None:
    """Draw lines in a plotted matrix where one cluster ends and the next begins."""
    for place in (np.flatnonzero(labels[1:] != labels[:-1]) + 1).tolist():
        axes.axhline(place, color=palette.colour(6), linewidth=0.8)
        axes.axvline(place, color=palette.colour(6), linewidth=0.8)


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

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> solution = cvxnmf.solve(cvxnmf.symmetric(A), method="projected-gradient")
    >>> figure = cvxnmf.plots.gap_closing(solution.history)
    """
    steps, bounds = charts.drawable_steps(history, math.nan if bound is None else bound)
    figure, (left, right) = charts.new_figure(8.4, 3.2, columns=2)
    charts.draw_values(left, steps, bounds)
    charts.draw_gaps(right, steps, bounds)
    left.set_xlabel("step")
    return figure


def spectrum(partition: Partition) -> Figure:
    """Draw the eigenvalues of the modularity matrix, the edge of the noise, and which directions entered the model.

    Parameters
    ----------
    partition : Partition
        Of any graph.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> figure = cvxnmf.plots.spectrum(cvxnmf.partition(A, 2))
    """
    figure, (axes,) = charts.new_figure(6.4, 3.6)
    charts.draw_spectrum(axes, partition)
    figure.suptitle("spectrum of the modularity matrix", x=0.01, ha="left", fontsize=10, color=palette.INK)
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

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> figure = cvxnmf.plots.memberships(cvxnmf.partition(A, 2))
    """
    k = partition.n_clusters
    figure, (axes,) = charts.new_figure(8.4, min(1.6 + 0.26 * k, 9.0))
    values = partition.memberships[partition.order].T
    image = axes.imshow(values, aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest")
    bar = figure.colorbar(image, ax=axes, ticks=[0.0, 0.5, 1.0])
    bar.outline.set_visible(False)
    axes.set_xlabel("node, cluster by cluster")
    axes.set_ylabel("cluster")
    _title(axes, "shares of the nodes in the clusters")
    charts.whole_numbers(axes, "y")
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

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> figure = cvxnmf.plots.graph(cvxnmf.partition(A, 2))
    """
    edges, spots = EdgeList.of(partition), spring_positions(partition.A, partition.labels)
    tall = float(np.ptp(spots[:, 1]) / max(np.ptp(spots[:, 0]), 1e-9))
    figure, (axes,) = charts.new_figure(7.2, float(np.clip(6.2 * tall, 3.0, 6.0)))
    from matplotlib.collections import LineCollection

    strength = float(np.clip(12.0 / math.sqrt(max(len(edges.weights), 1)), 0.08, 0.6))
    ends = spots[np.column_stack([edges.first, edges.second])]
    axes.add_collection(LineCollection(list(ends), colors=palette.SOFT, alpha=strength, linewidths=0.8))
    for cluster in range(partition.n_clusters):
        inside = spots[partition.labels == cluster]
        look: dict[str, Any] = {"color": palette.colour(cluster), "marker": palette.marker(cluster)}
        axes.scatter(inside[:, 0], inside[:, 1], s=60, edgecolors="white", linewidths=0.8, zorder=2, label=str(cluster), **look)
    if len(spots) <= NAMED:
        _write_names(axes, partition, spots)
    axes.set_aspect("equal")
    axes.invert_yaxis()  # as on the page
    axes.set_axis_off()
    charts.add_legend(axes, title="cluster", loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=1 + partition.n_clusters // 16)
    return figure


def components(result: Factorization, shape: tuple[int, int], factor: str | None = None) -> Figure:
    """Draw every component as an image, the largest of its entries darkest; for data whose columns, or rows, are pixels.

    Parameters
    ----------
    result : Factorization
        Of images.
    shape : pair of int
        Height and width of an image.
    factor : {"U", "V"}, optional
        Whose lines are the pixels; left out, V if it has as many lines as there are pixels, else U.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import cvxnmf
    >>> from sklearn.datasets import load_digits
    >>> result = cvxnmf.factorize(load_digits().data, 10)
    >>> figure = cvxnmf.plots.components(result, shape=(8, 8))
    """
    images = component_images(result, shape, factor)
    count, tall = len(images), images.shape[1] / images.shape[2]
    across = min(count, max(1, round(math.sqrt(2.5 * count * tall))))
    down = -(-count // across)
    figure, panels = charts.new_figure(8.4, 0.2 * down + 8.0 / across * down * tall, across, (1,) * down)
    for axes in panels[count:]:
        axes.set_axis_off()
    for number, (axes, image) in enumerate(zip(panels, images, strict=False)):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(visible=True, color=palette.LINE)
        axes.imshow(image / (image.max() or 1.0), cmap="Greys", vmin=0.0, vmax=1.0, interpolation="nearest")
        axes.set_title(str(number), fontsize=9, color=palette.SOFT, pad=2)
    return figure


def ranks(choice: RankChoice) -> Figure:
    """Draw held-out error, stability, loss and proved bound over the number of components, the recommended one marked.

    Parameters
    ----------
    choice : RankChoice
        From :func:`cvxnmf.choose_rank`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(9 * rng.gamma(0.5, size=(20, 2)) @ rng.gamma(0.5, size=(2, 15)))
    >>> figure = cvxnmf.plots.ranks(cvxnmf.choose_rank(counts, [1, 2, 3]))
    """
    figure, panels = charts.new_figure(10.5, 3.2, columns=3)
    charts.draw_ranks(panels, choice)
    return figure


def component_images(result: Factorization, shape: Any, factor: str | None = None) -> NDArray[np.float64]:
    """Return the components of a factorisation as images for a plot, one after the other."""
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        validation.refuse(f"shape must be a pair (height, width) of an image, not {shape!r}.")
    height, width = (validation.integer("shape", side, minimum=1) for side in shape)
    sides = {"V": result.V, "U": result.U}
    if factor is not None:
        sides = {factor: sides[validation.choice("factor", factor, sides)]}
    fitting = [side for side in sides.values() if len(side) == height * width]
    if not fitting:
        lengths = " and ".join(f"{name} has {len(side)} lines" for name, side in sides.items())
        validation.refuse(
            f"Images of {height} by {width} have {height * width} pixels, but {lengths}; give the shape of one image."
        )
    return np.asarray(fitting[0].T.reshape(-1, height, width), dtype=np.float64)


def _write_names(axes: Axes, partition: Partition, spots: NDArray[np.float64]) -> None:
    """Write the names below the nodes of a plotted graph; dollar signs are no formulas here."""
    look: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 7, "color": palette.INK, "parse_math": False}
    for name, (x, y) in zip(partition.nodes, spots.tolist(), strict=True):
        axes.annotate(str(name)[:24], (x, y), (0, -6), textcoords="offset points", **look)


def _title(axes: Axes, text: str) -> None:
    """Write a title above the left end of a plot's axes."""
    axes.set_title(text, loc="left", fontsize=10, color=palette.INK)
