"""Labels and names of the nodes of a dask data frame of edges on a worker: as a dask series, or fetched when looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple, overload

import numpy as np

from cvxnmf.chunked.conductor import Conducted
from cvxnmf.chunked.graphs.numbering import NodeNames

#: Most nodes of one part of the series.
NODES_OF_A_PART = 1 << 20
#: What the series and its index are called.
CLUSTER, NODE = "cluster", "node"
MISSING = "Labels as a dask series need dask data frames; install them with: pip install 'dask[dataframe]'"


class ListedLabels(NamedTuple):
    """What a conductor keeps of the nodes of a data frame: their names and labels, as they are listed."""

    names: NodeNames
    labels: Any


class WorkerLabels:
    """Labels and names of so many nodes that the conductor of a search keeps on its worker."""

    def __init__(self, found: Conducted, n: int, named: bool) -> None:
        self.found, self.n, self.named = found, n, named

    def labels(self) -> Any:
        """The labels of all nodes, as they are listed, in this process."""
        return self.found.fetch(labels_of)

    def names(self) -> NodeNames:
        """The names of all nodes in this process; text as bytes."""
        found: NodeNames = self.found.fetch(names_of)
        return found

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
    """Names of nodes that are on a worker, all of them fetched when one is first looked at."""

    def __init__(self, there: WorkerLabels) -> None:
        self._there = there

    @cached_property
    def _names(self) -> NodeNames:
        return self._there.names()

    def __len__(self) -> int:
        return self._there.n

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


def labels_of(found: Any) -> Any:
    """Task: the labels of all nodes that the conductor listed."""
    return found.listed.labels


def names_of(found: Any) -> NodeNames:
    """Task: the names of all nodes that the conductor listed."""
    names: NodeNames = found.listed.names
    return names


def labelled_part(found: Any, first: int, stop: int) -> Any:
    """Task: the pandas series of the labels of some listed nodes by their names, text or numbers."""
    pandas, (names, labels) = import_module("pandas"), found.listed
    some = names.between(first, stop)
    index = pandas.Index(list(some), dtype=object, name=NODE) if names.are_text else pandas.Index(some.keys, name=NODE)
    return pandas.Series(labels[first:stop], index, np.int32, CLUSTER)
