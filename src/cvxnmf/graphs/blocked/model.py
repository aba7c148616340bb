"""The convex model of a graph in blocks, from its sums over groups alone: the graph itself is not needed any more."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from cvxnmf.convex.coarsening import Coarsening, floored_noise
from cvxnmf.convex.noise import Noise, admitting_trace, degree_metric, dispersed_noise, modularity_pairs, two_valued_noise
from cvxnmf.graphs.blocked.groups import SummedGraph
from cvxnmf.graphs.embedding import SHOWN
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import Solution


class SummedCoarsening(Coarsening):
    """Coarsened graph in blocks of which there are sums only; solutions of its convex model stay on the groups."""

    def prolong(self, solution: Solution) -> Solution:
        """The solution of the convex model on groups, with its certificate about the graph in blocks."""
        history = tuple(map(self._prolong_iterate, solution.history))
        return dataclasses.replace(solution, certificate=self._certificate(solution.certificate), history=history)


class BlockedModel:
    """The convex model of a graph in blocks that is divided into k clusters, solved when it is first asked for."""

    def __init__(self, sums: Callable[[], SummedGraph], k: int, options: dict[str, Any]) -> None:
        self._sums, self.k, self.options = sums, k, options

    @cached_property
    def graph_sums(self) -> SummedGraph:
        """The groups and sums of a graph in blocks, asked for once."""
        return self._sums()

    @cached_property
    def noise(self) -> Noise:
        """Edge and dispersion of the noise of a graph in blocks, from its sums over groups."""
        degrees, dispersion = self.graph_sums.sums.degrees, self.graph_sums.dispersion
        s = degree_metric(degrees)
        if dispersion is None:
            return floored_noise(two_valued_noise(degrees, s, self.graph_sums.sums.largest), degrees, s)
        return floored_noise(dispersed_noise(degrees, s, lambda variance, edge: dispersion), degrees, s)

    @cached_property
    def coarse(self) -> SummedCoarsening:
        """The coarsening of a graph in blocks by its groups, from the sums over them."""
        groups, found, _ = self.graph_sums
        s = degree_metric(found.degrees)
        return SummedCoarsening(groups, found, np.sqrt(np.bincount(groups, s * s)))

    @cached_property
    def eigenvalues(self) -> FloatArray:
        """The largest eigenvalues of the modularity matrix of the sums over groups, none above that of the graph."""
        count = min(self.k + SHOWN, len(self.coarse.metric))
        with single_thread():
            return modularity_pairs(self.graph_sums.sums.pairs, self.coarse.metric, count)[0]

    def solve(self) -> Solution:
        """Solve the convex model of a graph in blocks, with positions of groups."""
        return self.coarse.solve(admitting_trace(self.noise.edge, self.eigenvalues, self.k, self.k), **self.options)

    def spectrum(self) -> FloatArray:
        """The eigenvalues of the convex model of a graph in blocks, as a function to call."""
        return self.eigenvalues

    def noise_edge(self) -> float:
        """Edge of the noise in the spectrum of the convex model of a graph in blocks."""
        return self.noise.edge
