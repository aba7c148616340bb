"""Labels as a person gives them: an array, a dictionary, a pandas Series, sets of nodes or a Partition."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from cvxnmf import validation
from cvxnmf.graphs.multilevel import Labels
from cvxnmf.results import Partition


def read_labels(labels: Any, nodes: tuple[Any, ...], n_clusters: int | None) -> Labels:
    """Read given labels as numbers from 0: an array, a dictionary or a pandas Series by node, sets, or a partition."""
    if hasattr(labels, "membership") and not hasattr(labels, "to_dict"):  # igraph's clusterings and leidenalg's partitions
        labels = labels.membership
    if isinstance(labels, Partition) or (hasattr(labels, "to_dict") and _is_indexed(labels)):
        labels = labels.to_dict()
    if isinstance(labels, list | tuple) and labels and all(isinstance(group, set | frozenset) for group in labels):
        labels = _labels_of_communities(labels)
    if isinstance(labels, Mapping):
        missing = [node for node in nodes if node not in labels]
        if missing:
            validation.refuse(f"labels has no entry for the node {missing[0]!r}; give every node of the graph a cluster.")
        known = set(nodes)
        strangers = [name for name in labels if name not in known]
        if strangers:
            some = f"{len(strangers):,} names, {strangers[0]!r} for one" if len(strangers) > 1 else f"the name {strangers[0]!r}"
            warnings.warn(f"labels has {some}, that the graph does not have; left out.", UserWarning, stacklevel=3)
        labels = [labels[node] for node in nodes]
    given = labels if hasattr(labels, "shape") else list(labels) if hasattr(labels, "__iter__") else [labels]
    try:
        shape = np.shape(given)
    except ValueError:  # lists of several lengths
        shape = ()
    if shape != (len(nodes),):
        columns = "; of a frame give dict(zip(frame.node, frame.cluster))" if hasattr(labels, "columns") else ""
        validation.refuse(f"labels must name a cluster for each of the {len(nodes)} nodes, not be of shape {shape}{columns}.")
    if any(label is None or label != label for label in given):
        validation.refuse("labels must name a cluster for every node; some are missing.")
    numbers: dict[Any, int] = {}
    found = np.array([numbers.setdefault(label, len(numbers)) for label in np.asarray(given).tolist()], dtype=np.int64)
    if n_clusters is not None and len(numbers) > n_clusters:
        validation.refuse(f"labels has {len(numbers)} clusters, more than n_clusters={n_clusters}.")
    return found


def _is_indexed(labels: Any) -> bool:
    """Whether given labels are a pandas Series whose index names the nodes; a plain range of numbers names nothing."""
    index = getattr(labels, "index", None)
    return getattr(labels, "ndim", 0) == 1 and index is not None and not callable(index) and type(index).__name__ != "RangeIndex"


def _labels_of_communities(groups: Sequence[Set[Any]]) -> dict[Any, int]:
    """Given labels from communities that share no node: the number of its group for every node, networkx's convention."""
    labels = {node: number for number, group in enumerate(groups) for node in group}
    if len(labels) < sum(map(len, groups)):
        validation.refuse("labels has a node in two sets; give every node one cluster.")
    return labels
