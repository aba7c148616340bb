"""The random block graphs of the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.typing import Seed


def block_graph(n: int, alpha: float, beta: float, rng: Seed = 0) -> tuple[FloatArray, NDArray[np.intp]]:
    """Draw one of the paper's test graphs: two halves, randomly permuted.

    Symmetric uniform entries become edges where they reach `alpha` inside a half and `beta` across,
    so edges have probability ``1 - alpha`` and ``1 - beta``. Self-loops count as inside.

    Parameters
    ----------
    n : int
        Nodes in all.
    alpha, beta : float
        Thresholds in [0, 1].
    rng : int or numpy.random.Generator
        Seed or generator; the default always draws the same graph.

    Returns
    -------
    A : ndarray of shape (n, n)
        Adjacency matrix of zeros and ones.
    labels : ndarray of shape (n,)
        The half of each node.

    Examples
    --------
    >>> import cvxnmf
    >>> A, labels = cvxnmf.block_graph(6, 0.0, 1.0)
    >>> bool((A == (labels[:, None] == labels[None, :])).all())
    True
    """
    n = validation.integer("n", n, minimum=2)
    validation.fits_in_memory(n)
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not 0 <= validation.number(name, value) <= 1:
            validation.refuse(f"{name} must lie between 0 and 1, not {value!r}.")
    random = validation.generator(rng)
    uniform = np.triu(random.random((n, n)))
    uniform += np.triu(uniform, 1).T
    labels = random.permutation(np.arange(n) >= n // 2).astype(np.intp)
    same = labels[:, None] == labels[None, :]
    return (uniform >= np.where(same, alpha, beta)).astype(np.float64), labels
