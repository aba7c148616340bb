"""A graph of many groups, as pairs, as a matrix and as partitions of a table."""

from collections import namedtuple

import dask
import numpy as np
import scipy.sparse as sp

ENOUGH = "32 GB"


def ring_of_groups(groups=16, size=60, seed=0):
    """Edges of groups of nodes, half of all inside, each once."""
    rng = np.random.default_rng(seed)
    n = groups * size
    tails = rng.integers(0, n, 16 * n)
    inside = rng.random(len(tails)) < 0.75
    heads = np.where(inside, tails // size * size + rng.integers(0, size, len(tails)), rng.integers(0, n, len(tails)))
    pairs = np.sort(np.column_stack([tails, heads])[tails != heads], axis=1)
    return rng.permutation(np.unique(pairs, axis=0))


PAIRS = ring_of_groups()
N = int(PAIRS.max()) + 1


class Partitions(namedtuple("Partitions", ["frame", "npartitions"])):
    """Looks like a dask data frame, which needs pyarrow."""

    @property
    def columns(self):
        return self.frame.columns

    def head(self, npartitions=1):
        return self.frame.head()

    def to_delayed(self):
        cuts = np.linspace(0, len(self.frame), self.npartitions + 1).astype(int)
        return [dask.delayed(self.frame.iloc[a:b]) for a, b in zip(cuts, cuts[1:], strict=False)]


def matrix(weights=None):
    A = sp.coo_array((np.ones(len(PAIRS)) if weights is None else weights, PAIRS.T), shape=(N, N)).tocsr()
    return sp.csr_array(A + A.T)
