"""The drawing of the clusters of a large graph: a mark for each cluster, lines for the edges between them."""

from __future__ import annotations

from html import escape

import numpy as np
import scipy.sparse as sp

from cvxnmf.display import formatting as words
from cvxnmf.display.page import colours, layout
from cvxnmf.display.page.drawing import WIDTH, framed, tone
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Partition

#: More clusters than this are not drawn.
LIMIT = 60


def clusters(partition: Partition) -> str:
    """Return the drawing as SVG; names appear under the pointer without any script."""
    k = partition.n_clusters
    weights = _between(partition)
    sizes = np.bincount(partition.labels, minlength=k)
    spread = sp.csr_array(np.where(np.eye(k) > 0, 0.0, weights / np.sqrt(np.maximum(np.outer(sizes, sizes), 1))))
    places, height = framed(layout.places(spread, np.arange(k)), margin=80.0)
    radius = 16.0 + 34.0 * np.sqrt(sizes / max(int(sizes.max(initial=0)), 1))
    marks = "".join(_cluster(c, int(sizes[c]), float(weights[c, c]), places[c], float(radius[c])) for c in range(k))
    name = f"The {words.count(k, 'cluster')} of the graph and the edges between them."
    return (
        f'<div class="canvas narrow"><svg class="graph" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(name)}">'
        f"{_lines(weights, places)}{marks}</svg></div>"
    )


def _between(partition: Partition) -> FloatArray:
    """Return the weight of the edges between and, once each, inside clusters, shape (k, k)."""
    upper = sp.coo_array(sp.triu(partition.A))
    first, second, k = partition.labels[upper.row], partition.labels[upper.col], partition.n_clusters
    total = np.bincount(first * k + second, weights=np.nan_to_num(upper.data), minlength=k * k).reshape(k, k)
    return np.asarray(total + total.T - np.diag(np.diag(total)), dtype=np.float64)


def _lines(weights: FloatArray, places: FloatArray) -> str:
    """Return a line for each pair of joined clusters, as wide as the root of its weight."""
    first, second = np.nonzero(np.triu(weights, 1) > 0)
    most = float(weights[first, second].max(initial=0.0)) or 1.0
    widest = float(np.clip(70.0 / len(weights), 3.0, 14.0))
    drawn = []
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        ends = f"M{places[i, 0]:.0f} {places[i, 1]:.0f}L{places[j, 0]:.0f} {places[j, 1]:.0f}"
        width = max(1.0, widest * float(np.sqrt(weights[i, j] / most)))
        title = f"clusters {i} and {j}: edges of weight {words.number(float(weights[i, j]), 4)} between them"
        drawn.append(f'<path class="edges" style="stroke-width:{width:.1f}" d="{ends}"><title>{title}</title></path>')
    return f'<g opacity="0.45">{"".join(drawn)}</g>'


def _cluster(cluster: int, size: int, inside: float, place: FloatArray, radius: float) -> str:
    """Return the mark of one cluster with its number."""
    title = f"cluster {cluster}: {words.count(size, 'node')}, edges of weight {words.number(inside, 4)} inside"
    shift = f"translate({place[0]:.1f} {place[1]:.1f})"
    return (
        f'<g class="node big" data-cluster="{cluster}" transform="{shift}" {tone(cluster)}><title>{title}</title>'
        f'<path d="{colours.mark(cluster, radius)}"/><text class="in" dy="0.35em">{cluster}</text></g>'
    )
