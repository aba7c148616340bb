"""The data that the page's script works with: nodes, edges, shares and factors, packed into text."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxnmf.display import plots
from cvxnmf.display.edges import EdgeList, grid_counts
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Factorization, Partition

#: More edges than this are counted on a grid instead of listed.
EDGES = 60_000
#: Cells of that grid in each direction.
GRID = 300
#: Columns of a heat map; more nodes share columns.
COLUMNS = 1_500
#: Most names of rows, and of columns, that a page of factors keeps.
NAMES = 20_000
#: Entries of factors kept in full, kept in single precision, and beyond that left out.
DOUBLE, SINGLE = 90_000, 220_000


def lists_edges(edges: EdgeList) -> bool:
    """Whether the page's data hold the edges one by one."""
    return len(edges.weights) <= EDGES


def partition_data(partition: Partition, edges: EdgeList) -> dict[str, Any]:
    """Return the data that the page's script needs for a partition."""
    n = len(partition.nodes)
    shares = _unit_interval(partition.memberships)
    own = shares[np.arange(n), partition.labels]
    return {
        "names": [encodable(name) for name in partition.nodes],
        "clusters": partition.n_clusters,
        "labels": _pack_integers(partition.labels),
        "order": _pack_integers(partition.order),
        "share": _pack(np.round(own * 10_000), "u2"),
        "degree": _pack_integers(edges.degree),
        "strength": _pack(np.nan_to_num(edges.strength), "f4") if edges.weighted else None,
        "edges": _edge_data(edges) if lists_edges(edges) else None,
        "grid": None if lists_edges(edges) else _grid_data(partition, edges),
        "heat": [_heat_map(shares[partition.order], 1.0, "mean")],
    }


def factorization_data(result: Factorization, shape: Any = None) -> dict[str, Any]:
    """Return the data that the page's script needs for a factorisation; images where a shape is given."""
    factors = [result.U] if result.V is result.U else [result.U, result.V]
    finite = [np.nan_to_num(np.asarray(factor, dtype=np.float64), posinf=0.0, neginf=0.0) for factor in factors]
    width, orders = kept_precision(result), [_by_component(factor) for factor in finite]
    sorted_factors = [factor[order] for factor, order in zip(finite, orders, strict=True)]
    return {
        "heat": [_heat_map(factor, float(factor.max(initial=0.0)), "max") for factor in sorted_factors],
        "factors": [_pack(factor, width) for factor in factors] if width else None,
        "orders": [_pack_integers(order) for order in orders],
        "itemNames": [_names(names) for names in (result.row_names, result.column_names)[: len(factors)]],
        "images": None if shape is None else _image_data(result, shape),
        "names": [],
    }


def _by_component(factor: FloatArray) -> NDArray[np.intp]:
    """Return the order of a factor's lines for the page's heat map: by strongest component, then by its share in the line."""
    if not factor.shape[1]:
        return np.arange(len(factor))
    strongest = factor.argmax(axis=1)
    share = factor.max(axis=1) / np.maximum(factor.sum(axis=1), np.finfo(np.float64).tiny)
    return np.lexsort((-share, strongest))


def _names(names: Sequence[Any] | None) -> list[str] | None:
    """Return names as text for the page's data, unless there are none or too many for a page."""
    return None if names is None or len(names) > NAMES else [encodable(name) for name in names]


def _image_data(result: Factorization, shape: Any) -> dict[str, Any]:
    """Return the components as images for the page's data, each scaled to its largest entry."""
    images = plots.component_images(result, shape)
    largest = np.maximum(images.max(axis=(1, 2), keepdims=True), np.finfo(np.float64).tiny)
    return {"height": images.shape[1], "width": images.shape[2], "data": _pack(np.round(255 * images / largest), "u1")["data"]}


def kept_precision(result: Factorization) -> str:
    """Return the width of the numbers in which the page's data keep the factors; nothing when there are too many."""
    entries = result.U.size + (0 if result.V is result.U else result.V.size)
    if entries > SINGLE:
        return ""
    return "f8" if entries <= DOUBLE else "f4"


def encodable(name: object) -> str:
    """Return a name as text that every encoding can carry: halves of surrogate pairs become question marks."""
    return str(name).encode("utf-8", "replace").decode("utf-8")


def _pack(array: Any, dtype: str) -> dict[str, str]:
    """Return the bytes of an array for the page's script, little endian, in base64, and their type."""
    content = np.ascontiguousarray(array).astype(np.dtype(dtype).newbyteorder("<")).tobytes()
    return {"type": dtype, "data": base64.b64encode(content).decode("ascii")}


def _pack_integers(array: Any) -> dict[str, str]:
    """Pack nonnegative integers for the page's script in as few bytes as the largest needs."""
    values = np.asarray(array)
    return _pack(values, "u2" if values.max(initial=0) < 1 << 16 else "u4")


def _unit_interval(array: Any) -> NDArray[np.float64]:
    """Return shares for the page's data cut to [0, 1], NaN as 0."""
    return np.clip(np.nan_to_num(np.asarray(array, dtype=np.float64), nan=0.0), 0.0, 1.0)


def _edge_data(edges: EdgeList) -> dict[str, Any]:
    """Return the edges one by one for the page's script, with weights when they differ."""
    weights = _pack(np.nan_to_num(edges.weights), "f4") if edges.weighted else None
    return {"first": _pack_integers(edges.first), "second": _pack_integers(edges.second), "weights": weights}


def _grid_data(partition: Partition, edges: EdgeList) -> dict[str, Any]:
    """Return how densely the cells of the page's grid of edges are filled, before and after the permutation."""
    n = len(partition.nodes)
    place = np.empty(n, dtype=np.intp)
    place[partition.order] = np.arange(n)
    size = min(n, GRID)
    before, after = (grid_counts(at[edges.first], at[edges.second], n, size) for at in (np.arange(n), place))
    top = max(int(before.max()), int(after.max()), 1)
    cells = [_pack(np.ceil(255 * np.sqrt(counts / top)), "u1")["data"] for counts in (before, after)]
    return {"size": size, "before": cells[0], "after": cells[1]}


def _heat_map(values: FloatArray, top: float, how: str) -> dict[str, Any]:
    """Return a matrix, items by rows, as bytes for the page's heat map, in bins of items: their mean, or their largest."""
    n = len(values)
    bins = min(n, COLUMNS)
    starts = np.asarray(np.arange(bins) * n // max(bins, 1), dtype=np.intp)
    gather = np.add if how == "mean" else np.maximum
    binned = gather.reduceat(values, starts, axis=0) if bins else values
    if how == "mean" and bins:
        binned = binned / np.diff(np.append(starts, n))[:, None]
    level = np.round(255 * _unit_interval(binned / top if top > 0 else binned * 0.0))
    return {"items": n, "bins": bins, "rows": values.shape[1], "data": _pack(level.T, "u1")["data"]}
