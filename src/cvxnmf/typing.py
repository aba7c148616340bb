"""Types of what people pass to this package, for annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from os import PathLike
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "ClientLike",
    "FactorsLike",
    "GraphLike",
    "LabelsLike",
    "MatrixLike",
    "MemoryLimit",
    "Names",
    "Pair",
    "Seed",
    "StartLabels",
]


class _Array(Protocol):
    """Type of anything that numpy can make an array of: arrays, data frames, dask arrays."""

    def __array__(self) -> NDArray[Any]: ...


class _Sparse(Protocol):
    """Type of a matrix or array of scipy.sparse."""

    def tocsr(self) -> Any: ...


class _AnnData(Protocol):
    """Type of an AnnData, a table of cells and genes with their names."""

    X: Any
    var_names: Any


class _Graph(Protocol):
    """Type of a graph of networkx or igraph."""

    def is_directed(self) -> bool: ...


class _Factored(Protocol):
    """Type of factors found before: a Factorization."""

    @property
    def U(self) -> Any: ...
    @property
    def V(self) -> Any: ...


class _Partitioned(Protocol):
    """Type of clusters found before: a Partition."""

    @property
    def nodes(self) -> Any: ...
    @property
    def labels(self) -> Any: ...


class _Client(Protocol):
    """Type of a client of a Dask cluster."""

    def scheduler_info(self) -> Any: ...


#: Numbers in two dimensions: an array, rows of numbers, a data frame, a dask array, a sparse matrix, or AnnData.
MatrixLike: TypeAlias = _Array | _Sparse | _AnnData | Sequence[_Array | Sequence[float]]
#: Files of edges: one, or several that make a list.
EdgeFiles: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]
#: A graph of networkx or igraph, an adjacency matrix, a data frame of edges, pairs of nodes, perhaps with a weight, or files.
GraphLike: TypeAlias = _Graph | MatrixLike | Iterable[tuple[Any, ...] | list[Any]] | EdgeFiles
#: The cluster of every node: in the order of the nodes, by name, or as sets of nodes.
LabelsLike: TypeAlias = ArrayLike | Mapping[Any, Any] | Iterable[Set[Any]]
#: Clusters to start from: a Partition, or labels.
StartLabels: TypeAlias = _Partitioned | LabelsLike
#: Factors to start from: a Factorization, a pair U, V, or U alone.
FactorsLike: TypeAlias = _Factored | tuple[MatrixLike, MatrixLike] | MatrixLike
#: One number, or one for U and one for V.
Pair: TypeAlias = float | tuple[float, float]
#: A client of a Dask cluster, or the address of its scheduler.
ClientLike: TypeAlias = _Client | str
#: Names of rows or columns.
Names: TypeAlias = Iterable[Any] | None
#: Bytes, or words such as "2 GB".
MemoryLimit: TypeAlias = int | float | str | None
#: What random numbers come from.
Seed: TypeAlias = int | np.random.Generator | None
