"""Heavy cliques of a weighted graph, grown greedily."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray

#: Rows with the largest sums from which cliques are grown.
SEEDS = 32


def heavy_clique(weights: FloatArray, least: float, ignore_diagonal: bool) -> NDArray[np.intp]:
    """Return a clique of large weights: all above `least`, grown greedily from several seeds, the largest sum of squares wins.

    Where the diagonal counts, it must be above `least` too.
    """
    allowed = weights > least
    if ignore_diagonal:
        np.fill_diagonal(allowed, True)
    candidates = np.flatnonzero(np.diag(allowed))
    heaviest = candidates[np.argsort(-np.where(allowed, weights, 0.0).sum(axis=1)[candidates], kind="stable")]
    best, most = np.zeros(0, dtype=np.intp), 0.0
    for seed in heaviest[:SEEDS]:
        clique = _grow_clique(seed, weights, allowed)
        part = weights[np.ix_(clique, clique)]
        energy = float(np.vdot(part, part))
        if energy > most:
            best, most = clique, energy
    return best if len(best) > 1 or not ignore_diagonal else best[:0]


def _grow_clique(seed: np.intp, weights: FloatArray, allowed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Add the node with the largest total weight to the heavy clique until none fits."""
    clique, total = [seed], weights[seed].copy()
    open_nodes = allowed[seed] & np.diag(allowed)
    open_nodes[seed] = False
    while open_nodes.any():
        node = np.intp(np.argmax(np.where(open_nodes, total, -np.inf)))
        clique.append(node)
        total += weights[node]
        open_nodes &= allowed[node]
        open_nodes[node] = False
    return np.sort(np.array(clique, dtype=np.intp))
