"""LFR graphs: power laws of degrees and of community sizes, and a share of edges that leave the community.

After Lancichinetti, Fortunato and Radicchi (2008). Ends of edges are paired at random inside communities and across; pairs that
would repeat an edge, join a node to itself or stay inside a community where they must not are drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Exponents of degrees and of sizes; mean and largest degree; smallest and largest community, small and large ones.
DEGREES, SIZES = 2.0, 1.0
MEAN_DEGREE, LARGEST_DEGREE = 20, 50
COMMUNITIES = {"small": (10, 50), "large": (20, 100)}
#: Times that ends are shuffled again before those that are left over are given up.
SHUFFLES = 200


def lfr_graph(n: int, mixing: float, communities: str, seed: int) -> tuple[Any, np.ndarray]:
    """The adjacency matrix and the community of each node; communities are "small" or "large"."""
    rng = np.random.default_rng(seed)
    degrees = _power_law(rng, n, _least_degree(), LARGEST_DEGREE, DEGREES)
    sizes = _sizes(rng, n, *COMMUNITIES[communities])
    inside = np.round((1.0 - mixing) * degrees).astype(int)
    labels = _assign(rng, inside, sizes)
    inside = np.minimum(inside, sizes[labels] - 1)
    edges: set[tuple[int, int]] = set()
    for community in range(len(sizes)):
        members = np.flatnonzero(labels == community)
        _pair(rng, np.repeat(members, inside[members]), edges, lambda a, b: True)
    _pair(rng, np.repeat(np.arange(n), degrees - inside), edges, lambda a, b: labels[a] != labels[b])
    ends = np.array(sorted(edges))
    A = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    return sp.csr_array(A + A.T), labels


def _power_law(rng: np.random.Generator, count: int, least: int, largest: int, exponent: float) -> np.ndarray:
    values = np.arange(least, largest + 1)
    shares = values ** -float(exponent)
    return rng.choice(values, count, p=shares / shares.sum())


def _least_degree() -> int:
    """The smallest degree with which the mean is nearest to the one wanted."""

    def mean(least: int) -> float:
        values = np.arange(least, LARGEST_DEGREE + 1)
        return float(np.sum(values ** (1.0 - DEGREES)) / np.sum(values**-DEGREES))

    return min(range(1, MEAN_DEGREE + 1), key=lambda least: abs(mean(least) - MEAN_DEGREE))


def _sizes(rng: np.random.Generator, n: int, least: int, largest: int) -> np.ndarray:
    """Sizes that sum to n, the last one cut; drawn again until that one is large enough."""
    while True:
        sizes: list[int] = []
        while sum(sizes) < n:
            sizes.append(int(_power_law(rng, 1, least, largest, SIZES)[0]))
        sizes[-1] -= sum(sizes) - n
        if sizes[-1] >= least:
            return np.array(sizes)


def _assign(rng: np.random.Generator, inside: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Communities with room, and large enough for the degree inside; nodes of high degree choose first."""
    room, labels = sizes.copy(), np.full(len(inside), -1)
    for node in np.argsort(-inside, kind="stable"):
        open_ones = np.flatnonzero((room > 0) & (sizes > inside[node]))
        open_ones = open_ones if len(open_ones) else np.flatnonzero(room > 0)
        labels[node] = rng.choice(open_ones, p=room[open_ones] / room[open_ones].sum())
        room[labels[node]] -= 1
    return labels


def _pair(rng: np.random.Generator, ends: np.ndarray, edges: set[tuple[int, int]], allowed: Callable[[int, int], bool]) -> None:
    """Pair ends at random and add what is a new and allowed edge."""
    left = ends.tolist()
    for _ in range(SHUFFLES):
        rng.shuffle(left)
        rest: list[int] = []
        for a, b in zip(left[: len(left) // 2 * 2 : 2], left[1::2], strict=True):
            edge = (min(a, b), max(a, b))
            if a == b or edge in edges or not allowed(a, b):
                rest += [a, b]
            else:
                edges.add(edge)
        if not rest:
            return
        left = rest
