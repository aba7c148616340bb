"""The one score of clusters that all local moves raise: a sum over clusters of a function of what lies inside them.

A cluster with weight E inside (ordered pairs), mass D and n nodes is worth, in the units of whoever asks,

    reward E - penalty D^2 + own/2 (E log(E / (across D^2)) - E + across D^2) + entropy log n! + simple b(E/2, n(n-1)/2) - charge.

The first two terms are modularity, the constant Potts model, or a planted partition with one rate inside all clusters; the third
is the likelihood of a cluster at its own best rate; the fourth what labels cost less in large clusters than in small ones; the
fifth, ``b(e, N) = e + (N - e) log(1 - e/N)``, what a pair that can be joined once at most saves against Poisson counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cvxnmf.linalg.compiled import compile_with

#: Options of the loops over nodes: sums in the order in which they stand.
EXACT: dict[str, Any] = {"error_model": "numpy", "nogil": True}


class Score(NamedTuple):
    """Coefficients of the score of clusters; those left out are 0."""

    reward: float
    penalty: float
    own: float = 0.0
    across: float = 1.0
    entropy: float = 0.0
    charge: float = 0.0
    simple: float = 0.0


@compile_with(**EXACT, forceinline=True)
def once_at_most(edges: float, pairs: float) -> float:
    """Score of single edges ``b(edges/2, pairs)``: what pairs joined once at most save against Poisson counts."""
    joined = 0.5 * edges
    if joined <= 0.0 or pairs <= 0.0:
        return 0.0
    return joined + ((pairs - joined) * np.log1p(-joined / pairs) if joined < pairs else 0.0)


@compile_with(**EXACT, forceinline=True)
def _single_edges(edges: float, nodes: float) -> float:
    """Score of single edges among all pairs of so many nodes: what they save against Poisson counts."""
    return once_at_most(edges, 0.5 * nodes * (nodes - 1.0))


@compile_with(**EXACT, forceinline=True)
def _own_rate(edges: float, mass: float, across: float) -> float:
    """Score of a cluster with a rate of its own: ``(E log(E / (across D^2)) - E + across D^2) / 2``."""
    expected = across * mass * mass
    return 0.5 * ((edges * np.log(edges / expected) if edges > 0.0 and expected > 0.0 else 0.0) - edges + expected)


@compile_with(**EXACT, forceinline=True)
def gain(
    score: Score, log_factorials: Any, edges: float, mass: float, size: int, joined: float, added_mass: float, added_size: int
) -> float:
    """Gain of a cluster's score by nodes of this mass and number that bring `joined` weight of ordered pairs inside."""
    worth = score.reward * joined - score.penalty * added_mass * (2.0 * mass + added_mass)
    if size == 0:
        worth -= score.charge
    if score.entropy != 0.0:
        worth += score.entropy * (log_factorials[size + added_size] - log_factorials[size])
    if score.own != 0.0:
        before = _own_rate(edges, mass, score.across) if size > 0 else 0.0
        worth += score.own * (_own_rate(edges + joined, mass + added_mass, score.across) - before)
    if score.simple != 0.0:
        worth += score.simple * (_single_edges(edges + joined, size + added_size) - _single_edges(edges, size))
    return worth


@compile_with(**EXACT, forceinline=True)
def most_gain(score: Score, joined: float, added_mass: float) -> float:
    """Most that any cluster's score gains, whatever is in it: a bound without a look at it, infinite if there is none."""
    if score.own != 0.0 or score.entropy != 0.0 or score.simple != 0.0 or score.penalty < 0.0 or score.charge < 0.0:
        return np.inf
    return score.reward * joined - score.penalty * added_mass * added_mass
