"""The convex model behind a partition, embedded and solved when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.convex.coarsening import GROUPS, LARGEST_WHOLE
from cvxnmf.convex.cones import CONES
from cvxnmf.convex.losses import LOSSES
from cvxnmf.convex.noise import admitting_trace
from cvxnmf.graphs.coarsen import GroupEmbedding
from cvxnmf.graphs.embedding import Embedding, NodeEmbedding
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Iterate, Solution

#: The terms for which trace="auto" and groups of nodes are known.
OURS = {"loss": "kl", "cone": "conditional", "metric": "degree"}
#: Nodes times clusters beyond which nodes share positions in groups: the time of the convex problem grows with both.
LARGEST_WORK = 50_000


class ConvexModel:
    """The convex model of a graph that is divided into a number of clusters, which is asked for when it is needed."""

    def __init__(
        self, A: sp.csr_array, number: Callable[[], int], trace: float | Literal["auto"], terms: dict[str, Any], n_groups: Any
    ) -> None:
        self.A, self.number, self.terms, self.asked_trace, self.asked_groups = A, number, terms, trace, n_groups
        self.options: dict[str, Any] = {}

    def with_clusters(self, number: Callable[[], int]) -> ConvexModel:
        """The convex model of the same graph for another number of clusters."""
        other = ConvexModel(self.A, number, self.asked_trace, self.terms, self.asked_groups)
        other.options = self.options
        return other

    @cached_property
    def k(self) -> int:
        """The number of clusters of the convex model."""
        return self.number()

    @property
    def callback(self) -> Callable[[Iterate], Any] | None:
        """The callback that is told about the steps of the convex model's solver."""
        return self.options.get("callback")

    @property
    def by_its_own_terms(self) -> bool:
        """Whether terms, a trace or groups of the convex model were asked for, so that clusters are those of its positions."""
        return self.terms != OURS or not isinstance(self.asked_trace, str) or isinstance(self.asked_groups, int)

    @cached_property
    def n_groups(self) -> int | None:
        """How many groups of nodes share a position in the convex model; None if every node has its own."""
        n, groups = self.A.shape[0], self.asked_groups
        if groups == "auto":
            many = n > LARGEST_WHOLE or n * self.k > LARGEST_WORK
            groups = max(GROUPS, 2 * self.k) if self.terms == OURS and many else None
        return None if groups is None else min(max(groups, self.k), int(np.count_nonzero(np.diff(self.A.indptr))))

    @cached_property
    def embedding(self) -> Embedding:
        """The embedding behind the convex model: what stands above the noise."""
        if self.n_groups is None:
            return NodeEmbedding(self.A, self.k)
        return GroupEmbedding(self.A, self.k, self.n_groups, self.callback)

    @property
    def trace(self) -> float:
        """The weight of the convex model's penalty."""
        if not isinstance(self.asked_trace, str):
            return self.asked_trace
        most = None if self.n_groups is None else self.k
        return admitting_trace(self.embedding.noise.edge, self.embedding.spectrum, self.k, most)

    @cached_property
    def solution(self) -> Solution:
        """The solution of the convex model, on all nodes."""
        found = self.embedding.solve(self.terms | {"trace": self.trace}, self.options)
        self.options = {name: value for name, value in self.options.items() if name != "callback"}  # nobody is told any more
        return found

    def spectrum(self) -> FloatArray:
        """The largest eigenvalues of the modularity matrix in the metric of the convex model."""
        return self.embedding.spectrum

    def noise_edge(self) -> float:
        """Edge of the noise in the spectrum of the convex model."""
        return self.embedding.noise.edge

    def solve(self) -> Solution:
        """The solution of the convex model, as a function to call."""
        return self.solution


def convex_model(A: sp.csr_array, loss: Any, cone: Any, metric: Any, trace: Any, n_groups: Any) -> ConvexModel:
    """Check the terms of the convex model before any work, for a number of clusters that is yet to be set."""
    terms = {"loss": validation.choice("loss", loss, LOSSES), "cone": validation.choice("cone", cone, CONES), "metric": metric}
    if not isinstance(trace, str):
        trace = validation.number("trace", trace, minimum=0.0)
    elif trace != "auto":
        validation.refuse(f"trace must be 'auto' or a number of at least 0, not {trace!r}.")
    elif terms != OURS:
        validation.refuse(
            "trace='auto' is known for loss='kl', cone='conditional' and metric='degree' only; give trace as a number."
        )
    if n_groups is not None and not (isinstance(n_groups, str) and n_groups == "auto"):
        if terms != OURS:
            validation.refuse("n_groups is known for loss='kl', cone='conditional' and metric='degree' only; leave it out.")
        n_groups = validation.integer("n_groups", n_groups, minimum=2)
    return ConvexModel(A, lambda: 1, trace, terms, n_groups)
