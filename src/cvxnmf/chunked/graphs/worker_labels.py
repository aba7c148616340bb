"""Labels and names of the nodes of a dask data frame of edges on a worker: as a dask series, or fetched when looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, overload

import numpy as np

from cvxnmf.chunked.conductor import Conducted

#: Most nodes of one part of the series.
NODES_OF_A_PART = 1 << 20
#: What the series and its index are called.
CLUSTER, NODE = "cluster", "node"
MISSING = "Labels as a dask series need dask data frames; install them with: pip install 'dask[dataframe]'"


class WorkerLabels:
    """Labels of so many nodes that the conductor of a search keeps on its worker, and whether text names these."""

    def __init__(self, found: Conducted, n: int, named: bool) -> None:
        self.found, self.n, self.named = found, n, named

    def label_parts(self) -> list[Any]:
        """Delayed pandas series of the labels by name, in the order in which nodes are listed."""
        part, future = import_module("dask").delayed(labelled_part, pure=False), self.found.future
        return [part(future, first, min(self.n, first + NODES_OF_A_PART)) for first in range(0, self.n, NODES_OF_A_PART)]

    def series(self) -> Any:
        """The dask series of the nodes' labels, by their names."""
        frames, pandas = dask_frames(), import_module("pandas")
        index = pandas.Index([], dtype=object if self.named else np.int64, name=NODE)
        return frames.from_delayed(self.label_parts(), meta=pandas.Series([], index, np.int32, CLUSTER), verify_meta=False)


class WorkerNames(Sequence[Any]):
    """Names of so many nodes that are on a worker, all of them fetched when one is first looked at."""

    def __init__(self, found: Conducted, n: int) -> None:
        self._found, self._n = found, n

    @cached_property
    def _names(self) -> Any:
        return self._found.fetch("nodes")

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        return self._names[place]


def dask_frames() -> Any:
    """The module ``dask.dataframe``, for a series of labels."""
    try:
        return import_module("dask.dataframe")
    except ImportError:
        raise ImportError(MISSING) from None


def labelled_part(found: Any, first: int, stop: int) -> Any:
    """Task: the pandas series of the labels of some listed nodes by their names, text or numbers."""
    pandas, some = import_module("pandas"), found.nodes.between(first, stop)
    index = pandas.Index(list(some), dtype=object, name=NODE) if some.are_text else pandas.Index(some.keys, name=NODE)
    return pandas.Series(found.labels[first:stop], index, np.int32, CLUSTER)
