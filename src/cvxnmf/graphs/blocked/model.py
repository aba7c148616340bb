"""The convex model of a graph in blocks, from its sums over groups alone: the graph itself is not needed any more."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cvxnmf.certificates import GroupedStatement, Proof
from cvxnmf.certificates.row_pieces import GroupSums
from cvxnmf.convex.coarsening import Coarsening, floored_noise
from cvxnmf.convex.noise import Noise, admitting_trace, degree_metric, dispersed_noise, modularity_pairs, two_valued_noise
from cvxnmf.graphs.blocked.groups import SummedGraph
from cvxnmf.graphs.embedding import SHOWN
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import Solution


@dataclass(frozen=True, eq=False)
class SummedCoarsening(Coarsening):
    """A coarsened graph of which there are sums only; its solutions stay on the groups, for which there is room."""

    found: GroupSums

    @property
    def degrees(self) -> FloatArray:
        """Degrees of the nodes."""
        return self.found.degrees

    @property
    def entry_logs(self) -> float:
        """The sum of a log a over the entries."""
        return self.found.logs

    def _prove(self, statement: GroupedStatement, kind: str, witness: dict[str, Any]) -> Proof:
        return statement.prove_sums(self.found, kind, witness)

    def prolong(self, solution: Solution) -> Solution:
        """The solution on groups, its certificate about the graph."""
        history = tuple(map(self._prolong_iterate, solution.history))
        return dataclasses.replace(solution, certificate=self._certificate(solution.certificate), history=history)


class BlockedModel:
    """The convex problem of a graph in blocks that is divided into k clusters, solved when it is first asked for."""

    def __init__(self, summed: SummedGraph, k: int, options: dict[str, Any]) -> None:
        self.summed, self.k, self.options = summed, k, options

    @cached_property
    def noise(self) -> Noise:
        """Edge and dispersion of the noise."""
        degrees, dispersion = self.summed.sums.degrees, self.summed.dispersion
        s = degree_metric(degrees)
        if dispersion is None:
            return floored_noise(two_valued_noise(degrees, s, self.summed.sums.largest), degrees, s)
        return floored_noise(dispersed_noise(degrees, s, lambda variance, edge: dispersion), degrees, s)

    @cached_property
    def coarse(self) -> SummedCoarsening:
        """The sums over groups."""
        groups, found, _ = self.summed
        s = degree_metric(found.degrees)
        return SummedCoarsening(None, groups, found.pairs, np.sqrt(np.bincount(groups, s * s)), found)  # type: ignore[arg-type]

    @cached_property
    def eigenvalues(self) -> FloatArray:
        """The largest eigenvalues of the modularity matrix of the sums, none above that of the graph."""
        count = min(self.k + SHOWN, len(self.coarse.metric))
        with single_thread():
            return modularity_pairs(self.coarse.sums, self.coarse.metric, count)[0]

    def solve(self) -> Solution:
        """The solution, with positions of groups."""
        return self.coarse.solve(admitting_trace(self.noise.edge, self.eigenvalues, self.k, self.k), **self.options)

    def spectrum(self) -> FloatArray:
        """The eigenvalues, for who must call something."""
        return self.eigenvalues

    def noise_edge(self) -> float:
        """What noise alone can reach in that spectrum."""
        return self.noise.edge
