"""The drawing of a small graph: nodes in the colour and shape of their cluster, edges light behind them."""

from __future__ import annotations

from html import escape

import numpy as np
import scipy.sparse as sp

from cvxnmf.display import formatting as words
from cvxnmf.display.page import colours, layout, packing
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Partition

#: Larger graphs are not drawn.
LIMIT = 200
#: Names are written beside the nodes up to here, inside them when they are this short.
NAMED, SHORT = 40, 3
WIDTH = 1000
#: Edges fall into so many paths, which lets crossings darken without an element for each edge.
PATHS = 24


def graph(partition: Partition) -> str:
    """Return the drawing as SVG; the page's script adds names under the pointer."""
    places, height = framed(layout.places(partition.A, partition.labels))
    radius = _radii(np.diff(sp.csr_array(partition.A).indptr))
    name = f"The graph: {words.count(len(partition.nodes), 'node')}, coloured by cluster. The table lists them all."
    return (
        f'<svg class="graph" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(name)}">'
        f"{_edges(partition, places)}<path class='near' d=''/>{_nodes(partition, places, radius)}</svg>"
    )


def framed(spots: FloatArray, margin: float = 40.0) -> tuple[FloatArray, int]:
    """Return places in a picture of the fixed width, and its height."""
    height = int(np.clip(WIDTH * np.ptp(spots[:, 1]) / max(np.ptp(spots[:, 0]), 1e-9), 480, 900))
    reach = np.array([WIDTH / 2 - margin, height / 2 - margin])
    scale = float(np.min(reach / np.maximum(np.abs(spots).max(axis=0), 1e-9)))
    return np.round(np.array([WIDTH / 2, height / 2]) + spots * scale, 1), height


def _radii(degree: np.ndarray) -> FloatArray:
    """Return radii that grow with the root of the degree."""
    base = 15.0 if len(degree) <= 60 else 10.5
    share = np.sqrt(degree / max(int(degree.max(initial=0)), 1))
    return np.asarray(base * (0.7 + 0.5 * share), dtype=np.float64)


def _edges(partition: Partition, places: FloatArray) -> str:
    """Return the edges in a few paths for each cluster and for what runs between clusters."""
    upper = sp.coo_array(sp.triu(partition.A, 1))
    first, second = partition.labels[upper.row], partition.labels[upper.col]
    kinds = np.where(first == second, first, -1)
    whole = places.astype(int)
    strength = float(np.clip(14.0 / np.sqrt(max(len(kinds), 1)), 0.08, 0.55))
    written = []
    for kind in np.unique(kinds).tolist():
        pairs = np.column_stack([upper.row, upper.col])[kinds == kind]
        colour = "" if kind < 0 else f' data-cluster="{kind}" {tone(kind)}'
        for part in range(min(PATHS, len(pairs))):
            data = "".join(
                f"M{whole[i, 0]} {whole[i, 1]}L{whole[j, 0]} {whole[j, 1]}" for i, j in pairs[part :: min(PATHS, len(pairs))]
            )
            written.append(f'<path class="edges"{colour} d="{data}"/>')
    return f'<g opacity="{strength:.2f}">{"".join(written)}</g>'


def _nodes(partition: Partition, places: FloatArray, radius: FloatArray) -> str:
    """Return the marks of the nodes, with names when there are few."""
    named = len(partition.nodes) <= NAMED
    return "".join(
        _node(index, cluster, places[index], float(radius[index]), packing.text(partition.nodes[index]) if named else "")
        for index, cluster in enumerate(partition.labels.tolist())
    )


def _node(index: int, cluster: int, place: FloatArray, radius: float, name: str) -> str:
    """Return one node, its name inside when short and below when not."""
    shift = f"translate({place[0]:.1f} {place[1]:.1f})"
    inside = 0 < len(name) <= SHORT
    short = name if len(name) <= 18 else name[:17] + "…"
    drop = "0.35em" if inside else f"{radius + 14:.0f}"
    written = f'<text class="{"in" if inside else "below"}" y="{drop}">{escape(short)}</text>' if name else ""
    mark = f'<path d="{colours.mark(cluster, radius)}"/>'
    return f'<g class="node" data-node="{index}" data-cluster="{cluster}" transform="{shift}" {tone(cluster)}>{mark}{written}</g>'


def tone(cluster: int) -> str:
    """Return the colour of a cluster as a style."""
    return f'style="--c:var(--c{cluster % len(colours.LIGHT)})"'
