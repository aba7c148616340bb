"""Labels of the nodes of a dask data frame of edges as a dask series, made on the workers where the names of the nodes are."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from cvxnmf.chunked.graphs import cells
from cvxnmf.chunked.graphs.cells import Cells
from cvxnmf.chunked.graphs.cluster import Workers
from cvxnmf.chunked.tasks import Literal

#: Most nodes of one part of the series.
NODES_OF_A_PART = 1 << 20
#: What the series and its index are called.
CLUSTER, NODE = "cluster", "node"
MISSING = "Labels as a dask series need dask data frames; install them with: pip install 'dask[dataframe]'"


class NamesPart(NamedTuple):
    """Some nodes of a series of labels: a future of names among which theirs are, and which they are, a range or their hashes."""

    future: Any
    which: Any


class WorkerNames(NamedTuple):
    """The names of all nodes on the workers, from which a dask series of labels is made."""

    workers: Workers
    parts: list[NamesPart]

    def label_futures(self, labels: Any) -> list[Any]:
        """Futures of pandas series of the labels, which are listed as the names are; each part is sent its own."""
        futures, done = [], 0
        for future, which in self.parts:
            for first in range(0, len(which), NODES_OF_A_PART):
                some = which[first : first + NODES_OF_A_PART]
                own = Literal(labels[done : done + len(some)])
                futures.append(self.workers.submit(labelled_part, future, Literal(some), own))
                done += len(some)
        return futures

    def series(self, labels: Any) -> Any:
        """The dask series of the nodes' labels, by their names."""
        frames, pandas = dask_frames(), import_module("pandas")
        futures, named = self.label_futures(labels), not isinstance(self.parts[0].which, range)
        index = pandas.Index([], dtype=object if named else np.int64, name=NODE)
        return frames.from_delayed(futures, meta=pandas.Series([], index, np.int32, CLUSTER), verify_meta=False)


def dask_frames() -> Any:
    """The module ``dask.dataframe``, for a series of labels."""
    try:
        return import_module("dask.dataframe")
    except ImportError:
        raise ImportError(MISSING) from None


def labelled_part(names: Any, which: Literal, labels: Literal) -> Any:
    """The pandas series of the labels of some nodes by their names, text or numbers."""
    pandas, wanted = import_module("pandas"), which.value
    if isinstance(names, Cells):
        keys = cells.hashes(names)[0]
        order = np.argsort(keys, kind="stable")
        rows = order[np.searchsorted(keys[order], wanted)].tolist()
        index = pandas.Index([names.text(row) for row in rows], dtype=object, name=NODE)
    else:
        index = pandas.Index(np.asarray(names[wanted.start : wanted.stop]), name=NODE)
    return pandas.Series(labels.value, index, np.int32, CLUSTER)
